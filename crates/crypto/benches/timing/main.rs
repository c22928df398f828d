//! Does the time of an operation tell anything about its secrets?
//!
//! Goal: Welch's t between the times of two classes of secrets (`judge`), for everything that computes on secrets, on
//! every path that this processor has, and for key encapsulation.
//!
//! - `lanes`: batches of sixteen jobs of each AEAD, of cookies, of C2 of ANTP, of each MAC and of HMAC-SHA256, made and
//!   checked: a fixed key against random ones, keys of low weight against such of high weight, a fixed text against
//!   random ones, a tag that is wrong in its first octet against one that is wrong in its last.
//! - `kem`: decapsulations of honest ciphertexts against each class of wrong paddings of RSA, against points that are
//!   not the client's, and of private keys of low and high weight.
//!
//! Below 4.5 in magnitude nothing is seen. What is above is looked at twice more, with other random octets: above 4.5
//! with one sign in three runs of three, something is there. It may be in how this process lies in memory: what is
//! there is looked at in two fresh processes (`again`), and what is there with one sign in all three fails the bench.
//!
//! The control is a delay that is planted in one class, doubled until it is seen in the same way: that delay is the
//! smallest difference that the bench can be said to see here and now. If the longest is not seen, the bench fails too.
//!
//! Non-goal: proof. What memcheck follows (`tests/paths/secrecy.rs`) is stronger where it works; this one also sees
//! AVX-512, VAES, and the C of aws-lc. Whether a tag is right is public: right ones are not compared with wrong ones.
//!
//! Run with `cargo bench -p authentick-crypto --bench timing`, or one half of it with `-- lanes` or `-- kem`; among the
//! tests it runs once, with few samples, which show nothing of anything.

mod again;
mod batch;
mod delay;
mod judge;
mod kem;
mod keys;

use std::process::ExitCode;

use authentick_crypto::kem::Kem;

use again::{Again, Problem};
use batch::{Contrast, Operation, Subject, samples};
use delay::{step_ns, steps_of};
use judge::{Difference, Look, RUN_COUNT, THRESHOLD, look, look_at_all};
use kem::{Wanted, classes, differences};

