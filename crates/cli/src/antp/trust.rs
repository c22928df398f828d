//! When a server's certificate chain is believed, by a client that does not know the time yet. In the order of how much
//! they ask for:
//!
//! 1. a certificate or key that is pinned: nothing else counts;
//! 2. X.509, at the time of the clock, but never earlier than this program was built or a server last vouched for, and
//!    with two days of slack: being right within days is enough, as certificates last for months;
//! 3. X.509 at the time that the authorities themselves tell, asked by OCSP with a nonce ([`super::ocsp`]);
//! 4. X.509 at a time that the user sets by hand, or on which several servers agree ([`super::tentative`]).
//!
//! The ANTP paper, section 3, names these but for the last. Whatever a rule does not check is said.

use std::path::Path;

use authentick_crypto::kem::PublicKey;
use authentick_ke::client::CertificateCheck;
use authentick_ke::tls::{
    BadPath, CertificateInfo, KeyUse, Link, PathVerifier, Roots, certificates, public_key_info,
};
use authentick_net::clock::unix_seconds;
use authentick_wire::antp::{Chain, Suite};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer};

use super::store::{Store, instant};
use crate::exit::{Exit, Failure};
use crate::files;

/// By how much a client may misjudge the time before the dates of a certificate count.
pub(crate) const SLACK_SECONDS: u64 = 2 * 86_400;

/// Who is believed.
#[derive(Debug)]
pub(crate) enum Anchor {
    /// The holder of one of these certificates.
    Certificates(Vec<Vec<u8>>),
    /// The holder of this key.
    Key(Vec<u8>),
    /// Whom an authority vouches for.
    Authorities(PathVerifier),
}

impl Anchor {
    /// What is pinned in a PEM file: certificates, or else a public key.
    pub(crate) fn pinned(file: &Path) -> Result<Self, Failure> {
        let pem = std::fs::read(file).map_err(|error| {
            let message = format!("--pin {}: cannot read: {error}", file.display());
            Failure::new(Exit::of_access(&error), message)
        })?;
        if let Ok(found) = certificates(&pem) {
            return Ok(Anchor::Certificates(found.iter().map(|certificate| certificate.to_vec()).collect()));
        }
        let key = SubjectPublicKeyInfoDer::from_pem_slice(&pem).map_err(|error| {
            let problem = format!("neither a certificate nor a public key ({error})");
            files::wrong(file, &problem, "name a PEM file with --pin")
        })?;
        Ok(Anchor::Key(key.to_vec()))
    }

    /// Trust in authorities for a server of this name.
    pub(crate) fn authorities(roots: &Roots, name: &str) -> Result<Self, Failure> {
        let name = ServerName::try_from(name.to_owned()).map_err(|_| {
            Failure::new(Exit::Usage, format!("--server-name {name:?} is no host name or address"))
        })?;
        let path = PathVerifier::new(roots, name)
            .map_err(|bad| Failure::new(Exit::Configuration, format!("certificate authorities: {bad}")))?;
        Ok(Anchor::Authorities(path))
    }

    /// In the words of the report.
    const fn name(&self) -> &'static str {
        match self {
            Anchor::Certificates(_) => "pinned certificate",
            Anchor::Key(_) => "pinned key",
            Anchor::Authorities(_) => "authorities",
        }
    }
}

/// The time at which certificates are judged, in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// By the system.
    pub(crate) clock: u64,
    /// When this program was built; 0 if it does not know.
    pub(crate) built: u64,
    /// When a server last vouched for the time; 0 if none did.
    pub(crate) saved: u64,
    /// By the user, or by whom the user names.
    pub(crate) by_hand: Option<u64>,
}

/// How the dates of certificates are judged.
#[derive(Clone, Debug)]
pub(crate) enum Dates {
    /// By the time that counts.
    At(Times),
    /// By each of these instants, in Unix seconds, without slack; and the path is this one at each of them.
    VouchedFor { instants: Vec<u64>, links: Vec<Link> },
    /// Not at all, but for this: all certificates of the chain were good at some time.
    Ignored,
}

impl Times {
    /// What the clock shows, without slack: for who measures, and knows the time.
    pub(crate) fn exactly_now() -> Self {
        let clock = unix_seconds();
        Times { clock, built: 0, saved: 0, by_hand: Some(clock) }
    }

    /// What is known now.
    pub(crate) fn now(store: &Store, by_hand: Option<u64>) -> Result<Self, Failure> {
        let built = env!("AUTHENTICK_BUILD_SECONDS").parse().unwrap_or(0);
        Ok(Times { clock: unix_seconds(), built, saved: store.last_time()?.unwrap_or(0), by_hand })
    }

