//! The commands of memcached's text protocol that servers of ours use, as octets come in. Form: protocol.txt of
//! memcached.

use super::{LINE_SIZE_MAX, VALUE_SIZE_MAX};

/// protocol.txt: "Currently the length limit of a key is set at 250 characters".
const NAME_SIZE_MAX: usize = 250;

/// What a client wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// `get` or `gets`: the values under these names, with the numbers for `cas` or without.
    Fetch { names: Vec<String>, with_unique: bool },
    /// `set`, `add` or `cas`.
    Write(Write),
    /// A line that is none of these.
    Other,
}

/// A value to store under a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) condition: Condition,
    pub(super) name: String,
    pub(super) flags: u32,
    pub(super) value: Vec<u8>,
    /// The client wants no answer.
    pub(super) is_quiet: bool,
}

/// When a value is to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// `set`: in any case.
    Always,
    /// `add`: if there is none.
    Absent,
    /// `cas`: if the one of this number is there.
    Unchanged(u64),
}

/// A connection whose next octets have no meaning any more: the line to end it with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken(pub(super) &'static str);

/// Takes the first command off `input`, if all of it is there.
///
/// # Errors
/// If the connection is to end.
pub(super) fn take(input: &mut Vec<u8>) -> Result<Option<Command>, Broken> {
    let Some(end) = input.iter().position(|octet| *octet == b'\n') else {
        return if input.len() > LINE_SIZE_MAX {
            Err(Broken("CLIENT_ERROR line too long"))
        } else {
            Ok(None)
        };
    };
    let line = String::from_utf8_lossy(&input[..end]).into_owned();
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let start = end + 1;
    let command = match &words[..] {
        [verb @ ("get" | "gets"), names @ ..]
            if !names.is_empty() && names.iter().all(|name| is_name(name)) =>
        {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Command::Fetch { names, with_unique: *verb == "gets" }
        }
        ["set" | "add" | "cas", ..] => {
            let (mut write, size) = head(&words).ok_or(Broken("CLIENT_ERROR bad command line format"))?;
            if size > VALUE_SIZE_MAX {
                return Err(Broken("SERVER_ERROR object too large for cache"));
            }
            let Some(body) = input.get(start..start + size + 2) else { return Ok(None) };
            write.value = body.strip_suffix(b"\r\n").ok_or(Broken("CLIENT_ERROR bad data chunk"))?.to_vec();
            input.drain(..start + size + 2);
            return Ok(Some(Command::Write(write)));
        }
        _ => Command::Other,
    };
    input.drain(..start);
    Ok(Some(command))
}

fn is_name(name: &str) -> bool {
    name.len() <= NAME_SIZE_MAX
}

/// A write without its value, and the size of that.
fn head(words: &[&str]) -> Option<(Write, usize)> {
    let (words, is_quiet) = match words {
        [words @ .., "noreply"] => (words, true),
        words => (words, false),
    };
    let (condition, name, flags, expiry, size) = match words {
        ["set", name, flags, expiry, size] => (Condition::Always, name, flags, expiry, size),
        ["add", name, flags, expiry, size] => (Condition::Absent, name, flags, expiry, size),
        ["cas", name, flags, expiry, size, unique] => {
            (Condition::Unchanged(unique.parse().ok()?), name, flags, expiry, size)
        }
        _ => return None,
    };
    // Read for its form alone: nothing expires here.
    expiry.parse::<i64>().ok()?;
    let write = Write {
        condition,
        name: (*name).to_owned(),
        flags: flags.parse().ok()?,
        value: Vec::new(),
        is_quiet,
    };
    is_name(name).then_some((write, size.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(condition: Condition, value: &[u8], is_quiet: bool) -> Command {
        Command::Write(Write { condition, name: "a".to_owned(), flags: 7, value: value.to_vec(), is_quiet })
    }

    #[test]
    fn commands_are_taken_once_they_are_whole_wherever_they_are_cut() {
        let octets = b"add a 7 0 3\r\nx\r\n\r\ngets a bb\r\ncas a 7 -1 0 12 noreply\r\n\r\nversion\r\n\
            set a 7 0 1\r\ny\r\nget a\r\n";
        let fetch = |names: &[&str], with_unique| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Command::Fetch { names, with_unique }
        };
        let expected = [
            write(Condition::Absent, b"x\r\n", false),
            fetch(&["a", "bb"], true),
            write(Condition::Unchanged(12), b"", true),
            Command::Other,
            write(Condition::Always, b"y", false),
            fetch(&["a"], false),
        ];
        for size in 1..=octets.len() {
            let (mut input, mut commands) = (Vec::new(), Vec::new());
            for part in octets.chunks(size) {
                input.extend_from_slice(part);
                commands.extend(std::iter::from_fn(|| take(&mut input).unwrap()));
            }
            assert_eq!(commands, expected, "{size} at a time");
            assert!(input.is_empty());
        }
    }

    #[test]
    fn what_has_no_end_or_no_form_breaks_the_connection() {
        let broken = |octets: &[u8]| take(&mut octets.to_vec()).unwrap_err().0;
        assert_eq!(broken(&vec![b'g'; LINE_SIZE_MAX + 1]), "CLIENT_ERROR line too long");
        assert_eq!(take(&mut vec![b'g'; LINE_SIZE_MAX]), Ok(None));
        assert_eq!(broken(b"add a 0 0 1\r\nxyz"), "CLIENT_ERROR bad data chunk");
        assert_eq!(broken(b"set a 0 0 4294967295\r\n"), "SERVER_ERROR object too large for cache");
        let long = format!("add {} 0 0 1\r\n", "n".repeat(NAME_SIZE_MAX + 1));
        for line in ["add a 0 0\r\n", "cas a 0 0 1\r\n", "add a -1 0 1\r\n", "set a 0 x 1\r\n", &long] {
            assert_eq!(broken(line.as_bytes()), "CLIENT_ERROR bad command line format", "{line}");
        }
    }
}
