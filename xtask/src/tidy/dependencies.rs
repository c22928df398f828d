//! Who may depend on whom, and why the line is there.
//!
//! The table holds what the manifests say, no more and no less, dependencies of tests left out. A new edge is thus a
//! decision that shows in a change to this file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use super::Finding;

/// One line of the table.
struct Line {
    /// The package, as its manifest names it.
    package: &'static str,
    /// Packages of this workspace that it uses.
    internal: &'static [&'static str],
    /// Packages of others.
    external: &'static [&'static str],
    /// What would be lost with a further edge.
    reason: &'static str,
}

const TABLE: &[Line] = &[
    Line {
        package: "authentick-wire",
        internal: &[],
        external: &[],
        reason: "the line exists so that a parser is fuzzed alone and shared by all engines, and allocates nothing",
    },
    Line {
        package: "authentick-lanes",
        internal: &[],
        external: &["inout", "sha2", "subtle", "zeroize"],
        reason: "the line exists so that kernels are compiled once, and audited in one place",
    },
    Line {
        package: "authentick-crypto",
        internal: &["authentick-lanes"],
        external: &[
            "aes",
            "aes-gcm-siv",
            "aes-siv",
            "arrayvec",
            "aws-lc-rs",
            "aws-lc-sys",
            "chacha20",
            "getrandom",
            "ghash",
            "hkdf",
            "hmac",
            "rand_chacha",
            "sha1",
            "sha2",
            "siphasher",
            "subtle",
            "zeroize",
        ],
        reason: "the line exists so that primitives are measured alone, and their library is changed in one place",
    },
    Line {
        package: "authentick-proto",
        internal: &["authentick-crypto", "authentick-wire"],
        external: &["arrayvec"],
        reason: "the line exists so that histories replay from a seed, and one core runs under any engine and fuzzer",
    },
    Line {
        package: "authentick-net",
        internal: &["authentick-wire"],
        external: &["libc", "rustix"],
        reason: "the line exists so that system calls are audited in one crate, which runs on random datagrams too",
    },
    Line {
        package: "authentick-ke",
        internal: &["authentick-crypto", "authentick-proto", "authentick-wire"],
        external: &[
            "base64ct",
            "der",
            "mio",
            "rustls",
            "rustls-webpki",
            "sha1",
            "slab",
            "socket2",
            "x509-cert",
            "x509-ocsp",
            "x509-parser",
            "zeroize",
        ],
        reason: "the line exists so that the data plane builds without TLS, and key exchange scales on other hosts",
    },
    Line {
        package: "authentick-client",
        internal: &[
            "authentick-crypto",
            "authentick-ke",
            "authentick-net",
            "authentick-proto",
            "authentick-wire",
        ],
        external: &["humantime", "rustls", "thiserror", "ureq"],
        reason: "the line exists so that all who ask a server share one client, which neither prints nor exits",
    },
    Line {
        package: "authentick-daemon",
        internal: &[
            "authentick-crypto",
            "authentick-ke",
            "authentick-net",
            "authentick-proto",
            "authentick-wire",
        ],
        external: &[
            "arc-swap",
            "crossbeam-queue",
            "http-body-util",
            "humantime",
            "hyper",
            "hyper-util",
            "landlock",
            "libc",
            "log",
            "prometheus-client",
            "rustix",
            "rustls",
            "seccompiler",
            "serde",
            "serde_json",
            "tokio",
            "toml",
            "zeroize",
        ],
        reason: "the line exists so that one crate composes: locks and files are here, and in no crate below",
    },
    Line {
        package: "authentick-generator",
        internal: &["authentick-crypto", "authentick-proto", "authentick-report", "authentick-wire"],
        external: &["hdrhistogram", "serde"],
        reason: "the line exists so that whole load runs replay from a seed, without sockets, clocks and TLS",
    },
    Line {
        package: "authentick-load",
        internal: &[
            "authentick-client",
            "authentick-crypto",
            "authentick-generator",
            "authentick-ke",
            "authentick-net",
            "authentick-proto",
            "authentick-report",
            "authentick-wire",
        ],
        external: &["log", "rustix", "rustls", "serde", "serde_json", "slab", "ureq"],
        reason: "the line exists so that the tester measures foreign servers, and inherits no bug of the responder",
    },
    Line {
        package: "authentick-report",
        internal: &[],
        external: &["serde", "serde_json"],
        reason: "the line exists so that runs from years ago render without a network, a server or a clock",
    },
    Line {
        package: "authentick-sim",
        internal: &["authentick-crypto", "authentick-proto", "authentick-wire"],
        external: &[],
        reason: "the line exists so that tests, game and replays share one world, which never meets a real clock",
    },
    Line {
        package: "authentick-game",
        internal: &[
            "authentick-crypto",
            "authentick-proto",
            "authentick-report",
            "authentick-sim",
            "authentick-wire",
        ],
        external: &["md-5", "num-bigint", "serde", "sha1", "sha2"],
        reason: "the line exists so that an attack replays from a seed, and meets the code that serves, not a copy",
    },
    Line {
        package: "authentick-rig",
        internal: &["authentick-crypto", "authentick-net"],
        external: &["rcgen", "rustix"],
        reason: "the line exists so that studies and tests share one rig, which neither panics nor prints nor exits",
    },
    Line {
        package: "authentick-study",
        internal: &[
            "authentick-crypto",
            "authentick-game",
            "authentick-net",
            "authentick-report",
            "authentick-rig",
        ],
        external: &["aws-lc-rs", "openssl", "rcgen", "serde_json", "tempfile"],
        reason: "the line exists so that a study needs no command line: it neither prints nor exits by itself",
    },
    Line {
        package: "authentick-lab",
        internal: &["authentick-ke", "authentick-net", "authentick-rig", "authentick-wire"],
        external: &[
            "caps",
            "der",
            "libc",
            "rcgen",
            "rustix",
            "rustls",
            "seccompiler",
            "tempfile",
            "x509-cert",
            "x509-ocsp",
        ],
        reason: "the line exists so that all tests share one bench, which knows no more of us than a peer does",
    },
    Line {
        package: "authentick",
        internal: &[
            "authentick-client",
            "authentick-crypto",
            "authentick-daemon",
            "authentick-game",
            "authentick-ke",
            "authentick-load",
            "authentick-net",
            "authentick-proto",
            "authentick-report",
            "authentick-rig",
            "authentick-study",
            "authentick-wire",
        ],
        external: &[
            "clap",
            "env_logger",
            "humantime",
            "indicatif",
            "log",
            "ratatui",
            "rcgen",
            "rustls",
            "rustls-native-certs",
            "serde",
            "serde_json",
            "signal-hook",
            "tempfile",
        ],
        reason: "the line exists so that arguments and environment are read in one crate",
    },
    Line {
        package: "xtask",
        internal: &[],
        external: &["cargo_metadata", "clap", "ignore", "proc-macro2", "serde_json", "tempfile"],
        reason: "the line exists so that the checks build while the crates that they check do not",
    },
];

