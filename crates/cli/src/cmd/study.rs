//! `authentick study`: repeats a paper's experiments, and renders them beside what was published. What is measured, and
//! how it is kept, is in the crate `study`.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use authentick_study::all::carry_out_all;
use authentick_study::antp::Antp;
use authentick_study::field::{Choice, Field, Said};
use authentick_study::folder::Rendered;
use authentick_study::ntp_mac::NtpMac;
use authentick_study::nts::Nts;
use authentick_study::places::Places;
use authentick_study::program::Program;
use authentick_study::request_threshold::{NamedHosts, RequestThreshold, given};
use authentick_study::{Caller, Console, Error, Fault, carry_out, list};
use indicatif::ProgressBar;

use crate::args::{PaperArgument, Study, StudyOptions, StudyVerb};
use crate::exit::{Exit, Failure};
use crate::host::{COMMIT, VERSION, command};
use crate::{interrupt, output};

pub(crate) fn run(study: &Study) -> Result<Exit, Failure> {
    match &study.verb {
        StudyVerb::Run(options) => begin(&options.0),
        StudyVerb::List => {
            output::result(&list::text(&places(None)));
            Ok(Exit::Done)
        }
        StudyVerb::Render { folder } => {
            show(&authentick_study::render(folder)?);
            Ok(Exit::Done)
        }
    }
}

/// Begins the study of a paper, or goes on with it.
fn begin(options: &StudyOptions) -> Result<Exit, Failure> {
    let (program, console, stop) = (program()?, Terminal::default(), Arc::new(AtomicBool::new(false)));
    let caller = Caller { program: &program, console: &console, stop: &stop };
    let (path, quick, step) = (&options.out, options.quick, options.steps.step_seconds);
    let (ceiling, places) = (options.minutes, places(options.peers.peers.clone()));
    let flag = Arc::clone(&stop);
    // However often it comes: programs that the study has started are ended in order.
    interrupt::on_signal(move |_| {
        flag.store(true, Ordering::Relaxed);
        None
    });
    let report = match options.paper {
        PaperArgument::Mac => carry_out(&NtpMac { quick }, path, ceiling, &caller)?,
        PaperArgument::All => carry_out_all(quick, &choice(options)?, &places, path, ceiling, &caller)?,
        PaperArgument::Nts => carry_out(&Nts { quick, step, places }, path, ceiling, &caller)?,
        PaperArgument::Antp => carry_out(&Antp { quick, trial: step }, path, ceiling, &caller)?,
        PaperArgument::Field => {
            let paper = Field { quick, trial: step, choice: choice(options)?, places };
            carry_out(&paper, path, ceiling, &caller)?
        }
        PaperArgument::Threshold => {
            let paper = RequestThreshold { quick, step, ..request_threshold(options)? };
            carry_out(&paper, path, ceiling, &caller)?
        }
    };
    show(&report);
    if caller.says_stop() {
        output::error("stopped; what was measured is kept, and the same command goes on");
    }
    Ok(Exit::Done)
}

/// Where servers of others are looked for.
fn places(folder: Option<PathBuf>) -> Places {
    Places { folder, path: std::env::var_os("PATH") }
}

/// Who is measured.
fn choice(options: &StudyOptions) -> Result<Choice, Error> {
    let (field, permit) = (options.field.clone(), options.permission.clone());
    Choice::new(Said {
        servers: field.servers,
        given: field.server,
        authorities: field.server_ca,
        certificate_names: field.server_name,
        pids: field.server_pid,
        permit: permit.permit,
        allow_list: permit.allow_list,
    })
}

fn request_threshold(options: &StudyOptions) -> Result<RequestThreshold, Failure> {
    let (server, coordination, permit) = (&options.server, &options.coordination, &options.permission);
    let hosts = coordination.files().map(|files| {
        let [chain, key, ca] = files.map(Clone::clone);
        NamedHosts { names: coordination.agents.clone(), ca, chain, key }
    });
    let given = match (&options.records.old, &options.records.new) {
        (Some(old), Some(new)) => Some([given("--old", old)?, given("--new", new)?]),
        (None, _) | (_, None) => None,
    };
    let paper = RequestThreshold {
        scale: server.scale,
        target: server.target.clone(),
        permit: permit.permit.clone(),
        allow_list: permit.allow_list.clone(),
        hosts,
        given,
        ..RequestThreshold::default()
    };
    Ok(paper.checked()?)
}

fn show(report: &Rendered) {
    output::result(&format!("{}\nreport: {}\n", report.text, report.page.display()));
}

/// This program, as a study starts it again.
pub(super) fn program() -> Result<Program, Failure> {
    Ok(Program {
        path: std::env::current_exe()?,
        version: VERSION.to_owned(),
        commit: COMMIT.to_owned(),
        command: command(),
        host: authentick_load::machine(),
        fault_of: |status| match exit_of(status) {
            Exit::Silence | Exit::Authentication | Exit::Unavailable => Fault::Server,
            Exit::Usage | Exit::Configuration => Fault::User,
            Exit::Permission | Exit::Invalid | Exit::Passing => Fault::Host,
            Exit::Done | Exit::Crossed | Exit::Internal | Exit::Interrupted | Exit::Terminated => {
                Fault::Program
            }
        },
    })
}

/// How a run of this program has ended that failed.
fn exit_of(status: ExitStatus) -> Exit {
    use Exit::{
        Authentication, Configuration, Internal, Invalid, Passing, Permission, Silence, Unavailable, Usage,
    };
    let known = [Silence, Authentication, Invalid, Usage, Unavailable, Passing, Permission, Configuration];
    known.into_iter().find(|exit| status.code() == Some(*exit as i32)).unwrap_or(Internal)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error {
            Error::Run { status, .. } => exit_of(*status),
            Error::Usage(_) | Error::Order(_) | Error::NoTime(_) => Exit::Usage,
            error if error.is_permission() => Exit::Permission,
            error => match error.fault() {
                Fault::User => Exit::Configuration,
                Fault::Server => Exit::Silence,
                Fault::Host | Fault::Program => Exit::Internal,
            },
        };
        exit.because(error.to_string())
    }
}

/// Standard error, with a bar for rounds.
#[derive(Default)]
pub(super) struct Terminal {
    bar: OnceCell<ProgressBar>,
}

impl Console for Terminal {
    fn note(&self, line: &str) {
        output::aside(line);
    }

    fn warn(&self, line: &str) {
        output::error(line);
    }

    fn progress(&self, done: u32, of: u32) {
        let bar = self.bar.get_or_init(|| output::progress(of.into(), "rounds"));
        bar.set_position(done.into());
        if done == of {
            bar.finish_and_clear();
        }
    }
}