/// Nanoseconds of the delays that are planted in batches.
const DELAYS_NS: [f64; 8] = [8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
/// The same in decapsulations, which take thirty to three hundred times as long as a batch.
const KEM_DELAYS_NS: [f64; 4] = [250.0, 500.0, 1000.0, 2000.0];

/// How much is measured.
struct Extent {
    batch_count: usize,
    decapsulation_count: usize,
    delays_ns: &'static [f64],
}

const FULL: Extent = Extent { batch_count: 20_000, decapsulation_count: 5_000, delays_ns: &DELAYS_NS };
const SMALL: Extent = Extent { batch_count: 12, decapsulation_count: 4, delays_ns: &[512.0] };

fn main() -> ExitCode {
    let (options, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let is_full = options.iter().any(|option| option == "--bench");
    let extent = if is_full { FULL } else { SMALL };
    let step_ns = step_ns();
    println!("Above {THRESHOLD} with one sign in {RUN_COUNT} runs, something is seen: marked by `!`.");
    let mut findings = Findings { again: Again::from_environment(), ..Findings::default() };
    if is_wanted("lanes") {
        look_at_lanes(&extent, step_ns, &mut findings);
    }
    if is_wanted("kem") {
        look_at_kems(&extent, step_ns, &mut findings);
    }
    println!();
    if findings.again.is_some() {
        findings.problems.iter().for_each(Problem::tell);
        return ExitCode::SUCCESS;
    }
    findings.groups.iter().for_each(Group::print);
    // So few samples show nothing of anything.
    if !is_full {
        return ExitCode::SUCCESS;
    }
    match again::confirmed(findings.problems) {
        Ok(problems) if problems.is_empty() => ExitCode::SUCCESS,
        Ok(problems) => {
            println!("not as it must be:");
            problems.iter().for_each(|problem| println!("    {problem}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("a fresh process: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What is known so far.
#[derive(Default)]
struct Findings {
    groups: Vec<Group>,
    problems: Vec<Problem>,
    /// What another process found, if this one looks for that again.
    again: Option<Again>,
}

/// All comparisons on one path, or of one mechanism.
struct Group {
    name: String,
    /// Samples of a comparison.
    sample_count: usize,
    comparison_count: usize,
    /// The largest magnitude that stood in all runs of a comparison.
    largest_t: f64,
    /// Nanoseconds of the delay that was seen in every control.
    seen_ns: f64,
}

impl Group {
    /// The figures that `cargo xtask nightly` keeps.
    fn print(&self) {
        let Group { name, sample_count, comparison_count, largest_t, seen_ns } = self;
        let lower = name.to_ascii_lowercase();
        let words: Vec<&str> = lower
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let name = words.join("-");
        let of = format!("in {comparison_count} comparisons of {sample_count} samples");
        println!("assurance: t-{name} = {largest_t:.2} at most {of}");
        // That none was seen is a problem, and told as one.
        if seen_ns.is_finite() {
            println!("assurance: delay-{name} = {seen_ns:.1} ns are seen");
        }
    }
}

impl Findings {
    fn group(&mut self, name: &str, sample_count: usize) -> &mut Group {
        if let Some(index) = self.groups.iter().position(|group| group.name == name) {
            return &mut self.groups[index];
        }
        let name = name.to_owned();
        self.groups.push(Group { name, sample_count, comparison_count: 0, largest_t: 0.0, seen_ns: 0.0 });
        self.groups.last_mut().expect("one was just added")
    }

    /// A comparison in which nothing may be seen.
    fn add(&mut self, group: &str, sample_count: usize, what: &str, look: &Look) {
        let group = self.group(group, sample_count);
        group.comparison_count += 1;
        group.largest_t = group.largest_t.max(look.t().abs());
        if look.is_difference() {
            self.problems.push(Problem::new(what, look.t(), described(look)));
        }
    }

    /// The shortest delay that a control saw, if it saw any.
    fn add_control(&mut self, group: &str, sample_count: usize, what: &str, seen_ns: Option<f64>) {
        let group = self.group(group, sample_count);
        group.seen_ns = group.seen_ns.max(seen_ns.unwrap_or(f64::INFINITY));
        if seen_ns.is_none() {
            self.problems.push(Problem::of_control(what));
        }
    }

    /// Whether to look at this, or at something whose name begins so.
    fn is_wanted(&self, what: &str) -> bool {
        self.again.as_ref().is_none_or(|again| again.is_wanted(what))
    }
}

fn described(look: &Look) -> String {
    let runs: Vec<String> =
        look.runs.iter().map(|Difference { t, ns }| format!("{t:.1} ({ns:.1} ns)")).collect();
    format!("t {}", runs.join(", "))
}

/// t, and a mark if it is believed.
fn shown(look: &Look) -> String {
    format!("{:.1}{}", look.runs[0].t, if look.is_difference() { "!" } else { " " })
}

fn look_at_lanes(extent: &Extent, step_ns: f64, findings: &mut Findings) {
    let count = extent.batch_count;
    println!("\nWelch's t between two classes, {count} batches of 16, and the shortest delay that is seen");
    print!("{:<15} {:<9} {:<6}", "", "path", "");
    Contrast::SECRETS.iter().for_each(|contrast| print!(" {:>11}", format!("{contrast:?}")));
    println!(" {:>9}", "delay, ns");
    for subject in Subject::all() {
        let path = subject.path();
        for operation in [Operation::Make, Operation::Check] {
            let what = format!("{subject} on {path}, {operation:?}");
            if !findings.is_wanted(&what) {
                continue;
            }
            let see = |contrast| {
                look(|number| Difference::of(&mut samples(subject, operation, contrast, count, number)))
            };
            print!("{subject:<15} {path:<9} {:<6}", format!("{operation:?}"));
            for contrast in Contrast::SECRETS {
                if !contrast.is_of(operation) {
                    print!(" {:>11}", "");
                    continue;
                }
                let look = see(contrast);
                print!(" {:>11}", shown(&look));
                findings.add(&path, count, &format!("{what}, {contrast:?}"), &look);
            }
            let is_seen = |ns: &f64| {
                let look = see(Contrast::Planted(steps_of(*ns, step_ns)));
                look.is_difference() && look.t() > 0.0
            };
            let seen_ns = extent.delays_ns.iter().copied().find(is_seen);
            println!(" {:>9}", seen_ns.map_or_else(|| "none".to_owned(), |ns| format!("{ns:.0}")));
            findings.add_control(&path, count, &what, seen_ns);
        }
    }
}

fn look_at_kems(extent: &Extent, step_ns: f64, findings: &mut Findings) {
    let count = extent.decapsulation_count;
    println!("\nWelch's t of each class beside honest ciphertexts, {count} decapsulations of each");
    let delays = KEM_DELAYS_NS.map(|ns| (steps_of(ns, step_ns), ns));
    for kem in Kem::ALL {
        if !findings.is_wanted(&kem.to_string()) {
            continue;
        }
        println!("{kem}");
        let classes = classes(kem, &delays);
        let looks = look_at_all(|number| differences(kem, &classes, count, number));
        let name = kem.to_string();
        for (class, look) in classes[1..].iter().zip(&looks) {
            println!("    {:<24} {:>8} {:>9.0} ns", class.name, shown(look), look.ns());
            let what = format!("{kem}, {}", class.name);
            match class.wanted {
                Wanted::Same => findings.add(&name, 2 * count, &what, look),
                Wanted::Seen if !look.is_difference() => {
                    findings.problems.push(Problem::of_control(&what));
                }
                Wanted::Seen | Wanted::Either => {}
            }
        }
        let is_seen = |look: &&Look| look.is_difference() && look.t() > 0.0;
        let planted = &looks[looks.len() - delays.len()..];
        let seen_ns = planted.iter().position(|look| is_seen(&look)).map(|index| KEM_DELAYS_NS[index]);
        findings.add_control(&name, 2 * count, &name, seen_ns);
    }
}
