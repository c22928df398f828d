//! When a client that does not know the time yet trusts a server's certificate chain under ANTP. The rules, ordered by
//! how much they require:
//!
//! 1. a certificate or key that is pinned: nothing else is checked;
//! 2. X.509, at the time of the clock, but never earlier than the build of this program or the last time that a server
//!    vouched for, and with two days of slack: being right within days is enough, as certificates last for months;
//! 3. X.509 at the time that the authorities themselves tell, asked by OCSP with a nonce ([`crate::antp::ocsp`]);
//! 4. X.509 at a time that the user sets by hand, or on which several servers agree ([`crate::antp::tentative`]).
//!
//! The ANTP paper, section 3, names all of these but the last. A remark says what a rule does not check.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use authentick_crypto::kem::{BadKey, PublicKey};
use authentick_ke::client::CertificateCheck;
use authentick_ke::tls::{
    self, BadPath, CertificateInfo, Defect, KeyUse, Link, PathVerifier, Pinned, Roots, public_key_info,
};
use authentick_net::clock::unix_seconds;
use authentick_wire::antp::{Chain, Suite};
use rustls::pki_types::{CertificateDer, ServerName};
use thiserror::Error;

use crate::antp::ocsp::Vouch;
use crate::remark::Remark;

/// By how much a client's clock may be wrong before the dates of a certificate matter.
pub const SLACK_SECONDS: u64 = 2 * 86_400;

/// Who is believed.
#[derive(Debug)]
pub enum Anchor {
    /// The holder of one of these certificates.
    Certificates(Vec<Vec<u8>>),
    /// The holder of this key.
    Key(Vec<u8>),
    /// Any server for which an authority vouches.
    Authorities(PathVerifier),
}

impl Anchor {
    /// What is pinned in a PEM text: certificates, or else a public key.
    ///
    /// # Errors
    /// If it holds neither, or something that is not understood.
    pub fn pinned(pem: &[u8]) -> Result<Self, Defect> {
        Ok(match tls::pinned(pem)? {
            Pinned::Certificates(found) => {
                Anchor::Certificates(found.iter().map(|certificate| certificate.to_vec()).collect())
            }
            Pinned::PublicKey(key) => Anchor::Key(key),
        })
    }

    /// Trust in authorities for a server of this name.
    ///
    /// # Errors
    /// If there are no authorities.
    pub fn authorities(roots: &Roots, name: ServerName<'static>) -> Result<Self, BadPath> {
        PathVerifier::new(roots, name).map(Anchor::Authorities)
    }
}

/// Why a chain is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustedBy {
    /// Its leaf is pinned.
    PinnedCertificate,
    /// The key in its leaf is pinned.
    PinnedKey,
    /// An authority vouches for it.
    Authorities,
    /// An authority vouches for it, and says that it is good now.
    AuthoritiesAndOcsp,
}

/// As the report words it.
impl fmt::Display for TrustedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrustedBy::PinnedCertificate => "pinned certificate",
            TrustedBy::PinnedKey => "pinned key",
            TrustedBy::Authorities => "authorities",
            TrustedBy::AuthoritiesAndOcsp => "authorities and OCSP",
        })
    }
}

/// What is known about the time at which certificates are judged, in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// By the system.
    pub clock: u64,
    /// When this program was built; 0 if it does not know.
    pub built: u64,
    /// When a server last vouched for the time; 0 if none did.
    pub saved: u64,
    /// The time given by the user, or by the servers that the user names.
    pub by_hand: Option<u64>,
}

/// The time before which it cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// In Unix seconds.
    pub at: u64,
    /// What happened then.
    pub reason: FloorReason,
}

/// What happened at the latest time that is known to have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloorReason {
    /// A server vouched for the time.
    Vouched,
    /// The program was built.
    Built,
}

impl fmt::Display for FloorReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FloorReason::Vouched => "a server last vouched for the time",
            FloorReason::Built => "this program was built",
        })
    }
}

/// How the dates of certificates are judged.
#[derive(Clone, Debug)]
pub enum Dates {
    /// By the time that counts.
    At(Times),
    /// At each of these instants, in Unix seconds, without slack; and the path must be this one at each of them.
    VouchedFor {
        /// The instants.
        instants: Vec<u64>,
        /// The path.
        links: Vec<Link>,
    },
    /// Not at all, except that all certificates of the chain must have been valid at some common time.
    Ignored,
}