/// The package that depends on nothing, whatever the table says.
const ALONE: &str = "authentick-wire";

const FILE: &str = "xtask/src/tidy/dependencies.rs";

/// What one package of the workspace uses.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Edges {
    internal: BTreeSet<String>,
    external: BTreeSet<String>,
}

/// What the packages of the workspace at `root` use, by their names. Needs no network.
pub(crate) fn edges(root: &Path) -> Result<BTreeMap<String, Edges>, String> {
    let metadata = MetadataCommand::new().current_dir(root).no_deps().exec();
    Ok(edges_of(&metadata.map_err(|error| format!("cargo metadata: {error}"))?))
}

fn edges_of(metadata: &Metadata) -> BTreeMap<String, Edges> {
    let packages = metadata.workspace_packages();
    let is_internal = |name: &str| packages.iter().any(|package| package.name.as_str() == name);
    let edges = packages.iter().map(|package| {
        let used =
            package.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Development);
        let names = used.map(|dependency| dependency.name.clone());
        let (internal, external) = names.partition(|name| is_internal(name));
        (package.name.to_string(), Edges { internal, external })
    });
    edges.collect()
}

/// Compares the packages with the table, both ways.
pub(crate) fn check(packages: &BTreeMap<String, Edges>) -> Vec<Finding> {
    let mut findings = compare(packages, TABLE);
    if packages.get(ALONE).is_some_and(|edges| *edges != Edges::default()) {
        findings.push(Finding::violation(FILE, 1, format!("{ALONE} has a dependency; it must have none")));
    }
    findings
}

fn compare(packages: &BTreeMap<String, Edges>, table: &[Line]) -> Vec<Finding> {
    let mut problems = Vec::new();
    for (package, edges) in packages {
        let Some(line) = table.iter().find(|line| line.package == package) else {
            problems.push((package.as_str(), format!("{package} is not in the table")));
            continue;
        };
        for (used, listed) in [(&edges.internal, line.internal), (&edges.external, line.external)] {
            for name in used.iter().filter(|name| !listed.contains(&name.as_str())) {
                problems.push((package, format!("{package} uses {name}, but {}", line.reason)));
            }
            for name in listed.iter().filter(|name| !used.contains(**name)) {
                problems.push((package, format!("{package} does not use {name}: remove it from the table")));
            }
        }
    }
    for line in table.iter().filter(|line| !packages.contains_key(line.package)) {
        problems.push((line.package, format!("{} does not exist: remove it from the table", line.package)));
    }
    let place =
        |package: &str| super::source::line_of(OWN_TEXT, OWN_TEXT.find(&quoted(package)).unwrap_or(0));
    problems.iter().map(|(package, problem)| Finding::violation(FILE, place(package), problem)).collect()
}

