//! What a program can count in a package's source: its size, `unsafe`, what can panic, what it may reach.
//!
//! Words are counted, not meanings: a macro of another package can hide what is not written here, and code that is
//! switched off for us counts. So these figures say where to look and what changed; they are no judgement.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use crate::tidy::source::{Source, words};

/// The figures of one package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Lines of Rust with code, tests, benches, examples and the build script left out.
    pub(super) lines: usize,
    /// The word `unsafe` in these.
    pub(super) unsafes: usize,
    /// What panics by its name: `unwrap`, `expect`, `panic`, `unreachable`, `todo`, `assert` and its relatives.
    pub(super) panics: usize,
    /// Lines of C and assembly.
    pub(super) foreign: usize,
    /// Files of compiled code.
    pub(super) objects: usize,
    /// What the names in the code reach of the system.
    pub(super) reaches: BTreeSet<&'static str>,
    /// The same of the build script, and `processes` if it starts any.
    pub(super) builder_reaches: BTreeSet<&'static str>,
    /// Files that are no Rust to the lexer, so that nothing was counted in them.
    pub(super) broken: usize,
}

/// Folders that are not compiled for who depends on the package.
const ASIDE: [&str; 6] = ["tests", "benches", "examples", "fuzz", "benchmarks", "third_party"];

const PANICS: [&str; 10] = [
    "unwrap",
    "expect",
    "panic",
    "unreachable",
    "todo",
    "unimplemented",
    "assert",
    "assert_eq",
    "assert_ne",
    "abort",
];

/// Words that stand for a part of the system.
const REACHES: [(&str, &[&str]); 4] = [
    ("environment", &["env::var", "env::var_os", "env::vars", "getenv"]),
    ("files", &["fs", "File", "OpenOptions", "openat"]),
    ("network", &["TcpStream", "TcpListener", "UdpSocket", "UnixStream", "UnixDatagram", "getaddrinfo"]),
    ("processes", &["Command::new", "fork", "execve", "posix_spawn"]),
];

/// Counts in the package that lies at `root` and is built by `builder`.
pub(super) fn count(root: &Path, builder: Option<&Path>) -> Result<Facts, String> {
    let mut facts = Facts::default();
    for path in files(root)? {
        let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
        match kind {
            "rs" if Some(&*path) == builder => facts.builder_reaches = reaches(&source(&path)?.code),
            "rs" => facts.add(&source(&path)?),
            "c" | "h" | "cc" | "cpp" | "S" | "s" | "asm" | "inc" => {
                let octets = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                facts.foreign += octets.iter().filter(|octet| **octet == b'\n').count();
            }
            "o" | "obj" | "a" | "lib" | "so" | "dll" | "dylib" | "exe" => facts.objects += 1,
            _ => {}
        }
    }
    Ok(facts)
}

impl Facts {
    fn add(&mut self, source: &Source) {
        let code = &source.shipped;
        self.broken += usize::from(source.is_broken);
        self.lines += code.lines().filter(|line| !line.trim().is_empty()).count();
        self.unsafes += words(code, "unsafe").count();
        self.panics += PANICS.iter().map(|word| words(code, word).count()).sum::<usize>();
        self.reaches.extend(reaches(code));
    }
}

fn reaches(code: &str) -> BTreeSet<&'static str> {
    let is_there = |list: &[&str]| list.iter().any(|word| words(code, word).next().is_some());
    REACHES.iter().filter(|(_, list)| is_there(list)).map(|(name, _)| *name).collect()
}

fn source(path: &Path) -> Result<Source, String> {
    let octets = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Source::new(&String::from_utf8_lossy(&octets)))
}

/// The files of the package, without those that are not compiled for us.
fn files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(false).filter_entry(|entry| {
        let is_aside = |name: &str| ASIDE.contains(&name);
        !(entry.file_type().is_some_and(|kind| kind.is_dir())
            && entry.file_name().to_str().is_some_and(is_aside))
    });
    let mut files = Vec::new();
    for entry in walk.build() {
        let entry = entry.map_err(|error| error.to_string())?;
        if entry.file_type().is_some_and(|kind| kind.is_file()) {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_in_what_is_compiled_for_others() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(
            "src/lib.rs",
            "// unsafe\nuse std::net::UdpSocket;\nfn a() { unsafe { b().unwrap() } }\n\
             #[cfg(test)]\nmod tests { fn c() { unsafe {} } }\n",
        );
        put("src/b.c", "int a;\nint b;\n");
        put("tests/d.rs", "fn d() { unsafe {} panic!() }\n");
        put("build.rs", "fn main() { std::process::Command::new(\"cc\"); std::env::var(\"A\"); }\n");
        put("a.o", "");
        let facts = count(root.path(), Some(&root.path().join("build.rs"))).unwrap();
        let expected = Facts {
            lines: 2,
            unsafes: 1,
            panics: 1,
            foreign: 2,
            objects: 1,
            reaches: BTreeSet::from(["network"]),
            builder_reaches: BTreeSet::from(["environment", "processes"]),
            broken: 0,
        };
        assert_eq!(facts, expected);
    }
}
