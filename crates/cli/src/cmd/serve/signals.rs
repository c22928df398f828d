//! What each signal means to a server. None that comes from habit, such as the SIGUSR1 of a rotation of logs, ends it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXFSZ,
};
use signal_hook::flag::register_conditional_shutdown;
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

use crate::exit::Exit;

/// What a server does on a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It reads its files again.
    Reload,
    /// It stops.
    Stop,
    /// It logs the signal, and goes on.
    Ignore,
}

const RELOAD: [i32; 1] = [SIGHUP];
const STOP: [i32; 3] = [SIGTERM, SIGINT, SIGQUIT];
const IGNORE: [i32; 7] = [SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGXFSZ];
/// Signals for real time; the two below are the C library's own. signal(7).
const REAL_TIME: core::ops::RangeInclusive<i32> = 34..=64;

impl Meaning {
    pub(super) fn of(signal: i32) -> Self {
        match signal {
            _ if RELOAD.contains(&signal) => Meaning::Reload,
            _ if STOP.contains(&signal) => Meaning::Stop,
            _ => Meaning::Ignore,
        }
    }
}

/// Receives signals from now on: to be called before any thread is started, so that none of them is hit by one. A
/// start that waits or hangs is stopped at once for as long as `is_starting`, as the first process of a container too,
/// which no signal ends by default; other signals wait for its end.
pub(super) fn receive(is_starting: &Arc<AtomicBool>) -> io::Result<Signals> {
    let signals = Signals::new(RELOAD.iter().chain(&STOP).chain(&IGNORE))?;
    for signal in REAL_TIME {
        // A C library may keep more of them to itself.
        let _ = signals.handle().add_signal(signal);
    }
    for signal in STOP {
        register_conditional_shutdown(signal, Exit::Done as i32, Arc::clone(is_starting))?;
    }
    Ok(signals)
}

/// The name of a signal.
pub(super) fn name(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::SIGNALS_HELP;

    #[test]
    fn help_and_manual_name_each_signal_with_its_meaning() {
        let manual = include_str!("../../../../../docs/manual/serving.md");
        let page: Vec<&str> = manual.lines().filter(|line| line.starts_with("| `SIG")).collect();
        // A list that is too long for its column goes on in the next line.
        let help = SIGNALS_HELP.replace("real-time signals\n", "real-time signals ");
        let help: Vec<&str> = help.lines().filter(|line| line.trim().starts_with("SIG")).collect();
        for (signals, words) in
            [(&RELOAD[..], "reads"), (&STOP[..], "stops"), (&IGNORE[..], "ignored, and logged")]
        {
            for &signal in signals {
                let name = name(signal);
                for (place, lines) in [("manual", &page), ("help", &help)] {
                    let is_named = |line: &&str| line.contains(&name) && line.contains(words);
                    assert!(lines.iter().any(is_named), "{place}: {name} {words}");
                }
            }
        }
    }

    #[test]
    fn signal_without_a_meaning_is_ignored() {
        assert_eq!(Meaning::of(SIGHUP), Meaning::Reload);
        assert_eq!(Meaning::of(SIGQUIT), Meaning::Stop);
        for signal in IGNORE.into_iter().chain(REAL_TIME) {
            assert_eq!(Meaning::of(signal), Meaning::Ignore, "{}", name(signal));
        }
    }
}
