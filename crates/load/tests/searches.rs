//! How often the interval of a search holds the truth: a thousand searches against each of several servers whose
//! capacity is known, on a host that spoils trials. No packet is sent; trials are drawn.

use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_load::search::{Found, Search, Settings, Trial};
use authentick_report::load::{Backlog, Exclusion, Limit, Tally};

/// The share of searches that may miss is 0.07. What is aimed at is 0.05 for both ends together.
const COVERED_MIN: f64 = 0.93;
const LOSS_MAX: f64 = 0.01;
const TRIAL_SECONDS: f64 = 5.0;

/// How a server's loss depends on the rate, of which `capacity_rps` is the scale.
#[derive(Clone, Copy, Debug)]
enum Server {
    /// It answers what it can, and drops the rest.
    Sharp,
    /// The same, with a capacity that differs from trial to trial by so large a standard deviation, as a share.
    Wandering(f64),
    /// Its loss grows with this power of the rate, through the tolerated one at its capacity.
    Soft(f64),
    /// It answers what it can; what is too much waits, in a queue that takes what it answers in so many seconds.
    Patient(f64),
    /// A queue with so many places, Poisson arrivals and exponential service times (M/M/1/K).
    Queue(i32),
}

/// What goes wrong beside the server.
#[derive(Clone, Copy, Debug, Default)]
struct Trouble {
    /// Bursts: everything is lost for times of this mean, in seconds, so far apart in the mean. A Markov process.
    burst_seconds: f64,
    quiet_seconds: f64,
    /// Share of trials that a stall of the host spoils, which is noticed.
    spoilt_share: f64,
    /// Share of trials in which a stall goes unnoticed, and the largest loss that it adds.
    unnoticed_share: f64,
    unnoticed_loss_max: f64,
    /// The highest rate that the generator offers in time, of the server's capacity; 0: any.
    generator_reach: f64,
}

#[derive(Clone, Copy, Debug)]
struct Model {
    name: &'static str,
    server: Server,
    trouble: Trouble,
    /// The widest mean interval, as a share of the truth, and the most trials, in the mean.
    width_max: f64,
    trial_count_max: f64,
}

const BURSTS: Trouble = Trouble {
    burst_seconds: 0.003,
    quiet_seconds: 1.0,
    spoilt_share: 0.0,
    unnoticed_share: 0.0,
    unnoticed_loss_max: 0.0,
    generator_reach: 0.0,
};
const STALLS: Trouble = Trouble {
    spoilt_share: 0.15,
    unnoticed_share: 0.05,
    unnoticed_loss_max: 0.01,
    burst_seconds: 0.0,
    ..BURSTS
};
const BOTH: Trouble = Trouble { burst_seconds: 0.003, ..STALLS };

const MODELS: [Model; 12] = [
    Model { name: "sharp", server: Server::Sharp, trouble: QUIET, width_max: 0.05, trial_count_max: 24.0 },
    Model {
        name: "sharp, bursts",
        server: Server::Sharp,
        trouble: BURSTS,
        width_max: 0.06,
        trial_count_max: 26.0,
    },
    Model {
        name: "sharp, stalls",
        server: Server::Sharp,
        trouble: STALLS,
        width_max: 0.07,
        trial_count_max: 32.0,
    },
    Model {
        name: "sharp, both",
        server: Server::Sharp,
        trouble: BOTH,
        width_max: 0.08,
        trial_count_max: 33.0,
    },
    Model {
        name: "wandering, both",
        server: Server::Wandering(0.02),
        trouble: BOTH,
        width_max: 0.15,
        trial_count_max: 46.0,
    },
    Model { name: "soft", server: Server::Soft(6.0), trouble: QUIET, width_max: 0.08, trial_count_max: 32.0 },
    Model {
        name: "soft, both",
        server: Server::Soft(6.0),
        trouble: BOTH,
        width_max: 0.35,
        trial_count_max: 63.0,
    },
    Model {
        name: "queue",
        server: Server::Queue(50),
        trouble: QUIET,
        width_max: 0.06,
        trial_count_max: 26.0,
    },
    Model {
        name: "queue, both",
        server: Server::Queue(50),
        trouble: BOTH,
        width_max: 0.12,
        trial_count_max: 42.0,
    },
    // A queue that holds a fifth of what a trial offers, and one that takes all of it.
    Model {
        name: "patient",
        server: Server::Patient(1.0),
        trouble: QUIET,
        width_max: 0.05,
        trial_count_max: 26.0,
    },
    Model {
        name: "most patient, both",
        server: Server::Patient(60.0),
        trouble: BOTH,
        width_max: 0.09,
        trial_count_max: 36.0,
    },
    Model {
        name: "beyond the generator, both",
        server: Server::Sharp,
        trouble: Trouble { generator_reach: 0.6, ..BOTH },
        width_max: 0.0,
        trial_count_max: 36.0,
    },
];
const QUIET: Trouble = Trouble { burst_seconds: 0.0, ..BURSTS };

