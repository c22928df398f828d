//! What crates must not use. The crates of protocols, game and simulation touch nothing outside the process and read no
//! clock: time, entropy and keys are arguments, so that whole histories replay from a seed. The crates below the
//! command line know no exit codes. What a packet worker runs takes no lock and logs nothing: its system call filter
//! sees a lock that it would have to wait for, and here is no lock at all. What needs an order of memory is in
//! `lockfree`, where loom checks it.
//!
//! Tests may use all of this, and `delays.rs` may sleep: it compiles to nothing outside one test.

use std::collections::BTreeSet;

use super::Finding;
use super::source::{Source, line_of, words};
use super::tree::TextFile;

/// What some crates must not use.
struct Absence {
    /// The folders of the crates, or single files.
    crates: &'static [&'static str],
    /// Folders or files that may, each with its reason.
    except: &'static [&'static str],
    /// Paths of modules, items or functions.
    names: &'static [&'static str],
    remedy: &'static str,
}

const ABSENCES: [Absence; 6] = [
    Absence {
        crates: &["crates/"],
        except: &["crates/ke/src/tls/pem.rs"],
        names: &["PemObject", "rustls_pemfile"],
        remedy: "PEM is read by authentick_ke::tls::pem, which skips no block that it does not understand",
    },
    Absence {
        crates: &["crates/"],
        except: &[
            // Tests alone use it.
            "crates/lab/",
            // Files of the kernel in /proc and of cgroups, which take one write and cannot be replaced.
            "crates/rig/src/hosts.rs",
            "crates/rig/src/quota.rs",
        ],
        names: &[
            "File::create",
            "File::create_new",
            "File::options",
            "fs::copy",
            "fs::write",
            "std::fs::copy",
            "std::fs::write",
        ],
        remedy: "results are written by authentick_net::report_file, secrets and state by authentick_net::replace",
    },
    Absence {
        crates: &[
            "crates/fleet/",
            "crates/game/",
            "crates/generator/",
            "crates/proto/",
            "crates/sim/",
            "crates/wire/",
        ],
        except: &[],
        names: &[
            // Clocks.
            "Instant",
            "SystemTime",
            // Randomness.
            "Entropy::from_system",
            "OsRng",
            "SysRng",
            "getrandom",
            "thread_rng",
            // Files, processes, environment, threads.
            "std::env",
            "std::fs",
            "std::process",
            "std::thread",
            "std::io::stderr",
            "std::io::stdin",
            "std::io::stdout",
            // Sockets.
            "std::net::TcpListener",
            "std::net::TcpStream",
            "std::net::ToSocketAddrs",
            "std::net::UdpSocket",
            "std::os",
            // The system itself.
            "authentick_net",
            "libc",
            "nix",
            "rustix",
        ],
        remedy: "this crate gets it as an argument, or does without",
    },
    Absence {
        crates: &["crates/client/", "crates/rig/", "crates/study/"],
        except: &[],
        names: &["Exit", "ExitCode", "std::process::exit"],
        remedy: "this crate returns an error; the command line makes an exit code of it",
    },
    Absence {
        crates: &[
            "crates/crypto/",
            "crates/lanes/",
            "crates/lockfree/src/bucket.rs",
            "crates/lockfree/src/handoff.rs",
            "crates/lockfree/src/note.rs",
            "crates/lockfree/src/ways.rs",
            "crates/net/src/clock.rs",
            "crates/net/src/engine.rs",
            "crates/net/src/udp/",
            "crates/proto/",
            "crates/wire/",
            // What of the daemon runs on the threads of packet workers.
            "crates/daemon/src/antp/exchanges.rs",
            "crates/daemon/src/antp/state.rs",
            "crates/daemon/src/clock.rs",
            "crates/daemon/src/metrics/counters.rs",
            "crates/daemon/src/metrics/spans.rs",
            "crates/daemon/src/worker.rs",
        ],
        except: &[],
        names: &[
            // Locks, and what waits.
            "Barrier",
            "Condvar",
            "LazyLock",
            "Mutex",
            "RwLock",
            "std::sync::mpsc",
            // The log.
            "eprintln",
            "log::debug",
            "log::error",
            "log::info",
            "log::trace",
            "log::warn",
            "println",
        ],
        remedy: "packet workers run this: they take no lock and log nothing, but count",
    },
    Absence {
        crates: &[
            "crates/cli/",
            "crates/client/",
            "crates/crypto/",
            "crates/daemon/",
            "crates/game/",
            "crates/generator/",
            "crates/ke/",
            "crates/load/",
            "crates/net/",
            "crates/proto/",
            "crates/report/",
            "crates/rig/",
            "crates/sim/",
            "crates/study/",
            "crates/wire/",
        ],
        except: &[],
        names: &[
            "Ordering::AcqRel",
            "Ordering::Acquire",
            "Ordering::Release",
            "Ordering::SeqCst",
            "compare_exchange",
            "compare_exchange_weak",
            "fetch_update",
        ],
        remedy: "a protocol between threads belongs into `lockfree`, with a model",
    },
];

const EXEMPT: [&str; 1] = ["crates/proto/src/delays.rs"];

