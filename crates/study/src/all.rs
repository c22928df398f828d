//! Every study in a folder of its own below one, and all their reports in one.

use std::path::Path;
use std::time::{Duration, Instant};

use authentick_report::Joined;
use authentick_report::study::front::front;
use authentick_report::study::{FILE, Paper as Stored};

use crate::antp::Antp;
use crate::field::{Choice, Field};
use crate::folder::{Folder, Rendered, publish};
use crate::list::studies;
use crate::ntp_mac::NtpMac;
use crate::nts::Nts;
use crate::paper::{self, Caller, carry_out_shared};
use crate::places::Places;
use crate::request_threshold::RequestThreshold;
use crate::{Error, Fault};

const TITLE: &str = "What papers measured, and what is measured here";

/// How long the short form of a study may measure, in minutes, so that all of them end within a quarter of an hour. Any
/// other ceiling is shared in the same proportion.
const fn quick_minutes(paper: Stored) -> f64 {
    match paper {
        Stored::Mac => 0.5,
        Stored::Threshold => 1.0,
        Stored::Antp | Stored::Nts => 5.0,
        Stored::Field => 3.0,
    }
}

/// What is left of a ceiling, in seconds, that the first of these studies may take: its share among them.
fn share(left: f64, papers: &[Stored]) -> f64 {
    let all: f64 = papers.iter().copied().map(quick_minutes).sum();
    papers.first().map_or(0.0, |first| left.max(0.0) * quick_minutes(*first) / all)
}

/// What a study may take of the time that all have, by what is expected of it.
const SPARE: f64 = 1.25;

/// Carries all studies out, each in a folder of its own below `path`, and renders them one by one and in one report.
/// `ceiling`: how long all of them may measure. Each has what it needs or its share, whichever is less, and what one
/// leaves the next ones have; for what no time is left, its report says so. A study that fails does not keep the
/// others from being measured. Servers of others are looked for in `places`; `choice`: who is measured of them, and
/// of those that somebody else runs.
///
/// # Errors
/// If a folder holds another study, something cannot be measured, read or written, or there is no time for anything.
/// What was measured is kept, and rendered.
pub fn carry_out_all(
    quick: bool,
    choice: &Choice,
    places: &Places,
    path: &Path,
    ceiling: Option<Duration>,
    caller: &Caller<'_>,
) -> Result<Rendered, Error> {
    let needs: Vec<(Stored, f64)> = studies(choice, places)
        .iter()
        .map(|study| (study.paper, study.seconds[usize::from(!quick)]))
        .collect();
    let papers: Vec<Stored> = needs.iter().map(|(paper, _)| *paper).collect();
    let mut left = match (ceiling, quick) {
        (Some(ceiling), _) => Some(ceiling.as_secs_f64()),
        (None, true) => Some(papers.iter().copied().map(quick_minutes).sum::<f64>() * 60.0),
        (None, false) => None,
    };
    let (mut failure, mut any_measured) = (None, false);
    for (index, &(paper, needed)) in needs.iter().enumerate() {
        if caller.says_stop() {
            break;
        }
        let share =
            left.map(|left| Duration::from_secs_f64(share(left, &papers[index..]).min(needed * SPARE)));
        caller.console.note(&format!("{}: {}", paper.name(), paper.title()));
        let (folder, start) = (path.join(paper.name()), Instant::now());
        let done = match paper {
            Stored::Mac => carry_out_shared(&NtpMac { quick }, &folder, share, caller),
            Stored::Threshold => carry_out_shared(
                &RequestThreshold { quick, ..RequestThreshold::default() },
                &folder,
                share,
                caller,
            ),
            Stored::Nts => {
                let paper = Nts { quick, places: places.clone(), ..Nts::default() };
                carry_out_shared(&paper, &folder, share, caller)
            }
            Stored::Antp => carry_out_shared(&Antp { quick, trial: None }, &folder, share, caller),
            Stored::Field => {
                let (choice, places) = (choice.clone(), places.clone());
                let paper = Field { quick, trial: None, choice, places };
                carry_out_shared(&paper, &folder, share, caller)
            }
        };
        left = left.map(|left| left - start.elapsed().as_secs_f64());
        match done {
            Ok(measured) => any_measured |= measured,
            // What the user named is wrong for all of them.
            Err(error) if error.fault() == Fault::User => return Err(error),
            Err(error) => {
                caller.console.warn(&format!("{}: {error}", paper.name()));
                failure = failure.or(Some(error));
            }
        }
    }
    let rendered = render_all(path)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    if !any_measured && !caller.says_stop() {
        let shortest =
            "--minutes: there is no time to measure anything; study list shows what each part takes";
        return Err(Error::NoTime(shortest.to_owned()));
    }
    Ok(rendered)
}

/// Whether there are studies in folders below this one, and none in it.
pub(crate) fn is_of_all(path: &Path) -> bool {
    !path.join(FILE).exists() && Stored::ALL.iter().any(|paper| path.join(paper.name()).join(FILE).exists())
}

/// Renders every study that is there, one by one and in one report.
pub(crate) fn render_all(path: &Path) -> Result<Rendered, Error> {
    let (mut parts, mut stands, mut field) = (Vec::new(), Vec::new(), None);
    for paper in Stored::ALL {
        let folder = path.join(paper.name());
        if !folder.join(FILE).exists() {
            continue;
        }
        let (report, stand) = paper::whole_of(&folder)?;
        parts.push((paper.name(), report));
        stands.push(stand);
        if paper == Stored::Field {
            field = Some(Field::record(&Folder::read(&folder)?)?);
        }
    }
    let joined = Joined::new(TITLE, front(&stands, field.as_ref()), parts);
    publish(path, &joined.text(), &joined.markdown(), &joined.page())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_end_within_a_quarter_of_an_hour_and_what_one_leaves_the_next_ones_have() {
        let papers = Stored::ALL;
        let all: f64 = papers.into_iter().map(quick_minutes).sum();
        assert!(all < 15.0, "{all}");
        let mut left = all * 60.0;
        for (index, paper) in papers.into_iter().enumerate() {
            let share = share(left, &papers[index..]);
            assert!((share - quick_minutes(paper) * 60.0).abs() < 1e-6, "{paper:?}: {share}");
            left -= share;
        }
        assert!(left.abs() < 1e-6);
        // Three minutes in the same proportion, of which the first takes nothing.
        let three = share(180.0, &papers);
        assert!((three - 180.0 * quick_minutes(papers[0]) / all).abs() < 1e-9, "{three}");
        assert!(share(180.0, &papers[1..]) > 180.0 * quick_minutes(papers[1]) / all);
        assert_eq!((share(-1.0, &papers), share(1.0, &[])), (0.0, 0.0));
    }
}
