//! `conf.d`: files beside the configuration that say more, or otherwise.
//!
//! Files are read in the order of their names. Tables are joined key by key, and what a later file says of a key
//! counts; but tables in a list (`[[nts.certificate]]`) are added to those before them, so that each can have a file of
//! its own. `server.reference` is one value: its tables are alternatives, and a sum of two would be none of them.
//!
//! Each file is parsed behind as many empty lines as all before it have octets. So a place in the joined table is one
//! in one of the files, and mistakes are told with the file and line that they are in.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use authentick_net::passing::may_pass;
use serde::Deserialize as _;
use toml::de::{DeArray, DeTable, DeValue};

use super::{ConfigError, raw};

/// The folder, beside the file.
pub(crate) const FOLDER: &str = "conf.d";
/// Files in it, at most, and octets of all.
const FILE_COUNT_MAX: usize = 256;
const SIZE_MAX: usize = 1 << 20;
/// Tables that are one value.
const WHOLE: [&str; 1] = ["server.reference"];

/// One file.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    /// Its text, behind octets that stand for all files before it.
    text: String,
    /// How many octets those are.
    start: usize,
}

impl Source {
    /// A mistake in this file.
    fn wrong(&self, error: &toml::de::Error) -> ConfigError {
        let place = error.span().map_or(String::new(), |span| {
            let end = span.start.clamp(self.start, self.text.len());
            format!("line {}: ", self.text[self.start..end].matches('\n').count() + 1)
        });
        let message = error.message().trim().replace('\n', " ");
        let remedy = "see the manual's configuration page for all keys and their types";
        ConfigError::new(&self.path, "", "", format!("{place}{message}"), remedy)
    }
}

/// A configuration's files.
#[derive(Debug)]
pub(super) struct Sources(Vec<Source>);

impl Sources {
    /// One file with this text.
    pub(super) fn of(path: &Path, text: &str) -> Self {
        Sources(vec![Source { path: path.to_owned(), text: text.to_owned(), start: 0 }])
    }

    /// Reads a file and those of the folder beside it.
    ///
    /// # Errors
    /// If one cannot be read, or there are too many.
    pub(super) fn read(file: &Path) -> Result<Self, ConfigError> {
        let mut sources = Sources::of(file, &read(file, "name a file that exists with --config")?);
        for path in beside(file)? {
            let text = read(&path, "remove what leads to it")?;
            sources.add(&path, &text)?;
        }
        Ok(sources)
    }

    fn add(&mut self, path: &Path, text: &str) -> Result<(), ConfigError> {
        let start = self.0.last().map_or(0, |last| last.text.len());
        if start + text.len() > SIZE_MAX || self.0.len() > FILE_COUNT_MAX {
            let problem = format!("over {FILE_COUNT_MAX} files, or over {SIZE_MAX} octets in all");
            return Err(ConfigError::new(path, "", "", problem, "put them into fewer, or shorter ones"));
        }
        self.0.push(Source { path: path.to_owned(), text: "\n".repeat(start) + text, start });
        Ok(())
    }

    /// Joins all files, has `fill_in` complete the strings, and reads the keys.
    ///
    /// # Errors
    /// The first mistake, with its file and line.
    pub(super) fn parse(
        &self,
        fill_in: impl FnOnce(&mut DeTable<'_>) -> Result<(), ConfigError>,
    ) -> Result<(raw::File, Origins), ConfigError> {
        let wrong = |error: toml::de::Error| self.wrong(&error);
        let mut origins = Origins::default();
        let mut joined = DeTable::parse("").map_err(wrong)?;
        for source in &self.0 {
            let mut table = DeTable::parse(&source.text).map_err(|error| source.wrong(&error))?;
            origins.note("", table.get_ref(), &source.path);
            join("", joined.get_mut(), std::mem::take(table.get_mut()));
        }
        let filled = fill_in(joined.get_mut());
        // Keys and types first: they do not depend on what strings hold.
        let raw = raw::File::deserialize(toml::Deserializer::from(joined)).map_err(wrong)?;
        filled.map_err(|error| origins.place(error))?;
        Ok((raw, origins))
    }

    fn wrong(&self, error: &toml::de::Error) -> ConfigError {
        let at = error.span().map_or(0, |span| span.start);
        let source = self.0.iter().rev().find(|source| source.start <= at);
        source.expect("the first one starts at 0").wrong(error)
    }
}

/// Which file has the last word on each key.
#[derive(Clone, Default)]
pub(crate) struct Origins {
    keys: BTreeMap<String, PathBuf>,
    /// In tables of a list, to which several files add: keys with what they are set to, or what is in that.
    listed: BTreeMap<(String, String), PathBuf>,
}

/// Nothing: what a configuration means does not depend on where it came from.
impl fmt::Debug for Origins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Origins")
    }
}

