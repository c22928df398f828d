//! What the server of a ladder serves, and what follows for the rates of the ladder's steps.
//!
//! A closed loop of key exchanges shows what a whole core serves, and by how busy it keeps the generator, what that
//! could offer. To scale, the server then has a share of a core, so that the generator's limit and its descriptors
//! still do for the highest load; what it serves with that, transfers after each exchange included, is S.

use authentick_load::single;
use authentick_net::descriptors;
use authentick_report::load::Step;
use authentick_report::published::nts::CAPACITY_RPS;
use authentick_report::study::Task;
use authentick_report::study::nts::{Ladder, Plan, ScaleRecord, Settings as NtsSettings};
use authentick_report::units::rate;

use super::record::why_invalid;
use super::{Bench, Came, client_count, client_count_max};
use crate::Error;
use crate::program::say;

/// Key exchanges that are asked for at once: enough to keep a server busy that is left a share of a core.
const WINDOW: u32 = 64;
/// A generator that is busy for a larger share of the time is the limit itself.
const BUSY_SHARE_MAX: f64 = 0.95;
/// The least share of a core that a quota leaves.
const QUOTA_SHARE_MIN: f64 = 0.01;
/// How much less than the most a server is to serve: it may serve a little more than was expected.
const AIM: f64 = 0.85;
/// How often another quota is tried.
const TRIAL_COUNT_MAX: u32 = 3;

/// What was found out.
pub(in crate::nts) struct Scaled {
    whole_core_rps: Option<f64>,
    generator_rps: f64,
    quota_share: Option<f64>,
    capacity_rps: f64,
    memcached: Option<String>,
    isolated: bool,
}

/// What a closed loop showed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Flood {
    answered_rps: f64,
    /// Share of its time for which the generator had something to do.
    busy_share: f64,
}

impl Flood {
    fn of(step: &Step) -> Self {
        let answered_rps = step.answered_rps();
        Flood { answered_rps, busy_share: step.generator_busy_share.unwrap_or(1.0).clamp(0.01, 1.0) }
    }

    /// What the generator could offer and follow to the end, in key exchanges a second.
    fn generator_rps(self) -> f64 {
        self.answered_rps / self.busy_share
    }

    /// What the server serves; `None` if the generator was the limit.
    fn server_rps(self) -> Option<f64> {
        (self.busy_share < BUSY_SHARE_MAX).then_some(self.answered_rps)
    }
}

/// The most that a server to scale may serve, in key exchanges a second: so that the highest load is within the
/// generator's limit, and its exchanges, all of which may hang, within its descriptors.
fn capacity_max_rps(generator_rps: f64, descriptors: Option<u64>, settings: &NtsSettings) -> f64 {
    let highest = f64::from(settings.ladder_last_rps.max(1)) / f64::from(CAPACITY_RPS);
    let [none, one] = [0.0, 1.0].map(|rps| client_count(rps * 1000.0, settings) / 1000.0);
    // Both groups of clients have some to spare.
    let each = (one - none) * highest;
    let room = (client_count_max(descriptors) - 2.0 * client_count(0.0, settings)).max(0.0);
    (generator_rps / highest).min(room / each)
}

