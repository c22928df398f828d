//! The kept corpus, and the records that inputs change.

use super::*;
use crate::stored::pretty;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/record");

/// The first octet of an input that changes this base.
fn shape_of(index: usize) -> u8 {
    let index = u8::try_from(index).unwrap();
    (index & BASE_BITS) | if index > BASE_BITS { BASE_EIGHT } else { 0 }
}

#[test]
fn kept_corpus_has_no_finding_and_holds_records() {
    let (mut count, mut read_count) = (0, 0);
    for entry in std::fs::read_dir(CORPUS).expect("the corpus is kept") {
        let octets = std::fs::read(entry.unwrap().path()).unwrap();
        (count, read_count) = (count + 1, read_count + usize::from(record(&octets)));
    }
    // A corpus that is not read any more reaches nothing. Most of what fuzzing keeps is refused, each in its own way.
    assert!(read_count >= 10, "{read_count} of {count}");
}

#[test]
fn records_that_inputs_change_are_read() {
    for (index, text) in BASES.iter().enumerate() {
        assert!(record(text.as_bytes()), "{index}");
        let base = shape_of(index);
        assert!(record(&[base]) && record(&[MENDED | base]), "{index}");
    }
}

#[test]
fn study_of_the_field_is_read_too() {
    let (record_text, plan_text) = (pretty(&field::tests::record()), pretty(&field::tests::plan()));
    assert!(record(record_text.as_bytes()) && record(plan_text.as_bytes()));
    assert!(!record(record_text.replacen("\"round\": 1", "\"round\": -1", 1).as_bytes()));
}

#[test]
#[ignore = "writes the records that inputs change, where they are not golden files, and the first inputs of the corpus"]
fn write_seeds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/fuzzing");
    let write = |path: String, octets: &[u8]| std::fs::write(path, octets).unwrap();
    write(format!("{folder}/mac.json"), pretty(&crate::mac::tests::record()).as_bytes());
    write(format!("{folder}/antp.json"), pretty(&antp::tests::record()).as_bytes());
    write(
        format!("{folder}/plan-threshold.json"),
        pretty(&request_threshold::plan::tests::plan()).as_bytes(),
    );
    write(format!("{folder}/plan-mac.json"), pretty(&ntp_mac::tests::plan()).as_bytes());
    write(format!("{folder}/plan-antp.json"), pretty(&antp::tests::plan()).as_bytes());
    write(format!("{folder}/nts-unloaded.json"), pretty(&nts::tests::record("unloaded")).as_bytes());
    write(format!("{folder}/nts-scale.json"), pretty(&nts::tests::scale("scale-quota")).as_bytes());
    write(format!("{folder}/nts-rung.json"), pretty(&nts::tests::rung("ladder-quota-2500")).as_bytes());
    write(format!("{folder}/nts-operations.json"), pretty(&nts::tests::operations("operations")).as_bytes());
    write(
        format!("{folder}/nts-sessions.json"),
        pretty(&nts::tests::sessions("sessions-3-fresh")).as_bytes(),
    );
    write(format!("{folder}/nts-rates.json"), pretty(&nts::tests::rates("rates-1-worker")).as_bytes());
    write(format!("{folder}/plan-nts.json"), pretty(&nts::tests::plan()).as_bytes());
    std::fs::create_dir_all(CORPUS).unwrap();
    for (index, text) in BASES.iter().enumerate() {
        let base = shape_of(index);
        write(format!("{CORPUS}/unchanged-{index}"), &[base]);
        // Short ones as they are, too.
        if text.len() < 6000 {
            write(format!("{CORPUS}/text-{index}"), text.as_bytes());
        }
        let some: Vec<u8> =
            (0..32u8).flat_map(|place| [place / 4, place.wrapping_mul(41), 3, place * 8]).collect();
        write(format!("{CORPUS}/nudged-{index}"), &[&[MENDED | base], &some[..]].concat());
    }
}
