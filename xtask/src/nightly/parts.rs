//! The parts, as data: a new one is an entry in [`ENTRIES`].
//!
//! Each takes at most an hour on two cores and can be run alone. Those that fuzz are made from the list of targets.

use std::path::Path;

use crate::booted;
use crate::fuzz;
use crate::sanitize::{self, Sanitizer};

/// A part of what takes too long for each change.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// In kebab case; its row in docs/assurance.md has this anchor.
    pub(crate) name: String,
    /// What is established if it passes, in one sentence.
    pub(crate) establishes: String,
    /// How long it is expected to take on two cores.
    pub(crate) minutes: u64,
    pub(crate) work: Work,
}

#[derive(Clone, Debug)]
pub(crate) enum Work {
    Steps {
        steps: &'static [Step],
        figures: &'static [&'static str],
        missing: fn(&Path) -> Option<String>,
    },
    /// Fuzzing these targets.
    Fuzz(Vec<String>),
}

/// An entry in the table: a part that is made of commands.
pub(crate) struct Entry {
    name: &'static str,
    establishes: &'static str,
    minutes: u64,
    steps: &'static [Step],
    /// The figures that it must have printed, or else it has not passed: see [`super::figures`].
    figures: &'static [&'static str],
    /// What this machine lacks, if the part cannot run here; [`nothing`] for most.
    missing: fn(&Path) -> Option<String>,
}

/// A command in the root of the checkout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Program and arguments, separated by spaces. `SCRATCH` stands for an empty folder.
    pub(crate) words: &'static str,
    pub(crate) environment: &'static [(&'static str, &'static str)],
    pub(crate) times: u32,
    /// For a control, which has to fail: what it must have printed, so that no other failure is taken for it.
    pub(crate) must_fail_with: Option<&'static str>,
}

impl Step {
    pub(super) const fn new(words: &'static str) -> Self {
        Step { words, environment: &[], times: 1, must_fail_with: None }
    }

    /// So many times, whether or not one of them fails.
    const fn times(self, times: u32) -> Self {
        Step { times, ..self }
    }

    /// With these variables in its environment.
    const fn with(self, environment: &'static [(&'static str, &'static str)]) -> Self {
        Step { environment, ..self }
    }

    /// It has to fail, and to print this: shows that a check could fail.
    #[cfg_attr(not(test), expect(dead_code, reason = "no part of this table needs it yet"))]
    pub(super) const fn must_fail_with(self, printed: &'static str) -> Self {
        Step { must_fail_with: Some(printed), ..self }
    }
}

/// Nothing is missing that this program could know of.
fn nothing(_: &Path) -> Option<String> {
    None
}

