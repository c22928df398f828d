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
use std::ops::Range;
use std::path::{Path, PathBuf};

use authentick_net::passing::may_pass;
use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::schema::{self, MANUAL, Misfit, inner, is_of_tables};
use super::{ConfigError, raw, syntax};

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
    /// Where its lines end, in octets of the text.
    line_ends: Vec<usize>,
}

impl Source {
    fn new(path: &Path, text: &str, start: usize) -> Self {
        let line_ends = text.match_indices('\n').map(|(at, _)| start + at).collect();
        Source { path: path.to_owned(), text: "\n".repeat(start) + text, start, line_ends }
    }

    /// The number of the line at an octet, from 1.
    fn line(&self, at: usize) -> usize {
        self.line_ends.partition_point(|end| *end < at) + 1
    }

    /// A mistake in the syntax of this file.
    fn syntax(&self, error: &toml::de::Error) -> ConfigError {
        let span = error.span().unwrap_or(self.start..self.start);
        let number = self.line(span.start);
        let line = self.text[self.start..].lines().nth(number - 1).unwrap_or_default().trim();
        let lines: Vec<&str> = self.text[self.start..].lines().collect();
        if error.message().contains("array")
            && let Some((number, key)) =
                syntax::open_list(&lines, number, error.message().contains("unclosed"))
        {
            let (problem, remedy) = syntax::describe_open_list(lines[number - 1].trim(), key);
            let error = ConfigError::new(&self.path, "", "", problem, remedy);
            return ConfigError { line: Some(number), ..error };
        }
        let (problem, remedy) =
            syntax::describe(error.message(), self.text.get(span).unwrap_or_default(), line);
        let error = ConfigError::new(&self.path, "", "", problem, remedy);
        ConfigError { line: Some(number), ..error }
    }
}

/// A configuration's files.
#[derive(Debug)]
pub(super) struct Sources(Vec<Source>);

impl Sources {
    /// One file with this text.
    pub(super) fn of(path: &Path, text: &str) -> Self {
        Sources(vec![Source::new(path, text, 0)])
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
        self.0.push(Source::new(path, text, start));
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
        let mut origins = Origins::default();
        let mut joined = DeTable::parse("").map_err(|error| self.0[0].syntax(&error))?;
        for source in &self.0 {
            let mut table = DeTable::parse(&source.text).map_err(|error| source.syntax(&error))?;
            origins.note("", table.get_ref(), source);
            join("", joined.get_mut(), std::mem::take(table.get_mut()));
        }
        let filled = fill_in(joined.get_mut());
        // Keys and types first: they do not depend on what strings hold.
        schema::check(joined.get_ref(), &|span| self.text(span)).map_err(|misfit| self.misfit(misfit))?;
        let raw = raw::File::deserialize(toml::Deserializer::from(joined)).map_err(|error| {
            // The table of keys allows what the fields do not: a mistake of ours.
            let at = error.span().map_or(0, |span| span.start);
            let problem = "a value of an unexpected form".to_owned();
            self.misfit(Misfit { at: at..at, key: String::new(), problem, remedy: MANUAL.to_owned() })
        })?;
        filled.map_err(|error| origins.place(error))?;
        Ok((raw, origins))
    }

    fn source(&self, at: usize) -> &Source {
        self.0.iter().rev().find(|source| source.start <= at).expect("the first one starts at 0")
    }

    /// What is written at a place in the joined table.
    fn text(&self, span: &Range<usize>) -> String {
        self.source(span.start).text.get(span.clone()).unwrap_or_default().to_owned()
    }

    fn misfit(&self, misfit: Misfit) -> ConfigError {
        let Misfit { at, key, problem, remedy } = misfit;
        let source = self.source(at.start);
        let error = ConfigError::new(&source.path, &key, "", problem, remedy);
        ConfigError { line: Some(source.line(at.start)), ..error }
    }
}

/// A place in a file.
#[derive(Clone)]
struct Spot {
    path: PathBuf,
    line: usize,
}

/// Which file has the last word on each key, and in which line.
#[derive(Clone, Default)]
pub(crate) struct Origins {
    keys: BTreeMap<String, Spot>,
    /// In tables of a list, to which several files add: keys with what they are set to, or what is in that.
    listed: BTreeMap<(String, String), Spot>,
}

/// Nothing: what a configuration means does not depend on where it came from.
impl fmt::Debug for Origins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Origins")
    }
}

impl Origins {
    fn note(&mut self, place: &str, table: &DeTable<'_>, source: &Source) {
        for (key, value) in table {
            let place = inner(place, key.get_ref());
            match value.get_ref() {
                DeValue::Table(table) => self.note(&place, table, source),
                DeValue::Array(array) if is_of_tables(array) => {
                    for table in array {
                        self.note_listed(&place, table, source);
                    }
                }
                _ => {}
            }
            let spot = Spot { path: source.path.clone(), line: source.line(key.span().start) };
            self.keys.insert(place, spot);
        }
    }