impl Bench<'_> {
    /// Finds out what the server of a ladder serves.
    pub(in crate::nts) fn scale(
        &self,
        ladder: Ladder,
        settings: &NtsSettings,
    ) -> Result<Came<Scaled>, Error> {
        let whole = match self.flood(ladder, None, settings)? {
            Came::Measured(flood) => flood,
            Came::Stopped => return Ok(Came::Stopped),
            Came::Impossible(why) => return Ok(Came::Impossible(why)),
        };
        let generator_rps = whole.generator_rps();
        let scaled = |quota_share, capacity_rps| Scaled {
            whole_core_rps: whole.server_rps(),
            generator_rps,
            quota_share,
            capacity_rps,
            memcached: self.memcached_of(ladder.store()),
            isolated: self.is_isolated(),
        };
        if let Ladder::WholeCore(_) = ladder {
            return Ok(Came::Measured(scaled(None, whole.answered_rps)));
        }
        let most_rps = capacity_max_rps(generator_rps, super::descriptors(), settings);
        let next = |share: f64, rps: f64| (share * most_rps * AIM / rps).clamp(QUOTA_SHARE_MIN, 1.0);
        let mut share = next(1.0, whole.answered_rps);
        let mut found_rps = 0.0;
        for _ in 0..TRIAL_COUNT_MAX {
            found_rps = match self.flood(ladder, Some(share), settings)? {
                Came::Measured(flood) => flood.answered_rps,
                Came::Stopped => return Ok(Came::Stopped),
                Came::Impossible(why) => return Ok(Came::Impossible(why)),
            };
            if found_rps <= most_rps {
                return Ok(Came::Measured(scaled(Some(share), found_rps)));
            }
            if share <= QUOTA_SHARE_MIN {
                break;
            }
            share = next(share, found_rps);
        }
        Ok(Came::Impossible(format!(
            "with {share:.2} of a core the server serves {} key exchanges a second, and the highest load is within the \
             generator's limit and descriptors ({}) for {} at most; raise the limit of open files (ulimit -Hn), or \
             measure where nothing else runs",
            rate(found_rps),
            descriptors::limit().map_or_else(|| "no limit".to_owned(), |count| count.to_string()),
            rate(most_rps),
        )))
    }

    /// A closed loop of key exchanges, and under a quota of what a step asks for.
    fn flood(
        &self,
        ladder: Ladder,
        quota_share: Option<f64>,
        settings: &NtsSettings,
    ) -> Result<Came<Flood>, Error> {
        let loaded = match self.begin(ladder, quota_share)? {
            Ok(loaded) => loaded,
            Err(why) => return Ok(Came::Impossible(why)),
        };
        let single::Server { key_exchange, ntp, .. } = loaded.addresses;
        let mut words = match quota_share {
            None => ["load".to_owned(), "ke".to_owned(), key_exchange.to_string()].to_vec(),
            Some(_) => {
                let mut words = ["load".to_owned(), "mix".to_owned(), ntp.to_string()].to_vec();
                self.add_transfers(&mut words, &loaded, settings);
                say(&mut words, "--clients", &(WINDOW * 2));
                words
            }
        };
        say(&mut words, "--closed", &WINDOW);
        say(&mut words, "--step-seconds", &settings.step_seconds);
        self.add_trust(&mut words, &loaded, settings);
        let record = match self.load(&loaded, words)? {
            Came::Measured(record) => record,
            Came::Stopped => return Ok(Came::Stopped),
            Came::Impossible(why) => return Ok(Came::Impossible(why)),
        };
        let Some(step) = record.steps.first() else { return Ok(Came::Stopped) };
        if let Some(why) = why_invalid(step) {
            return Ok(Came::Impossible(format!("what its server serves cannot be told: {why}")));
        }
        match step.tally.answered {
            0 => Ok(Came::Impossible("its server answers no key exchange".to_owned())),
            _ => Ok(Came::Measured(Flood::of(step))),
        }
    }
}

impl Scaled {
    /// The record of the task that it was measured for.
    pub(in crate::nts) fn record(self, plan: &Plan, task: &Task) -> ScaleRecord {
        let Scaled { whole_core_rps, generator_rps, quota_share, capacity_rps, memcached, isolated } = self;
        let factor = match quota_share {
            Some(_) => capacity_rps / f64::from(CAPACITY_RPS),
            None => 1.0,
        };
        ScaleRecord {
            version: plan.version.clone(),
            commit: plan.commit.clone(),
            command: plan.command.clone(),
            started_unix_s: plan.started_unix_s,
            host: plan.machine.clone(),
            task: task.id.clone(),
            isolated,
            memcached,
            whole_core_rps,
            generator_rps,
            descriptors: descriptors::limit(),
            quota_share,
            capacity_rps,
            factor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nts::Nts;
    use crate::paper::Paper;

    fn settings(quick: bool) -> NtsSettings {
        Nts { quick, ..Nts::default() }.plan().settings
    }

    #[test]
    fn generator_s_limit_is_what_it_did_over_how_busy_it_was() {
        let idle = Flood { answered_rps: 2000.0, busy_share: 0.5 };
        assert_eq!((idle.generator_rps(), idle.server_rps()), (4000.0, Some(2000.0)));
        let busy = Flood { answered_rps: 2000.0, busy_share: 1.0 };
        assert_eq!((busy.generator_rps(), busy.server_rps()), (2000.0, None));
    }

    #[test]
    fn highest_load_is_within_the_generator_and_its_descriptors() {
        // 8,000 on the axis are four times what 2,000 are.
        assert_eq!(capacity_max_rps(2000.0, None, &settings(false)), 500.0);
        for quick in [false, true] {
            let settings = settings(quick);
            let most_rps = capacity_max_rps(1e9, Some(20_000), &settings);
            assert!((150.0..800.0).contains(&most_rps), "{most_rps}");
            let [measured, background] =
                [most_rps / 4.0, most_rps * 3.75].map(|rps| client_count(rps, &settings));
            assert!(2.0 * (measured + background) <= 20_000.0, "{measured} {background}");
        }
        assert_eq!(capacity_max_rps(2000.0, Some(100), &settings(false)), 0.0);
    }
}