/// All parts except those that fuzz.
///
/// Ten runs of all system tests would take a day. Those are repeated here in which threads, processes and timers race,
/// or which draw at random, and which take seconds. Not repeated: verdicts, as they have a part of their own; those
/// that measure rates or latencies, which say themselves on a busy machine that they mean nothing; studies, benches and
/// the demonstration, which are such measurements; pages, manuals, files and rights, in which nothing races.
const ENTRIES: &[Entry] = &[
    Entry {
        name: "load-runs",
        establishes: "In a million load runs in virtual time, over networks that lose, repeat, reorder, forge and lie, \
            the generator says of each request what became of it.",
        minutes: 30,
        steps: &[Step::new(
            "cargo test --release --package authentick-sim --test load_runs -- --ignored --show-output",
        )],
        figures: &["load-runs", "load-requests"],
        missing: nothing,
    },
    Entry {
        name: "histories",
        establishes: "In thousands of histories in virtual time, under every scheme and over a network that loses, \
            repeats and damages, no accepted time is wrong by more than half its delay, and every datagram has one \
            outcome.",
        minutes: 2,
        steps: &[Step::new(
            "cargo test --release --package authentick-sim --test histories -- --ignored --show-output",
        )],
        figures: &["histories", "samples", "datagrams"],
        missing: nothing,
    },
    Entry {
        name: "schedules",
        establishes: "In ten million random schedules of an adversary, in every schedule of eight queries against NTS \
            and MACs and of six against ANTP, from key exchange on as well as from its beginning, and in every one of \
            eight that changes one message against ANTP from m3 on, no client that has a key of its own and a bound \
            on the round trip believes what its server has not said, or is wrong by more than half its round trip.",
        minutes: 25,
        steps: &[Step::new(
            "cargo test --release --package authentick-game --test schedules -- --ignored --show-output",
        )],
        figures: &["schedules", "schedule-samples", "schedule-worlds", "schedule-moves"],
        missing: nothing,
    },
    Entry {
        name: "narrow-tags",
        establishes: "With tags and nonces of 8 to 16 bits an adversary wins as often as the terms of the theorem say, \
            and docs/security-bound.md has these figures.",
        minutes: 10,
        steps: &[Step::new(
            "cargo test --release --package authentick-game --features mutants --test concrete -- --ignored \
             --show-output",
        )],
        figures: &["narrow-games"],
        missing: nothing,
    },
    Entry {
        name: "searches",
        establishes: "The interval that a search for a server's capacity ends with covers the truth in 93 of 100 of \
            twenty thousand searches, for each model of a server, and in two hundred by a generator that is held up.",
        minutes: 3,
        steps: &[Step::new(
            "cargo test --release --package authentick-load --test searches --test stalls -- --ignored \
             --show-output",
        )],
        figures: &["searches", "stalled-searches"],
        missing: nothing,
    },
    Entry {
        name: "fleet-rules",
        establishes: "In every course of events of a fleet of three that shares keys, with a few crashes, lost and \
            full disks, take-overs, revocations and members left behind, no client is lost and no revoked key comes \
            back.",
        minutes: 30,
        steps: &[Step::new(
            "cargo test --release --package authentick-fleet --lib -- --include-ignored --skip write_seeds \
             --show-output model::",
        )],
        figures: &["fleet-states"],
        missing: nothing,
    },
    Entry {
        name: "fleet-lives",
        establishes: "In thousands of lives of a fleet of four in virtual time, over stores that lose, repeat, swap \
            and damage what lies there, with crashes, lost and full disks, take-overs, revocations and wrong clocks, \
            no client is refused that was promised an answer, and no clock decides who rotates when.",
        minutes: 15,
        steps: &[Step::new(
            "cargo test --release --package authentick-sim --test fleet_runs -- --ignored --show-output",
        )],
        figures: &["fleet-lives", "fleet-requests", "fleet-rotations", "fleet-take-overs"],
        missing: nothing,
    },
    Entry {
        name: "properties",
        establishes: "Each property that is tested with drawn inputs holds for twenty thousand of them.",
        minutes: 40,
        steps: &[
            Step::new(
                "cargo test --release --package authentick-wire --package authentick-crypto --package authentick-proto \
                 --package authentick-generator --package authentick-load --package authentick-report \
                 --package authentick-daemon --package authentick-fleet --lib",
            )
            .with(CASES),
            Step::new("cargo test --release --package authentick-crypto --test paths").with(CASES),
            Step::new("cargo test --release --package authentick-proto --test antp").with(CASES),
        ],
        figures: &[],
        missing: nothing,
    },
    Entry {
        name: "timing-lanes",
        establishes: "No time of sealing, opening, tagging and verifying is seen to depend on a key, a text, or on \
            which octet of a tag is wrong, on any path of the processor.",
        minutes: 20,
        steps: &[Step::new("cargo bench --package authentick-crypto --bench timing -- lanes")],
        figures: &["t-portable", "delay-portable"],
        missing: nothing,
    },
    Entry {
        name: "timing-kem",
        establishes: "No time of a decapsulation is seen to depend on the padding, the point or the private key.",
        minutes: 10,
        steps: &[Step::new("cargo bench --package authentick-crypto --bench timing -- kem")],
        figures: &["t-rsa-2048-pkcs-1-v1-5", "t-rsa-2048-oaep-sha256", "t-p-256-ecies-kem", "t-x25519"],
        missing: nothing,
    },
    Entry {
        name: "threads",
        establishes: "No interleaving of the threads in any model of what they share without a lock breaks what it \
            promises, and each fault that is put in is found.",
        minutes: 2,
        steps: &[Step::new(
            "cargo test --release --package authentick-lockfree --lib -- --include-ignored --show-output",
        )],
        figures: &["interleavings"],
        missing: nothing,
    },
    Entry {
        name: "crowd",
        establishes: "Dozens of chronyd and ntpd-rs, under NTS and plain, keep their source and their keys over \
            rotations of the cookie keys, kills and restarts of the server.",
        minutes: 15,
        steps: &[Step::new(
            "cargo test --workspace --test system -- --ignored --show-output crowd::",
        )],
        figures: &["clients", "answers", "events"],
        missing: nothing,
    },
    Entry {
        name: "verdicts",
        establishes: "What limited a load is told right ten times of ten, for each way to limit it.",
        minutes: 15,
        steps: &[Step::new(
            "cargo test --release --package authentick --test system -- --ignored --show-output ten_times_of_ten",
        )],
        figures: &["verdicts"],
        missing: nothing,
    },
    Entry {
        name: "studies",
        establishes: "The study of each paper runs to its end in its quick size, and renders from its folder.",
        minutes: 30,
        steps: &[
            Step::new("cargo run --release -- study run all --quick --minutes 60 --out SCRATCH/studies"),
            Step::new("cargo run --release -- study render SCRATCH/studies"),
        ],
        figures: &[],
        missing: nothing,
    },
    Entry {
        name: "package",
        establishes: "In a booted Debian 12 the package starts in half a second and only with a good configuration, \
            loses no request in restarts and upgrades, puts renewed certificates in force by itself, is let in by \
            firewalld and ufw as the manual says, and leaves nothing when it is purged; piuparts passes it, and \
            lintian and rpmlint find no error in it and in the other one, which is installed and erased by rpm.",
        minutes: 25,
        steps: &[Step::new("cargo xtask package"), Step::new("cargo xtask booted")],
        figures: &[
            "install-entries",
            "restart-requests",
            "restarts",
            "renewals",
            "renewal-key-exchanges",
            "judges",
        ],
        missing: |_| booted::missing(),
    },
    Entry {
        name: "repeat-units",
        establishes: "The tests inside all crates pass ten times of ten.",
        minutes: 40,
        steps: &[Step::new("cargo test --workspace --no-fail-fast --lib").times(10)],
        figures: &[],
        missing: nothing,
    },
    Entry {
        name: "repeat-crates",
        establishes: "The tests of clients, key exchanges, the daemon, the generator and the lab over real sockets \
            pass ten times of ten.",
        minutes: 40,
        steps: &[Step::new(
            "cargo test --workspace --no-fail-fast --test servers --test server --test silence --test limit \
             --test allocation --test antp --test hostile_clock --test hosts --test icmp --test relay --test queue \
             --test prober --test corrupt",
        )
        .times(10)],
        figures: &[],
        missing: nothing,
    },
    Entry {
        name: "repeat-peers",
        establishes: "Exchanges with the servers and clients of others, and with hostile ones, pass ten times of ten.",
        minutes: 40,
        steps: &[Step::new(
            "cargo test --workspace --no-fail-fast --test system -- --skip=studies:: interop:: ntpsec:: query:: \
             symmetric:: hostile_exchange:: hostile_clock:: mac::",
        )
        .times(10)],
        figures: &[],
        missing: nothing,
    },
    Entry {
        name: "repeat-serving",
        establishes: "A server that is started, stopped, told to read its files again, flooded and shared among \
            threads passes its tests ten times of ten.",
        minutes: 40,
        steps: &[Step::new(
            "cargo test --workspace --no-fail-fast --test system -- operator:: promises:: workers:: addresses:: \
             antp_ocsp::",
        )
        .times(10)],
        figures: &[],
        missing: nothing,
    },
    Entry {
        name: "repeat-load",
        establishes: "Load runs that are interrupted, starved, refused or spread over agents pass their tests ten \
            times of ten.",
        minutes: 40,
        steps: &[Step::new(
            "cargo test --workspace --no-fail-fast --test system -- agents:: load::causes:: load::conservation:: \
             load::endings:: load::exchanges:: load::lifecycle:: load::renewal::",
        )
        .times(10)],
        figures: &[],
        missing: nothing,
    },
    Entry {
        name: "address-sanitizer",
        establishes: "In no system test, nor in a test of a crate with unsafe code, does the program or its C touch \
            memory that is not its own, or end with memory that it has lost.",
        minutes: 60,
        steps: &[Step::new("cargo xtask sanitize address")],
        figures: &["address-sanitizer-tests"],
        missing: |root| sanitize::missing(root, Sanitizer::Address),
    },
    Entry {
        name: "thread-sanitizer",
        establishes: "ThreadSanitizer sees no race in the tests of the responder and the daemon.",
        minutes: 60,
        steps: &[Step::new("cargo xtask sanitize thread")],
        figures: &["thread-sanitizer-tests"],
        missing: |root| sanitize::missing(root, Sanitizer::Thread),
    },
    Entry {
        name: "miri",
        establishes: "Miri sees no undefined behaviour in the kernels of the lanes that it can interpret, nor in the \
            layout of ancillary data.",
        minutes: 60,
        steps: &[Step::new("cargo xtask sanitize miri")],
        figures: &["miri-tests"],
        missing: |root| sanitize::missing(root, Sanitizer::Miri),
    },
];

