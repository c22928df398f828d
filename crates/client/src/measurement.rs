//! What a client finds out: the time with its bounds, who vouches for it, and how long that took.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use authentick_crypto::mac::MacAlgorithm;
use authentick_ke::tls::CertificateInfo;
use authentick_proto::client::{Response, Sample};
use authentick_wire::antp::Suite;
use authentick_wire::ke::AeadId;
use authentick_wire::time::{NtpSpan, NtpTime};

use crate::antp::ocsp::Vouch;
use crate::remark::Remark;
use crate::trust::TrustedBy;

/// A response that passed every check.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// What the server said.
    pub response: Response,
    /// Offset and delay.
    pub sample: Sample,
    /// This end's address. With `transmit` it identifies the exchange in a server's spans.
    pub source: SocketAddr,
    /// The transmit timestamp of the request.
    pub transmit: NtpTime,
    /// T1, by our clock.
    pub sent: NtpTime,
    /// T4, by our clock: the kernel's receive timestamp.
    pub arrived: NtpTime,
    /// From before the request was built to after the answer was checked: d_CNTS = t10 - t5 of the NTS study.
    pub whole: Duration,
}

/// A measurement, and its error bound if the scheme has one.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The measurement.
    pub measurement: Measurement,
    /// Under ANTP.
    pub bound: Option<Bound>,
}

impl From<Measurement> for Answer {
    fn from(measurement: Measurement) -> Self {
        Answer { measurement, bound: None }
    }
}

impl Measurement {
    /// What the server's clock is set by: at stratum 1 a name; above, an IPv4 address or four octets of a hash.
    #[must_use]
    pub fn reference(&self) -> String {
        let header = &self.response.header;
        match (header.stratum, header.reference_id.as_text()) {
            (0 | 1, Some(text)) => text.to_owned(),
            _ => Ipv4Addr::from(header.reference_id.0).to_string(),
        }
    }
}

/// By how much an answer may be wrong.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// R / 2, plus the amount by which this host's clock may have been set unnoticed.
    pub error_max: NtpSpan,
    /// E.
    pub round_trip_max: NtpSpan,
    /// Whether T4 is the arrival of a packet that came before its tag.
    pub is_early: bool,
}

/// What a client has learnt about its server, apart from the time.
#[derive(Debug, Default)]
pub struct Learnt {
    /// Where it is asked for time.
    pub address: Option<SocketAddr>,
    /// Who vouches for its answers; `None` without authentication, or before there are keys.
    pub voucher: Option<Voucher>,
    /// How long the phases before the exchanges took.
    pub times: PhaseTimes,
    /// What was checked less strictly than usual since this list was last emptied.
    pub remarks: Vec<Remark>,
}

/// How long the phases before exchanges of time took; `None` if there was no such phase.
#[derive(Clone, Copy, Debug, Default)]
pub struct PhaseTimes {
    /// NTS: the TCP connection.
    pub connect: Option<Duration>,
    /// NTS.
    pub tls_handshake: Option<Duration>,
    /// ANTP: all rounds of m1 and m2.
    pub negotiation: Option<Duration>,
    /// ANTP.
    pub certificate_check: Option<Duration>,
    /// ANTP: the client's own public-key work.
    pub encapsulation: Option<Duration>,
    /// Under ANTP the rest of the key exchange.
    pub key_exchange: Option<Duration>,
}

/// Who vouches for the keys, and which algorithm they are for.
#[derive(Debug)]
pub enum Voucher {
    /// A certificate, under NTS.
    Nts {
        /// The algorithm of the server's choice.
        aead: AeadId,
        /// Number of cookies from the key exchange.
        cookie_count: usize,
        /// What the certificate says, if it could be read.
        certificate: Option<CertificateInfo>,
        /// The address of the key exchange server.
        key_exchange_address: SocketAddr,
        /// This end's address in the key exchange.
        key_exchange_source: SocketAddr,
    },
    /// A key that both sides know.
    Mac {
        /// What it is for.
        algorithm: MacAlgorithm,
        /// Its identifier.
        key_id: u32,
    },
    /// A certificate, or a pinned key, under ANTP.
    Antp {
        /// The suite of the server's choice.
        suite: Suite,
        /// Octets of the certificate chain.
        chain_size: usize,
        /// Whether the chain was held from before, and not sent again.
        is_chain_held: bool,
        /// Requests that the negotiation took.
        round_count: u32,
        /// Why the chain is believed.
        by: TrustedBy,
        /// What the leaf says.
        certificate: Option<CertificateInfo>,
        /// What OCSP responders vouched for, one for each certificate of the path; empty if none was asked.
        ocsp: Vec<Vouch>,
    },
}
