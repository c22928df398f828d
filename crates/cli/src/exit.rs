//! Exit codes: few, and each with one meaning.

use std::process::ExitCode;

use authentick_client::antp::store::StoreError;
use authentick_client::{Error, Fault, NoHostPort};
use authentick_daemon::fleet::by_hand::HandError;
use authentick_daemon::fleet::seal_file::SealFileError;
use authentick_daemon::keystore::StoreError as KeyStoreError;
use authentick_daemon::symmetric::KeyFileError;
use authentick_daemon::{ConfigError, StartError};
use authentick_load::NotAllowed;
use authentick_net::passing::may_pass;

use crate::remedy::remedy;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// No answer came, or the server could not be reached.
    Silence = 1,
    /// Answers came, and none passed every check.
    Authentication = 2,
    /// No step of a load is valid: it says nothing about the server.
    Invalid = 3,
    /// A load crossed a threshold of `--fail-if`.
    Crossed = 4,
    /// The command line is wrong.
    Usage = 64,
    /// The server answered that it does not serve this.
    Unavailable = 69,
    /// Something failed here.
    Internal = 70,
    /// A state of the host that may pass keeps this from being done: EX_TEMPFAIL of sysexits.h.
    Passing = 75,
    /// Rights are missing.
    Permission = 77,
    /// A configuration file is wrong.
    Configuration = 78,
    /// SIGINT ended it at once. By shells' convention: 128 and the signal's number.
    Interrupted = 130,
    /// The same for SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// `report --fail-below`: the run carries less than it was to. Shares its code with [`Exit::Silence`], as no
    /// command can end in both ways.
    pub(crate) const GATE_FAILED: Exit = Exit::Silence;

    /// Whether a service manager starts a server again that has ended so, with a chance.
    pub(crate) const fn is_for_restart(self) -> bool {
        matches!(self, Exit::Passing | Exit::Internal)
    }

    /// That a command ends so, and what it prints then.
    pub(crate) fn because(self, message: impl Into<String>) -> Failure {
        Failure { exit: self, message: message.into() }
    }

    /// How a command ends that could not have what its user named: a file, a folder, an address.
    pub(crate) fn of_access(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => Exit::Permission,
            _ if may_pass(error) => Exit::Passing,
            _ => Exit::Configuration,
        }
    }

    /// How a command ends that could not use keys: for want of rights, as another process does not let go of them, or
    /// for another state that may pass.
    const fn of_keys(is_permission: bool, is_held: bool, may_pass: bool) -> Self {
        match (is_permission, is_held, may_pass) {
            (true, ..) => Exit::Permission,
            (false, true, _) => Exit::Internal,
            (false, false, true) => Exit::Passing,
            (false, false, false) => Exit::Configuration,
        }
    }
}

impl From<Fault> for Exit {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Silent => Exit::Silence,
            Fault::Malformed | Fault::Rejected => Exit::Authentication,
            Fault::Refused => Exit::Unavailable,
            Fault::Host => Exit::Internal,
            Fault::Passing => Exit::Passing,
            Fault::Rights => Exit::Permission,
            Fault::Input => Exit::Configuration,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Why a command did not do what it should: what to print, and the code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = match remedy(&error) {
            Some(remedy) => format!("{error}; {remedy}"),
            None => error.to_string(),
        };
        Exit::from(error.fault()).because(message)
    }
}

impl From<NotAllowed> for Failure {
    fn from(error: NotAllowed) -> Self {
        let exit = match error {
            NotAllowed::List { .. } => Exit::Configuration,
            NotAllowed::Public(..) | NotAllowed::Another(..) => Exit::Usage,
        };
        exit.because(error.to_string())
    }
}

impl From<NoHostPort> for Failure {
    fn from(error: NoHostPort) -> Self {
        Exit::Usage.because(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Error::from(error).into()
    }
}

impl From<HandError> for Failure {
    fn from(error: HandError) -> Self {
        match error {
            HandError::Config(error) => error.into(),
            HandError::Store(error) => error.into(),
            HandError::Silence(..) => Exit::Silence.because(error.to_string()),
            HandError::Refused(..) => Exit::Configuration.because(error.to_string()),
        }
    }
}

/// Errors about keys say what to do, whether rights are missing, and whether somebody else is at work on them.
macro_rules! of_keys {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                let exit = Exit::of_keys(error.is_permission(), error.is_held(), error.may_pass());
                exit.because(format!("{error}; {}", error.remedy()))
            }
        })*
    };
}

of_keys!(KeyStoreError, KeyFileError, SealFileError);

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let exit = match (error.is_permission, error.is_passing) {
            (true, _) => Exit::Permission,
            (false, true) => Exit::Passing,
            (false, false) => Exit::Configuration,
        };
        exit.because(error.to_string())
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Config(error) => error.into(),
            StartError::System(..) => Exit::Internal.because(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let exit = match error.kind() {
            std::io::ErrorKind::PermissionDenied => Exit::Permission,
            _ => Exit::Internal,
        };
        exit.because(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use authentick_client::Unanswered;
    use authentick_net::udp::Hint;
    use authentick_proto::client::Check;

    use super::*;

    #[test]
    fn passing_state_of_the_host_is_no_mistake_in_a_file() {
        for (number, exit) in
            [(28, Exit::Passing), (98, Exit::Passing), (24, Exit::Passing), (2, Exit::Configuration)]
        {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(
                (Exit::of_access(&error), Exit::from(Fault::of_access(&error))),
                (exit, exit),
                "{error}"
            );
        }
    }

    #[test]
    fn each_reason_has_the_exit_code_of_whose_fault_it_is() {
        let io = |code: i32| Unanswered::from(io::Error::from_raw_os_error(code));
        for (unanswered, exit) in [
            (Unanswered::Silence { hint: Some(Hint::Refused) }, Exit::Silence),
            (Unanswered::Rejected(vec![Check::Tag]), Exit::Authentication),
            (Unanswered::NoCookie, Exit::Internal),
            (Unanswered::ClockSet, Exit::Internal),
            // EPERM, EIO, ENETUNREACH, EHOSTUNREACH, and what routes of type prohibit and blackhole give.
            (io(1), Exit::Permission),
            (io(5), Exit::Internal),
            (io(101), Exit::Silence),
            (io(113), Exit::Silence),
            (io(13), Exit::Silence),
            (io(22), Exit::Silence),
        ] {
            let failure = Failure::from(unanswered.of("192.0.2.1:123".parse().unwrap()));
            assert_eq!(failure.exit, exit, "{}", failure.message);
            assert!(failure.message.starts_with("192.0.2.1:123: "), "{}", failure.message);
        }
    }
}
