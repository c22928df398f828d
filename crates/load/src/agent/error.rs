//! Why a run does not begin, or ends: which agent of several, whose fault, and a sentence.

use std::time::Duration;

use authentick_ke::client::describe;
use rustls::{AlertDescription, CertificateError};

use super::limits::ALPN;
use super::link::LinkError;
use super::message::shown;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The list of agents, or the run, cannot be as it was asked for.
    Usage,
    /// The agent's name is unknown, or nobody answers there.
    Unreachable,
    /// One side does not accept the other's certificate.
    Authentication,
    /// It serves another coordinator.
    Busy,
    /// It refuses the order: its own list or its own limits forbid it.
    Refused,
    /// It was connected, and is gone or silent.
    Lost,
    /// What it says about its clock cannot be true.
    Clock,
    /// What it sends makes no sense.
    Protocol,
    /// Its generator failed.
    Generator,
    /// The run was stopped before it began.
    Stopped,
}

/// Who of a crew failed, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", .agent.as_ref().map(|agent| format!("agent {agent}: ")).unwrap_or_default())]
pub struct CrewError {
    /// The agent as it was named; `None` if it is no agent's fault.
    pub agent: Option<String>,
    /// The kind of failure.
    pub fault: Fault,
    /// A sentence with the numbers, and the remedy if there is one.
    pub message: String,
}

impl CrewError {
    /// An agent's fault.
    pub(crate) fn new(agent: &str, fault: Fault, message: impl Into<String>) -> Self {
        CrewError { agent: Some(agent.to_owned()), fault, message: message.into() }
    }

    /// No agent's fault.
    pub(crate) fn of_run(fault: Fault, message: impl Into<String>) -> Self {
        CrewError { agent: None, fault, message: message.into() }
    }

    /// An agent that said no.
    pub(crate) fn refused(agent: &str, why: &str) -> Self {
        CrewError::new(agent, Fault::Refused, format!("refused: {}", shown(why)))
    }

    /// A connection that ended before the agent took orders.
    pub(crate) fn unconnected(agent: &str, host: &str, error: &LinkError) -> Self {
        let (fault, message) = match error {
            LinkError::Tls(error) => (Fault::Authentication, untrusted(host, error)),
            LinkError::NoAlpn => (Fault::Authentication, not_an_agent()),
            LinkError::Message(error) => (Fault::Protocol, format!("it sent {error}")),
            LinkError::Closed | LinkError::Silent | LinkError::Slow | LinkError::Io(_) => {
                (Fault::Unreachable, format!("{error} before it took orders"))
            }
        };
        CrewError::new(agent, fault, message)
    }

    /// A connection that ended afterwards.
    pub(crate) fn lost(agent: &str, error: &LinkError, step: u64) -> Self {
        let fault = match error {
            LinkError::Message(_) => Fault::Protocol,
            LinkError::Closed
            | LinkError::Silent
            | LinkError::Slow
            | LinkError::Tls(_)
            | LinkError::NoAlpn
            | LinkError::Io(_) => Fault::Lost,
        };
        let message = match step {
            0 => format!("lost before the first step: {error}"),
            step => format!("lost in or after step {step}: {error}; a sum of the others would be wrong"),
        };
        CrewError::new(agent, fault, message)
    }

    pub(crate) fn late(agent: &str, what: &str, time: Duration) -> Self {
        CrewError::new(agent, Fault::Lost, format!("no {what} within {} s", time.as_secs_f64()))
    }
}

/// The other side speaks another protocol, or another version of it.
fn not_an_agent() -> String {
    let protocol = String::from_utf8_lossy(ALPN);
    format!("not an agent that speaks {protocol}; run the same version of authentick on all hosts")
}

/// What TLS says, for the operator of a coordinator.
fn untrusted(host: &str, error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => {
            format!(
                "its certificate is not for {host:?}; call it by a name in its certificate, or make it one"
            )
        }
        // The signature is bad if two authorities share a name.
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => "its certificate is of another authority than the one given for agents".to_owned(),
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => not_an_agent(),
        rustls::Error::AlertReceived(alert) => match remedy(*alert) {
            Some(remedy) => format!("it does not accept our certificate ({alert:?}); {remedy}"),
            None => format!("TLS fails: {error}"),
        },
        other => format!("TLS fails: {}", describe(other)),
    }
}

/// What our certificate lacks if an agent ends the handshake with this alert. RFC 8446 section 6.2.
const fn remedy(alert: AlertDescription) -> Option<&'static str> {
    match alert {
        AlertDescription::CertificateExpired => Some("its dates must include now, by the agent's clock"),
        AlertDescription::UnsupportedCertificate => {
            Some("if it limits what its key is for, it must name client authentication (clientAuth)")
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateRequired
        | AlertDescription::CertificateRevoked
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError => Some("it must be of the authority that the agent was given"),
        _ => None,
    }
}
