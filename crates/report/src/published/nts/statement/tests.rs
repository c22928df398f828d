//! Walks the list of statements.

use super::*;
use crate::published::nts::{FIGURE_4, FIGURE_5, Measure, TABLE_2};

fn is_kebab(id: &str) -> bool {
    id.split('-').all(|word| {
        !word.is_empty() && word.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
    })
}

/// A sentence in our style: it begins with something, ends with a full stop, and has no line breaks or double blanks,
/// as continued lines leave them.
fn is_sentence(text: &str) -> bool {
    text.len() > 10
        && text.ends_with('.')
        && text.trim() == text
        && !text.contains("  ")
        && !text.contains('\n')
}

#[test]
fn rows_have_names_of_their_own_and_nothing_empty() {
    for (index, row) in all().enumerate() {
        let id = row.id;
        assert!(is_kebab(id), "{id}");
        assert!(all().skip(index + 1).all(|other| other.id != id), "{id} is there twice");
        assert!(!row.places.is_empty() && !row.tags.is_empty(), "{id}");
        assert!(row.printed.is_none_or(is_sentence), "{id}: {:?}", row.printed);
        assert!(is_sentence(row.data), "{id}: {}", row.data);
        assert_eq!(find(id).unwrap().data, row.data);
        match row.answer {
            Answer::Measured(parts) => assert!(!parts.is_empty(), "{id}"),
            Answer::Recomputed => assert!(!row.recomputations.is_empty(), "{id}"),
            Answer::Settled(sentence) | Answer::NotHere(sentence) => assert!(is_sentence(sentence), "{id}"),
        }
    }
    assert_eq!(all().count(), 48);
}

#[test]
fn what_is_printed_has_a_place_in_the_paper_and_the_rest_has_none() {
    for row in all() {
        let is_printed = row.printed.is_some();
        assert_eq!(is_printed, row.tags.contains(&Tag::Printed), "{}", row.id);
        assert_eq!(is_printed, !row.places.contains(&Place::Data), "{}", row.id);
        let printed_numbers = row.recomputations.iter().any(|number| number.by == Stated::Printed);
        assert!(is_printed || !printed_numbers, "{}", row.id);
    }
}

#[test]
fn every_number_is_recomputed_and_agrees() {
    for row in all() {
        for number in row.recomputations {
            let computed = (number.compute)();
            assert!(number.agrees(), "{}: {} is {}, and not {computed}", row.id, number.what, number.stated);
            // One unit more in the last digit would not agree: the check is as strict as the number.
            let unit = match number.agreement {
                Agreement::Rounded(unit) | Agreement::Truncated(unit) => unit,
                Agreement::Within(limit) => 2.0 * limit,
                Agreement::Exact => 1.0,
            };
            assert!(!number.agreement.holds(number.stated + 1.001 * unit, computed), "{}", row.id);
            assert!(!number.what.is_empty(), "{}", row.id);
        }
    }
}

#[test]
fn numbers_of_a_row_stand_in_its_words() {
    // What the report shows as text is what was recomputed.
    for row in all() {
        let words = format!("{} {}", row.printed.unwrap_or_default(), row.data).replace(',', "");
        let numbers = words.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
        for number in row.recomputations {
            let decimals = match number.agreement {
                Agreement::Rounded(unit) | Agreement::Truncated(unit) => {
                    (-unit.log10().round()).max(0.0) as usize
                }
                Agreement::Within(_) => 2,
                Agreement::Exact => 0,
            };
            let figure = format!("{:.decimals$}", number.stated);
            let is_told = numbers.clone().any(|word| word.trim_end_matches('.') == figure);
            assert!(is_told, "{}: {figure} is not in \"{words}\"", row.id);
        }
    }
}

#[test]
fn each_section_figure_table_and_equation_has_a_row() {
    let sections = ["I", "II", "III", "IV", "V", "VI"].map(Place::Section);
    let figures: Vec<Place> = (1..=12).map(Place::Figure).collect();
    let equations: Vec<Place> = (1..=6).map(Place::Equation).collect();
    let tables = ["I", "II"].map(Place::Table);
    for place in sections.into_iter().chain(figures).chain(equations).chain(tables).chain([Place::Abstract]) {
        assert!(at(place).next().is_some(), "{place}");
    }
}

#[test]
fn each_tag_and_each_part_of_the_study_has_a_row() {
    for tag in Tag::ALL {
        assert!(all().any(|row| row.tags.contains(&tag)), "{}", tag.name());
    }
    for part in Part::ALL {
        let names = |row: &Statement| matches!(row.answer, Answer::Measured(parts) if parts.contains(&part));
        assert!(all().any(names), "{}", part.name());
    }
}

#[test]
fn all_that_tables_and_figures_print_is_recomputed() {
    let stated: Vec<f64> = all()
        .flat_map(|row| row.recomputations)
        .filter(|number| number.by == Stated::Printed)
        .map(|number| number.stated)
        .collect();
    let ends = FIGURE_4.iter().chain(&FIGURE_5).flat_map(|ends| [ends.min, ends.max]);
    for figure in TABLE_2.iter().map(|average| average.value).chain(ends) {
        assert!(stated.contains(&figure), "{figure}");
    }
}

#[test]
fn places_are_told_in_the_papers_words() {
    assert_eq!(find("table-2-d-snts").unwrap().place(), "Table II");
    assert_eq!(find("three-transfers").unwrap().place(), "section V");
    assert_eq!(Place::Equation(6).to_string(), "equation (6)");
    assert_eq!(Measure::Sntp.other_symbols().len(), 2);
}
