//! Key exchanges of ANTP: how many a second one core answers, beside the KEM alone on that core.
//!
//! The server's packet worker and its public-key thread share the core, as all threads of a server do here; the KEM
//! alone runs with the priority of the latter, so that other programs take as much from both. Requests are made
//! beforehand and sent again and again: the generator has no public-key work.

use std::fmt::Write as _;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_crypto::kem::{Kem, PrivateKey, PublicKey};
use authentick_ke::tls::{certificates, public_key_info};
use authentick_lab::certificates::Lab;
use authentick_lab::process::Process;
use authentick_rig::pair::Pair;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;

use super::load::Kind;
use super::report::{median, quotients};
use super::{Error, Row, Subject};

/// Ciphertexts that the KEM alone takes in turn.
const CIPHERTEXT_COUNT: usize = 128;
/// How long the server has for what is still in its queue when the load has ended.
const DRAIN: Duration = Duration::from_millis(50);

/// One suite: its word, its load, its KEM, and the least share of the KEM's rate that is to be reached end to end.
struct Suite {
    word: &'static str,
    kind: Kind,
    kem: Kem,
    share: f64,
}

const SUITES: [Suite; 2] = [
    Suite { word: "ecdh", kind: Kind::AntpEcdh, kem: Kem::P256, share: 0.77 },
    Suite { word: "rsa", kind: Kind::AntpRsa, kem: Kem::RsaPkcs1, share: 0.87 },
];

/// So many operations, in so much time, of which so much was a thread's.
struct Work {
    count: f64,
    seconds: f64,
    cpu_seconds: f64,
}

impl FromStr for Work {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            [count, seconds, cpu_seconds] => Ok(Work {
                count: count.parse()?,
                seconds: seconds.parse()?,
                cpu_seconds: cpu_seconds.parse()?,
            }),
            _ => Err("no work".into()),
        }
    }
}

/// What one suite came to, round by round.
struct Figures {
    /// Key exchanges a second.
    row: Row,
    /// Operations a second of the KEM alone, and microseconds of processor time for each.
    kem_rates: Vec<f64>,
    kem_us: Vec<f64>,
    /// Microseconds of the public-key thread and of the whole server for each key exchange.
    thread_us: Vec<f64>,
    server_us: Vec<f64>,
}

/// The table of key exchanges.
pub(crate) struct Exchanges {
    figures: [Figures; SUITES.len()],
}

impl Exchanges {
    pub(crate) fn new() -> Self {
        Exchanges {
            figures: SUITES.map(|suite| Figures {
                row: Row::new(Subject::Ours, suite.kind),
                kem_rates: Vec::new(),
                kem_us: Vec::new(),
                thread_us: Vec::new(),
                server_us: Vec::new(),
            }),
        }
    }

    /// # Errors
    /// If the server gave no answers, or bad ones.
    pub(crate) fn judge(&self) -> Result<(), Error> {
        self.figures.iter().try_for_each(|figures| figures.row.judge())
    }

    /// Measures one round: the KEM alone and `server`, for each suite.
    pub(crate) fn round(
        &mut self,
        pair: &Pair,
        this: &Path,
        files: &Lab,
        server: &Process,
        milliseconds: u64,
    ) -> Result<(), Error> {
        for (suite, figures) in SUITES.iter().zip(&mut self.figures) {
            let mut command = pair.on_server(this);
            command.args(["--kem", suite.word, &milliseconds.to_string()]);
            command.args([files.antp_chain(suite.word), files.antp_key(suite.word)]);
            let output = command.output()?;
            let (text, problem) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            let kem: Work = text.parse().map_err(|_| format!("{} alone: {text}{problem}", suite.kem))?;
            figures.kem_rates.push(kem.count / kem.seconds);
            figures.kem_us.push(kem.cpu_seconds * 1e6 / kem.count);

            let threads = || (cpu_seconds(server, Some("antp-0")), cpu_seconds(server, None));
            let before = threads();
            let measured = super::load(pair, this, &figures.row, &files.ca(), milliseconds)?;
            std::thread::sleep(DRAIN);
            let after = threads();
            figures.row.add(&measured);
            // Each request that left was worked on, whether or not its answer came in time to be counted.
            let per_exchange = |seconds: f64| seconds * 1e6 / measured.sent as f64;
            figures.thread_us.push(per_exchange(after.0 - before.0));
            figures.server_us.push(per_exchange(after.1 - before.1));
        }
        Ok(())
    }

