//! Nothing is lost when the server is restarted, upgraded or killed while it is asked.

use std::thread;
use std::time::Duration;

use super::chrony::{self, AuthData};
use super::limited;
use super::load::{Counts, Load};
use super::machine::Machine;
use super::package::Package;
use super::{Report, certificates, server};

/// Requests a second under each scheme, where the kernel lets so many wait.
const RATE_MAX_RPS: u64 = 10_000;
/// For so long no process may be there in a restart. What comes meanwhile has to fit into the sockets.
const GAP: Duration = Duration::from_secs(1);
/// Between two events: clients have had answers again.
const PAUSE: Duration = Duration::from_millis(2_500);
/// What an event may take.
const EVENT_TIME: Duration = Duration::from_secs(2);
/// Before the first event: generators exchange keys, and clients have had answers.
const START: Duration = Duration::from_secs(4);

/// What clients and the service manager have seen.
#[derive(Debug)]
struct Seen {
    /// By scheme.
    counts: [(&'static str, Counts); 2],
    /// Milliseconds from the end of each process until another one was ready, by systemd's clock.
    gaps_ms: Vec<u128>,
}

impl Seen {
    fn lost(&self) -> u64 {
        self.counts.iter().map(|(_, counts)| counts.lost).sum()
    }
}

/// What is done to the server while it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Restart,
    Upgrade,
    Kill,
}

pub(crate) fn prove(machine: &Machine, package: &Package, report: &mut Report) -> Result<(), String> {
    package.install(machine)?;
    certificates::make(machine)?;
    server::configure(machine, server::ONE_PAIR)?;
    let before = chrony::start(machine, certificates::NAME, certificates::AUTHORITY)?;
    let newer = package.newer(machine)?;
    let waiting_count_max = server::waiting_count_max(machine)?;
    let rate = rate(waiting_count_max);
    report.say(&format!(
        "{rate} requests a second under each scheme; {waiting_count_max} can wait in the sockets"
    ));
    if rate < RATE_MAX_RPS {
        report.say("no more as net.core.rmem_max of this system is small");
    }

    let orderly = [Event::Restart, Event::Upgrade, Event::Restart];
    let kills = [Event::Kill, Event::Kill, Event::Kill];
    for (what, events, read_count_max) in
        [("restarts and an upgrade", orderly, 0), ("kills", kills, server::READ_COUNT_MAX)]
    {
        let allowed = events.len() as u64 * read_count_max;
        let mut seen = under_load(machine, rate, &events, &newer)?;
        if let Err(problem) = nothing_lost(&seen, allowed) {
            // On a machine that others keep busy a start may take too long; not twice.
            report.say(&format!("{what}: a second time, as {problem}"));
            seen = under_load(machine, rate, &events, &newer)?;
        }
        report.say(&format!("{what}: another process was ready after {:?} ms", seen.gaps_ms));
        for (scheme, counts) in &seen.counts {
            report.say(&format!("{what}: {scheme}: {counts}"));
            report.count("restart-requests", counts.sent, "requests");
        }
        nothing_lost(&seen, allowed)?;
        report.count("restart-lost-in-killed", seen.lost(), "requests");
        report.count("restarts", events.len() as u64, "restarts");
    }

    let after = chrony::authdata(machine)?;
    report.say(&format!("chronyd: before {before:?}, after {after:?}"));
    same_keys(&before, &after)?;
    control(machine, rate, report)
}

/// Without the manager's store for sockets, a restart loses requests: else nothing of the above shows anything.
fn control(machine: &Machine, rate: u64, report: &Report) -> Result<(), String> {
    machine.succeed(&format!(
        "set -e; mkdir -p /run/systemd/system/{0}.d; cd /run/systemd/system/{0}.d
        printf '[Service]\\nFileDescriptorStoreMax=0\\n' > control.conf
        systemctl daemon-reload; systemctl stop {0}; systemctl start {0}",
        server::UNIT
    ))?;
    server::is_active(machine)?;
    let lost = under_load(machine, rate, &[Event::Restart], "")?.lost();
    report.say(&format!("the control, without the store: {lost} lost"));
    match lost {
        0 => Err("without a store for sockets nothing is lost either, so this proves nothing".to_owned()),
        _ => Ok(()),
    }
}

/// At which rate two schemes fill the sockets in no less than [`GAP`].
fn rate(waiting_count_max: u64) -> u64 {
    let rate = waiting_count_max as f64 / GAP.as_secs_f64() / 2.0;
    RATE_MAX_RPS.min(rate as u64)
}

/// Loads the server under both schemes while things happen to it.
fn under_load(machine: &Machine, rate: u64, events: &[Event], newer: &str) -> Result<Seen, String> {
    let seconds = (START + (EVENT_TIME + PAUSE) * events.len() as u32).as_secs();
    let mut plain = Load::start(machine, "plain", certificates::NAME, rate, seconds)?;
    let secured = format!("{} --ca {}", certificates::NAME, certificates::AUTHORITY);
    let mut nts = Load::start(machine, "nts", &secured, rate, seconds)?;
    thread::sleep(START);
    let mut gaps_ms = Vec::new();
    for event in events {
        happen(machine, *event, newer)?;
        let at = |change: &str| server::instant(machine, &format!("Active{change}TimestampMonotonic"));
        gaps_ms.push(at("Enter")?.saturating_sub(at("Exit")?).as_millis());
        thread::sleep(PAUSE);
    }
    if !plain.is_running()? || !nts.is_running()? {
        return Err("a load had ended before all had happened that it was to see".to_owned());
    }
    Ok(Seen { counts: [("plain", plain.finish(machine)?), ("nts", nts.finish(machine)?)], gaps_ms })
}

/// Does something to the server, and waits until another process serves.
fn happen(machine: &Machine, event: Event, newer: &str) -> Result<(), String> {
    let process = || machine.show(server::UNIT, "MainPID");
    // A unit may be started a few times only in some minutes; this forgets the earlier ones.
    machine.succeed(&format!("systemctl reset-failed {}", server::UNIT))?;
    let old = process()?;
    machine.succeed(&match event {
        Event::Restart => format!("systemctl restart {}", server::UNIT),
        Event::Upgrade => format!("dpkg --install {newer}"),
        Event::Kill => format!("kill -KILL {old}"),
    })?;
    limited::until("another process serves", Duration::from_secs(10), || {
        match (machine.show(server::UNIT, "ActiveState")?.as_str(), process()?) {
            ("active", new) if new != old && new != "0" => Ok(()),
            (state, new) => Err(format!("after {event:?}: {state}, process {new} after {old}")),
        }
    })
}

/// At most `allowed` requests had no answer, and none a wrong one; and requests were made.
fn nothing_lost(seen: &Seen, allowed: u64) -> Result<(), String> {
    if seen.lost() > allowed {
        let Seen { gaps_ms, .. } = seen;
        return Err(format!(
            "{} requests are lost, and killed processes had read {allowed} at most; another was ready after \
             {gaps_ms:?} ms (RestartSec= adds to that)",
            seen.lost()
        ));
    }
    for (scheme, counts) in &seen.counts {
        let due = counts.sent + counts.skipped;
        if counts.invalid > 0 {
            return Err(format!("{scheme}: invalid answers: {counts}"));
        }
        if counts.skipped * 2 > due {
            return Err(format!(
                "{scheme}: this machine is too busy: {} of {due} requests not made",
                counts.skipped
            ));
        }
    }
    Ok(())
}

/// A client has had no NTSN, and needed no key exchange.
fn same_keys(before: &AuthData, after: &AuthData) -> Result<(), String> {
    match after {
        AuthData { nak_count: 1.., .. } => Err(format!("chronyd was sent NTSN: {after:?}")),
        AuthData { key_id, .. } if *key_id != before.key_id => {
            Err(format!("chronyd has exchanged keys again: {before:?}, then {after:?}"))
        }
        AuthData { cookie_count: 0, .. } => Err(format!("chronyd has no cookie left: {after:?}")),
        AuthData { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(sent: u64, lost: u64, invalid: u64, skipped: u64) -> Counts {
        let answered = sent - lost - invalid;
        Counts { sent, skipped, answered, lost, invalid, ..Counts::default() }
    }

    #[test]
    fn rate_is_what_the_sockets_have_room_for() {
        assert_eq!(rate(20_164), RATE_MAX_RPS);
        assert_eq!(rate(1_024), 512);
    }

    #[test]
    fn what_is_lost_or_wrong_is_told() {
        let good = counts(100, 0, 0, 0);
        let of = |counts, allowed| {
            let counts = [("plain", good.clone()), ("nts", counts)];
            nothing_lost(&Seen { counts, gaps_ms: Vec::new() }, allowed)
        };
        assert_eq!(of(counts(100, 0, 0, 0), 0), Ok(()));
        assert!(of(counts(100, 1, 0, 0), 0).is_err());
        assert_eq!(of(counts(100, 1, 0, 0), 1), Ok(()));
        assert!(of(counts(100, 0, 1, 0), 1).is_err());
        assert!(of(counts(40, 0, 0, 60), 0).unwrap_err().contains("too busy"));
    }

    #[test]
    fn client_that_needs_other_keys_is_told() {
        let data = |key_id, nak_count, cookie_count| AuthData { key_id, nak_count, cookie_count };
        let of = |after| same_keys(&data(1, 0, 8), &after);
        assert_eq!(of(data(1, 0, 7)), Ok(()));
        assert!(of(data(1, 1, 8)).unwrap_err().contains("NTSN"));
        assert!(of(data(2, 0, 8)).unwrap_err().contains("again"));
        assert!(of(data(1, 0, 0)).unwrap_err().contains("no cookie"));
    }
}
