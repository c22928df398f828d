//! What the protocol crates and the game do without: clocks, threads, sockets and randomness of their own.
//!
//! Time, entropy and keys come in as arguments, so that whole histories replay from a seed. Tests may use all of these,
//! and `delays.rs` may sleep: it compiles to nothing outside one test.

use super::Finding;
use super::source::{line_of, words};
use super::tree::Tree;

const PURE: [&str; 3] = ["crates/game/src/", "crates/proto/src/", "crates/wire/src/"];

const EXEMPT: [&str; 1] = ["crates/proto/src/delays.rs"];

const ABSENT: [&str; 5] =
    ["Instant::now", "SystemTime::now", "thread_rng", "std::net::UdpSocket", "std::thread"];

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        let is_pure = PURE.iter().any(|folder| file.path.starts_with(folder));
        if !is_pure || file.name() == "tests.rs" || EXEMPT.contains(&&*file.path) {
            continue;
        }
        for absent in ABSENT {
            let named = words(&source.shipped, absent);
            let imports = imports(&source.shipped).into_iter().filter(|(_, path)| is_within(path, absent));
            let mut lines: Vec<usize> =
                named.chain(imports.map(|(at, _)| at)).map(|at| line_of(&source.shipped, at)).collect();
            lines.sort_unstable();
            lines.dedup();
            let problem = format!("`{absent}`: this crate gets it as an argument, or does without");
            findings.extend(lines.iter().map(|line| Finding::violation(&file.path, *line, &*problem)));
        }
    }
    findings
}

fn is_within(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The whole paths that `use` brings in, each with the place of its statement.
fn imports(code: &str) -> Vec<(usize, String)> {
    let mut imports = Vec::new();
    for at in words(code, "use") {
        let statement = code[at + "use".len()..].split(';').next().unwrap_or_default();
        let tree: String = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut paths = Vec::new();
        expand("", &tree, &mut paths);
        imports.extend(paths.into_iter().map(|path| (at, path)));
    }
    imports
}

/// Writes out a tree such as `std::{net::{IpAddr, UdpSocket}, thread as t}`, path by path, without new names.
fn expand(before: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((prefix, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        let path = path.strip_suffix("::self").unwrap_or(if path == "self" { "" } else { path });
        let path = format!("{before}{path}");
        return paths.push(path.trim_start_matches("::").trim_end_matches("::").to_owned());
    };
    let inside = rest.trim_end().strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut start) = (0_usize, 0);
    let before = format!("{before}{prefix}");
    for (at, character) in inside.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                expand(&before, &inside[start..at], paths);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inside[start..].trim().is_empty() {
        expand(&before, &inside[start..], paths);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).iter().map(|finding| finding.line).collect()
    }

    const IMPURE: &str = "use std::time::Instant;\nfn a() { Instant::now(); }\nfn b() { rand::thread_rng(); }\n\
        use std::net::{IpAddr, UdpSocket};\nuse std::{\n    io,\n    thread::{self, sleep},\n};\n";

    #[test]
    fn clocks_sockets_and_threads_are_found() {
        assert_eq!(lines("crates/proto/src/server/mod.rs", IMPURE), [2, 3, 4, 5]);
        assert_eq!(lines("crates/wire/src/time.rs", "fn a() { std::time::SystemTime::now(); }\n"), [1]);
        assert_eq!(lines("crates/wire/src/a.rs", "fn a() { std::thread::yield_now(); }\n"), [1]);
        assert_eq!(lines("crates/game/src/mac/salt.rs", "fn a() { Instant::now(); }\n"), [1]);
    }

    #[test]
    fn other_crates_tests_and_delays_may_use_them() {
        for path in
            ["crates/net/src/clock.rs", "crates/proto/src/delays.rs", "crates/proto/src/client/tests.rs"]
        {
            assert_eq!(lines(path, IMPURE), [0; 0], "{path}");
        }
        let tests =
            format!("//! Instant::now\n#[cfg(test)]\nmod tests {{\n{IMPURE}}}\nuse std::net::IpAddr;\n");
        assert_eq!(lines("crates/proto/src/cookie.rs", &tests), [0; 0]);
    }

    #[test]
    fn use_trees_are_written_out() {
        let paths: Vec<String> = imports("use ::a::{b, c::{self, d as e}, f};\nuse g;\n")
            .into_iter()
            .map(|(_, path)| path)
            .collect();
        assert_eq!(paths, ["a::b", "a::c", "a::c::d", "a::f", "g"]);
    }
}