    /// The time before which it cannot be.
    pub(crate) fn floor(&self) -> u64 {
        self.floor_and_reason().0
    }

    /// The same, and what happened then.
    pub(crate) fn floor_and_reason(&self) -> (u64, &'static str) {
        match self.saved > self.built {
            true => (self.saved, "a server last vouched for the time"),
            false => (self.built, "this program was built"),
        }
    }

    /// The time that counts, by how much it may be wrong, and what is to be said of it.
    fn judged_at(&self) -> (u64, u64, Option<String>) {
        let shown = |seconds| humantime::format_rfc3339_seconds(instant(seconds));
        if let Some(by_hand) = self.by_hand {
            let remark = format!(
                "certificate dates are judged at {}, not at the time of this host's clock",
                shown(by_hand)
            );
            return (by_hand, 0, Some(remark));
        }
        let (floor, why) = self.floor_and_reason();
        if self.clock >= floor {
            return (self.clock, SLACK_SECONDS, None);
        }
        let remark = format!(
            "this host's clock shows {}, which is before {why}: certificate dates are judged at {}",
            shown(self.clock),
            shown(floor)
        );
        (floor, SLACK_SECONDS, Some(remark))
    }
}

/// A chain that is believed.
#[derive(Debug)]
pub(crate) struct Believed {
    /// The leaf's key.
    pub(crate) key: PublicKey,
    /// Why it is: an [`Anchor`] in words.
    pub(crate) by: &'static str,
    /// What was checked less strictly than usual, for the log.
    pub(crate) remarks: Vec<String>,
    /// What the leaf says.
    pub(crate) certificate: Option<CertificateInfo>,
}

/// Judges the chain of a server that chose `suite`.
///
/// # Errors
/// The check that failed, in words.
pub(crate) fn judge(
    anchor: &Anchor,
    dates: &Dates,
    chain: &Chain<'_>,
    suite: Suite,
) -> Result<Believed, String> {
    let certificates: Vec<CertificateDer<'_>> = chain.certificates().map(CertificateDer::from).collect();
    let leaf = certificates.first().ok_or("certificate: the chain is empty")?;
    let spki = public_key_info(leaf).ok_or("certificate: the leaf is broken")?;
    let mut remarks = Vec::new();
    match anchor {
        Anchor::Certificates(pinned) => match pinned.iter().any(|pinned| pinned == &leaf[..]) {
            true => remarks.push(unchecked("certificate")),
            false => return Err("pinned certificate: the server has another one".to_owned()),
        },
        Anchor::Key(pinned) => match pinned == spki {
            true => remarks.push(unchecked("key")),
            false => return Err("pinned key: the server has another one".to_owned()),
        },
        Anchor::Authorities(path) => {
            let verify = |at| path.verify(&certificates, KeyUse::of(suite), at);
            match dates {
                Dates::At(times) => remarks.extend(with_slack(times, verify)?),
                Dates::VouchedFor { instants, links } => {
                    for &at in instants {
                        at_vouched(path, &certificates, links, at, verify(at))?;
                    }
                }
                Dates::Ignored => {
                    at_any_time(&certificates, verify)?;
                }
            }
        }
    }
    let kem =
        authentick_proto::antp::kem(suite).ok_or_else(|| format!("suite: {suite} is not known here"))?;
    let key = PublicKey::from_spki(kem, spki).map_err(|bad| format!("certificate key: {bad}"))?;
    Ok(Believed { key, by: anchor.name(), remarks, certificate: CertificateInfo::parse(leaf) })
}

/// The path of a chain to the authority that vouches for it, at a time at which all of it is good.
///
/// # Errors
/// The check that failed, in words; and if no authorities are asked, as what is pinned is on no path.
pub(crate) fn way(anchor: &Anchor, chain: &Chain<'_>, suite: Suite) -> Result<Vec<Link>, String> {
    let Anchor::Authorities(path) = anchor else {
        return Err("certificate: what is pinned has no authority to ask".to_owned());
    };
    let certificates: Vec<CertificateDer<'_>> = chain.certificates().map(CertificateDer::from).collect();
    let at = at_any_time(&certificates, |at| path.verify(&certificates, KeyUse::of(suite), at))?;
    path.links(&certificates, at).map_err(|bad| bad.to_string())
}