impl Origins {
    fn note(&mut self, place: &str, table: &DeTable<'_>, path: &Path) {
        for (key, value) in table {
            let place = inner(place, key.get_ref());
            match value.get_ref() {
                DeValue::Table(table) => self.note(&place, table, path),
                DeValue::Array(array) if is_of_tables(array) => {
                    for table in array {
                        self.note_listed(&place, table.get_ref(), path);
                    }
                }
                _ => {}
            }
            self.keys.insert(place, path.to_owned());
        }
    }

    /// Notes what is in a table of a list.
    fn note_listed(&mut self, place: &str, value: &DeValue<'_>, path: &Path) {
        let text = match value {
            DeValue::Table(table) => {
                for (key, value) in table {
                    self.note_listed(&inner(place, key.get_ref()), value.get_ref(), path);
                }
                return;
            }
            DeValue::Array(array) => {
                return array.iter().for_each(|value| self.note_listed(place, value.get_ref(), path));
            }
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => return,
        };
        self.listed.insert((place.to_owned(), text), path.to_owned());
    }

    /// Names the file that has the mistake: the one with the last word on its key, or on what the key is in.
    pub(super) fn place(&self, error: ConfigError) -> ConfigError {
        let listed = self.listed.get(&(error.key.clone(), error.value.clone()));
        let mut key = error.key.as_str();
        let known = loop {
            match (listed.or_else(|| self.keys.get(key)), key.rsplit_once('.')) {
                (Some(path), _) => break Some(path),
                (None, Some((outer, _))) => key = outer,
                (None, None) => break None,
            }
        };
        match known {
            Some(path) => ConfigError { file: path.clone(), ..error },
            None => error,
        }
    }
}

/// Joins `from` with `into`, which it has the last word over; both are at `place`.
fn join<'a>(place: &str, into: &mut DeTable<'a>, from: DeTable<'a>) {
    for (key, mut value) in from {
        let place = inner(place, key.get_ref());
        let Some(known) = into.get_mut(&key) else {
            into.insert(key, value);
            continue;
        };
        match (known.get_mut(), value.get_mut()) {
            (DeValue::Table(known), DeValue::Table(more)) if !WHOLE.contains(&place.as_str()) => {
                join(&place, known, std::mem::take(more));
            }
            (DeValue::Array(known), DeValue::Array(more)) if is_of_tables(known) && is_of_tables(more) => {
                more.iter().for_each(|table| known.push(table.clone()));
            }
            _ => {
                // With its place, which `insert` would leave as it was.
                into.remove(&key);
                into.insert(key, value);
            }
        }
    }
}

/// The place of a key in the table at `place`.
fn inner(place: &str, key: &str) -> String {
    if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") }
}

/// Whether an array is a list of tables, as `[[nts.certificate]]` makes one.
fn is_of_tables(array: &DeArray<'_>) -> bool {
    !array.is_empty() && array.iter().all(|value| matches!(value.get_ref(), DeValue::Table(_)))
}

fn read(path: &Path, remedy_if_missing: &str) -> Result<String, ConfigError> {
    let text = fs::read_to_string(path).map(|text| match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    });
    text.map_err(|error| {
        let is_permission = error.kind() == ErrorKind::PermissionDenied;
        let remedy = match error.kind() {
            ErrorKind::NotFound => remedy_if_missing,
            ErrorKind::PermissionDenied => "make it readable for the user that starts the server",
            _ => "a configuration is a text file",
        };
        ConfigError::new(path, "", "", format!("cannot read: {error}"), remedy)
            .of_rights(is_permission)
            .of_passing(may_pass(&error))
    })
}

