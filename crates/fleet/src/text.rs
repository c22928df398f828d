//! The texts that nodes write: lines of a word and a value, of a known first line, of bounded size.
//!
//! ```text
//! authentick-fleet-document 1
//! fleet time.example.net
//! term 1
//! ```
//!
//! A word may come several times. What a reader does not know, it refuses: all nodes of a fleet run the same format,
//! and its number stands in the first line.

use std::str::FromStr;

use thiserror::Error;

use crate::memcached;
use crate::seal::OVERHEAD;

/// Octets of the largest text: sealed, it is as large as a value may be.
pub const TEXT_SIZE_MAX: usize = memcached::VALUE_SIZE_MAX - OVERHEAD;

/// Why a text is none of those that nodes write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    /// It is larger than [`TEXT_SIZE_MAX`].
    #[error("it has more than {TEXT_SIZE_MAX} octets")]
    TooLarge,
    /// Its first line is another one.
    #[error("its first line is not {0:?}")]
    Magic(&'static str),
    /// A line is not a word and a value.
    #[error("line {0} is not a word and a value")]
    Line(usize),
    /// A word that such a text does not have.
    #[error("line {0} begins with an unknown word")]
    Unknown(usize),
    /// There is no such line.
    #[error("there is no line {0:?}")]
    Missing(&'static str),
    /// There is more than one such line.
    #[error("there is more than one line {0:?}")]
    Twice(&'static str),
    /// The value of such a line is not what it should be.
    #[error("the value of {0:?} is wrong")]
    Value(&'static str),
    /// There are too many such lines.
    #[error("there are too many lines {0:?}")]
    TooMany(&'static str),
    /// The keys are no key set of the kind.
    #[error("its keys make no key set")]
    Keys,
}

/// The lines of a text after the first, up to the one that says that another text follows.
pub(crate) struct Lines<'t> {
    lines: Vec<(&'t str, &'t str)>,
    /// What follows the line `end`.
    rest: Option<&'t str>,
}

impl<'t> Lines<'t> {
    /// The lines of a text that begins with `magic` and knows these words; a line with `end` alone, if one is named,
    /// ends them.
    pub(crate) fn parse(
        text: &'t str,
        magic: &'static str,
        words: &[&str],
        end: Option<&str>,
    ) -> Result<Self, TextError> {
        if text.len() > TEXT_SIZE_MAX {
            return Err(TextError::TooLarge);
        }
        let rest = text.strip_prefix(magic).and_then(|rest| rest.strip_prefix('\n'));
        let mut rest = rest.ok_or(TextError::Magic(magic))?;
        let mut lines = Vec::new();
        while !rest.is_empty() {
            let number = lines.len() + 2;
            let (line, after) = rest.split_once('\n').ok_or(TextError::Line(number))?;
            rest = after;
            if Some(line) == end {
                return Ok(Lines { lines, rest: Some(rest) });
            }
            let (word, value) = line.split_once(' ').ok_or(TextError::Line(number))?;
            if !words.contains(&word) {
                return Err(TextError::Unknown(number));
            }
            lines.push((word, value));
        }
        Ok(Lines { lines, rest: None })
    }

    /// What follows the line that ends these.
    pub(crate) const fn rest(&self) -> Option<&'t str> {
        self.rest
    }

    /// The values of `word`, at most `max`.
    pub(crate) fn all<T>(
        &self,
        word: &'static str,
        max: usize,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, TextError> {
        let values = self.lines.iter().filter(|(known, _)| *known == word);
        let values: Result<Vec<T>, TextError> =
            values.map(|(_, value)| read(value).ok_or(TextError::Value(word))).collect();
        values.and_then(|values| if values.len() > max { Err(TextError::TooMany(word)) } else { Ok(values) })
    }

    /// The value of `word`, if it is there.
    pub(crate) fn optional<T>(
        &self,
        word: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, TextError> {
        match self.all(word, usize::MAX, read)? {
            values if values.len() > 1 => Err(TextError::Twice(word)),
            values => Ok(values.into_iter().next()),
        }
    }

    /// The value of `word`.
    pub(crate) fn one<T>(
        &self,
        word: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, TextError> {
        self.optional(word, read)?.ok_or(TextError::Missing(word))
    }
}

/// A decimal number, written as this program writes one: no sign, no zeros in front.
pub(crate) fn number<T: FromStr>(text: &str) -> Option<T> {
    let is_plain =
        text.bytes().all(|octet| octet.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok()).flatten()
}

/// The identifier of a key: eight lower-case hexadecimal digits.
pub(crate) fn identifier(text: &str) -> Option<u32> {
    octets(text).map(u32::from_be_bytes)
}

/// `N` octets in lower-case hexadecimal digits.
pub(crate) fn octets<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |octet: u8| match octet {
        b'0'..=b'9' => Some(octet - b'0'),
        b'a'..=b'f' => Some(octet - b'a' + 10),
        0..=b'/' | b':'..=b'`' | b'g'..=u8::MAX => None,
    };
    let mut octets = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (octet, digits) in octets.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *octet = digit(digits[0])? << 4 | digit(digits[1])?;
    }
    Some(octets)
}

/// Octets in lower-case hexadecimal digits.
pub(crate) fn digits(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_words_and_values_of_a_known_text() {
        let parse = |text| Lines::parse(text, "magic 1", &["a", "b"], Some("more"));
        let lines = parse("magic 1\na 1\nb x y\na 2\nmore\nanything").expect("it is well-formed");
        assert_eq!(lines.all("a", 2, number::<u8>), Ok(vec![1, 2]));
        assert_eq!(lines.all("a", 1, number::<u8>), Err(TextError::TooMany("a")));
        assert_eq!(lines.one("a", number::<u8>), Err(TextError::Twice("a")));
        assert_eq!(lines.one("b", number::<u8>), Err(TextError::Value("b")));
        assert_eq!(lines.one("c", number::<u8>), Err(TextError::Missing("c")));
        assert_eq!(lines.rest(), Some("anything"));
        let error = |text| parse(text).err();
        assert_eq!(error("magic 2\n"), Some(TextError::Magic("magic 1")));
        assert_eq!(error("magic 1"), Some(TextError::Magic("magic 1")));
        assert_eq!(error("magic 1\na 1\nc 1\n"), Some(TextError::Unknown(3)));
        assert_eq!(error("magic 1\na\n"), Some(TextError::Line(2)));
        assert_eq!(error("magic 1\na 1"), Some(TextError::Line(2)));
        assert_eq!(error(&"x".repeat(TEXT_SIZE_MAX + 1)), Some(TextError::TooLarge));
    }

    #[test]
    fn numbers_and_octets_have_one_form() {
        assert_eq!(number::<u64>("18446744073709551615"), Some(u64::MAX));
        for bad in ["", "+1", "-1", "01", "00", " 1", "18446744073709551616"] {
            assert_eq!(number::<u64>(bad), None, "{bad}");
        }
        assert_eq!(identifier("5f3a0c11"), Some(0x5f3a_0c11));
        for bad in ["5F3A0C11", "5f3a0c1", "5f3a0c111", "5f3a0c1g", "5f3a0cé"] {
            assert_eq!(identifier(bad), None, "{bad}");
        }
        assert_eq!(octets(&digits(&[0, 15, 255])), Some([0, 15, 255]));
    }
}
