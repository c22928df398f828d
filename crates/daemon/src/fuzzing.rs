//! The bodies of the fuzz targets of this crate; `fuzz/` calls them with new octets, the tests with the kept corpus.

pub use crate::config::fuzzing::config;
use crate::symmetric::Dialect;
use crate::symmetric::edit;
use crate::symmetric::text::{LINE_SIZE_MAX, parse};

/// Any octets as a key file: keys or a mistake on a line that there is; keys that are written are read again as they
/// were; and what one dialect alone takes is no other key in the reading that decides by itself.
pub fn key_file(octets: &[u8]) {
    let line_count = octets.split(|&octet| octet == b'\n').count();
    for format in [None, Some(Dialect::Chrony), Some(Dialect::Ntp)] {
        let keys = match parse(octets, format) {
            Ok(keys) => keys,
            Err(mistake) => {
                assert!(mistake.line <= line_count, "a line that does not exist: {mistake:?}");
                assert!(!mistake.problem.is_empty() && !mistake.remedy.is_empty(), "{mistake:?}");
                continue;
            }
        };
        for (index, key) in keys.keys.iter().enumerate() {
            assert!(key.id() != 0 && (1..=line_count).contains(&key.line));
            assert!(keys.keys[..index].iter().all(|other| other.id() != key.id()), "an id twice");
            assert!(key.algorithm().key_sizes().contains(&key.key.key().expose().len()));
            let secret = key.key.key().expose();
            for dialect in [Dialect::Chrony, Dialect::Ntp] {
                let Some(line) = edit::line(key.id(), key.algorithm(), secret, key.key.salt(), dialect)
                else {
                    continue;
                };
                // A key of two thousand octets can be written as text, and not in hexadecimal.
                let Ok(again) = parse(&line, None) else {
                    assert!(line.len() > LINE_SIZE_MAX, "what was written is not read");
                    continue;
                };
                let again = &again.keys[0].key;
                assert_eq!((again.id(), again.algorithm()), (key.id(), key.algorithm()));
                assert_eq!((again.key().expose(), again.salt()), (secret, key.key.salt()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn kept_corpus_has_no_finding() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/key_file");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).expect("the corpus is kept") {
            super::key_file(&std::fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 10, "{count}");
    }
}