/// The inputs that are drawn for each property.
const CASES: &[(&str, &str)] = &[("PROPTEST_CASES", "20000")];

/// How long each target is fuzzed.
pub(crate) const FUZZ_SECONDS: u32 = 300;

/// The most targets in one part. Two at a time on two cores, these take half an hour, and as long again in the worst
/// case for the build and for keeping what was found.
const TARGETS_MAX: usize = 12;

/// How long the build of the targets, and keeping inputs, is expected to take.
const FUZZ_OVERHEAD_MINUTES: u64 = 15;

/// All parts, those of the table first.
pub(crate) fn all(root: &Path) -> Result<Vec<Part>, String> {
    let mut parts: Vec<Part> = ENTRIES.iter().map(Part::from).collect();
    parts.extend(fuzzing(&fuzz::targets(root)?));
    Ok(parts)
}

/// The parts that fuzz: each target is in one of them.
fn fuzzing(targets: &[String]) -> Vec<Part> {
    let count = targets.len().div_ceil(TARGETS_MAX);
    let size = if count == 0 { 1 } else { targets.len().div_ceil(count) };
    let parts = targets.chunks(size).enumerate().map(|(index, targets)| Part {
        name: format!("fuzz-{}", index + 1),
        establishes: format!(
            "{} minutes of inputs, made from what reached new code before, break no property of each of these targets.",
            FUZZ_SECONDS / 60
        ),
        minutes: targets.len().div_ceil(2) as u64 * u64::from(FUZZ_SECONDS / 60) + FUZZ_OVERHEAD_MINUTES,
        work: Work::Fuzz(targets.to_vec()),
    });
    parts.collect()
}

