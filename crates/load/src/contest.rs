//! Single exchanges under every scheme in turns: what authentication adds to one.

use std::net::SocketAddr;
use std::time::Duration;

use authentick_client::antp::establish_by_clock;
use authentick_client::antp::phases::{TimeAsk, ask_time};
use authentick_client::trust::Anchor;
use authentick_client::{Learnt, Measurement, mac, nts, plain};
use authentick_crypto::Entropy;
use authentick_ke::client::{Ask, dial};
use authentick_ke::tls::{Roots, client_config};
use authentick_net::affinity;
use authentick_net::clock::unix_seconds;
use authentick_proto::antp::client::{Bounds, Session};
use authentick_proto::symmetric::SymmetricKey;
use authentick_report::{AntpPhases, Exchange, Failure, KeyExchange, SchemeRun};
use authentick_wire::antp::Suite;
use authentick_wire::ke::AeadId;
use authentick_wire::time::NtpTime;
use rustls::pki_types::ServerName;

/// Exchanges of a scheme's turn that count, and the uncounted ones before them.
const TURN: u32 = 25;
const WARM_UP: u32 = 5;
/// The pause between exchanges: a client that asks too fast would measure queues.
const PAUSE: Duration = Duration::from_millis(1);
const TIMEOUT: Duration = Duration::from_secs(1);
const KE_TIMEOUT: Duration = Duration::from_secs(5);

/// A server of every scheme, and what its clients know of it.
#[derive(Debug)]
pub struct Server<'a> {
    /// Where it is asked for time.
    pub ntp: SocketAddr,
    /// Where it exchanges keys under NTS.
    pub key_exchange: &'a [SocketAddr],
    /// The name that its certificates have.
    pub name: ServerName<'static>,
    /// Who vouches for it.
    pub roots: &'a Roots,
    /// Its suites of ANTP, at least one.
    pub suites: &'a [Suite],
}

/// Asks once; or says why no answer passed.
type AskOnce = Box<dyn FnMut(&mut Entropy) -> Result<Measurement, String>>;

/// One scheme, and what it has measured so far.
pub struct Contestant {
    ask: AskOnce,
    /// What it has measured.
    pub run: SchemeRun,
}

impl Contestant {
    fn new<E: ToString>(
        scheme: &str,
        authentication: &impl ToString,
        mut ask: impl FnMut(&mut Entropy) -> Result<Measurement, E> + 'static,
    ) -> Self {
        let run = SchemeRun {
            scheme: scheme.to_owned(),
            authentication: authentication.to_string(),
            key_exchange: None,
            antp_phases: None,
            exchanges: Vec::new(),
            failures: Vec::new(),
        };
        Contestant { ask: Box::new(move |entropy| ask(entropy).map_err(|error| error.to_string())), run }
    }
}

impl Server<'_> {
    /// Plain NTP, a MAC under `key`, NTS with the algorithm that every server has and with the one of the shortest
    /// cookies, and ANTP with each suite, with the first of them also with tags that come by themselves.
    ///
    /// # Errors
    /// A sentence, if the server does not exchange keys under some scheme.
    pub fn contestants(&self, key: SymmetricKey, entropy: &mut Entropy) -> Result<Vec<Contestant>, String> {
        let server = self.ntp;
        let mut contestants = vec![
            Contestant::new("plain", &"none", move |entropy| plain::ask(server, entropy, TIMEOUT)),
            Contestant::new("mac", &key.algorithm(), move |entropy| mac::ask(server, &key, entropy, TIMEOUT)),
        ];
        for aead in [AeadId::SIV_CMAC_256, AeadId::AES_128_GCM_SIV] {
            contestants.push(self.under_nts(aead)?);
        }
        let mut sessions = Vec::new();
        for &suite in self.suites {
            let (session, phases) = self.establish(suite, entropy)?;
            sessions.push((session.clone(), suite));
            let mut contestant = self.under_antp(session, &suite, false);
            contestant.run.antp_phases = Some(phases);
            contestants.push(contestant);
        }
        let (session, suite) = sessions.swap_remove(0);
        contestants.push(self.under_antp(session, &format!("{suite}, separate tag"), true));
        Ok(contestants)
    }

    /// Exchanges keys with one algorithm.
    fn under_nts(&self, aead: AeadId) -> Result<Contestant, String> {
        let tls = client_config(self.roots.clone());
        let ask = Ask { tls, server_name: self.name.clone(), aeads: vec![aead] };
        let dialled = dial(&ask, self.key_exchange, KE_TIMEOUT)
            .map_err(|error| format!("key exchange with {aead}: {error}"))?;
        let (server, timing, mut session) = (self.ntp, dialled.timing, dialled.established.session);
        let mut contestant =
            Contestant::new("nts", &aead, move |entropy| nts::ask(server, &mut session, entropy, TIMEOUT));
        contestant.run.key_exchange = Some(KeyExchange {
            connect_ns: nanos(timing.connect),
            handshake_ns: nanos(timing.handshake),
            exchange_ns: nanos(timing.exchange),
        });
        Ok(contestant)
    }

    fn under_antp(&self, mut session: Session, authentication: &impl ToString, separate: bool) -> Contestant {
        let server = self.ntp;
        let ask = TimeAsk { is_separate: separate, is_fresh: false, bounds: Bounds::WAN };
        Contestant::new("antp", authentication, move |entropy| {
            ask_time(server, &mut session, ask, entropy, TIMEOUT).map(|timed| timed.measurement)
        })
    }

    /// The first two phases of ANTP, with every check.
    fn establish(&self, suite: Suite, entropy: &mut Entropy) -> Result<(Session, AntpPhases), String> {
        let anchor = Anchor::authorities(self.roots, self.name.clone())
            .map_err(|bad| format!("certificate authorities: {bad}"))?;
        let mut learnt = Learnt::default();
        let established = establish_by_clock(self.ntp, suite, &anchor, entropy, TIMEOUT, &mut learnt)
            .map_err(|(_, why)| format!("ANTP with {suite}: {why}"))?;
        let ns = |spent: Option<Duration>| spent.map_or(0, nanos);
        let times = learnt.times;
        let phases = AntpPhases {
            negotiation_ns: ns(times.negotiation),
            certificate_check_ns: ns(times.certificate_check),
            encapsulation_ns: ns(times.encapsulation),
            exchange_ns: ns(times.key_exchange),
        };
        Ok((established.session, phases))
    }
}

