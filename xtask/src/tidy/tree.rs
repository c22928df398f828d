//! The text files of a checkout, read once for all rules.

use std::path::Path;

use ignore::WalkBuilder;

use super::Finding;
use super::source::Source;

/// Text files, sorted by path.
pub(crate) struct Tree {
    pub(crate) files: Vec<TextFile>,
}

/// One text file. Paths are relative to the root and separated by slashes.
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
    /// For Rust: which parts of the text are code.
    pub(crate) source: Option<Source>,
}

impl Tree {
    /// Reads everything in `root` that `.gitignore` does not exclude; needs no git. Files that are not UTF-8 are left
    /// out.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut walk = WalkBuilder::new(root);
        walk.standard_filters(false).git_ignore(true).require_git(false);
        walk.filter_entry(|entry| entry.file_name() != ".git");
        let mut files = Vec::new();
        for entry in walk.build() {
            let entry = entry.map_err(|error| error.to_string())?;
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            // A file may have disappeared meanwhile.
            let Some(text) =
                std::fs::read(entry.path()).ok().and_then(|octets| String::from_utf8(octets).ok())
            else {
                continue;
            };
            let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
            files.push(TextFile::new(&path.to_string_lossy(), text));
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Tree { files })
    }

    /// A tree of these paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Tree { files: files.iter().map(|(path, text)| TextFile::new(path, (*text).to_owned())).collect() }
    }

    /// The Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&TextFile, &Source)> {
        self.files.iter().filter_map(|file| Some((file, file.source.as_ref()?)))
    }
}

impl TextFile {
    fn new(path: &str, text: String) -> Self {
        let source = path.ends_with(".rs").then(|| Source::new(&text));
        TextFile { path: path.to_owned(), text, source }
    }

    /// A violation of a rule in a line, counted from 1.
    pub(crate) fn violation(&self, line: usize, problem: impl Into<String>) -> Finding {
        Finding::violation(&self.path, line, problem)
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether this is `crates/NAME/src/..` of any crate.
    pub(crate) fn is_shipped(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.next() == Some("crates") && parts.nth(1) == Some("src")
    }
}

/// The cells of a row of a table in Markdown.
pub(crate) fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix("| ").or_else(|| line.strip_prefix('|'))?.trim_end().strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn ignored_and_binary_files_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, octets: &[u8]| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, octets).unwrap();
        };
        put(".gitignore", b"/target\n");
        put("target/debug/main.rs", b"");
        put("crates/wire/src/target.rs", b"//! Here.\n");
        put(".ci/run", b"#!/bin/sh\n");
        put(".git/config", b"");
        put("corpus", &[0xFF, 0xFE]);
        let tree = Tree::read(root.path()).unwrap();
        let paths: Vec<&str> = tree.files.iter().map(|file| &*file.path).collect();
        assert_eq!(paths, [".ci/run", ".gitignore", "crates/wire/src/target.rs"]);
    }

    #[test]
    fn sources_of_crates_are_shipped_and_nothing_else_is() {
        let tree =
            Tree::of(&[("crates/a/src/b.rs", ""), ("crates/a/tests/src/b.rs", ""), ("xtask/src/b.rs", "")]);
        assert_eq!(tree.files.iter().map(TextFile::is_shipped).collect::<Vec<_>>(), [true, false, false]);
    }
}
