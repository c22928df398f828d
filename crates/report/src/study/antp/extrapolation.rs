//! The clients that one server can serve (section 4.2, Results and extrapolation), with the paper's rate and with those
//! that were measured.
//!
//! The paper multiplies the rate of time requests by the poll interval, and leaves out the rare phases. With a rate for
//! each phase, their share of the same core is known too.

use super::figures::Which;
use super::{AntpRecord, Path, Phase, Subject, Suite};
use crate::pool::{Demand, PAPER_CLIENTS, PAPER_POLL_SECONDS, PAPER_RATIO_POLL_SECONDS, Pool, note};
use crate::published::antp::TIME_RPS;
use crate::render::{Block, Table, or_absent};
use crate::units::{count, percent, rate, trimmed};

const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;

/// How often clients ask, and how often they exchange keys.
#[derive(Clone, Copy, Debug)]
struct Clients {
    poll: &'static str,
    poll_seconds: f64,
    rekey: &'static str,
    rekey_seconds: f64,
    /// What the paper has of them.
    published: Option<Published>,
}

#[derive(Clone, Copy, Debug)]
enum Published {
    /// How many one server can serve.
    Clients(u64),
    /// N of the messages of its phases, 1:1:N.
    Messages(u32),
}

const MONTH: (&str, f64) = ("a month", 30.0 * DAY);
const HALF_YEAR: (&str, f64) = ("half a year", 180.0 * DAY);
const ITS_NINE_HOURS: (&str, f64) = ("2^15 s, its \u{201c}9 hours\u{201d}", PAPER_POLL_SECONDS);
const NINE_HOURS: (&str, f64) = ("9 hours", 9.0 * HOUR);
const HALF_HOUR: (&str, f64) = ("30 minutes", PAPER_RATIO_POLL_SECONDS);