impl Times {
    /// What the clock shows, without slack: for callers that measure, on hosts whose clock is right.
    #[must_use]
    pub fn exactly_now() -> Self {
        let clock = unix_seconds();
        Times { clock, built: 0, saved: 0, by_hand: Some(clock) }
    }

    /// The time before which it cannot be.
    #[must_use]
    pub const fn floor(&self) -> Floor {
        match self.saved > self.built {
            true => Floor { at: self.saved, reason: FloorReason::Vouched },
            false => Floor { at: self.built, reason: FloorReason::Built },
        }
    }

    /// The time that counts, by how much it may be wrong, and the remark about it.
    fn judged_at(&self) -> (u64, u64, Option<Remark>) {
        if let Some(by_hand) = self.by_hand {
            return (by_hand, 0, Some(Remark::JudgedAt(by_hand)));
        }
        let floor = self.floor();
        if self.clock >= floor.at {
            return (self.clock, SLACK_SECONDS, None);
        }
        (floor.at, SLACK_SECONDS, Some(Remark::ClockBehind { clock: self.clock, floor }))
    }
}

/// A chain that is trusted.
#[derive(Debug)]
pub struct Believed {
    /// The leaf's key.
    pub key: PublicKey,
    /// Why it is trusted.
    pub by: TrustedBy,
    /// What was checked less strictly than usual.
    pub remarks: Vec<Remark>,
    /// The certificate of that key.
    pub leaf: Vec<u8>,
    /// With OCSP: what was vouched for, one for each certificate of the path, the leaf's first.
    pub vouches: Vec<Vouch>,
}

/// Why a chain is not trusted: the check that it failed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Untrusted {
    /// It has no certificate.
    #[error("certificate: the chain is empty")]
    Empty,
    /// The leaf cannot be read.
    #[error("certificate: the leaf is broken")]
    BrokenLeaf,
    /// No certificate can be read.
    #[error("certificate: the chain is broken")]
    Broken,
    /// Another certificate is pinned.
    #[error("pinned certificate: the server has another one")]
    OtherCertificate,
    /// Another key is pinned.
    #[error("pinned key: the server has another one")]
    OtherKey,
    /// There is no valid path to an authority.
    #[error(transparent)]
    Path(#[from] BadPath),
    /// The same at the time, in Unix seconds, for which a responder of OCSP vouched.
    #[error("{0} (judged at {at}, the time that a responder vouches for)", at = rfc3339(*.1))]
    PathAt(BadPath, u64),
    /// At that time there is a path, but not the one that was asked about.
    #[error("certificate: the path at {} is not the one that was asked about", rfc3339(*.0))]
    OtherPathAt(u64),
    /// What is pinned has no path to an authority, so there is nobody to ask about it.
    #[error("certificate: what is pinned has no authority to ask")]
    NoAuthority,
    /// The server chose a suite that is not implemented here.
    #[error("suite: {0} is not known here")]
    UnknownSuite(Suite),
    /// The leaf's key is not one of the suite.
    #[error("certificate key: {0}")]
    Key(BadKey),
}

/// Judges the chain of a server that chose `suite`.
///
/// # Errors
/// The check that failed.
pub fn judge(anchor: &Anchor, dates: &Dates, chain: &Chain<'_>, suite: Suite) -> Result<Believed, Untrusted> {
    let certificates = certificates_of(chain);
    let leaf = certificates.first().ok_or(Untrusted::Empty)?;
    let spki = public_key_info(leaf).ok_or(Untrusted::BrokenLeaf)?;
    let mut remarks = Vec::new();
    let by = match anchor {
        Anchor::Certificates(pinned) if pinned.iter().any(|pinned| pinned == &leaf[..]) => {
            TrustedBy::PinnedCertificate
        }
        Anchor::Certificates(_) => return Err(Untrusted::OtherCertificate),
        Anchor::Key(pinned) if pinned == spki => TrustedBy::PinnedKey,
        Anchor::Key(_) => return Err(Untrusted::OtherKey),
        Anchor::Authorities(path) => {
            remarks = judge_path(path, dates, &certificates, suite)?;
            TrustedBy::Authorities
        }
    };
    if by != TrustedBy::Authorities {
        remarks.push(Remark::Unchecked(by));
    }
    let kem = authentick_proto::antp::kem(suite).ok_or(Untrusted::UnknownSuite(suite))?;
    let key = PublicKey::from_spki(kem, spki).map_err(Untrusted::Key)?;
    Ok(Believed { key, by, remarks, leaf: leaf.to_vec(), vouches: Vec::new() })
}