/// Whether a path that `verified` at an instant is good then, and the one that was asked about.
fn at_vouched(
    path: &PathVerifier,
    certificates: &[CertificateDer<'_>],
    links: &[Link],
    at: u64,
    verified: Result<(), BadPath>,
) -> Result<(), String> {
    let shown = humantime::format_rfc3339_seconds(instant(at));
    verified.map_err(|bad| format!("{bad} (judged at {shown}, the time that a responder vouches for)"))?;
    match path.links(certificates, at) {
        Ok(now) if now == links => Ok(()),
        Ok(_) => Err(format!("certificate: the path at {shown} is not the one that was asked about")),
        Err(bad) => Err(bad.to_string()),
    }
}

fn unchecked(what: &str) -> String {
    format!("the server has the pinned {what}; path, name, dates and usage are not checked")
}

/// Verifies at the time that counts, and if the dates alone are against it, at the ends of the slack.
fn with_slack(times: &Times, verify: impl Fn(u64) -> Result<(), BadPath>) -> Result<Vec<String>, String> {
    let (at, slack, remark) = times.judged_at();
    let mut remarks: Vec<String> = remark.into_iter().collect();
    let Err(bad) = verify(at) else { return Ok(remarks) };
    let (elsewhere, how) = match bad.check {
        CertificateCheck::Expired => (at.saturating_sub(slack), "has expired, but less than"),
        CertificateCheck::NotYetValid => (at.saturating_add(slack), "is not valid yet, but will be within"),
        _ => return Err(bad.to_string()),
    };
    let days = slack / 86_400;
    match verify(elsewhere) {
        Ok(()) if how.starts_with("has") => remarks.push(format!("a certificate {how} {days} days ago")),
        Ok(()) => remarks.push(format!("a certificate {how} {days} days")),
        Err(_) => return Err(bad.to_string()),
    }
    Ok(remarks)
}

/// Verifies at the beginning of each certificate in turn: if all are ever good together, then when the last begins.
/// Returns when that is, in Unix seconds.
fn at_any_time(
    certificates: &[CertificateDer<'_>],
    verify: impl Fn(u64) -> Result<(), BadPath>,
) -> Result<u64, String> {
    let mut last = None;
    for begin in certificates.iter().filter_map(|der| CertificateInfo::parse(der)).map(|info| info.not_before)
    {
        let begin = u64::try_from(begin).unwrap_or(0);
        match verify(begin) {
            Ok(()) => return Ok(begin),
            Err(bad) => last = Some(bad),
        }
    }
    Err(last.map_or_else(|| "certificate: the chain is broken".to_owned(), |bad| bad.to_string()))
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

    #[test]
    fn usual_certificate_at_a_usual_time_is_nothing_to_remark() {
        assert_eq!(with_slack(&USUAL, dates(NOW - DAY, NOW + DAY)), Ok(vec![]));
    }

    #[test]
    fn dates_have_two_days_of_slack_either_way_and_no_more() {
        for (from, until, remark) in [
            (0, NOW - DAY, Ok("expired")),
            (0, NOW - 3 * DAY, Err("expired")),
            (NOW + DAY, u64::MAX, Ok("not valid yet")),
            (NOW + 3 * DAY, u64::MAX, Err("not yet valid")),
        ] {
            match (with_slack(&USUAL, dates(from, until)), remark) {
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
        assert!(with_slack(&long_ago, &expired_in_2027).is_err());
        let remarks = with_slack(&long_ago, dates(NOW - 10 * DAY, NOW + DAY)).unwrap();
        assert!(remarks[0].contains("1970-01-01") && remarks[0].contains("vouched"), "{remarks:?}");
        let never_asked = Times { clock: 0, saved: 0, ..USUAL };
        let remarks = with_slack(&never_asked, dates(NOW - 40 * DAY, NOW + DAY)).unwrap();
        assert!(remarks[0].contains("was built"), "{remarks:?}");
    }

    #[test]
    fn time_set_by_hand_counts_exactly_and_alone() {
        let by_hand = Times { by_hand: Some(NOW - 400 * DAY), ..USUAL };
        let remarks = with_slack(&by_hand, dates(NOW - 401 * DAY, NOW - 399 * DAY)).unwrap();
        assert!(remarks.len() == 1 && remarks[0].contains("not at the time of"), "{remarks:?}");
        assert!(with_slack(&by_hand, dates(0, NOW - 401 * DAY)).is_err(), "without slack");
        assert!(with_slack(&by_hand, dates(NOW - 10 * DAY, NOW)).is_err());
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
        assert!(good_at(2015, 2016).unwrap_err().contains("expired"));
        assert!(at_any_time(&[CertificateDer::from(vec![0])], |_| Ok(())).is_err());
    }

    #[test]
    fn failures_that_are_not_of_dates_have_no_slack() {
        for check in [CertificateCheck::Name, CertificateCheck::Issuer, CertificateCheck::Usage] {
            let verify = |_| Err(BadPath { check, detail: "so".to_owned() });
            assert_eq!(with_slack(&USUAL, verify), Err(format!("{check}: so")));
        }
    }
}