    /// Notes what is in a table of a list.
    fn note_listed(&mut self, place: &str, value: &Spanned<DeValue<'_>>, source: &Source) {
        let text = match value.get_ref() {
            DeValue::Table(table) => {
                for (key, value) in table {
                    self.note_listed(&inner(place, key.get_ref()), value, source);
                }
                return;
            }
            DeValue::Array(array) => {
                return array.iter().for_each(|value| self.note_listed(place, value, source));
            }
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => return,
        };
        let spot = Spot { path: source.path.clone(), line: source.line(value.span().start) };
        self.keys.insert(place.to_owned(), spot.clone());
        self.listed.insert((place.to_owned(), text), spot);
    }

    /// Names file and line of the mistake: those with the last word on its key, or on what the key is in. A value
    /// whose key is in no file is a default.
    pub(super) fn place(&self, error: ConfigError) -> ConfigError {
        let listed = self.listed.get(&(error.key.clone(), error.value.clone()));
        let is_default =
            !error.key.is_empty() && !error.value.is_empty() && !self.keys.contains_key(&error.key);
        let mut key = error.key.as_str();
        let known = loop {
            match (listed.or_else(|| self.keys.get(key)), key.rsplit_once('.')) {
                (Some(spot), _) => break Some(spot),
                (None, Some((outer, _))) => key = outer,
                (None, None) => break None,
            }
        };
        match known {
            Some(Spot { path, line }) => {
                ConfigError { file: path.clone(), line: Some(*line), is_default, ..error }
            }
            None => ConfigError { is_default, ..error },
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
    let mut paths = entries(&folder).map_err(wrong)?;
    paths.retain(|path| is_toml(path));
    Ok(paths)
}

/// Files of that folder that look like parts of the configuration, and are not read for their names. What package
/// managers and editors leave there, and a README, do not.
pub(super) fn skipped(file: &Path) -> Vec<PathBuf> {
    const LEFT_BEHIND: [&str; 9] =
        ["dpkg-dist", "dpkg-old", "dpkg-new", "dpkg-bak", "ucf-dist", "rpmnew", "rpmsave", "rpmorig", "swp"];
    let mut paths = entries(&file.with_file_name(FOLDER)).unwrap_or_default();
    paths.retain(|path| {
        let is_readme = path.file_stem().is_some_and(|name| name.eq_ignore_ascii_case("readme"));
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let is_backup = path.as_os_str().as_encoded_bytes().ends_with(b"~");
        let is_left = LEFT_BEHIND.contains(&extension.as_str()) || is_backup;
        !is_toml(path) && !is_readme && !is_left && path.is_file()
    });
    paths
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

/// What is in a folder, but for what is hidden, in the order of the names; nothing if there is no such folder.
fn entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
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
            (
                "[server]\n\nlistne = []\n",
                "30-c.toml",
                &["line 3", "server.listne: unknown key", "server.listen?"][..],
            ),
            ("[server]\nworkers = \"two\"\n", "30-c.toml", &["line 2", "invalid value \"two\""]),
            ("[server]\nworkers = = 2\n", "30-c.toml", &["line 2"]),
            ("[server]\n\nlisten = [\"nowhere\"]\n", "30-c.toml", &["line 3: server.listen", "nowhere"]),
            ("[server]\nuser = \"${NOT_SET_ANYWHERE}\"\n", "30-c.toml", &["server.user", "NOT_SET_ANYWHERE"]),
            ("[server.rate-limit]\nburst = 0\nrequests-per-second = 1\n", "30-c.toml", &["burst"]),
            ("[fleet]\nid = \"x\"\n", "30-c.toml", &["line 1", "fleet.node: missing"]),
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
        assert!(config.wrong("server.user", "x", "", "").to_string().contains("a.toml: line 2: server.user"));
        let default = config.wrong("nts.ke-listen", "[::]:4460", "taken", "").to_string();
        assert!(default.contains("nts.ke-listen = \"[::]:4460\" (the default): taken"), "{default}");
    }

    #[test]
    fn file_of_another_name_is_skipped_and_known_so() {
        let (_folder, file) = folder(&[
            ("a.toml", MAIN),
            ("conf.d/local.conf", "nonsense"),
            ("conf.d/time.toml.bak", "nonsense"),
            ("conf.d/time.toml", "[server]\nworkers = 1\n"),
            ("conf.d/README", "text"),
            ("conf.d/time.toml.dpkg-dist", "nonsense"),
            ("conf.d/time.toml~", "nonsense"),
            ("conf.d/.hidden.conf", "nonsense"),
        ]);
        let skipped = Config::load(&file).unwrap().skipped;
        let names: Vec<_> = skipped.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(names, ["local.conf", "time.toml.bak"]);
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
