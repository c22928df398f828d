//! The record of a load run: what is put into it, and where it is kept.

use authentick_load::journal::Journal;
use authentick_load::runner::Run;
use authentick_load::target::Target;
use authentick_load::{Plan, record as load_record};
use authentick_net::report_file::ReportFile;
use authentick_report::load::csv::csv;
use authentick_report::load::{self, LoadRecord, Parameters};

use crate::args::LoadArguments;
use crate::exit::Failure;
use crate::files::{self, Output};
use crate::host::{COMMIT, VERSION, command};

/// A record without steps.
pub(super) fn begin(arguments: &LoadArguments, plan: &Plan, run: &Run, target: &Target) -> LoadRecord {
    let record = load_record::begin(plan, run, target, &arguments.coordination.agents);
    LoadRecord {
        command: command(),
        version: VERSION.to_owned(),
        commit: COMMIT.to_owned(),
        host: authentick_load::machine(),
        path: arguments.path.clone().unwrap_or(record.path),
        target: arguments.target.clone(),
        server_label: arguments.label.clone(),
        parameters: Parameters {
            sources: arguments.sources.map(|prefix| prefix.to_string()),
            ..record.parameters
        },
        shared_clock: arguments.shared_clock || record.shared_clock,
        ..record
    }
}

/// The files of a run, open from its start.
#[derive(Debug, Default)]
pub(super) struct RunFiles {
    record: Option<Output>,
    csv: Option<Output>,
    html: Option<Output>,
    spans: Option<Output>,
}

impl RunFiles {
    /// Opens the files that the arguments name. None of them is an input of the run, or another one of them.
    pub(super) fn open(arguments: &LoadArguments) -> Result<Self, Failure> {
        let LoadArguments { record, csv, html, spans, .. } = arguments;
        let named = [("--record", record), ("--csv", csv), ("--html", html), ("--spans", spans)];
        let named = named.map(|(option, path)| (option, path.as_deref()));
        let paths = named.into_iter().filter_map(|(option, path)| Some((option, path?)));
        let mut opened = files::outputs(paths)?.into_iter();
        let [record, csv, html, spans] = named.map(|(_, path)| path.and_then(|_| opened.next()));
        Ok(RunFiles { record, csv, html, spans })
    }

    /// The file of the record, for what is known while the run goes on.
    pub(super) fn journal(&mut self, record: &LoadRecord) -> Option<Journal<'_>> {
        self.record.as_mut().map(|output| Journal::new(&mut output.file, record))
    }

    /// The file of rows of spans.
    pub(super) fn take_spans(&mut self) -> Option<ReportFile> {
        self.spans.take().map(|output| output.file)
    }

    /// Writes the results; all of them, even if one fails. The failure names each that was not written.
    pub(super) fn write(self, record: &LoadRecord) -> Result<(), Failure> {
        let page = || load::report(&[record]).page();
        let texts: [(Option<Output>, &dyn Fn() -> String); 3] =
            [(self.record, &|| record.to_json()), (self.csv, &|| csv(record)), (self.html, &page)];
        let written = texts.into_iter().filter_map(|(output, text)| Some(output?.write(&text())));
        let failures: Vec<Failure> = written.filter_map(Result::err).collect();
        let Some(first) = failures.first() else { return Ok(()) };
        let exit = first.exit;
        let messages: Vec<String> = failures.into_iter().map(|failure| failure.message).collect();
        Err(exit.because(messages.join("; ")))
    }
}