impl Clients {
    const fn new(
        poll: (&'static str, f64),
        rekey: (&'static str, f64),
        published: Option<Published>,
    ) -> Self {
        Clients { poll: poll.0, poll_seconds: poll.1, rekey: rekey.0, rekey_seconds: rekey.1, published }
    }

    /// The paper's, as its figures have them.
    const ALL: [Clients; 4] = [
        Clients::new(ITS_NINE_HOURS, MONTH, Some(Published::Clients(PAPER_CLIENTS))),
        Clients::new(NINE_HOURS, MONTH, None),
        Clients::new(HALF_HOUR, MONTH, Some(Published::Messages(1440))),
        Clients::new(HALF_HOUR, HALF_YEAR, Some(Published::Messages(8640))),
    ];

    /// How many of them a server serves that has these rates.
    fn of(self, rates: Rates) -> Option<Pool> {
        let Clients { poll_seconds, rekey_seconds, .. } = self;
        let Rates { time_rps, exchange_rps, negotiation_rps } = rates;
        Demand { time_rps, exchange_rps, negotiation_rps, poll_seconds, rekey_seconds }.pool().ok()
    }

    /// The same with the rate that the paper quotes.
    fn by_the_paper(self) -> Option<Pool> {
        self.of(Rates { time_rps: TIME_RPS, exchange_rps: None, negotiation_rps: None })
    }
}

/// Answers a second of each phase.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rates {
    time_rps: f64,
    exchange_rps: Option<f64>,
    negotiation_rps: Option<f64>,
}

impl Rates {
    /// Those of the trials that count; `None` without any of time synchronisation.
    fn measured(record: &AntpRecord, suite: Suite) -> Option<Self> {
        let rps =
            |subject| record.throughput(Which::Valid, subject, Path::Short).map(|found| found.rps.value);
        Some(Rates {
            time_rps: rps(Subject::TIME).filter(|rps| *rps > 0.0)?,
            exchange_rps: rps(Subject::new(Phase::Exchange, suite)),
            negotiation_rps: rps(Subject::new(Phase::Negotiation, suite)),
        })
    }
}

/// The section: what follows, the table, and what the paper's own figures mean.
pub(super) fn blocks(record: &AntpRecord) -> Vec<Block> {
    let said = sentence(record).map(Block::paragraph);
    said.into_iter().chain([Block::Table(table(record))]).collect()
}

/// How many clients one core serves here, for each that the paper's does.
fn sentence(record: &AntpRecord) -> Option<String> {
    let rates = Rates::measured(record, Suite::Ecdh)?;
    let pool = Clients::ALL[0].of(rates)?;
    let clients = pool.clients;
    let rare = match pool.exchange_share {
        Some(share) => format!(
            " The paper leaves the other two phases out, as they are rare; with new keys every month they take {} % of \
             the core.",
            percent(share)
        ),
        None => String::new(),
    };
    let least = match record.why_idle(Subject::TIME) {
        Some(why) => format!(" That is the least: {why}."),
        None => String::new(),
    };
    Some(format!(
        "One core that answers {} time requests a second serves {} clients that poll every 2^15 s: {} times the \
         paper\u{2019}s {}.{rare}{least}",
        rate(rates.time_rps),
        count(clients),
        trimmed(clients as f64 / PAPER_CLIENTS as f64, 2),
        count(PAPER_CLIENTS)
    ))
}

fn table(record: &AntpRecord) -> Table {
    let ours = Suite::ALL.map(|suite| (suite, Rates::measured(record, suite)));
    let time = |clients: &Clients| ours[0].1.and_then(|rates| clients.of(rates));
    Table::of("Clients of one server", Clients::ALL)
        .words("They ask every", |clients| clients.poll)
        .words("New keys every", |clients| clients.rekey)
        .number("Published", |clients| match clients.published {
            Some(Published::Clients(number)) => count(number),
            Some(Published::Messages(number)) => format!("1:1:{number}"),
            None => or_absent(None::<u64>),
        })
        .number("Messages", |clients| {
            or_absent(clients.by_the_paper().map(|pool| format!("1:1:{}", trimmed(pool.times_per_exchange, 1))))
        })
        .number("By the paper\u{2019}s rate", |clients| {
            or_absent(clients.by_the_paper().map(|pool| count(pool.clients)))
        })
        .number("By ours, time alone", |clients| or_absent(time(clients).map(|pool| count(pool.clients))))
        .each(
            ours,
            |(suite, _)| format!("All phases, {}", suite.name()),
            |clients, (_, rates)| {
                let pool = rates.and_then(|rates| clients.of(rates));
                let all = pool.and_then(|pool| pool.clients_with_all_phases.zip(pool.exchange_share));
                or_absent(all.map(|(clients, share)| format!("{} ({} %)", count(clients), percent(share))))
            },
        )
        .noted([
            "All phases: with negotiations and key exchanges on the same core, in parentheses what they take of it."
                .to_owned(),
            note(),
        ])
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;
    use crate::render::{Layout, Report, Section};

    fn text(record: &AntpRecord) -> String {
        let report = Report::new("t", Layout::Nested, vec![Section::of("s", blocks(record))]);
        report.text().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn published_figures_follow_from_the_published_rate_and_their_own_interval() {
        for clients in Clients::ALL {
            let pool = clients.by_the_paper().unwrap();
            match clients.published {
                Some(Published::Clients(number)) => assert_eq!(pool.clients, number),
                Some(Published::Messages(number)) => {
                    assert!((pool.times_per_exchange - f64::from(number)).abs() < 1e-9, "{pool:?}");
                }
                None => assert_ne!(pool.clients, PAPER_CLIENTS),
            }
        }
    }

    #[test]
    fn ours_are_of_the_measured_rates_with_the_share_of_the_rare_phases() {
        // 200,000 time requests, 20,000 and 4,000 key exchanges, 150,000 and 140,000 negotiations a second.
        let text = text(&record());
        assert!(
            text.contains("serves 6,553,600,000 clients that poll every 2^15 s: 1.14 times the paper"),
            "{text}"
        );
        assert!(text.contains("360,000,000"), "{text}");
        let core = |exchange: f64, negotiation: f64| {
            let rare = (1.0 / exchange + 1.0 / negotiation) / (30.0 * DAY);
            rare / (rare + 1.0 / (200_000.0 * PAPER_POLL_SECONDS))
        };
        for share in [core(20_000.0, 150_000.0), core(4_000.0, 140_000.0)] {
            assert!(text.contains(&format!("({} %)", percent(share))), "{share} {text}");
        }
    }

    #[test]
    fn rate_of_an_idle_server_is_said_to_be_the_least_and_none_to_be_none() {
        let mut idle = record();
        assert!(!text(&idle).contains("That is the least"));
        for trial in idle.trials.iter_mut().filter(|trial| trial.subject == Subject::TIME) {
            trial.server_share = Some(0.4);
        }
        assert!(text(&idle).contains("That is the least: the server used 40.00 %"), "{}", text(&idle));
        idle.trials.clear();
        let nothing = text(&idle);
        assert!(!nothing.contains("One core that answers") && nothing.contains("5,755,502,592"), "{nothing}");
    }
}