/// This file, in which a finding has its line.
const OWN_TEXT: &str = include_str!("dependencies.rs");

fn quoted(package: &str) -> String {
    format!("package: \"{package}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &[Line] = &[
        Line { package: "a", internal: &["b"], external: &["libc"], reason: "a is small" },
        Line { package: "b", internal: &[], external: &[], reason: "b is alone" },
    ];

    fn packages(list: &[(&str, &[&str], &[&str])]) -> BTreeMap<String, Edges> {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let edges = list.iter().map(|(package, internal, external)| {
            ((*package).to_owned(), Edges { internal: set(internal), external: set(external) })
        });
        edges.collect()
    }

    fn problems(list: &[(&str, &[&str], &[&str])]) -> Vec<String> {
        compare(&packages(list), LINES).into_iter().map(|finding| finding.problem).collect()
    }

    #[test]
    fn tree_that_equals_the_table_passes() {
        assert_eq!(problems(&[("a", &["b"], &["libc"]), ("b", &[], &[])]), [""; 0]);
    }

    #[test]
    fn new_edge_is_found_with_the_reason_against_it() {
        assert_eq!(
            problems(&[("a", &["b"], &["libc", "rand"]), ("b", &[], &[])]),
            ["a uses rand, but a is small"]
        );
        assert_eq!(problems(&[("a", &["b"], &["libc"]), ("b", &["a"], &[])]), ["b uses a, but b is alone"]);
    }

    #[test]
    fn stale_entry_is_found() {
        let found = problems(&[("a", &[], &["libc"]), ("b", &[], &[])]);
        assert_eq!(found, ["a does not use b: remove it from the table"]);
        assert_eq!(problems(&[("a", &["b"], &["libc"])]), ["b does not exist: remove it from the table"]);
    }

    #[test]
    fn package_without_a_line_is_found() {
        let found = problems(&[("a", &["b"], &["libc"]), ("b", &[], &[]), ("c", &[], &[])]);
        assert_eq!(found, ["c is not in the table"]);
    }

    #[test]
    fn wire_depends_on_nothing_even_if_the_table_allowed_it() {
        let found = check(&packages(&[(ALONE, &[], &["zerocopy"])]));
        assert!(found.iter().any(|finding| finding.problem.ends_with("it must have none")));
        assert!(
            !check(&packages(&[(ALONE, &[], &[])])).iter().any(|finding| finding.problem.contains("none"))
        );
    }

    #[test]
    fn findings_point_to_the_package_in_this_file() {
        let found = compare(&packages(&[]), TABLE);
        assert_eq!(found.len(), TABLE.len());
        for finding in &found {
            let line = OWN_TEXT.lines().nth(finding.line - 1).unwrap();
            assert!(line.trim().starts_with("package: "), "{finding}: {line}");
        }
    }

    #[test]
    fn edges_are_read_from_metadata_without_those_of_tests() {
        let dependency = |name: &str, kind: &str| {
            format!(
                r#"{{"name":"{name}","req":"*","kind":{kind},"optional":true,
                    "uses_default_features":true,"features":[]}}"#
            )
        };
        let package = |name: &str, dependencies: &[String]| {
            format!(
                r#"{{"name":"{name}","version":"0.1.0","id":"{name}","dependencies":[{}],"targets":[],"features":{{}},
                    "manifest_path":"/{name}/Cargo.toml"}}"#,
                dependencies.join(",")
            )
        };
        let a = package(
            "a",
            &[
                dependency("b", "null"),
                dependency("libc", "null"),
                dependency("cc", "\"build\""),
                dependency("proptest", "\"dev\""),
            ],
        );
        let b = package("b", &[]);
        let text = format!(
            r#"{{"packages":[{a},{b}],"workspace_members":["a","b"],"resolve":null,"target_directory":"/t","version":1,
                "workspace_root":"/"}}"#
        );
        let metadata = MetadataCommand::parse(text).unwrap();
        assert_eq!(edges_of(&metadata), packages(&[("a", &["b"], &["cc", "libc"]), ("b", &[], &[])]));
    }
}