impl From<&Entry> for Part {
    fn from(entry: &Entry) -> Self {
        Part {
            name: entry.name.to_owned(),
            establishes: entry.establishes.to_owned(),
            minutes: entry.minutes,
            work: Work::Steps { steps: entry.steps, figures: entry.figures, missing: entry.missing },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The checkout that this is compiled in.
    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    #[test]
    fn parts_have_names_of_their_own_one_sentence_and_an_hour_at_most() {
        let parts = all(root()).unwrap();
        let names: BTreeSet<&str> = parts.iter().map(|part| &*part.name).collect();
        assert_eq!(names.len(), parts.len());
        for Part { name, establishes, minutes, .. } in &parts {
            let is_kebab = name.split('-').all(|word| {
                !word.is_empty()
                    && word.bytes().all(|octet| octet.is_ascii_lowercase() || octet.is_ascii_digit())
            });
            assert!(is_kebab && !name.starts_with("ci-"), "{name}");
            assert!(
                establishes.ends_with('.') && !establishes.contains(['|', '\n']),
                "{name}: {establishes}"
            );
            assert!(!establishes.trim_end_matches('.').contains(". "), "{name}: more than a sentence");
            assert!((1..=60).contains(minutes), "{name}: {minutes} minutes");
        }
    }

    #[test]
    fn steps_are_commands_that_run_at_least_once() {
        for entry in ENTRIES {
            assert!(!entry.steps.is_empty(), "{}", entry.name);
            for step in entry.steps {
                assert!(step.times > 0 && !step.words.split(' ').any(str::is_empty), "{}", entry.name);
            }
        }
    }

    #[test]
    fn every_fuzz_target_is_in_one_part_and_a_new_one_too() {
        for count in 0..40 {
            let targets: Vec<String> = (0..count).map(|number| format!("t{number}")).collect();
            let mut fuzzed = Vec::new();
            for part in fuzzing(&targets) {
                assert!(part.minutes <= 60, "{count} targets: {part:?}");
                let Work::Fuzz(targets) = part.work else { panic!("{} does not fuzz", part.name) };
                assert!(!targets.is_empty() && targets.len() <= TARGETS_MAX);
                fuzzed.extend(targets);
            }
            assert_eq!(fuzzed, targets);
        }
    }
}
