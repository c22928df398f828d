//! The tests of the crypto crate, in a build without cryptographic instructions.
//!
//! The portable path uses crates that detect such instructions by themselves, so a processor that has them never runs
//! the code for processors without them. This build switches them off, and the lanes too: it compiles what processors
//! other than x86-64 compile. aws-lc, which is C and assembly, detects instructions at run time, so they are hidden
//! from it there. This does not show how the code behaves with another byte order.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_metadata::Message;

use crate::{process, test};

/// The flags of the build: each crate has its own switch.
const FLAGS: &str = "-Dwarnings --cfg authentick_lanes=\"none\" --cfg aes_backend=\"soft\" \
    --cfg polyval_backend=\"soft\" --cfg sha1_backend=\"soft\" --cfg sha2_backend=\"soft\" \
    --cfg chacha20_backend=\"soft\" --cfg md5_backend=\"soft\"";

/// Hides the instructions from aws-lc: PCLMULQDQ and AES of CPUID's leaf 1; SHA, GFNI, VAES and VPCLMULQDQ of leaf 7.
const MASK: (&str, &str) = ("OPENSSL_ia32cap", "~0x200000200000000:~0x70020000000");

/// Named, so that the flags apply only to code that runs in the tests: macros and build scripts are shared with other
/// builds.
const TARGET: &str = "host-tuple";

/// Prefixes of the instructions' names: AES, carry-less multiplication, SHA.
const INSTRUCTIONS: [&str; 8] = ["aes", "vaes", "pclmul", "vpclmul", "sha1", "sha256", "sha512", "vsha512"];

/// Runs the tests, after checking what they were compiled to. Returns why that was not checked, if it was not.
pub(crate) fn run(root: &Path) -> Result<Option<String>, String> {
    let reason = if cfg!(not(target_arch = "x86_64")) {
        Some("the names of this processor's instructions are not known: the build was not looked at")
    } else if !process::is_on_path("objdump") {
        Some("objdump is not installed: the build was not looked at")
    } else {
        None
    };
    if reason.is_none() {
        check(root)?;
    }
    process::run(build(root, true).arg("--quiet"))?;
    Ok(reason.map(str::to_owned))
}

/// Fails if the build has one of the instructions, or if none is found in the ordinary build.
fn check(root: &Path) -> Result<(), String> {
    for program in programs(root, true)? {
        if let Some(line) = first_instruction(&program)? {
            return Err(format!("{} is not portable: {line}", program.display()));
        }
    }
    for program in programs(root, false)? {
        if first_instruction(&program)?.is_none() {
            return Err(format!("{} has no such instruction: the look is blind", program.display()));
        }
    }
    Ok(())
}

fn build(root: &Path, is_portable: bool) -> Command {
    let mut command = test::of_crypto(root);
    if is_portable {
        command.args(["--target", TARGET]).env("RUSTFLAGS", FLAGS).env(MASK.0, MASK.1);
    }
    command
}

/// Builds the tests.
fn programs(root: &Path, is_portable: bool) -> Result<Vec<PathBuf>, String> {
    let mut command = build(root, is_portable);
    command.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let output = process::output(&mut command)?;
    let mut programs = Vec::new();
    for message in Message::parse_stream(output.as_bytes()) {
        if let Message::CompilerArtifact(artifact) = message.map_err(|error| error.to_string())? {
            programs.extend(artifact.executable.map(PathBuf::from));
        }
    }
    if programs.is_empty() {
        return Err(format!("`{}` has built no program", process::line(&command)));
    }
    Ok(programs)
}

/// The first cryptographic instruction in a Rust function.
fn first_instruction(program: &Path) -> Result<Option<String>, String> {
    let mut command = Command::new("objdump");
    command.args(["--disassemble", "--no-show-raw-insn"]).arg(program).stdout(Stdio::piped());
    let name = process::line(&command);
    let failed = |error| format!("`{name}`: {error}");
    let mut child = command.spawn().map_err(failed)?;
    let (mut found, mut is_rust) = (None, false);
    // Read to the end, as objdump fails if its output is closed early.
    for line in BufReader::new(child.stdout.take().expect("the output is piped")).split(b'\n') {
        let line = String::from_utf8_lossy(&line.map_err(failed)?).into_owned();
        is_rust = function(&line).map_or(is_rust, is_rust_function);
        if found.is_none() && is_rust && is_made_for_cryptography(&line) {
            found = Some(line.trim().to_owned());
        }
    }
    let status = child.wait().map_err(failed)?;
    if status.success() { Ok(found) } else { Err(format!("`{name}` failed: {status}")) }
}

/// The name of the function that begins in a line of a disassembly, `address <name>:`.
fn function(line: &str) -> Option<&str> {
    line.strip_suffix(">:")?.split_once(" <").map(|(_, name)| name)
}

/// Whether a name is mangled as the Rust compiler does it.
fn is_rust_function(name: &str) -> bool {
    ["_ZN", "_R"].iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a line of a disassembly, `address:<tab>instruction operands`, has one of the instructions.
fn is_made_for_cryptography(line: &str) -> bool {
    let Some((_, instruction)) = line.split_once(":\t") else { return false };
    INSTRUCTIONS.iter().any(|name| instruction.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_rust_are_told_from_those_of_c() {
        let name = |line| function(line).map(is_rust_function);
        assert_eq!(
            name("0000000000158e90 <_ZN16authentick_crypto5lanes4siv17h0123456789abcdefE>:"),
            Some(true)
        );
        assert_eq!(name("0000000000158e90 <_RNvCs1234_7mycrate3foo>:"), Some(true));
        assert_eq!(name("000000000126a560 <aws_lc_0_47_0_aes_gcm_decrypt_avx512>:"), Some(false));
        assert_eq!(name("  40112a:\tcall   8e550 <_ZN4sha26sha2568compress17h0123456789abcdefE>"), None);
    }

    #[test]
    fn instructions_are_told_from_names_of_functions() {
        assert!(is_made_for_cryptography("  40112a:\taesenc %xmm1,%xmm0"));
        assert!(is_made_for_cryptography("   8e6a2:\tvpclmullqlqdq %zmm6,%zmm3,%zmm6"));
        assert!(is_made_for_cryptography("   8e6a2:\tsha256rnds2 %xmm0,%xmm1,%xmm2"));
        assert!(!is_made_for_cryptography("   8e6a2:\tcall   8e550 <sha2::sha256::compress>"));
        assert!(!is_made_for_cryptography("000000000008e550 <aes::soft::encrypt>:"));
        assert!(!is_made_for_cryptography("   8e6a2:\tvpshufb %xmm7,%xmm0,%xmm0"));
    }
}
