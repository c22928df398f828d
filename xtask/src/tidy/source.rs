//! Which parts of a Rust file are code, which are comments, and which are compiled only for tests.
//!
//! All views have the length and the line breaks of the text; what does not belong to a view is blank there. So rules
//! can search plain text, never find a word inside a string, and know the line.

use std::ops::Range;
use std::str::FromStr;

use proc_macro2::{Span, TokenStream, TokenTree};

/// One Rust file in three views.
pub(crate) struct Source {
    /// Code. Octets of literals are zeros.
    pub(crate) code: String,
    /// Code outside items under `#[cfg(test)]`.
    pub(crate) shipped: String,
    /// Comments, including documentation.
    pub(crate) comments: String,
    /// Whether the file does not parse as Rust, so that the views are blank.
    pub(crate) is_broken: bool,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let mut code = blank(text);
        let tokens = TokenStream::from_str(text);
        let is_broken = tokens.is_err();
        uncover(tokens.unwrap_or_default(), text, &mut code);
        let mut comments = if is_broken { blank(text) } else { text.as_bytes().to_vec() };
        for (comment, code) in comments.iter_mut().zip(&code) {
            if !code.is_ascii_whitespace() {
                *comment = b' ';
            }
        }
        let code = String::from_utf8(code).expect("identifiers are copied whole, the rest is ASCII");
        let comments = String::from_utf8(comments).expect("tokens begin and end between characters");
        let mut shipped = code.clone().into_bytes();
        for item in test_items(&code) {
            shipped[item].iter_mut().filter(|octet| **octet != b'\n').for_each(|octet| *octet = b' ');
        }
        let shipped = String::from_utf8(shipped).expect("items begin and end between characters");
        Source { code, shipped, comments, is_broken }
    }

    /// Whether a line, counted from 1, has code that is compiled only for tests.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.code.lines().nth(line - 1) != self.shipped.lines().nth(line - 1)
    }
}

/// The positions of `word` in `text`, except inside longer identifiers.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |octet: &u8| octet.is_ascii_alphanumeric() || *octet == b'_';
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let octets = text.as_bytes();
        !octets[..at].last().is_some_and(is_part) && !octets.get(at + word.len()).is_some_and(is_part)
    })
}

/// The line, counted from 1, that contains the octet `at`.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at].iter().filter(|octet| **octet == b'\n').count()
}

fn blank(text: &str) -> Vec<u8> {
    text.bytes().map(|octet| if octet == b'\n' { b'\n' } else { b' ' }).collect()
}

/// Copies the octets of `tokens` from `text` to `code`.
fn uncover(tokens: TokenStream, text: &str, code: &mut [u8]) {
    for token in tokens {
        let range = token.span().byte_range();
        // The lexer turns a documentation comment into an attribute, whose parts all have the span of the comment.
        if text[range.clone()].starts_with("//") || text[range.clone()].starts_with("/*") {
            continue;
        }
        let mut copy = |span: Span| {
            let range = span.byte_range();
            code[range.clone()].copy_from_slice(&text.as_bytes()[range]);
        };
        match token {
            TokenTree::Group(group) => {
                copy(group.span_open());
                copy(group.span_close());
                uncover(group.stream(), text, code);
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => copy(token.span()),
            TokenTree::Literal(_) => {
                code[range].iter_mut().filter(|octet| **octet != b'\n').for_each(|octet| *octet = b'0');
            }
        }
    }
}

/// The ranges of items under `#[cfg(test)]` and `#[cfg(all(test, ..))]`.
fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut items: Vec<Range<usize>> = Vec::new();
    for (start, attribute) in code.match_indices("#[cfg(test)]").chain(code.match_indices("#[cfg(all(test")) {
        let (mut depth, mut end) = (0_usize, code.len());
        for (at, character) in code[start + attribute.len()..].char_indices() {
            match character {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && matches!(character, '}' | ';') {
                end = start + attribute.len() + at + 1;
                break;
            }
        }
        items.push(start..end);
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_part_code_comments_and_literals() {
        let text =
            "//! unsafe\nlet a = \"unsafe {\"; // unsafé\n/* b */ let 'x: { '{' } /// doc\nfn é() {}\n";
        let source = Source::new(text);
        assert_eq!(words(&source.code, "unsafe").count(), 0);
        assert_eq!(words(&source.comments, "unsafe").count(), 1);
        assert!(source.comments.contains("// unsafé") && source.comments.contains("/// doc"));
        assert!(source.code.contains("let a = 0000000000;") && source.code.contains("fn é() {}"));
        for view in [&source.code, &source.shipped, &source.comments] {
            assert_eq!((view.len(), view.lines().count()), (text.len(), 4));
        }
    }

    #[test]
    fn items_for_tests_are_not_shipped() {
        let text =
            "use a;\n#[cfg(test)]\nuse b;\nfn c() {}\n#[cfg(test)]\nmod tests {\n fn d() {}\n}\nfn e() {}\n";
        let source = Source::new(text);
        assert_eq!(source.shipped.split_whitespace().collect::<String>(), "usea;fnc(){}fne(){}");
        assert!(source.is_test_line(3) && source.is_test_line(7));
        assert!(!source.is_test_line(4) && !source.is_test_line(9));
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(words("unsafe_code unsafe; an_unsafe unsafe", "unsafe").collect::<Vec<_>>(), [12, 30]);
        assert_eq!(line_of("a\nb\nc", 4), 3);
    }

    #[test]
    fn text_that_is_no_rust_is_said_to_be_broken() {
        assert!(Source::new("fn a( {").is_broken);
        assert!(!Source::new("fn a() {}").is_broken);
    }
}
