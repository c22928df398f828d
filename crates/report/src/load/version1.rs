//! Load records of version 1: what they say otherwise than later ones.
//!
//! A capacity was one number, `capacity_rps`; its upper end was told by the search, in `upper_rps`, and whether the
//! generator set the limit in the search's remark.

use serde::Deserialize;

use super::{Capacity, Limit, LoadRecord};

/// How the remark of such a search begins if the generator ended it.
const GENERATOR_LIMITED: &str = "The generator, not the server, was the limit";

/// The fields that there are no more.
#[derive(Deserialize)]
struct Gone {
    #[serde(default)]
    capacity_rps: Option<f64>,
    #[serde(default)]
    search: Option<Bracket>,
}

/// The same of a search.
#[derive(Deserialize)]
struct Bracket {
    /// The lowest rate that did not hold.
    upper_rps: Option<f64>,
}

/// Takes in the capacity. Such a search may have given up with a rate that held now and then; it has no capacity then.
pub(super) fn convert(record: &mut LoadRecord, text: &str) -> serde_json::Result<()> {
    let Gone { capacity_rps, search: bracket } = crate::stored::from_json(text)?;
    let Some(search) = &record.search else {
        record.capacity = capacity_rps.map(|rps| Capacity { at_least: Some(rps), ..Capacity::default() });
        return Ok(());
    };
    let by_generator = search.remark.as_ref().is_some_and(|remark| remark.starts_with(GENERATOR_LIMITED));
    record.capacity = Some(Capacity {
        at_least: capacity_rps,
        below: bracket.and_then(|bracket| bracket.upper_rps).filter(|_| !by_generator),
        limited_by: if by_generator { Limit::Generator } else { Limit::Unknown },
        throughput: None,
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Search;

    const TEXT: &str = include_str!("../../tests/golden/load-1.json");

    fn read(change: impl Fn(&mut serde_json::Value)) -> LoadRecord {
        let mut value: serde_json::Value = serde_json::from_str(TEXT).unwrap();
        change(&mut value);
        LoadRecord::from_json(&value.to_string()).unwrap()
    }

    #[test]
    fn capacity_and_bracket_become_an_interval() {
        let capacity =
            |at_least, below, limited_by| Some(Capacity { at_least, below, limited_by, throughput: None });
        let record = read(|_| ());
        assert_eq!(record.capacity, capacity(Some(2800.0), Some(2900.0), Limit::Unknown));
        assert_eq!(record.capacity_rps(), Some(2800.0));
        let record = read(|record| {
            record["search"]["remark"] =
                "The generator, not the server, was the limit; use more --workers or hosts.".into();
        });
        assert_eq!(
            record.capacity,
            capacity(Some(2800.0), None, Limit::Generator),
            "its upper end is no evidence"
        );
        let record = read(|record| record["capacity_rps"] = serde_json::Value::Null);
        assert_eq!(record.capacity, capacity(None, Some(2900.0), Limit::Unknown));
        assert_eq!(record.capacity_rps(), None, "a search that gave up found nothing");
    }

    #[test]
    fn run_without_a_search_has_no_capacity() {
        let record = read(|record| {
            record["capacity_rps"] = serde_json::Value::Null;
            record["search"] = serde_json::Value::Null;
        });
        assert_eq!((record.capacity, record.search), (None, None::<Search>));
    }

    #[test]
    fn it_is_written_in_the_present_version_and_read_again() {
        let record = read(|_| ());
        let text = record.to_json();
        assert!(
            text.contains("\"authentick-load/2\"")
                && !text.contains("capacity_rps")
                && !text.contains("upper_rps"),
            "{text}"
        );
        assert_eq!(LoadRecord::from_json(&text).unwrap(), record);
    }

    #[test]
    fn wrong_type_of_the_field_is_told() {
        let text = TEXT.replace("\"capacity_rps\": 2800.0", "\"capacity_rps\": \"much\"");
        let error = LoadRecord::from_json(&text).unwrap_err().to_string();
        assert!(error.starts_with("not a load record: ") && error.contains("f64"), "{error}");
    }
}
