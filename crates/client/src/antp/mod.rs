//! An ANTP client around the protocol's state machines: sockets, trust in certificates, and what is kept on disk.
//!
//! - [`Antp`]: a client that keeps its key from one exchange to the next, and chains and times on disk.
//! - [`establish_by_clock`]: the first two phases, with the check of the certificates between them.
//! - [`phases`]: negotiation, key exchange and time over UDP, with retries until time is up.
//! - [`ocsp`]: the time told by the authorities, who say whether a chain is good now.
//! - [`tentative`]: the time told by several servers, for hosts that have no time to judge certificates by.
//! - [`store`]: the chain of each server, which servers have spoken ANTP, and the latest time that one vouched for.
//!
//! Deliberately absent: plain answers. No code path leads from an ANTP request to an answer without its tag.

mod client;
mod clock_steps;
pub mod ocsp;
pub mod phases;
pub mod store;
pub mod tentative;

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_ke::tls::CertificateInfo;
use authentick_proto::antp::client::{Negotiated, Offer, Session};
use authentick_wire::antp::{Suite, SuiteList};

use self::phases::{exchange_keys, negotiate};
use crate::error::Why;
use crate::measurement::{Learnt, Voucher};
use crate::trust::{Anchor, Believed, Dates, Times, judge};

pub use self::client::{Antp, Settings};

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// m1 and m2.
    Negotiation,
    /// Between the first two phases of the protocol.
    CertificateCheck,
    /// m3 and m4.
    KeyExchange,
    /// m5 and m6.
    Time,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Negotiation => "negotiation",
            Phase::CertificateCheck => "certificate check",
            Phase::KeyExchange => "key exchange",
            Phase::Time => "time sync",
        })
    }
}

/// The result of the first two phases.
#[derive(Debug)]
pub struct Established {
    /// The server's choice, and its chain.
    pub negotiated: Negotiated,
    /// The session under which time is asked for.
    pub session: Session,
    /// Requests that the negotiation took.
    pub round_count: u32,
    /// When the leaf expires, in Unix seconds.
    pub valid_until: Option<i64>,
    /// The time, in Unix seconds, that an OCSP responder told; `None` if none was asked.
    pub vouched_at: Option<u64>,
}

/// Goes through the first two phases; each of them has `timeout`. Between them `judge` decides on the server's chain.
/// `learnt` gets what becomes known on the way, even if a later phase fails. An error is the phase that failed, and
/// why.
fn establish(
    server: SocketAddr,
    offer: Offer,
    entropy: &mut Entropy,
    timeout: Duration,
    learnt: &mut Learnt,
    judge: impl FnOnce(&Negotiated, &mut Entropy) -> Result<Believed, Why>,
) -> Result<Established, (Phase, Why)> {
    let held = offer.held.clone();
    let start = Instant::now();
    let (negotiated, round_count) = negotiate(server, offer, entropy, timeout)
        .map_err(|unanswered| (Phase::Negotiation, unanswered.into()))?;
    learnt.times.negotiation = Some(start.elapsed());
    let start = Instant::now();
    let believed = judge(&negotiated, entropy).map_err(|why| (Phase::CertificateCheck, why))?;
    learnt.times.certificate_check = Some(start.elapsed());
    let certificate = CertificateInfo::parse(&believed.leaf);
    let valid_until = certificate.as_ref().map(|certificate| certificate.not_after);
    let vouched_at = believed.vouches.first().map(|vouch| vouch.good.produced_at);
    let octets = negotiated.chain().octets();
    learnt.remarks.extend(believed.remarks);
    learnt.voucher = Some(Voucher::Antp {
        suite: negotiated.suite(),
        chain_size: octets.len(),
        is_chain_held: held.is_some_and(|held| held.octets() == octets),
        round_count,
        by: believed.by,
        certificate,
        ocsp: believed.vouches,
    });
    let start = Instant::now();
    let (session, encapsulation) = exchange_keys(server, &negotiated, &believed.key, entropy, timeout)
        .map_err(|unanswered| (Phase::KeyExchange, unanswered.into()))?;
    learnt.times.encapsulation = Some(encapsulation);
    learnt.times.key_exchange = Some(start.elapsed().saturating_sub(encapsulation));
    Ok(Established { negotiated, session, round_count, valid_until, vouched_at })
}

/// Goes through the first two phases under one suite, with the dates of certificates judged by the clock: for a caller
/// that measures, and knows the time. Each phase has `timeout`; `learnt` gets what becomes known on the way, even if a
/// later phase fails.
///
/// # Errors
/// The phase that failed, and why.
///
/// # Panics
/// Never: one suite makes a list.
pub fn establish_by_clock(
    server: SocketAddr,
    suite: Suite,
    anchor: &Anchor,
    entropy: &mut Entropy,
    timeout: Duration,
    learnt: &mut Learnt,
) -> Result<Established, (Phase, Why)> {
    let offer = Offer { suites: SuiteList::new(&[suite]).expect("one suite makes a list"), ..Offer::p256() };
    establish(server, offer, entropy, timeout, learnt, |negotiated, _| {
        Ok(judge(anchor, &Dates::At(Times::exactly_now()), &negotiated.chain(), suite)?)
    })
}
