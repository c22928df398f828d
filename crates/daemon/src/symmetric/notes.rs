//! Notes: comments in which this project keeps what it knows of a key.
//!
//! ```text
//! # authentick: key 30 made 2026-08-22T12:00:00Z replaced-by 31 retires 2026-09-21T12:00:00Z
//! # authentick: key 29 retired 2026-08-01T00:00:00Z
//! ```

use std::time::{Duration, UNIX_EPOCH};

/// What is known of the key with this id. Times are Unix seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// The id of the key.
    pub id: u32,
    /// When it was made.
    pub made: Option<u64>,
    /// The key that takes its place.
    pub replaced_by: Option<u32>,
    /// From when on it is not accepted any more.
    pub retires: Option<u64>,
    /// When it was retired: the key no longer exists, and its id is not assigned again.
    pub retired: Option<u64>,
}

const OPENING: &[u8] = b"# authentick:";

/// The note on a line: `None` if there is none, an error if there is one that is not understood.
#[must_use]
pub fn parse(line: &[u8]) -> Option<Result<Note, &'static str>> {
    Some(words(line.trim_ascii().strip_prefix(OPENING)?))
}

fn words(text: &[u8]) -> Result<Note, &'static str> {
    let text = std::str::from_utf8(text).map_err(|_| "a note of authentick that is not text")?;
    let mut words = text.split_ascii_whitespace();
    let (Some("key"), Some(id)) = (words.next(), words.next()) else {
        return Err("a note of authentick that does not begin with \"key ID\"");
    };
    let mut note = Note { id: id.parse().map_err(|_| NO_ID)?, ..Note::default() };
    while let Some(what) = words.next() {
        let value = words.next().ok_or("a note of authentick that breaks off")?;
        let twice = match what {
            "made" => note.made.replace(seconds(value)?).is_some(),
            "retires" => note.retires.replace(seconds(value)?).is_some(),
            "retired" => note.retired.replace(seconds(value)?).is_some(),
            "replaced-by" => note.replaced_by.replace(value.parse().map_err(|_| NO_ID)?).is_some(),
            _ => return Err("a note of authentick that is not understood"),
        };
        if twice {
            return Err("a note of authentick that says something twice");
        }
    }
    Ok(note)
}

const NO_ID: &str = "a note of authentick with something else than a key id";

fn seconds(text: &str) -> Result<u64, &'static str> {
    let time = humantime::parse_rfc3339(text).ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(time.ok_or("a note of authentick with a time that is not like 2026-08-22T12:00:00Z")?.as_secs())
}

/// The last second that RFC 3339 can write, which has four digits for the year.
pub(crate) const TIME_MAX: u64 = 253_402_300_799;

/// A moment as text, in UTC; the last one that can be written for later ones.
#[must_use]
pub fn time(seconds: u64) -> String {
    let seconds = seconds.min(TIME_MAX);
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
}

impl Note {
    /// The line, without its end.
    #[must_use]
    pub fn emit(&self) -> String {
        let mut line = format!("# authentick: key {}", self.id);
        let mut say = |what: &str, value: Option<String>| {
            if let Some(value) = value {
                line = format!("{line} {what} {value}");
            }
        };
        say("made", self.made.map(time));
        say("replaced-by", self.replaced_by.map(|id| id.to_string()));
        say("retires", self.retires.map(time));
        say("retired", self.retired.map(time));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_survive_a_round_trip() {
        let some = [None, Some(0), Some(1_787_400_000)];
        for made in some {
            for retires in some {
                for replaced_by in [None, Some(u32::MAX)] {
                    for retired in some {
                        let note = Note { id: 7, made, replaced_by, retires, retired };
                        assert_eq!(parse(note.emit().as_bytes()), Some(Ok(note)), "{}", note.emit());
                    }
                }
            }
        }
    }

    #[test]
    fn other_comments_are_no_notes_and_broken_notes_are_said_so() {
        for comment in ["", "# authentick", "#authentick: key 1", "# made by authentick: key 1", "% x"] {
            assert_eq!(parse(comment.as_bytes()), None, "{comment}");
        }
        for broken in [
            "# authentick:",
            "# authentick: key",
            "# authentick: key x",
            "# authentick: key 4294967296",
            "# authentick: key 1 made",
            "# authentick: key 1 made yesterday",
            "# authentick: key 1 made 1969-12-31T23:59:59Z",
            "# authentick: key 1 retires 2026-08-22T12:00:00Z retires 2026-08-22T12:00:00Z",
            "# authentick: key 1 replaced-by y",
            "# authentick: key 1 lost 2026-08-22T12:00:00Z",
        ] {
            assert!(matches!(parse(broken.as_bytes()), Some(Err(_))), "{broken}");
        }
        assert!(matches!(parse(b"# authentick: \xff"), Some(Err(_))));
    }
}