/// Asks with each scheme in turns of some exchanges. The first ones of a turn do not count: they bring the scheme's
/// code and data back into the caches at both ends, which the other schemes have used meanwhile. With turns of a single
/// exchange, the cache misses took ten times as long as the cryptography. `each` gets how many exchanges all schemes
/// have had since the last call, and decides whether they go on.
pub fn compare(
    contestants: &mut [Contestant],
    count: u32,
    entropy: &mut Entropy,
    mut each: impl FnMut(u32) -> bool,
) {
    pin_client();
    let mut left = count;
    for round in 0.. {
        let size = TURN.min(left);
        for place in order(round, contestants.len()) {
            let Contestant { ask, run } = &mut contestants[place];
            for number in 0..WARM_UP + size {
                std::thread::sleep(PAUSE);
                match ask(entropy) {
                    _ if number < WARM_UP => {}
                    Ok(measurement) => run.exchanges.push(exchange(&measurement)),
                    Err(cause) => count_failure(&mut run.failures, cause),
                }
            }
        }
        left -= size;
        if !each(size) || left == 0 {
            return;
        }
    }
}

/// Where client and server run: on two processors if there are two, so that neither waits for the other.
fn pin_client() {
    if let Ok([_, .., last]) = affinity::allowed().as_deref()
        && let Err(error) = affinity::pin(*last)
    {
        log::debug!("the client is not pinned to a processor: {error}");
    }
}

/// The order of the schemes in a round: each begins some round, and every other round goes backwards, so that no scheme
/// always follows the same one.
fn order(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| {
        let place = (round / 2 + turn) % count;
        if round.is_multiple_of(2) { place } else { count - 1 - place }
    })
}

fn count_failure(failures: &mut Vec<Failure>, cause: String) {
    match failures.iter_mut().find(|failure| failure.cause == cause) {
        Some(failure) => failure.count += 1,
        None => failures.push(Failure { cause, count: 1 }),
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn exchange(measurement: &Measurement) -> Exchange {
    let pivot = i64::try_from(unix_seconds()).unwrap_or(0);
    let unix_ns = |time: NtpTime| {
        let (seconds, nanos) = time.to_unix(pivot);
        seconds * 1_000_000_000 + i64::from(nanos)
    };
    let header = &measurement.response.header;
    Exchange {
        sent_ns: unix_ns(measurement.sent),
        server_receive_ns: unix_ns(header.receive),
        server_transmit_ns: unix_ns(header.transmit),
        arrived_ns: unix_ns(measurement.arrived),
        offset_ns: measurement.sample.offset.as_nanos(),
        delay_ns: measurement.sample.delay.as_nanos(),
        whole_ns: nanos(measurement.whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_has_a_turn_in_each_round_and_no_fixed_neighbour() {
        const COUNT: usize = 7;
        let rounds: Vec<Vec<usize>> = (0..2 * COUNT).map(|round| order(round, COUNT).collect()).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..COUNT).collect::<Vec<_>>());
        }
        for scheme in 0..COUNT {
            let firsts = rounds.iter().filter(|round| round[0] == scheme).count();
            assert_eq!(firsts, 2, "{scheme}");
            let before: std::collections::BTreeSet<usize> = rounds
                .iter()
                .filter_map(|round| Some(round[round.iter().position(|&one| one == scheme)?.checked_sub(1)?]))
                .collect();
            assert!(before.len() >= 2, "{scheme} always comes after {before:?}");
        }
    }
}
