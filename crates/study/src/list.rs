//! What the studies measure, how long that takes, and what this host cannot do and why.

use std::fmt::Write as _;

use authentick_report::study::{Paper as Stored, Settings as _, Task};
use authentick_report::units::plural;

use crate::antp::Antp;
use crate::field::{Choice, Field, Said};
use crate::ntp_mac::NtpMac;
use crate::nts::Nts;
use crate::pace::span;
use crate::paper::Paper;
use crate::places::Places;
use crate::request_threshold::RequestThreshold;

/// One study, as it would be carried out on this host.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The paper.
    pub paper: Stored,
    /// Seconds that it takes in its short form, and in its full one.
    pub seconds: [f64; 2],
    /// The parts of its full form, with the number of tasks and the seconds of each.
    pub parts: Vec<(String, usize, f64)>,
    /// What this host cannot do, and what comes instead: sentences.
    pub obstacles: Vec<String>,
}

/// All studies. Servers of others are looked for in `places`; `choice`: who is measured of them, and of those that
/// somebody else runs.
#[must_use]
pub fn studies(choice: &Choice, places: &Places) -> Vec<Listed> {
    Stored::ALL
        .into_iter()
        .map(|paper| match paper {
            Stored::Mac => listed(|quick| NtpMac { quick }),
            Stored::Threshold => listed(|quick| RequestThreshold { quick, ..RequestThreshold::default() }),
            Stored::Nts => listed(|quick| Nts { quick, places: places.clone(), ..Nts::default() }),
            Stored::Antp => listed(|quick| Antp { quick, trial: None }),
            Stored::Field => listed(|quick| {
                let (choice, places) = (choice.clone(), places.clone());
                Field { quick, trial: None, choice, places }
            }),
        })
        .collect()
}

fn listed<P: Paper>(paper: impl Fn(bool) -> P) -> Listed {
    let seconds = |tasks: &[Task]| tasks.iter().map(|task| task.seconds).sum::<f64>();
    let [short, full] = [true, false].map(|quick| paper(quick).plan().tasks);
    let mut parts: Vec<(String, usize, f64)> = Vec::new();
    for task in &full {
        match parts.iter_mut().find(|(part, ..)| *part == task.part) {
            Some((_, count, sum)) => {
                *count += 1;
                *sum += task.seconds;
            }
            None => parts.push((task.part.clone(), 1, task.seconds)),
        }
    }
    Listed {
        paper: P::Settings::PAPER,
        seconds: [seconds(&short), seconds(&full)],
        parts,
        obstacles: paper(false).obstacles(),
    }
}

/// How much longer the study of the field takes in its short form and in its full one, with one server more that
/// somebody else runs and that has NTS.
fn more_with_a_stranger() -> [String; 2] {
    let given = vec!["a=localhost:123:4460".parse().expect("it is a server")];
    let with = Choice::new(Said { given, ..Said::default() }).expect("it goes together");
    let seconds = |choice: &Choice, quick| -> f64 {
        let field = Field { quick, choice: choice.clone(), ..Field::default() };
        field.plan().tasks.iter().map(|task| task.seconds).sum()
    };
    [true, false].map(|quick| span(seconds(&with, quick) - seconds(&Choice::default(), quick)))
}

/// The same as text.
#[must_use]
pub fn text(places: &Places) -> String {
    let mut text = String::new();
    for Listed { paper, seconds: [short, full], parts, obstacles } in studies(&Choice::default(), places) {
        let name = paper.name();
        let mut add = |line: String| writeln!(text, "{line}").expect("writing to a string cannot fail");
        add(format!("{name}: {}", paper.title()));
        add(format!("    study run {name} --out DIR            about {}", span(full)));
        add(format!("    study run {name} --out DIR --quick    about {}", span(short)));
        if paper == Stored::Field {
            let [short, full] = more_with_a_stranger();
            add(format!(
                "    --server NAME=HOST:PORT:KEPORT: a server that somebody else runs, about {full} more; {short} with \
                 --quick"
            ));
        }
        for (part, count, seconds) in parts {
            add(format!("    {part}: {}, {}", plural(count as u64, "task"), span(seconds)));
        }
        for obstacle in obstacles {
            add(format!("    not as it could be here: {obstacle}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_is_listed_with_its_parts_and_its_time() {
        let studies = studies(&Choice::default(), &Places::default());
        assert_eq!(studies.iter().map(|study| study.paper).collect::<Vec<_>>(), Stored::ALL);
        for Listed { paper, seconds: [short, full], parts, .. } in &studies {
            let sum: f64 = parts.iter().map(|(.., seconds)| seconds).sum();
            assert!((sum - full).abs() < 1e-6 && short < full && *short > 0.0, "{paper:?}");
        }
        let text = text(&Places::default());
        for part in [
            "mac: ",
            "threshold: ",
            "study run antp --out DIR --quick",
            "table-1: 6 tasks, 6 min",
            "search: 9 tasks",
            "field: ",
            "--server NAME=HOST:PORT:KEPORT: a server that somebody else runs, about ",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
