//! What a client did less strictly than usual, or failed to do, and its user should know.

use std::fmt;

use authentick_ke::client::CertificateCheck;

use crate::antp::ocsp::Vouch;
use crate::error::Error;
use crate::trust::{Floor, TrustedBy, rfc3339};

/// Something that the user should know about an exchange that did not fail. Times are in Unix seconds.
#[derive(Debug)]
pub enum Remark {
    /// The pinned certificate or key was found, so nothing else was checked.
    Unchecked(TrustedBy),
    /// Dates are judged at a time that the user gave.
    JudgedAt(u64),
    /// The clock shows a time that cannot be, so dates are judged at the earliest one that can.
    ClockBehind {
        /// What it shows.
        clock: u64,
        /// The earliest time that can be.
        floor: Floor,
    },
    /// A certificate is outside its dates, but by less than the clock may be wrong.
    WithinSlack {
        /// [`CertificateCheck::Expired`] or the opposite.
        check: CertificateCheck,
        /// By how much the clock may be wrong, in days.
        days: u64,
    },
    /// Dates are judged at the times for which OCSP responders vouched.
    VouchedFor(Vec<Vouch>),
    /// Servers were trusted without checking the dates of their certificates, and agreed on a time.
    Tentative {
        /// The names that the user gave.
        servers: Vec<String>,
        /// The time.
        at: u64,
    },
    /// The server's time is after the end of its own certificate, and is not saved.
    AfterCertificate,
    /// A new key is due and could not be obtained; the old one is still used.
    NoNewKey(Box<Error>),
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remark::Unchecked(by) => {
                write!(f, "the server has the {by}; path, name, dates and usage are not checked")
            }
            Remark::JudgedAt(at) => {
                let at = rfc3339(*at);
                write!(f, "certificate dates are judged at {at}, not at the time of this host's clock")
            }
            Remark::ClockBehind { clock, floor } => write!(
                f,
                "this host's clock shows {}, which is before {}: certificate dates are judged at {}",
                rfc3339(*clock),
                floor.reason,
                rfc3339(floor.at)
            ),
            Remark::WithinSlack { check: CertificateCheck::Expired, days } => {
                write!(f, "a certificate has expired, but less than {days} days ago")
            }
            Remark::WithinSlack { days, .. } => {
                write!(f, "a certificate is not valid yet, but will be within {days} days")
            }
            Remark::VouchedFor(vouches) => {
                let vouches: Vec<String> = vouches.iter().map(Vouch::to_string).collect();
                write!(
                    f,
                    "{}, by OCSP with a nonce: certificate dates are judged at that time, not at the time of this \
                     host's clock",
                    vouches.join("; ")
                )
            }
            Remark::Tentative { servers, at } => write!(
                f,
                "tentative: {} were believed without the dates of their certificates, agree on {}, and are good then",
                servers.join(", "),
                rfc3339(*at)
            ),
            Remark::AfterCertificate => {
                f.write_str("the server's time is after its own certificate's end, and is not remembered")
            }
            Remark::NoNewKey(error) => write!(f, "there is no new key: {error}"),
        }
    }
}
