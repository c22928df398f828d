//! Files that a user named and that are not as they should be: which one, what is wrong, and what to do.

use std::io::{Error, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use authentick_net::passing::may_pass;
use authentick_net::report_file::{FileId, READER_PATIENCE, ReportFile, STANDARD, is_descriptor};

use crate::args::NamedPath;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

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
    fn open(option: &'static str, path: &Path) -> Result<Self, Failure> {
        let mut stop: Option<Arc<OnceLock<Exit>>> = None;
        let waiting = || {
            let stop = stop.get_or_insert_with(|| {
                output::aside(&format!(
                    "{option} {}: waiting {} s for a reader of this pipe",
                    path.display(),
                    READER_PATIENCE.as_secs()
                ));
                // So that what was opened before is dropped, which removes names that were made.
                interrupt::once()
            });
            stop.get().is_none()
        };
        let opened = ReportFile::open(path, waiting);
        if let Some(stop) = stop {
            interrupt::at_once();
            if let Some(exit) = stop.get() {
                return Err(interrupt::quit(*exit));
            }
        }
        let file = opened.map_err(|error| {
            let remedy = match error.kind() {
                ErrorKind::NotFound => "make its folder first",
                ErrorKind::IsADirectory => "name a file in it",
                _ => "name another file",
            };
            let problem = format!("{option} {}: cannot write: {error}; {remedy}", path.display());
            Exit::of_access(&error).because(problem)
        })?;
        Ok(Output { option, file })
    }

    /// Writes a whole result in place of what is in the file.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.file.write(text.as_bytes()).map_err(|error| {
            let path = self.file.name().display();
            let exit = if may_pass(&error) { Exit::Passing } else { Exit::Internal };
            exit.because(format!("{} {path}: not written: {error}", self.option))
        })
    }
}

/// The paths on the command line.
static NAMED: OnceLock<Vec<NamedPath>> = OnceLock::new();

/// Notes the paths on the command line, for [`outputs`] to compare with. Refuses standard input that is to be read
/// twice, and standard output in a regular file that a path names too: one would destroy the other.
pub(crate) fn name(paths: Vec<NamedPath>) -> Result<(), Failure> {
    let inputs = || paths.iter().filter(|named| !named.is_output);
    let standard: Vec<String> =
        inputs().filter(|named| is_standard_input(&named.path)).map(describe).collect();
    if let [first, second, ..] = &standard[..] {
        let problem =
            format!("{first} and {second}: standard input can be read once; name a file for one of them");
        return Err(Exit::Usage.because(problem));
    }
    let out = FileId::of_open(&std::io::stdout());
    let by_name = paths.iter().filter(|named| !named.is_output || !is_descriptor(&named.path));
    for named in by_name.filter(|_| out.is_some()) {
        if id_of(&named.path) == out {
            return Err(one_file(&describe(named), "standard output"));
        }
    }
    // This is the only call.
    let _ = NAMED.set(paths);
    Ok(())
}

fn describe(named: &NamedPath) -> String {
    format!("{} {}", named.option, named.path.display())
}

fn one_file(one: &str, other: &str) -> Failure {
    Exit::Usage.because(format!("{one} and {other} are one file; name another one"))
}

/// Whether a path to read leads to this process's standard input.
fn is_standard_input(path: &Path) -> bool {
    let id = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let input = std::fs::metadata("/proc/self/fd/0").map(id);
    path == Path::new(STANDARD)
        || is_descriptor(path) && matches!((std::fs::metadata(path).map(id), input), (Ok(a), Ok(b)) if a == b)
}

/// Which regular file a path to read leads to.
fn id_of(path: &Path) -> Option<FileId> {
    match path == Path::new(STANDARD) {
        true => FileId::of_open(&std::io::stdin()),
        false => FileId::of_path(path),
    }
}

/// Leaves standard output to the output that is named as `-`, so that it holds exactly that file. Refuses a second use
/// of it: another output, or `--json`.
fn claim_standard_output(named: &[(&'static str, &Path)]) -> Result<(), Failure> {
    let mut claims = named.iter().filter(|(_, path)| *path == Path::new(STANDARD)).map(|(option, _)| option);
    let Some(option) = claims.next() else { return Ok(()) };
    let second = claims.next().map(|other| format!("{other} {STANDARD}"));
    if let Some(other) = second.or_else(|| output::is_json().then(|| "--json".to_owned())) {
        return Err(Exit::Usage.because(format!(
            "{option} {STANDARD} and {other}: standard output takes one result; name a file for {option}"
        )));
    }
    output::leave_standard_output();
    Ok(())
}

/// Opens what options name, and refuses two outputs, or an output and an input on the command line, that are one
/// regular file, or both standard output: one would destroy the other.
pub(crate) fn outputs<'p>(
    named: impl IntoIterator<Item = (&'static str, &'p Path)>,
) -> Result<Vec<Output>, Failure> {
    let named: Vec<_> = named.into_iter().collect();
    claim_standard_output(&named)?;
    let inputs = NAMED.get().into_iter().flatten().filter(|named| !named.is_output);
    let mut known: Vec<(String, FileId)> =
        inputs.filter_map(|named| Some((describe(named), id_of(&named.path)?))).collect();
    let mut outputs = Vec::new();
    for (option, path) in named {
        let output = Output::open(option, path)?;
        if let Some(id) = output.file.id() {
            let name = format!("{option} {}", path.display());
            if let Some((other, _)) = known.iter().find(|(_, known)| *known == id) {
                return Err(one_file(&name, other));
            }
            known.push((name, id));
        }
        outputs.push(output);
    }
    Ok(outputs)
}

/// Opens the one file that an option may name, which is none of the inputs.
pub(crate) fn output(option: &'static str, path: Option<&Path>) -> Result<Option<Output>, Failure> {
    outputs(path.map(|path| (option, path))).map(|mut outputs| outputs.pop())
}