/// Judges the path from a chain to an authority; returns remarks.
fn judge_path(
    path: &PathVerifier,
    dates: &Dates,
    certificates: &[CertificateDer<'_>],
    suite: Suite,
) -> Result<Vec<Remark>, Untrusted> {
    let verify = |at| path.verify(certificates, KeyUse::of(suite), at);
    match dates {
        Dates::At(times) => return Ok(with_slack(times, verify)?),
        Dates::VouchedFor { instants, links } => {
            for &at in instants {
                verify(at).map_err(|bad| Untrusted::PathAt(bad, at))?;
                if path.links(certificates, at)? != *links {
                    return Err(Untrusted::OtherPathAt(at));
                }
            }
        }
        Dates::Ignored => _ = at_any_time(certificates, verify)?,
    }
    Ok(Vec::new())
}

/// The path of a chain to the authority that vouches for it, at a time at which all of it is valid.
///
/// # Errors
/// The check that failed; also if the anchor is pinned, as there is no path then.
pub fn path_links(anchor: &Anchor, chain: &Chain<'_>, suite: Suite) -> Result<Vec<Link>, Untrusted> {
    let Anchor::Authorities(path) = anchor else { return Err(Untrusted::NoAuthority) };
    let certificates = certificates_of(chain);
    let at = at_any_time(&certificates, |at| path.verify(&certificates, KeyUse::of(suite), at))?;
    Ok(path.links(&certificates, at)?)
}

fn certificates_of<'a>(chain: &Chain<'a>) -> Vec<CertificateDer<'a>> {
    chain.certificates().map(CertificateDer::from).collect()
}

/// A time in Unix seconds, in readable form.
#[must_use]
pub fn rfc3339(unix_seconds: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(unix_seconds)).to_string()
}

/// Verifies at the time that counts and, if only the dates fail, at the ends of the slack.
fn with_slack(times: &Times, verify: impl Fn(u64) -> Result<(), BadPath>) -> Result<Vec<Remark>, BadPath> {
    let (at, slack, remark) = times.judged_at();
    let mut remarks: Vec<Remark> = remark.into_iter().collect();
    let Err(bad) = verify(at) else { return Ok(remarks) };
    let elsewhere = match bad.check {
        CertificateCheck::Expired => at.saturating_sub(slack),
        CertificateCheck::NotYetValid => at.saturating_add(slack),
        CertificateCheck::Name
        | CertificateCheck::Issuer
        | CertificateCheck::Usage
        | CertificateCheck::Other => return Err(bad),
    };
    if verify(elsewhere).is_err() {
        return Err(bad);
    }
    remarks.push(Remark::WithinSlack { check: bad.check, days: slack / 86_400 });
    Ok(remarks)
}

