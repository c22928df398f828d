//! Rules about `unsafe`: where it is allowed, and that each use says why it is sound.

use super::Finding;
use super::source::{Source, line_of, words};
use super::tree::TextFile;

/// Where code may be unsafe: system calls, AES instructions, and the bare echo that benchmarks compare with.
const PLACES: [&str; 4] =
    ["crates/net/", "crates/crypto/src/kem/rsa.rs", "crates/lanes/src/x86/", "crates/cli/benches/"];

/// Shipped code and benchmarks are unsafe only in `PLACES`.
pub(super) fn places(file: &TextFile, source: &Source) -> Vec<Finding> {
    let is_bench = file.path.split('/').nth(2) == Some("benches");
    if PLACES.iter().any(|place| file.path.starts_with(place)) || !(file.is_shipped() || is_bench) {
        return Vec::new();
    }
    let problem =
        "`unsafe` outside crates/net, crates/lanes/src/x86, crypto's kem/rsa.rs and crates/cli/benches";
    let uses = words(&source.code, "unsafe");
    uses.map(|at| file.violation(line_of(&source.code, at), problem)).collect()
}

/// Above each unsafe block or implementation, in any Rust file, a comment says why it is sound.
pub(super) fn reasons(file: &TextFile, source: &Source) -> Vec<Finding> {
    let text: Vec<&str> = file.text.lines().collect();
    let mut findings = Vec::new();
    for at in words(&source.code, "unsafe") {
        let next = source.code[at + "unsafe".len()..].trim_start();
        let line = line_of(&source.code, at);
        let is_use = next.starts_with('{') || next.starts_with("impl");
        if is_use && !has_reason(&text[..line - 1]) {
            findings.push(file.violation(line, "no `// SAFETY:` directly above"));
        }
    }
    findings
}

/// Whether the comment that ends `above` gives a reason. The statement may begin some lines above the block, and
/// attributes may stand between it and the comment.
fn has_reason(above: &[&str]) -> bool {
    let mut lines = above.iter().rev().map(|line| line.trim()).peekable();
    let is_comment = |line: &str| line.starts_with("//");
    let is_inside = |line: &str| !is_comment(line) && !line.is_empty() && !line.ends_with([';', '{', '}']);
    while lines.next_if(|line| line.starts_with("#[") || is_inside(line)).is_some() {}
    lines.take_while(|line| is_comment(line)).any(|line| line.starts_with("// SAFETY: "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Rule;
    use crate::tidy::tree::Tree;

    #[test]
    fn unsafe_code_in_the_wrong_place_is_found() {
        let text = "//! No `unsafe` here.\n#![deny(unsafe_code)]\nunsafe fn a() {}\n";
        let tree = Tree::of(&[
            ("crates/net/src/udp/mmsg.rs", text),
            ("crates/lanes/src/x86/block.rs", text),
            ("crates/crypto/src/hash.rs", text),
            ("crates/cli/benches/echo.rs", text),
            ("crates/daemon/benches/serve.rs", text),
        ]);
        let paths: Vec<String> = Rule::Rust(places).check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(paths.len(), 2, "{paths:?}");
        assert!(paths[0].starts_with("crates/crypto/src/hash.rs:3: "), "{}", paths[0]);
        assert!(paths[1].starts_with("crates/daemon/benches/serve.rs:3: "), "{}", paths[1]);
    }

    /// How many uses in a file of this text have no reason.
    fn reasons_missing(text: &str) -> usize {
        Rule::Rust(reasons).check(&Tree::of(&[("crates/net/src/a.rs", text)])).len()
    }

    #[test]
    fn unsafe_block_without_a_reason_is_found() {
        assert_eq!(reasons_missing("fn a() {\n    unsafe { b() }\n}\n"), 1);
        assert_eq!(reasons_missing("unsafe impl Send for A {}\n"), 1);
        assert_eq!(
            reasons_missing("// SAFETY: b reads nothing.\nfn c() {}\nfn a() {\n    unsafe { b() }\n}\n"),
            1
        );
        assert_eq!(
            reasons_missing(
                "// SAFETY: b reads nothing.\nlet a = unsafe { b() };\nlet c = unsafe { d() };\n"
            ),
            1
        );
        assert_eq!(reasons_missing("let a = f();\n// Calls b.\nunsafe { b() }\n"), 1);
    }

    #[test]
    fn reason_may_stand_above_the_statement_and_its_attributes() {
        assert_eq!(
            reasons_missing("// SAFETY: b reads nothing,\n// and writes nothing.\nlet a = unsafe { b() };\n"),
            0
        );
        assert_eq!(
            reasons_missing(
                "// SAFETY: b reads nothing.\n#[inline]\nlet a = c(\n    1,\n    unsafe { b() },\n);\n"
            ),
            0
        );
        assert_eq!(reasons_missing("unsafe fn a() {}\nunsafe extern \"C\" {}\n"), 0);
    }
}
