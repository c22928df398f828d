//! The tables of `docs/requirements`.
//!
//! ```text
//! ## Section 5.7: protocol
//! Has: 29 MUST, 10 SHOULD
//! Left out: 2 MUST: why
//! | rfc8915#5.7-1 | MUST | 1 | client | what it asks |
//! ```

use crate::tidy::Finding;
use crate::tidy::tree::{TextFile, Tree, cells};

const FOLDER: &str = "docs/requirements/";

/// The words that a section counts, in the order of [`Section::has`].
const WORDS: [&str; 2] = ["MUST", "SHOULD"];

/// One section of a specification.
pub(super) struct Section {
    pub(super) path: String,
    line: usize,
    /// The name of the file: the first part of ids.
    pub(super) specification: String,
    /// The first word of the heading, or the range that it gives: the second part of ids.
    pub(super) name: String,
    /// How many MUSTs and SHOULDs that section of the specification has.
    pub(super) has: [usize; 2],
    pub(super) left_out: Vec<LeftOut>,
    pub(super) rows: Vec<Row>,
}

/// Words of a section that have no row.
pub(super) struct LeftOut {
    counts: [usize; 2],
    /// The counts and the reason.
    pub(super) text: String,
}

/// One requirement.
pub(super) struct Row {
    pub(super) line: usize,
    pub(super) id: String,
    level: Level,
    /// How many words of the section it covers.
    word_count: usize,
    pub(super) text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Must,
    Should,
    /// Required without a word in capitals.
    States,
}

impl Level {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "MUST" | "MUST NOT" => Some(Level::Must),
            "SHOULD" | "SHOULD NOT" => Some(Level::Should),
            "states" => Some(Level::States),
            _ => None,
        }
    }
}

/// The sections of `tree`, in the order of files and text; what is wrong in them goes to `findings`.
pub(super) fn read(tree: &Tree, findings: &mut Vec<Finding>) -> Vec<Section> {
    let mut all = Vec::new();
    for file in tree.files.iter().filter(|file| is_table(file)) {
        let mut sections = Vec::new();
        for (index, line) in file.text.lines().enumerate() {
            if let Err(problem) = take(file, index + 1, line, &mut sections) {
                findings.push(file.violation(index + 1, problem));
            }
        }
        all.append(&mut sections);
    }
    findings.extend(all.iter().filter_map(Section::balance));
    all
}

fn is_table(file: &TextFile) -> bool {
    file.path.starts_with(FOLDER) && file.path.ends_with(".md") && file.name() != "README.md"
}

/// Adds one line of a file to the sections of that file.
fn take(file: &TextFile, line: usize, text: &str, sections: &mut Vec<Section>) -> Result<(), String> {
    if let Some(heading) = text.strip_prefix("## ") {
        let name = heading.strip_prefix("Section ").and_then(|rest| rest.split_once(": "));
        let (name, _) = name.ok_or("a heading reads `## Section NAME: what it is about`")?;
        if sections.iter().any(|section| section.name == name) {
            return Err(format!("section {name} has two headings"));
        }
        let specification = file.name().trim_end_matches(".md").to_owned();
        let (path, name) = (file.path.clone(), name.to_owned());
        let section =
            Section { path, line, specification, name, has: [0; 2], left_out: Vec::new(), rows: Vec::new() };
        sections.push(section);
        return Ok(());
    }
    let row = cells(text).filter(|cells| !matches!(cells[..], ["id", ..] | ["---", ..]));
    let Some(section) = sections.last_mut() else {
        return row.map_or(Ok(()), |_| Err("a row above the first section".to_owned()));
    };
    if let Some(counts) = text.strip_prefix("Has: ") {
        section.has = word_counts(counts)?;
    } else if let Some(rest) = text.strip_prefix("Left out: ") {
        let (counts, _) = rest.split_once(": ").ok_or("what is left out has no reason")?;
        section.left_out.push(LeftOut { counts: word_counts(counts)?, text: rest.to_owned() });
    } else if let Some(cells) = row {
        let row = Row::parse(line, &cells)?;
        section.add(row)?;
    }
    Ok(())
}

impl Section {
    fn add(&mut self, row: Row) -> Result<(), String> {
        let prefix = format!("{}#{}-", self.specification, self.name);
        let number = |row: &Row| row.id.strip_prefix(&prefix)?.parse::<u32>().ok();
        let current = number(&row).ok_or_else(|| format!("{} is no id of this section", row.id))?;
        if self.rows.last().and_then(number).is_some_and(|last| last >= current) {
            return Err(format!("{} does not come after the row before", row.id));
        }
        self.rows.push(row);
        Ok(())
    }

    /// How many MUSTs and SHOULDs have rows.
    pub(super) fn covered(&self) -> [usize; 2] {
        [Level::Must, Level::Should]
            .map(|level| self.rows.iter().filter(|row| row.level == level).map(|row| row.word_count).sum())
    }

    /// Rows and what was left out must add up to what the section has.
    fn balance(&self) -> Option<Finding> {
        let covered = self.covered();
        let left = |index: usize| self.left_out.iter().map(|left| left.counts[index]).sum::<usize>();
        let index = (0..WORDS.len()).find(|&index| covered[index] + left(index) != self.has[index])?;
        let problem = format!(
            "section {} has {} {}, but rows for {} and leaves out {}",
            self.name,
            self.has[index],
            WORDS[index],
            covered[index],
            left(index)
        );
        Some(Finding::violation(&self.path, self.line, problem))
    }
}

impl Row {
    fn parse(line: usize, cells: &[&str]) -> Result<Self, String> {
        let [id, level, words, _, text] = cells else {
            return Err("a row has five cells: id, level, words, binds, requirement".to_owned());
        };
        let id = id_of(id).ok_or_else(|| format!("`{id}` is no id"))?.to_owned();
        let level = Level::parse(level).ok_or_else(|| format!("`{level}` is no level"))?;
        let word_count = words.parse().map_err(|_| format!("`{words}` is no number of words"))?;
        if (level == Level::States) && word_count > 0 {
            return Err(format!("{id} has no word in capitals, so it stands for none"));
        }
        Ok(Row { line, id, level, word_count, text: (*text).to_owned() })
    }
}

/// The numbers in `2 MUST, 1 SHOULD`, either of which may be absent.
fn word_counts(text: &str) -> Result<[usize; 2], String> {
    let mut counts = [0; 2];
    for part in text.split(", ") {
        let (count, word) = part.split_once(' ').ok_or_else(|| format!("`{part}` is no count of words"))?;
        let index = WORDS.iter().position(|known| *known == word);
        let (Some(index), Ok(count)) = (index, count.parse()) else {
            return Err(format!("`{part}` is no count of words"));
        };
        counts[index] = count;
    }
    Ok(counts)
}

/// `text` if it has the form of an id: specification, section, number.
pub(super) fn id_of(text: &str) -> Option<&str> {
    let (specification, rest) = text.split_once('#')?;
    let (section, number) = rest.rsplit_once('-')?;
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_alphanumeric());
    let is_id = is_word(specification)
        && section.split('.').all(is_word)
        && !number.is_empty()
        && number.bytes().all(|octet| octet.is_ascii_digit());
    is_id.then_some(text)
}
