//! What becomes here of each table and figure of a paper: reproduced, differing, or not to be told.
//!
//! A verdict follows from records by a rule that stands beside it. Figures of other hardware are not compared: what is
//! compared is an order, a shape, or a ratio within what our trials leave open. Each paper's module judges its own.

use super::Task;
use crate::render::{Block, Link, Medium, Report, Section, Table, Tone};
use crate::units::plural;

/// The heading of the section that has every verdict.
pub(crate) const HEADING: &str = "Table by table, figure by figure";

/// What became of a table or a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// What was compared is the same here.
    Reproduced,
    /// It is not.
    Differs,
    /// Nobody can tell by what was measured here.
    CouldNot,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Verdict; 3] = [Verdict::Reproduced, Verdict::Differs, Verdict::CouldNot];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Differs => "differs",
            Verdict::CouldNot => "could not be",
        }
    }
}

/// A verdict with its reason, a sentence.
pub(crate) type Judged = (Verdict, String);

/// A verdict on a table or a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// What the paper calls it.
    pub(crate) place: String,
    /// The heading under which it stands here.
    pub(crate) heading: String,
    /// What is compared, and by which rule it is the same.
    pub(crate) claim: String,
    pub(crate) verdict: Verdict,
    /// A sentence with figures.
    pub(crate) why: String,
}

impl Entry {
    pub(crate) fn new(
        place: impl Into<String>,
        heading: impl Into<String>,
        claim: impl Into<String>,
        (verdict, why): Judged,
    ) -> Self {
        Entry { place: place.into(), heading: heading.into(), claim: claim.into(), verdict, why }
    }
}

/// Every verdict of a paper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// What is counted: `tables and figures`.
    pub(crate) what: &'static str,
    pub(crate) entries: Vec<Entry>,
    /// What is not among them, and why: sentences.
    pub(crate) notes: Vec<&'static str>,
}

impl Tally {
    /// How many have a verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.entries.iter().filter(|entry| entry.verdict == verdict).count()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The sentence for a first screen.
    pub(crate) fn sentence(&self) -> String {
        format!("Of the {} {} of the paper, {}.", self.len(), self.what, counted(&[self]))
    }

    /// Every verdict, with a link to where it stands: on the same page, or in a part of it.
    pub(crate) fn table(&self, name: impl Into<String>, part: Option<&'static str>) -> Table {
        let link = |entry: &&Entry| Link { part, heading: entry.heading.clone() };
        Table::of(name, &self.entries)
            .linked(link)
            .words("Of the paper", |entry| entry.place.clone())
            .words("Here", |entry| entry.verdict.word())
            .words("Why", |entry| entry.why.clone())
            .words_on(Medium::Page, "Reproduced means", |entry| entry.claim.clone())
            .noted(self.notes.iter().copied())
    }

    /// The section that has them all.
    fn section(&self) -> Section {
        let about = "What is compared are orders, shapes and ratios, by the rule beside each. Times and rates of other \
                     hardware cannot be reproduced, and are not compared.";
        let mut section = Section::new(HEADING);
        section.say(about);
        section.label("Verdicts");
        section.add(Block::Table(self.table("Verdicts", None)));
        section
    }
}

/// How many of all that these have are reproduced, differ, or could not be: half a sentence.
pub(crate) fn counted(tallies: &[&Tally]) -> String {
    let [reproduced, differs, could_not] =
        Verdict::ALL.map(|verdict| tallies.iter().map(|tally| tally.count(verdict)).sum::<usize>());
    let is = |count: usize| if count == 1 { "is" } else { "are" };
    format!(
        "{reproduced} {} reproduced here, {differs} {}, and {could_not} could not be measured or told",
        is(reproduced),
        if differs == 1 { "differs" } else { "differ" }
    )
}

impl Report {
    /// The report with a tally: its sentence comes first, and a section with every verdict before all that have a
    /// heading.
    pub(crate) fn tallied(mut self, tally: Tally) -> Self {
        let sentence = Block::Paragraph(tally.sentence().into(), Tone::Lead);
        self.insert(sentence, tally.section());
        self.tally = Some(tally);
        self
    }

    /// The verdicts on the paper's tables and figures; `None` where there is no paper.
    #[must_use]
    pub fn tally(&self) -> Option<&Tally> {
        self.tally.as_ref()
    }
}

/// That something is not there, with what became of the tasks that are for it.
pub(crate) fn missing(tasks: &[Task], is_for_it: impl Fn(&str) -> bool) -> Judged {
    let of_it = || tasks.iter().filter(|task| is_for_it(&task.id));
    let why = of_it().find_map(|task| task.end.as_ref()?.why.as_deref());
    let open = of_it().filter(|task| task.end.is_none()).count() as u64;
    let why = match (why, open) {
        (Some(why), _) => format!("No record of it counts: {}.", why.trim_end_matches('.')),
        (None, 0) => "No record of it is there, or none has what is compared.".to_owned(),
        (None, open) => format!("It is not measured yet: {} to do.", plural(open, "task")),
    };
    (Verdict::CouldNot, why)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::render::Layout;

    /// The verdict on a table or a figure, and why.
    #[track_caller]
    pub(crate) fn verdict_on(tally: &Tally, place: &str) -> Judged {
        let entry = tally.entries.iter().find(|entry| entry.place == place);
        let entry = entry.unwrap_or_else(|| panic!("{place} is not in {tally:?}"));
        (entry.verdict, entry.why.clone())
    }

    pub(crate) fn tally() -> Tally {
        let entry = |place: &str, verdict| {
            Entry::new(place, "A <b>section", "it is <i>so", (verdict, format!("{place} is <so>.")))
        };
        Tally {
            what: "tables and figures",
            entries: vec![
                entry("Table 1", Verdict::Reproduced),
                entry("Figure 2", Verdict::Differs),
                entry("Figure <3>", Verdict::CouldNot),
                entry("Figure 4", Verdict::CouldNot),
            ],
            notes: vec!["A note."],
        }
    }

    #[test]
    fn sentence_counts_and_the_table_links_to_sections() {
        let sections = vec![Section::new(""), Section::of("A <b>section", [Block::paragraph("words")])];
        let report = Report::new("Title", Layout::Nested, sections).tallied(tally());
        let said = "Of the 4 tables and figures of the paper, 1 is reproduced here, 1 differs, and 2 could not be \
                    measured or told.";
        let (text, page) = (report.text(), report.page());
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(said), "{text}");
        assert!(page.find(said).unwrap() < page.find("<h2").unwrap());
        assert!(page.contains("<h2 id=\"a-b-section\">A &lt;b&gt;section</h2>"), "{page}");
        assert!(page.contains("<a href=\"#a-b-section\">Figure &lt;3&gt;</a>"), "{page}");
        assert!(!page.contains("<i>") && !page.contains("<so>"));
        crate::render::page::assert_whole(&page);
    }

    #[test]
    fn what_is_missing_has_the_reason_of_its_task() {
        let tasks = crate::study::task::tests::tasks();
        let of = |id: &'static str| missing(&tasks, move |task| task == id);
        assert_eq!(of("b"), (Verdict::CouldNot, "No record of it counts: no time.".to_owned()));
        assert_eq!(of("e"), (Verdict::CouldNot, "It is not measured yet: 1 task to do.".to_owned()));
        assert!(of("a").1.contains("none has what is compared"));
        assert!(of("nothing").1.contains("No record of it is there"));
    }
}