/// Verifies at the beginning of each certificate in turn: if all are ever valid together, then when the last one
/// begins. Returns that time, in Unix seconds.
fn at_any_time(
    certificates: &[CertificateDer<'_>],
    verify: impl Fn(u64) -> Result<(), BadPath>,
) -> Result<u64, Untrusted> {
    let mut last = Untrusted::Broken;
    for begin in certificates.iter().filter_map(|der| CertificateInfo::parse(der)).map(|info| info.not_before)
    {
        let begin = u64::try_from(begin).unwrap_or(0);
        match verify(begin) {
            Ok(()) => return Ok(begin),
            Err(bad) => last = Untrusted::Path(bad),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;
    const NOW: u64 = 1_893_456_000;
    const USUAL: Times = Times { clock: NOW, built: NOW - 30 * DAY, saved: NOW - DAY, by_hand: None };

    /// A certificate that is good from `from` to `until`.
    fn dates(from: u64, until: u64) -> impl Fn(u64) -> Result<(), BadPath> {
        move |at| {
            let bad = |check| Err(BadPath { check, detail: String::new() });
            match at {
                at if at < from => bad(CertificateCheck::NotYetValid),
                at if at > until => bad(CertificateCheck::Expired),
                _ => Ok(()),
            }
        }
    }

    /// What is remarked, or which check fails, in words.
    fn slack(times: &Times, verify: impl Fn(u64) -> Result<(), BadPath>) -> Result<Vec<String>, String> {
        let said = |remarks: Vec<Remark>| remarks.iter().map(Remark::to_string).collect();
        with_slack(times, verify).map(said).map_err(|bad| bad.to_string())
    }

    #[test]
    fn usual_certificate_at_a_usual_time_is_nothing_to_remark() {
        assert_eq!(slack(&USUAL, dates(NOW - DAY, NOW + DAY)), Ok(vec![]));
    }

    #[test]
    fn dates_have_two_days_of_slack_either_way_and_no_more() {
        for (from, until, remark) in [
            (0, NOW - DAY, Ok("expired")),
            (0, NOW - 3 * DAY, Err("expired")),
            (NOW + DAY, u64::MAX, Ok("not valid yet")),
            (NOW + 3 * DAY, u64::MAX, Err("not yet valid")),
        ] {
            match (slack(&USUAL, dates(from, until)), remark) {
                (Ok(remarks), Ok(part)) => {
                    assert!(remarks.len() == 1 && remarks[0].contains(part), "{remarks:?}");
                }
                (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
                (result, _) => panic!("{result:?}"),
            }
        }
    }

    #[test]
    fn clock_that_is_behind_what_is_known_does_not_revive_a_certificate() {
        let expired_in_2027 = dates(0, NOW - 700 * DAY);
        let long_ago = Times { clock: 0, ..USUAL };
        assert!(slack(&long_ago, &expired_in_2027).is_err());
        let remarks = slack(&long_ago, dates(NOW - 10 * DAY, NOW + DAY)).unwrap();
        assert!(remarks[0].contains("1970-01-01") && remarks[0].contains("vouched"), "{remarks:?}");
        let never_asked = Times { clock: 0, saved: 0, ..USUAL };
        let remarks = slack(&never_asked, dates(NOW - 40 * DAY, NOW + DAY)).unwrap();
        assert!(remarks[0].contains("was built"), "{remarks:?}");
    }

    #[test]
    fn time_set_by_hand_counts_exactly_and_alone() {
        let by_hand = Times { by_hand: Some(NOW - 400 * DAY), ..USUAL };
        let remarks = slack(&by_hand, dates(NOW - 401 * DAY, NOW - 399 * DAY)).unwrap();
        assert!(remarks.len() == 1 && remarks[0].contains("not at the time of"), "{remarks:?}");
        assert!(slack(&by_hand, dates(0, NOW - 401 * DAY)).is_err(), "without slack");
        assert!(slack(&by_hand, dates(NOW - 10 * DAY, NOW)).is_err());
    }

    #[test]
    fn chain_that_was_ever_good_passes_where_dates_are_ignored() {
        let certificate = |from: i32, until: i32| {
            let mut params = rcgen::CertificateParams::new(vec!["ntp.test".to_owned()]).unwrap();
            params.not_before = rcgen::date_time_ymd(from, 1, 1);
            params.not_after = rcgen::date_time_ymd(until, 1, 1);
            params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().der().clone()
        };
        let good_at = |from: i32, until: i32| {
            let chain = [certificate(from, until)];
            // What vouches for it was good from 2000 until 2010.
            at_any_time(&chain, dates(946_684_800, 1_262_304_000))
        };
        assert_eq!((good_at(2005, 2006), good_at(2000, 2090)), (Ok(1_104_537_600), Ok(946_684_800)));
        assert!(good_at(2015, 2016).unwrap_err().to_string().contains("expired"));
        assert!(at_any_time(&[CertificateDer::from(vec![0])], |_| Ok(())).is_err());
    }

    #[test]
    fn failures_that_are_not_of_dates_have_no_slack() {
        for check in [CertificateCheck::Name, CertificateCheck::Issuer, CertificateCheck::Usage] {
            let verify = |_| Err(BadPath { check, detail: "so".to_owned() });
            assert_eq!(slack(&USUAL, verify), Err(format!("{check}: so")));
        }
    }
}
