//! A second process of this program, from which the instructions for AES and SHA are hidden, and which measures in step
//! with the first.
//!
//! Libraries differ in whom they ask. OpenSSL and aws-lc read a mask from the environment when they are loaded
//! (`OPENSSL_ia32cap`). We and the crates of RustCrypto ask the processor itself, later: there CPUID is made to fault.
//! Where the processor cannot do that, ours are not measured without the instructions; a build with
//! `--cfg aes_backend="soft"` and its like would be another program.

use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use authentick_net::{instructions, ticks};
use authentick_report::mac::{Instructions, Side};

use super::Extent;
use super::side::{SideRun, Whose, seen};
use crate::Error;

/// PCLMULQDQ and AES of leaf 1; SHA, GFNI, VAES and VPCLMULQDQ of leaf 7. OPENSSL_ia32cap(3).
const MASK: &str = "~0x200000200000000:~0x70020000000";
const VARIABLE: &str = "OPENSSL_ia32cap";

/// The words of the two processes.
const ROUND: &str = "round";
const READY: &str = "ready";
const FINISH: &str = "finish";

/// The second process, as the first sees it. It ends with this value.
pub(super) struct Masked {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Masked {
    /// Starts it and waits until it is ready; `None` where there is nothing to hide.
    pub(super) fn start(program: &Path, extent: Extent) -> Result<Option<Self>, Error> {
        if cfg!(not(target_arch = "x86_64")) {
            return Ok(None);
        }
        let mut command = Command::new(program);
        command.args(["bench", "mac", "--without-instructions"]).env(VARIABLE, MASK);
        command.args(["--rounds", &extent.round_count.to_string()]);
        command.args(["--turn-ms", &(extent.turn.as_secs_f64() * 1e3).to_string()]);
        command.args(["--singles", &extent.single_count.to_string()]);
        // In a process group of its own, so that Ctrl-C reaches only the first process, which ends this one.
        let mut child = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let orders = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut masked = Masked { child, orders, answers };
        masked.await_ready()?;
        Ok(Some(masked))
    }

    /// One turn of each of its subjects.
    pub(super) fn round(&mut self) -> Result<(), Error> {
        self.order(ROUND)?;
        self.await_ready()
    }

    /// What it has measured.
    pub(super) fn finish(mut self) -> Result<Side, Error> {
        self.order(FINISH)?;
        let text = self.answer()?;
        serde_json::from_str(&text).map_err(|error| gone(&format!("its figures are no JSON: {error}")))
    }

    fn order(&mut self, word: &str) -> Result<(), Error> {
        writeln!(self.orders, "{word}").map_err(|error| gone(&error.to_string()))
    }

    fn answer(&mut self) -> Result<String, Error> {
        match self.answers.next() {
            Some(line) => line.map_err(|error| gone(&error.to_string())),
            None => Err(gone("it has ended")),
        }
    }

    fn await_ready(&mut self) -> Result<(), Error> {
        match self.answer()? {
            line if line == READY => Ok(()),
            line => Err(gone(&format!("it says {line:?}"))),
        }
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        // It may have ended by itself, as it does when nobody listens.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn gone(problem: &str) -> Error {
    Error::Masked(problem.to_owned())
}

/// What that process does: hides the instructions from itself, and measures when it is told to by `orders`. Nothing may
/// have asked the processor for its instructions before.
///
/// # Errors
/// If an order is none, or something has asked before.
pub fn serve(extent: Extent, orders: impl BufRead, mut answers: impl Write) -> Result<(), Error> {
    let (whose, remarks) = match instructions::hide_aes_and_sha() {
        Ok(()) => match seen()[..] {
            [] => (Whose::All, Vec::new()),
            // Something in this process has asked before, and keeps what it was told.
            [..] => return Err(gone("the processor was asked for its instructions before they were hidden")),
        },
        Err(error) => (
            Whose::Others,
            vec![format!(
                "Ours are not measured without the instructions, as they cannot be hidden from us here: {error}. \
                 OpenSSL and aws-lc are told by {VARIABLE}={MASK}."
            )],
        ),
    };
    let reference_hz = ticks::reference_hz();
    let mut process = SideRun::new(extent, Instructions::Without, remarks, whose)?;
    writeln!(answers, "{READY}")?;
    for order in orders.lines() {
        match order?.as_str() {
            ROUND => {
                process.round();
                writeln!(answers, "{READY}")?;
            }
            FINISH => {
                let side = process.finish(reference_hz);
                let text = serde_json::to_string(&side).expect("strings and numbers are always JSON");
                writeln!(answers, "{text}")?;
                return Ok(());
            }
            other => return Err(Error::Order(other.to_owned())),
        }
    }
    // Whoever gave the orders has gone away.
    Ok(())
}