    /// The table, and the ratios of the suites.
    pub(crate) fn report(&self) -> String {
        let mut text = format!(
            "{:<14} {:>11} {:>8} {:>12} {:>12} {:>12} {:>14} {:>8}\n",
            "key exchange",
            "exchanges/s",
            "KEM/s",
            "ratio",
            "by CPU time",
            "us of server",
            "of its thread",
            "of KEM"
        );
        for (suite, Figures { row, kem_rates, kem_us, thread_us, server_us }) in
            SUITES.iter().zip(&self.figures)
        {
            let ratio = median(&quotients(&row.rates, kem_rates));
            writeln!(
                text,
                "{:<14} {:>11.0} {:>8.0} {:>12} {:>12.2} {:>12.1} {:>14} {:>8.1}",
                suite.word,
                median(&row.rates),
                median(kem_rates),
                format!("{ratio:.2} ({:.2})", suite.share),
                median(&quotients(kem_us, server_us)),
                median(server_us),
                format!("{:.1} ({:.2})", median(thread_us), median(&quotients(thread_us, kem_us))),
                median(kem_us),
            )
            .expect("writing to a string cannot fail");
        }
        let [ecdh, rsa] = &self.figures;
        let ratio = |a: &[f64], b: &[f64]| median(&quotients(a, b));
        writeln!(
            text,
            "in brackets: of the ratio, what is to be reached; of the thread's time, how much of the KEM's it is \
             (1.15)\n\
             ECDH / RSA: key exchanges {:.2} (paper 7.54), KEM {:.2} (paper 8.62), by the thread's time {:.2}",
            ratio(&ecdh.row.rates, &rsa.row.rates),
            ratio(&ecdh.kem_rates, &rsa.kem_rates),
            ratio(&rsa.thread_us, &ecdh.thread_us),
        )
        .expect("writing to a string cannot fail");
        text
    }
}

/// Processor time of a server's threads of a name, or of all; zero if the system does not tell.
fn cpu_seconds(server: &Process, name: Option<&str>) -> f64 {
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.id())).into_iter().flatten().flatten();
    let named = threads.filter(|thread| {
        let comm = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        name.is_none_or(|name| comm.trim() == name)
    });
    named.map(|thread| scheduled_seconds(&thread.path())).sum()
}

/// Processor time of a thread: the first number of its schedstat, in nanoseconds. Documentation/scheduler/sched-stats.
fn scheduled_seconds(thread: &Path) -> f64 {
    let text = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Decapsulates in a loop, and prints how often.
pub(crate) fn kem_alone(
    word: &str,
    duration: Duration,
    chain: &Path,
    private_key: &Path,
) -> Result<(), Error> {
    let suite = SUITES.iter().find(|suite| suite.word == word).ok_or("no such suite")?;
    let chain = certificates(&std::fs::read(chain)?)?;
    let spki = chain.first().and_then(|leaf| public_key_info(leaf)).ok_or("the leaf is broken")?;
    let public = PublicKey::from_spki(suite.kem, spki)?;
    let private = PrivatePkcs8KeyDer::from_pem_file(private_key)?;
    let private = PrivateKey::from_pkcs8(suite.kem, private.secret_pkcs8_der())?;
    let mut entropy = Entropy::from_system()?;
    let made: Vec<_> = (0..CIPHERTEXT_COUNT).map(|_| public.encapsulate(&mut entropy)).collect();
    // The first operation makes what the others share.
    let _ = private.decapsulate(&made[0].0);
    let this_thread = Path::new("/proc/thread-self");
    let (start, before, mut count) = (Instant::now(), scheduled_seconds(this_thread), 0u64);
    while start.elapsed() < duration {
        for (ciphertext, key) in &made {
            if private.decapsulate(ciphertext).as_ref() != Some(key) {
                return Err("the KEM gives another key".into());
            }
            count += 1;
            if start.elapsed() >= duration {
                break;
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{count} {seconds} {}", scheduled_seconds(this_thread) - before);
    Ok(())
}