/// The rule.
pub(super) fn check(file: &TextFile, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_of_tests = file.name() == "tests.rs" || file.path.contains("/tests/");
    if !file.is_shipped() || is_of_tests || EXEMPT.contains(&&*file.path) {
        return findings;
    }
    let imports = imports(&source.shipped);
    let is_in = |folders: &[&str]| folders.iter().any(|folder| file.path.starts_with(folder));
    let is_bound = |absence: &&Absence| is_in(absence.crates) && !is_in(absence.except);
    for absence in ABSENCES.iter().filter(is_bound) {
        for name in absence.names {
            let imports = imports.iter().filter(|(_, path)| is_within(path, name));
            let places = words(&source.shipped, name).chain(imports.map(|(at, _)| *at));
            let lines: BTreeSet<usize> = places.map(|at| line_of(&source.shipped, at)).collect();
            let problem = format!("`{name}`: {}", absence.remedy);
            findings.extend(lines.iter().map(|line| file.violation(*line, &*problem)));
        }
    }
    findings
}

fn is_within(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The full paths that `use` imports, each with the position of its statement.
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

/// Expands a tree such as `std::{net::{IpAddr, UdpSocket}, thread as t}` into paths, without renames.
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
    use crate::tidy::Rule;
    use crate::tidy::tree::Tree;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let mut lines: Vec<usize> =
            Rule::Rust(check).check(&Tree::of(&[(path, text)])).iter().map(|finding| finding.line).collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn files_processes_environment_and_libc_are_found() {
        let text = "use std::{env, fs::File};\nfn a() { std::process::id(); }\nfn b() { unsafe { libc::getpid() } }\n\
            fn c() { std::env::args(); }\nuse std::path::Path;\nuse std::os::fd::AsRawFd;\nstruct Environment;\n";
        for path in ["crates/generator/src/a.rs", "crates/sim/src/world.rs", "crates/wire/src/a.rs"] {
            assert_eq!(lines(path, text), [1, 1, 2, 3, 4, 6], "{path}");
        }
        assert_eq!(lines("crates/net/src/a.rs", text), [0; 0]);
    }

    #[test]
    fn files_written_without_a_mechanism_are_found() {
        let text = "use std::fs;\nfn a() { fs::write(\"a\", \"\"); }\nfn b() { std::fs::File::create(\"b\"); }\n\
            fn c() { fs::read(\"c\"); }\n#[cfg(test)]\nmod tests { fn d() { std::fs::write(\"d\", \"\"); } }\n";
        for path in ["crates/rig/src/a.rs", "crates/study/src/nts/a.rs", "crates/daemon/src/a.rs"] {
            assert_eq!(lines(path, text), [2, 3], "{path}");
        }
        for path in ["crates/rig/src/quota.rs", "crates/lab/src/a.rs", "crates/cli/tests/system/a.rs"] {
            assert_eq!(lines(path, text), [0; 0], "{path}");
        }
    }

    #[test]
    fn readers_of_pem_that_skip_blocks_are_found() {
        let text = "use rustls::pki_types::pem::PemObject;\nfn a() { CertificateDer::pem_slice_iter(b\"\"); }\n\
            fn b() { rustls_pemfile::certs(); }\n";
        assert_eq!(lines("crates/daemon/src/a.rs", text), [1, 3]);
        assert_eq!(lines("crates/ke/src/tls/pem.rs", text), [0; 0]);
    }

    #[test]
    fn exit_codes_are_found_below_the_command_line() {
        let text = "use crate::Exit;\nfn a() -> std::process::ExitCode {\n    std::process::exit(1)\n}\n\
            fn b(status: std::process::ExitStatus) {}\n";
        for path in ["crates/client/src/a.rs", "crates/rig/src/a.rs", "crates/study/src/a/b.rs"] {
            assert_eq!(lines(path, text), [1, 2, 3], "{path}");
        }
        assert_eq!(lines("crates/cli/src/exit.rs", text), [0; 0]);
    }

    #[test]
    fn locks_and_the_log_are_found_where_packet_workers_run() {
        let text = "use std::sync::{Arc, Mutex, mpsc};\nfn a(lock: &std::sync::RwLock<u8>) {}\nfn b() {\n    \
            log::warn!(\"c\");\n}\nuse log::{Level, info};\n#[cfg(test)]\nmod tests { use std::sync::Mutex; }\n";
        for path in
            ["crates/proto/src/server/mod.rs", "crates/net/src/udp/a.rs", "crates/daemon/src/worker.rs"]
        {
            assert_eq!(lines(path, text), [1, 1, 2, 4, 6], "{path}");
        }
        assert_eq!(lines("crates/daemon/src/supervisor.rs", text), [0; 0]);
    }

    #[test]
    fn orders_of_memory_are_found_outside_of_lockfree() {
        let text = "fn a(word: &AtomicU64) {\n    word.load(Ordering::Acquire);\n    word.load(Ordering::Relaxed);\n\
            _ = word.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);\n\
            word.fetch_add(1, std::sync::atomic::Ordering::SeqCst);\n}\n";
        for path in ["crates/daemon/src/a.rs", "crates/proto/src/server/a.rs", "crates/cli/src/a.rs"] {
            assert_eq!(lines(path, text), [2, 4, 5], "{path}");
        }
        for path in ["crates/lockfree/src/a.rs", "crates/load/src/agent/tests/mod.rs"] {
            assert_eq!(lines(path, text), [0; 0], "{path}");
        }
    }

    const IMPURE: &str = "use std::time::Instant;\nfn a() { Instant::now(); }\nfn b() { rand::thread_rng(); }\n\
        use std::net::{IpAddr, UdpSocket};\nuse std::{\n    io,\n    thread::{self, sleep},\n};\n";

    #[test]
    fn clocks_sockets_and_threads_are_found() {
        assert_eq!(lines("crates/proto/src/server/mod.rs", IMPURE), [1, 2, 3, 4, 5]);
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