/// The files of the folder beside `file` whose names end in `.toml`, in the order of their names. Hidden ones are those
/// of editors and packages that are at work.
pub(crate) fn beside(file: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let folder = file.with_file_name(FOLDER);
    let wrong = |error: std::io::Error| {
        let is_permission = error.kind() == ErrorKind::PermissionDenied;
        let remedy = "make it a folder that the user who starts the server can read, or remove it";
        ConfigError::new(&folder, "", "", format!("cannot read: {error}"), remedy)
            .of_rights(is_permission)
            .of_passing(may_pass(&error))
    };
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(wrong)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(wrong)?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Reference};

    /// A folder with these files, of which the first is the configuration.
    fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(FOLDER)).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let file = folder.path().join(files[0].0);
        (folder, file)
    }

    const MAIN: &str = "[server]\nlisten = [\"127.0.0.1:1\"]\nworkers = 2\nallow = [\"192.0.2.0/24\"]\n";

    #[test]
    fn later_files_have_the_last_word_on_each_key_and_add_tables_to_lists() {
        let pair = |name: &str| {
            format!("[[nts.certificate]]\ncertificate-chain = \"/{name}\"\nprivate-key = \"/k\"\n")
        };
        let (_folder, file) = folder(&[
            ("a.toml", &format!("{MAIN}{}", pair("first"))),
            ("conf.d/20-b.toml", "[server]\nallow = [\"198.51.100.0/24\"]\nrate-limit = { burst = 3 }\n"),
            (
                "conf.d/10-a.toml",
                "[server]\nworkers = 3\nallow = []\nrate-limit = { requests-per-second = 1 }\n",
            ),
            ("conf.d/30-c.toml", &pair("second")),
            ("conf.d/30-c.toml.dpkg-dist", "nonsense"),
            ("conf.d/.40-d.toml", "nonsense"),
        ]);
        let config = Config::load(&file).unwrap();
        assert_eq!((config.workers, config.listen.len(), config.reference), (3, 1, Reference::KERNEL));
        assert!(
            config.allow.contains([198, 51, 100, 1].into()) && !config.allow.contains([192, 0, 2, 1].into())
        );
        let rate = config.rate.unwrap();
        assert_eq!((rate.burst, rate.interval_us), (3, 1_000_000));
        let chains = config.nts.unwrap().exchange.unwrap();
        let chains: Vec<String> =
            chains.certificates.iter().map(|pair| pair.certificate_chain.display().to_string()).collect();
        assert_eq!(chains, ["/first", "/second"]);
    }

    #[test]
    fn mistake_is_told_with_the_file_and_line_that_it_is_in() {
        for (text, name, parts) in [
            ("[server]\n\nlistne = []\n", "30-c.toml", &["line 3", "unknown field", "listne"][..]),
            ("[server]\nworkers = \"two\"\n", "30-c.toml", &["line 2", "invalid type"]),
            ("[server]\nworkers = = 2\n", "30-c.toml", &["line 2"]),
            ("[server]\nlisten = [\"nowhere\"]\n", "30-c.toml", &["server.listen", "nowhere"]),
            ("[server]\nuser = \"${NOT_SET_ANYWHERE}\"\n", "30-c.toml", &["server.user", "NOT_SET_ANYWHERE"]),
            ("[server.rate-limit]\nburst = 0\nrequests-per-second = 1\n", "30-c.toml", &["burst"]),
            ("[fleet]\nid = \"x\"\n", "30-c.toml", &["missing field"]),
        ] {
            let (_folder, file) = folder(&[
                ("a.toml", MAIN),
                ("conf.d/10-a.toml", "[server]\nworkers = 3\n"),
                ("conf.d/30-c.toml", text),
            ]);
            let error = Config::load(&file).unwrap_err();
            assert!(error.file.ends_with(name), "{error}");
            let message = error.to_string();
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
    }

    #[test]
    fn reference_is_one_value() {
        let asserted = "[server]\nreference = { stratum = 1, id = \"GPS\" }\n";
        let upstream = "[server]\nreference = { upstream = \"127.0.0.1:11123\" }\n";
        let (_folder, file) = folder(&[("a.toml", asserted), ("conf.d/a.toml", upstream)]);
        let config = Config::load(&file).unwrap();
        assert_eq!(config.reference, Config::parse(Path::new("b.toml"), upstream).unwrap().reference);
    }

    #[test]
    fn mistake_that_is_found_later_is_told_with_its_file() {
        let (_folder, file) = folder(&[("a.toml", MAIN), ("conf.d/a.toml", "[server]\nuser = \"x\"\n")]);
        let config = Config::load(&file).unwrap();
        assert!(config.wrong("server.user", "x", "", "").file.ends_with("conf.d/a.toml"));
        assert_eq!(config.wrong("server.listen", "", "", "").file, file);
        assert_eq!(config.wrong("fleet", "", "", "").file, file);
    }

    #[test]
    fn mistake_in_a_table_of_a_list_is_told_with_the_file_that_has_the_table() {
        let pair = |chain: &str, name: &str| {
            format!(
                "[[nts.certificate]]\ncertificate-chain = \"{chain}\"\nprivate-key = \"/k\"\nnames = [\"{name}\"]\n"
            )
        };
        let good = pair("/c", "a.example");
        for bad in [pair("c", "b.example"), pair("/d", "b example")] {
            for (number, texts) in
                [[&bad, &good, &good], [&good, &bad, &good], [&good, &good, &bad]].iter().enumerate()
            {
                let (_folder, file) = folder(&[
                    ("a.toml", &format!("{MAIN}{}", texts[0])),
                    ("conf.d/b.toml", texts[1]),
                    ("conf.d/c.toml", texts[2]),
                ]);
                let error = Config::load(&file).unwrap_err();
                assert!(error.file.ends_with(["a.toml", "b.toml", "c.toml"][number]), "{error}");
            }
        }
    }

    #[test]
    fn folder_is_no_must_and_what_cannot_be_read_in_it_is_named() {
        let (folder, file) = folder(&[("a.toml", MAIN)]);
        assert!(Config::load(&file).is_ok());
        fs::create_dir(folder.path().join("conf.d/x.toml")).unwrap();
        assert!(Config::load(&file).unwrap_err().file.ends_with("conf.d/x.toml"));
        fs::remove_dir_all(folder.path().join(FOLDER)).unwrap();
        assert!(Config::load(&file).is_ok());
        fs::write(folder.path().join(FOLDER), "").unwrap();
        assert!(Config::load(&file).unwrap_err().file.ends_with(FOLDER));
    }
}
