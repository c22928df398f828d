//! A second process of this program, from which the instructions for AES and SHA are hidden, and which measures in step
//! with the first.
//!
//! Libraries differ in whom they ask. OpenSSL and aws-lc read a mask from the environment when they are loaded
//! (`OPENSSL_ia32cap`). We and the crates of RustCrypto ask the processor itself, later: there CPUID is made to fault.
//! Where the processor cannot do that, ours are not measured without the instructions; a build with
//! `--cfg aes_backend="soft"` and its like would be another program.

use std::io::{self, BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use authentick_net::{instructions, ticks};
use authentick_report::mac::{Instructions, Side};

use super::Extent;
use super::side::{Process, Whose, seen};
use crate::exit::{Exit, Failure};

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
    pub(super) fn start(extent: Extent) -> Result<Option<Self>, Failure> {
        if cfg!(not(target_arch = "x86_64")) {
            return Ok(None);
        }
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "mac", "--without-instructions"]).env(VARIABLE, MASK);
        command.args(["--rounds", &extent.round_count.to_string()]);
        command.args(["--turn-ms", &(extent.turn.as_secs_f64() * 1e3).to_string()]);
        command.args(["--singles", &extent.single_count.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let orders = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut masked = Masked { child, orders, answers };
        masked.await_ready()?;
        Ok(Some(masked))
    }

    /// One turn of each of its subjects.
    pub(super) fn round(&mut self) -> Result<(), Failure> {
        self.order(ROUND)?;
        self.await_ready()
    }

    /// What it has measured.
    pub(super) fn finish(mut self) -> Result<Side, Failure> {
        self.order(FINISH)?;
        let text = self.answer()?;
        serde_json::from_str(&text).map_err(|error| gone(&format!("its figures are no JSON: {error}")))
    }

    fn order(&mut self, word: &str) -> Result<(), Failure> {
        writeln!(self.orders, "{word}").map_err(|error| gone(&error.to_string()))
    }

    fn answer(&mut self) -> Result<String, Failure> {
        match self.answers.next() {
            Some(line) => line.map_err(|error| gone(&error.to_string())),
            None => Err(gone("it has ended")),
        }
    }

    fn await_ready(&mut self) -> Result<(), Failure> {
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

fn gone(problem: &str) -> Failure {
    Failure::new(
        Exit::Internal,
        format!("the process without AES and SHA instructions does not measure: {problem}"),
    )
}

/// What that process does: hides the instructions from itself, and measures when it is told to.
pub(crate) fn serve(extent: Extent) -> Result<Exit, Failure> {
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
    let mut process = Process::with(extent, Instructions::Without, remarks, whose)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{READY}")?;
    for order in io::stdin().lines() {
        match order?.as_str() {
            ROUND => {
                process.round();
                writeln!(out, "{READY}")?;
            }
            FINISH => {
                let side = process.finish(reference_hz);
                let text = serde_json::to_string(&side).expect("strings and numbers are always JSON");
                writeln!(out, "{text}")?;
                return Ok(Exit::Done);
            }
            other => return Err(Failure::new(Exit::Usage, format!("no order of a bench: {other:?}"))),
        }
    }
    // Whoever gave the orders has gone away.
    Ok(Exit::Done)
}
