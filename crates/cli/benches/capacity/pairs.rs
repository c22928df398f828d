//! NTS of our server in two forms, in many short measurements that take turns: with the cookie keys of a fleet beside
//! those of a file, and with spans beside none. Another server is as the first one, so that it shows what two processes
//! differ by that do the same.

use std::path::Path;
use std::time::Duration;

use authentick_lab::certificates::Lab;
use authentick_lab::process::Process;
use authentick_rig::pair::Pair;

use super::load::{Kind, key_file};
use super::report::{median, quotients};
use super::{ANTP_SUITES, Error, Row, Subject, authentick, chrony, fleet, listen, load};

/// How long to measure.
#[derive(Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) count: usize,
    /// Of each measurement.
    pub(crate) milliseconds: u64,
    /// Whether server and generator are on hosts of their own.
    pub(crate) isolated: bool,
}

impl Rounds {
    /// So many, as they are measured for a result.
    pub(crate) const fn full(count: usize) -> Self {
        Rounds { count, milliseconds: 250, isolated: true }
    }

    /// As few as show that it works.
    pub(crate) const SMOKE: Rounds = Rounds { count: 2, milliseconds: 30, isolated: false };
}

/// The ratio of a subject's rate to that of the first one: its name, and what it is to reach.
type Goal = (Subject, &'static str, &'static str);

/// Prints what sharing cookie keys costs.
pub(crate) fn compare_fleet(rounds: Rounds) -> Result<(), Error> {
    let (pair, files) = prepare(rounds)?;
    let Some(_fleet) = fleet::start(&pair, &files, listen(Subject::OursFleet, pair.server_address()))? else {
        println!("without memcached: run `cargo xtask peers` first");
        return Ok(());
    };
    let goals =
        [(Subject::OursFleet, "fleet / alone", "0.98"), (Subject::OursAgain, "alone again / alone", "-")];
    compare(rounds, &pair, &files, goals)
}

/// Prints what spans cost: of one request in 64 of all clients, and of each.
pub(crate) fn compare_spans(rounds: Rounds) -> Result<(), Error> {
    let (pair, files) = prepare(rounds)?;
    let goals = [
        (Subject::OursSampled, "spans of 1 in 64 / off", "0.98"),
        (Subject::OursTimed, "spans of all / off", "-"),
        (Subject::OursAgain, "off again / off", "-"),
    ];
    compare(rounds, &pair, &files, goals)
}

fn prepare(rounds: Rounds) -> Result<(Pair, Lab), Error> {
    let files = Lab::new();
    for suite in ANTP_SUITES {
        files.antp_identity(suite, |_| {});
    }
    let (pair, _) = Pair::new(rounds.isolated);
    chrony::write_keys(&files.path().join("keys"), &key_file())?;
    Ok((pair, files))
}

/// Measures our server and the subjects of `goals` in turn, and prints the ratios. A fleet's server runs already.
fn compare<const N: usize>(rounds: Rounds, pair: &Pair, files: &Lab, goals: [Goal; N]) -> Result<(), Error> {
    let subjects: Vec<Subject> = std::iter::once(Subject::Ours).chain(goals.map(|goal| goal.0)).collect();
    let mut servers = Vec::new();
    for &subject in subjects.iter().filter(|subject| **subject != Subject::OursFleet) {
        let config = authentick(files, subject, listen(subject, pair.server_address()), "")?;
        let program = Path::new(env!("CARGO_BIN_EXE_authentick"));
        servers.push(Process::start(pair.on_server(program).arg("serve").arg("--config").arg(config)));
    }
    std::thread::sleep(Duration::from_millis(1500));
    let this = std::env::current_exe()?;
    let mut rows: Vec<Row> = subjects.iter().map(|&subject| Row::new(subject, Kind::Nts15)).collect();
    for round in 0..rounds.count {
        // Each comes first as often as last.
        for place in 0..rows.len() {
            let row = &mut rows[(round + place) % subjects.len()];
            let measured = load(pair, &this, row, &files.ca(), rounds.milliseconds)?;
            row.add(&measured);
        }
    }
    rows.iter().try_for_each(Row::judge)?;
    println!(
        "path: {}; NTS, AEAD 15, answers/s: {:.0} of the server that others are compared with; {} rounds of {} ms each",
        pair.path_name(),
        median(&rows[0].rates),
        rounds.count,
        rounds.milliseconds
    );
    println!("{:<24} {:>6} {:>17}   to reach", "ratio", "median", "95 % interval");
    for (row, (_, name, goal)) in rows[1..].iter().zip(goals) {
        let ratios = quotients(&row.rates, &rows[0].rates);
        let (low, high) = interval(&ratios);
        println!("{name:<24} {:>6.3} {:>17}   {goal}", median(&ratios), format!("{low:.3} .. {high:.3}"));
    }
    Ok(())
}

/// Between which values the median of all that could be measured lies with 95 % confidence, whatever their
/// distribution: ranks by the binomial distribution, in its normal approximation.
fn interval(values: &[f64]) -> (f64, f64) {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let (count, last) = (values.len() as f64, values.len() - 1);
    let half = 0.98 * count.sqrt();
    let low = (count / 2.0 - half).floor().max(0.0) as usize;
    let high = ((count / 2.0 + half).ceil() as usize).min(last);
    (values[low.min(last)], values[high])
}