struct Random(Entropy);

impl Random {
    /// In (0, 1].
    fn uniform(&mut self) -> f64 {
        ((self.0.u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Box and Muller.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -self.uniform().ln() * mean
    }

    /// The time of a trial that lies in bursts, as a share.
    fn burst_share(&mut self, trouble: &Trouble) -> f64 {
        if trouble.burst_seconds == 0.0 {
            return 0.0;
        }
        let (mut at, mut lost) = (0.0, 0.0);
        let mut is_burst = self.uniform() < trouble.burst_mean();
        while at < TRIAL_SECONDS {
            let mean = if is_burst { trouble.burst_seconds } else { trouble.quiet_seconds };
            let length = self.exponential(mean).min(TRIAL_SECONDS - at);
            at += length;
            lost += if is_burst { length } else { 0.0 };
            is_burst = !is_burst;
        }
        lost / TRIAL_SECONDS
    }
}

impl Trouble {
    fn burst_mean(&self) -> f64 {
        self.burst_seconds / (self.burst_seconds + self.quiet_seconds)
    }

    /// Whether the generator offers the rate in time: less and less often around its limit.
    fn offers(&self, load: f64, random: &mut Random) -> bool {
        let over = load / self.generator_reach;
        self.generator_reach == 0.0 || random.uniform() > (over - 0.95) / 0.1
    }
}

impl Server {
    /// The loss in the long run at `load`, the rate as a share of the capacity; `chance` is a standard normal variable.
    fn loss(self, load: f64, chance: f64) -> f64 {
        match self {
            Server::Sharp | Server::Patient(_) => (1.0 - 1.0 / load).max(0.0),
            Server::Wandering(deviation) => (1.0 - (deviation * chance).exp() / load).max(0.0),
            Server::Soft(power) => (LOSS_MAX * load.powf(power)).min(1.0),
            Server::Queue(places) if (load - 1.0).abs() < 1e-9 => 1.0 / f64::from(places + 1),
            Server::Queue(places) => (1.0 - load) * load.powi(places) / (1.0 - load.powi(places + 1)),
        }
    }

    /// What waits in its queue in the middle and at the end of a trial, in seconds of what it answers.
    fn backlog(self, load: f64) -> [f64; 2] {
        let Server::Patient(most) = self else { return [0.0; 2] };
        [0.5, 1.0].map(|part| ((load - 1.0) * part * TRIAL_SECONDS).clamp(0.0, most))
    }
}

impl Model {
    /// The long-run loss at `load`, over all valid trials.
    fn long_run_loss(&self, load: f64) -> f64 {
        // The mean over a normal variable, as a sum over hundredths of its deviation.
        let chances = (-600..=600).map(|hundredths| f64::from(hundredths) / 100.0);
        let (loss, weight) = chances.fold((0.0, 0.0), |(loss, sum), chance| {
            let weight = (-chance * chance / 2.0).exp();
            (loss + weight * self.server.loss(load, chance), sum + weight)
        });
        let server = loss / weight;
        let Trouble { unnoticed_share, unnoticed_loss_max, .. } = self.trouble;
        let stalls = unnoticed_share * unnoticed_loss_max / 2.0;
        1.0 - (1.0 - server) * (1.0 - self.trouble.burst_mean()) * (1.0 - stalls)
    }

    /// The load at which the long-run loss crosses the tolerated one.
    fn truth(&self) -> f64 {
        let (low, high) = (0..50).fold((0.1, 10.0), |(low, high), _| {
            let middle = f64::midpoint(low, high);
            if self.long_run_loss(middle) > LOSS_MAX { (low, middle) } else { (middle, high) }
        });
        f64::midpoint(low, high)
    }

    fn trial(&self, rate_rps: f64, capacity_rps: f64, random: &mut Random) -> Trial {
        let load = rate_rps / capacity_rps;
        let trouble = &self.trouble;
        let spoilt = |why| Trial { excluded: Some(why), ..Trial::new(1, 1) };
        if !trouble.offers(load, random) {
            return spoilt(Exclusion::Overload);
        }
        if random.uniform() < trouble.spoilt_share {
            return spoilt(Exclusion::Stall);
        }
        let backlog = self.server.backlog(load).map(|seconds| (seconds * capacity_rps).round() as u64);
        let of_server = match self.server {
            // What did not find a place.
            Server::Patient(_) => {
                let over = (rate_rps - capacity_rps).max(0.0) * TRIAL_SECONDS;
                (over - backlog[1] as f64).max(0.0) / (rate_rps * TRIAL_SECONDS)
            }
            server => server.loss(load, random.normal()),
        };
        let stall = match random.uniform() < trouble.unnoticed_share {
            true => random.uniform() * trouble.unnoticed_loss_max,
            false => 0.0,
        };
        let loss = 1.0 - (1.0 - of_server) * (1.0 - random.burst_share(trouble)) * (1.0 - stall);
        let sent = (rate_rps * TRIAL_SECONDS).round();
        let failed = loss * sent + random.normal() * (sent * loss * (1.0 - loss)).sqrt();
        let failed = failed.round().clamp(0.0, sent) as u64;
        let [middle, end] = backlog;
        let answered = sent as u64 - failed;
        let tally = Tally { answered, backlog: Backlog { start: 0, middle, end }, ..Tally::default() };
        Trial::new(sent as u64, failed + tally.unsustained())
    }

    /// A search, and how many trials it took.
    fn search(&self, capacity_rps: f64, random: &mut Random) -> (Found, u32) {
        let settings =
            Settings { loss_max: LOSS_MAX, budget: Duration::from_secs(900), ..Settings::default() };
        let mut search = Search::new(settings);
        let mut count = 0;
        while let Some(rate_rps) = search.next_rps() {
            search.take(self.trial(rate_rps, capacity_rps, random), Duration::from_secs_f64(TRIAL_SECONDS));
            count += 1;
        }
        (search.found(), count)
    }
}

#[test]
fn interval_covers_the_truth_in_ninety_three_of_a_hundred_searches() {
    check(1000);
}

#[test]
#[ignore = "takes minutes; `cargo xtask nightly` runs it"]
fn interval_covers_the_truth_in_ninety_three_of_a_hundred_of_twenty_thousand_searches() {
    check(20_000);
}

/// So many searches for each model.
fn check(seed_count: u64) {
    println!(
        "{:<28} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "", "covered", "too low", "high", "none", "width", "trials"
    );
    for model in MODELS {
        let truth = model.truth();
        let is_beyond = model.trouble.generator_reach > 0.0;
        let (mut covered, mut below_truth, mut above_truth, mut none) = (0.0, 0.0, 0.0, 0.0);
        let (mut widths, mut trials, mut lowers) = (Vec::new(), 0.0, 0.0);
        for seed in 0..seed_count {
            let mut random = Random(Entropy::from_seed(seed));
            // From 3,000 to 1,000,000 requests a second, evenly in the logarithm.
            let capacity_rps = 3000.0 * 333.0_f64.powf(random.uniform());
            let (found, count) = model.search(capacity_rps, &mut random);
            trials += f64::from(count) / seed_count as f64;
            let Some(lower) = found.at_least_rps().map(|rate| rate / capacity_rps) else {
                none += 1.0;
                continue;
            };
            lowers += lower / seed_count as f64;
            match found.below_rps().map(|rate| rate / capacity_rps) {
                _ if lower > truth => above_truth += 1.0,
                Some(upper) if upper <= truth => below_truth += 1.0,
                None if !is_beyond || found.limited_by != Limit::Generator => none += 1.0,
                upper => {
                    covered += 1.0;
                    widths.extend(upper.map(|upper| (upper - lower) / truth));
                }
            }
        }
        let width = widths.iter().fold(0.0, |sum, width| sum + width) / (widths.len().max(1) as f64);
        println!(
            "{:<28} {covered:>7} {below_truth:>7} {above_truth:>7} {none:>7} {width:>7.3} {trials:>7.1}",
            model.name
        );
        assert!(covered / seed_count as f64 >= COVERED_MIN, "{}: {covered}", model.name);
        assert!(width <= model.width_max, "{}: {width}", model.name);
        assert!(trials <= model.trial_count_max, "{}: {trials}", model.name);
        // Where the generator ends first, the lower end is near what it can offer.
        let near = if is_beyond { model.trouble.generator_reach } else { truth };
        assert!(lowers >= 0.8 * near, "{}: {lowers}", model.name);
    }
    println!("assurance: searches = {} searches", seed_count * MODELS.len() as u64);
}
