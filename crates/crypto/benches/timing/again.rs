//! Whether what one process found is found in others too: the addresses of code and data differ between them, and with
//! them the times of both classes.

use std::fmt;
use std::process::Command;

/// In so many processes of as many something is found before it is believed.
const PROCESS_COUNT: usize = 3;

/// The variable that has a process look at nothing but what it names, a line each.
const VARIABLE: &str = "AUTHENTICK_TIMING_AGAIN";

/// The beginning of the lines in which such a process tells what it found, and what parts them.
const TOLD: &str = "found";
const PART: char = '\t';

/// What is not as it must be.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    what: String,
    /// Whether the second class was the slower; absent of a control that showed nothing.
    is_second_slower: Option<bool>,
    why: String,
}

impl Problem {
    /// A difference between two classes, with this t.
    pub(crate) fn new(what: &str, t: f64, why: String) -> Self {
        Problem { what: what.to_owned(), is_second_slower: Some(t > 0.0), why }
    }

    pub(crate) fn of_control(what: &str) -> Self {
        let why = "the control shows no difference".to_owned();
        Problem { what: what.to_owned(), is_second_slower: None, why }
    }

    /// Tells it to the process that asked.
    pub(crate) fn tell(&self) {
        println!("{}", self.told());
    }

    fn told(&self) -> String {
        format!("{TOLD}{PART}{}{PART}{:?}", self.what, self.is_second_slower)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

/// What to look at again.
#[derive(Debug)]
pub(crate) struct Again(Vec<String>);

impl Again {
    /// What another process asks for; `None` if none does.
    pub(crate) fn from_environment() -> Option<Self> {
        Some(Again(std::env::var(VARIABLE).ok()?.lines().map(str::to_owned).collect()))
    }

    pub(crate) fn is_wanted(&self, what: &str) -> bool {
        self.0.iter().any(|wanted| wanted.starts_with(what))
    }
}

/// Those problems that fresh processes find too.
///
/// # Errors
/// What kept such a process from its end.
pub(crate) fn confirmed(mut problems: Vec<Problem>) -> Result<Vec<Problem>, String> {
    for _ in 1..PROCESS_COUNT {
        if problems.is_empty() {
            break;
        }
        println!("\nin a fresh process:");
        let names: Vec<&str> = problems.iter().map(|problem| &*problem.what).collect();
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(std::env::args().skip(1)).env(VARIABLE, names.join("\n"));
        let output = command.output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout);
        print!("{said}");
        if !output.status.success() {
            return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
        }
        let (kept, left): (Vec<_>, Vec<_>) =
            problems.into_iter().partition(|problem| said.lines().any(|line| line == problem.told()));
        left_out(&left);
        problems = kept;
    }
    Ok(problems)
}

fn left_out(problems: &[Problem]) {
    for problem in problems {
        println!("found in one process and not in another: {problem}");
    }
}
