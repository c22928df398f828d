//! Files that a user named and that are not as they should be: which one, what is wrong, and what to do.

use std::io::{Error, ErrorKind, Read as _};
use std::path::Path;

use authentick_net::report_file::{FileId, READER_PATIENCE, ReportFile, STANDARD};

use crate::exit::{Exit, Failure};
use crate::output;

/// A file with the wrong content.
pub(crate) fn wrong(path: &Path, problem: &str, remedy: &str) -> Failure {
    Exit::Configuration.because(format!("{}: {problem}; {remedy}", path.display()))
}

/// A file that cannot be read; what to do if it is no text, and if it is something else than a want of rights.
pub(crate) fn unreadable(path: &Path, error: &Error, if_no_text: &str, otherwise: &str) -> Failure {
    let remedy = match error.kind() {
        ErrorKind::PermissionDenied => "run as a user who may read it",
        ErrorKind::InvalidData => if_no_text,
        _ => otherwise,
    };
    Exit::of_access(error).because(format!("cannot read {}: {error}; {remedy}", path.display()))
}

/// What is in a file that a user names; `-` is standard input.
pub(crate) fn read_named(path: &Path) -> std::io::Result<Vec<u8>> {
    if path != Path::new(STANDARD) {
        return std::fs::read(path);
    }
    let mut octets = Vec::new();
    std::io::stdin().lock().read_to_end(&mut octets)?;
    Ok(octets)
}

/// What is in a file that an option names.
pub(crate) fn read(option: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    read_named(path).map_err(|error| {
        Exit::of_access(&error).because(format!("{option} {}: cannot read: {error}", path.display()))
    })
}

/// A file that cannot be written.
pub(crate) fn unwritable(path: &Path, error: &Error, remedy: &str) -> Failure {
    Exit::of_access(error).because(format!("cannot write {}: {error}; {remedy}", path.display()))
}

/// A file that an option or argument names for a result, open from the start of the command.
#[derive(Debug)]
pub(crate) struct Output {
    option: &'static str,
    pub(crate) file: ReportFile,
}

impl Output {
    /// Opens the file that `option` names; `-` is standard output.
    pub(crate) fn open(option: &'static str, path: &Path) -> Result<Self, Failure> {
        let waiting = || {
            output::aside(&format!(
                "{option} {}: waiting {} s for a reader of this pipe",
                path.display(),
                READER_PATIENCE.as_secs()
            ));
        };
        let file = ReportFile::open(path, waiting).map_err(|error| {
            let problem = format!("{option} {}: cannot write: {error}; name another file", path.display());
            Exit::of_access(&error).because(problem)
        })?;
        Ok(Output { option, file })
    }

    /// Writes a whole result in place of what is in the file.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.file.write(text.as_bytes()).map_err(|error| {
            let path = self.file.name().display();
            Exit::Internal.because(format!("{} {path}: not written: {error}", self.option))
        })
    }
}

/// Opens what options name, and refuses two outputs, or an output and an input, that are one regular file: one would
/// destroy the other.
pub(crate) fn outputs<'p>(
    named: impl IntoIterator<Item = (&'static str, &'p Path)>,
    inputs: &[(&str, &Path)],
) -> Result<Vec<Output>, Failure> {
    let mut known: Vec<(String, FileId)> = inputs
        .iter()
        .filter_map(|(option, path)| Some((format!("{option} {}", path.display()), FileId::of_path(path)?)))
        .collect();
    let mut outputs = Vec::new();
    for (option, path) in named {
        let output = Output::open(option, path)?;
        if let Some(id) = output.file.id() {
            let name = format!("{option} {}", path.display());
            if let Some((other, _)) = known.iter().find(|(_, known)| *known == id) {
                let problem = format!("{name} and {other} are one file; name another one");
                return Err(Exit::Usage.because(problem));
            }
            known.push((name, id));
        }
        outputs.push(output);
    }
    Ok(outputs)
}

/// Opens the one file that an option may name, which is none of the inputs.
pub(crate) fn output(
    option: &'static str,
    path: Option<&Path>,
    inputs: &[(&str, &Path)],
) -> Result<Option<Output>, Failure> {
    outputs(path.map(|path| (option, path)), inputs).map(|mut outputs| outputs.pop())
}
