//! Trust by OCSP with a nonce, for a host whose clock may be wrong: the authorities of a chain are asked whether its
//! certificates are good now, and their signed answers, which cannot be old, tell what time "now" is.
//!
//! First everything about the chain but its dates is checked, so that only what an authority has signed for this server
//! has any effect. Then the responder of each certificate on the path is asked, the leaf's first, over plain HTTP
//! (answers are signed). Every answer must be good. The dates of the path are then judged, without slack, at the time
//! of each answer, none of which may be before the lower bound of rule 2. The host's clock is not used.
//!
//! Deliberately absent: TLS, redirects and proxies on the way to a responder; stapled or cached answers.

use std::fmt;
use std::io::ErrorKind;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_ke::ocsp::{BadAnswer, Good, Question, RESPONSE_SIZE_MAX, responders};
use authentick_ke::tls::{CertificateInfo, Link};
use authentick_wire::antp::{Chain, Suite};
use thiserror::Error;
use ureq::http::{StatusCode, Uri};

use crate::error::{Fault, Why};
use crate::remark::Remark;
use crate::trust::{Anchor, Believed, Dates, Floor, Times, TrustedBy, Untrusted, judge, path_links, rfc3339};

/// How far a responder's clock may be behind that of a server that vouched for the time earlier.
const BEHIND_MAX_SECONDS: u64 = 300;

/// How responders are asked.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The responder for the leaf, and for certificates that name none; absent: the one that each certificate names.
    pub url: Option<&'a str>,
    /// For each responder.
    pub timeout: Duration,
}

/// What a responder vouched for.
#[derive(Clone, Debug)]
pub struct Vouch {
    /// The subject of the certificate.
    pub subject: String,
    /// The responder's URL.
    pub responder: String,
    /// Its answer.
    pub good: Good,
}

/// In readable form.
impl fmt::Display for Vouch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was good at {} ({})", self.subject, rfc3339(self.good.produced_at), self.responder)
    }
}

/// A URL that names no responder that can be asked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadUrl {
    /// It breaks the syntax; what is wrong with it.
    #[error("no URL ({0}); {WANTED}")]
    Syntax(String),
    /// It is for https.
    #[error("OCSP goes over plain http: answers are signed, and TLS would need a time of its own; {WANTED}")]
    Tls,
    /// It has another scheme, or names no host.
    #[error("no http:// URL; {WANTED}")]
    Scheme,
}

const WANTED: &str = "name one such as http://ocsp.example.net/";

/// Why the authorities do not vouch for a chain.
#[derive(Debug, Error)]
pub enum OcspError {
    /// The certificate of this subject names nobody to ask about it.
    #[error("ocsp responder: {0}: the certificate names none")]
    NoResponder(String),
    /// The certificate of this subject names this responder, which cannot be asked over plain HTTP.
    #[error("ocsp responder: {0}: the certificate names {1}, and plain http is needed")]
    NotPlain(String, String),
    /// The responder's answer is invalid, or does not say that the certificate is good.
    #[error("{bad} ({subject}, asked at {url})")]
    Answer {
        /// The subject of the certificate.
        subject: String,
        /// The responder.
        url: String,
        /// The check that failed.
        bad: BadAnswer,
    },
    /// The responder's time, in Unix seconds, has long passed.
    #[error(
        "ocsp time: the responder says that it is {}, which is before {}, when {} ({subject}, asked at {url})",
        rfc3339(*.at), rfc3339(.floor.at), .floor.reason
    )]
    Past {
        /// The subject of the certificate.
        subject: String,
        /// The responder.
        url: String,
        /// Its time.
        at: u64,
        /// The earliest that can be.
        floor: Floor,
    },
    /// The responder's HTTP status is not 200.
    #[error("ocsp responder {0}: it answers {1}")]
    Status(String, StatusCode),
    /// The answer is longer than any may be.
    #[error("ocsp response: longer than {RESPONSE_SIZE_MAX} octets (asked at {0})")]
    TooLong(String),
    /// The responder was silent for so long.
    #[error("ocsp responder {0}: no answer within {seconds} s", seconds = .1.as_secs_f64())]
    Timeout(String, Duration),
    /// Nothing listens where the responder should be.
    #[error("ocsp responder {0}: nothing listens there")]
    NoListener(String),
    /// The responder could not be asked.
    #[error("ocsp responder {0}: {1}")]
    Http(String, Box<ureq::Error>),
}

impl OcspError {
    /// Whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            OcspError::NoResponder(_) | OcspError::NotPlain(..) => Fault::Rejected,
            OcspError::Answer { .. } | OcspError::Past { .. } => Fault::Rejected,
            OcspError::Status(..) => Fault::Refused,
            OcspError::TooLong(_) => Fault::Malformed,
            OcspError::Timeout(..) | OcspError::NoListener(_) | OcspError::Http(..) => Fault::Silent,
        }
    }
}

/// Judges the chain of a server that chose `suite` by the answers of its authorities. Only the floor of `times` is
/// used.
///
/// # Errors
/// The check that failed, or the responder that could not be reached.
pub fn judge_now(
    anchor: &Anchor,
    times: &Times,
    ask: Ask<'_>,
    chain: &Chain<'_>,
    suite: Suite,
    entropy: &mut Entropy,
) -> Result<Believed, Why> {
    judge(anchor, &Dates::Ignored, chain, suite)?;
    let links = path_links(anchor, chain, suite)?;
    if links.is_empty() {
        return Err(Untrusted::Empty.into());
    }
    let mut vouches: Vec<Vouch> = Vec::new();
    for (index, link) in links.iter().enumerate() {
        vouches.push(vouch(link, index == 0, ask, times.floor(), entropy)?);
    }
    let instants: Vec<u64> = vouches.iter().map(|vouch| vouch.good.produced_at).collect();
    let dates = Dates::VouchedFor { instants, links };
    let mut believed = judge(anchor, &dates, chain, suite)?;
    believed.by = TrustedBy::AuthoritiesAndOcsp;
    believed.remarks.push(Remark::VouchedFor(vouches.clone()));
    Ok(Believed { vouches, ..believed })
}

/// Asks about one certificate.
fn vouch(
    link: &Link,
    is_leaf: bool,
    ask: Ask<'_>,
    floor: Floor,
    entropy: &mut Entropy,
) -> Result<Vouch, OcspError> {
    let subject = CertificateInfo::parse(&link.certificate).map_or_else(String::new, |info| info.subject);
    let url = responder(link, &subject, is_leaf, ask.url)?;
    let refused = |bad| OcspError::Answer { subject: subject.clone(), url: url.clone(), bad };
    let question = Question::new(link, entropy).map_err(refused)?;
    let response = exchange(&url, &question.request(), ask.timeout)?;
    let good = question.judge(&response).map_err(refused)?;
    if is_past(floor, good.produced_at) {
        return Err(OcspError::Past { subject, url, at: good.produced_at, floor });
    }
    Ok(Vouch { subject, responder: url, good })
}

/// Whether this time has passed already: the present is not before the floor.
const fn is_past(floor: Floor, produced_at: u64) -> bool {
    produced_at.saturating_add(BEHIND_MAX_SECONDS) < floor.at
}

/// The responder that a URL names, if it can be asked.
///
/// # Errors
/// What is wrong with it, and what would do.
pub fn check_url(text: &str) -> Result<String, BadUrl> {
    let uri: Uri =
        text.parse().map_err(|error: ureq::http::uri::InvalidUri| BadUrl::Syntax(error.to_string()))?;
    match uri.scheme_str() {
        Some("http") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(text.to_owned()),
        Some("https") => Err(BadUrl::Tls),
        _ => Err(BadUrl::Scheme),
    }
}

/// Whom to ask about the certificate of `subject`: for the leaf the responder that the user names; else the one that
/// the certificate names; else again the user's.
fn responder(link: &Link, subject: &str, is_leaf: bool, by_user: Option<&str>) -> Result<String, OcspError> {
    if let (true, Some(url)) = (is_leaf, by_user) {
        return Ok(url.to_owned());
    }
    let named = responders(&link.certificate);
    if let Some(url) = named.iter().find_map(|url| check_url(url).ok()) {
        return Ok(url);
    }
    by_user.map(str::to_owned).ok_or_else(|| match named.into_iter().next() {
        None => OcspError::NoResponder(subject.to_owned()),
        Some(url) => OcspError::NotPlain(subject.to_owned(), url),
    })
}

/// One request over HTTP. RFC 6960 appendix A.
fn exchange(url: &str, request: &[u8], timeout: Duration) -> Result<Vec<u8>, OcspError> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .build()
        .into();
    let mut response = agent
        .post(url)
        .header("Content-Type", "application/ocsp-request")
        .header("Accept", "application/ocsp-response")
        .send(request)
        .map_err(|error| unanswered(url, timeout, error))?;
    if response.status() != StatusCode::OK {
        return Err(OcspError::Status(url.to_owned(), response.status()));
    }
    let body = response.body_mut().with_config().limit(RESPONSE_SIZE_MAX as u64 + 1).read_to_vec();
    body.map_err(|error| unanswered(url, timeout, error))
}

fn unanswered(url: &str, timeout: Duration, error: ureq::Error) -> OcspError {
    let url = url.to_owned();
    match error {
        ureq::Error::BodyExceedsLimit(_) => OcspError::TooLong(url),
        ureq::Error::Timeout(_) => OcspError::Timeout(url, timeout),
        ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => OcspError::NoListener(url),
        error => OcspError::Http(url, Box::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use authentick_ke::tls::{Issuer, Roots};
    use authentick_lab::ocsp::{OcspSigner, Reply, Responder};
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use rustls::pki_types::{CertificateDer, ServerName};

    use super::*;

    /// 2030-06-01.
    const NOW: u64 = 1_906_502_400;
    const YEAR: u64 = 365 * 86_400;

    /// A server two steps below the root; the certificate between is good in 2030, the leaf's from 2020 to 2040.
    struct Below {
        anchor: Anchor,
        chain: Vec<u8>,
        root: Responder,
        between: Responder,
    }

    impl Below {
        /// The responders of the root and of the authority below tell these times. The certificate between names its
        /// responder or not.
        fn new(root_says: u64, between_says: u64, is_named: bool) -> Self {
            let params = |name: &str, from, until| {
                let mut params = CertificateParams::new(vec!["ntp.test".to_owned()]).unwrap();
                params.distinguished_name.push(rcgen::DnType::CommonName, name);
                params.not_before = rcgen::date_time_ymd(from, 1, 1);
                params.not_after = rcgen::date_time_ymd(until, 1, 1);
                params
            };
            let authority = |name, from, until| {
                let mut params = params(name, from, until);
                params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
                params
            };
            let responder = |issuer: &CertifiedIssuer<'static, KeyPair>, says: u64| {
                let signer = OcspSigner::new(issuer.der(), issuer.key());
                Responder::start(move |request| Reply::Octets(signer.answer(request, says)))
            };
            let key = || KeyPair::generate().unwrap();
            let root = CertifiedIssuer::self_signed(authority("root", 2000, 2090), key()).unwrap();
            let of_root = responder(&root, root_says);
            let mut between = authority("between", 2030, 2031);
            if is_named {
                between.custom_extensions.push(authentick_lab::ocsp::access(&of_root.url()));
            }
            let between = CertifiedIssuer::signed_by(between, key(), &root).unwrap();
            let of_between = responder(&between, between_says);
            let mut leaf = params("leaf", 2020, 2040);
            leaf.custom_extensions.push(authentick_lab::ocsp::access(&of_between.url()));
            let leaf = leaf.signed_by(&key(), &between).unwrap();
            let mut chain = Vec::new();
            for certificate in [leaf.der(), between.der()] {
                chain.extend_from_slice(&u16::try_from(certificate.len()).unwrap().to_be_bytes());
                chain.extend_from_slice(certificate);
            }
            let roots = Roots::from_pem(root.pem().as_bytes()).unwrap();
            let anchor = Anchor::authorities(&roots, ServerName::try_from("ntp.test").unwrap()).unwrap();
            Below { anchor, chain, root: of_root, between: of_between }
        }

        fn judge(&self, url: Option<&str>) -> Result<Believed, Why> {
            let times = Times { clock: 0, built: 0, saved: 0, by_hand: None };
            let chain = Chain::parse(&self.chain).unwrap();
            let ask = Ask { url, timeout: Duration::from_secs(5) };
            judge_now(&self.anchor, &times, ask, &chain, Suite::P256, &mut Entropy::from_seed(1))
        }
    }

    #[test]
    fn each_certificate_but_the_root_is_asked_about_at_its_own_authority() {
        let below = Below::new(NOW + 60, NOW, true);
        let believed = below.judge(None).unwrap();
        let asked: Vec<_> =
            believed.vouches.iter().map(|vouch| (vouch.subject.as_str(), &vouch.responder)).collect();
        assert_eq!(asked, [("CN=leaf", &below.between.url()), ("CN=between", &below.root.url())]);
        assert_eq!(believed.vouches[0].good.produced_at, NOW);
        assert_eq!(believed.by, TrustedBy::AuthoritiesAndOcsp);
        let remark = believed.remarks.iter().map(Remark::to_string).collect::<String>();
        assert!(remark.contains("CN=leaf was good at 2030-06-01T00:00:00Z"), "{remark}");
        // A certificate that names nobody is asked about where the user says, here the wrong place.
        let unnamed = Below::new(NOW, NOW, false);
        let problem = unnamed.judge(None).unwrap_err();
        assert!(problem.to_string().contains("CN=between: the certificate names none"), "{problem:?}");
        let problem = unnamed.judge(Some(&unnamed.between.url())).unwrap_err();
        let message = problem.to_string();
        assert!(message.starts_with("ocsp signer: ") && message.contains("CN=between"), "{message}");
        assert_eq!(problem.fault(), Fault::Rejected);
    }

    /// Who has the key of an authority that is over makes it say that it is not; the root's answer tells the time.
    #[test]
    fn dates_of_the_whole_path_are_judged_at_the_time_of_each_answer() {
        for (root_says, between_says, part) in
            [(NOW + YEAR, NOW, "expired"), (NOW, NOW + YEAR, "expired"), (NOW - YEAR, NOW, "not yet valid")]
        {
            let problem = Below::new(root_says, between_says, true).judge(None).unwrap_err();
            assert!(problem.to_string().contains(part), "{problem:?}");
            assert_eq!(problem.fault(), Fault::Rejected);
        }
    }

    #[test]
    fn responder_is_asked_over_plain_http_alone() {
        for url in ["http://ocsp.test", "http://127.0.0.1:8080/a/b", "http://[::1]:80/"] {
            assert_eq!(check_url(url), Ok(url.to_owned()));
        }
        assert!(check_url("https://ocsp.test/").unwrap_err().to_string().contains("plain http"));
        for text in ["ocsp.test", "ldap://ocsp.test/", "http://", "", "/path", "http:// /"] {
            assert!(check_url(text).unwrap_err().to_string().contains("http://ocsp.example.net/"), "{text}");
        }
    }

    #[test]
    fn user_names_the_responder_of_the_leaf_and_of_certificates_that_name_none() {
        let issuer = Issuer { name: vec![], key_info: vec![] };
        let link = |url: Option<&str>| {
            let mut params = CertificateParams::new(vec!["ntp.test".to_owned()]).unwrap();
            params.custom_extensions.extend(url.map(authentick_lab::ocsp::access));
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            Link { certificate: CertificateDer::from(certificate.der().to_vec()), issuer: issuer.clone() }
        };
        let (own, users) = ("http://own.test/", "http://users.test/");
        let named = link(Some(own));
        let asked = |link: &Link, is_leaf, by_user| responder(link, "CN=ntp.test", is_leaf, by_user);
        assert_eq!(asked(&named, true, None).unwrap(), own);
        assert_eq!(asked(&named, true, Some(users)).unwrap(), users);
        assert_eq!(asked(&named, false, Some(users)).unwrap(), own);
        assert_eq!(asked(&link(None), false, Some(users)).unwrap(), users);
        for (url, part) in [(None, "names none"), (Some("https://own.test/"), "plain http is needed")] {
            let problem = asked(&link(url), true, None).unwrap_err().to_string();
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn responder_may_be_minutes_behind_what_is_known_and_the_clock_does_not_count() {
        let now = 1_893_456_000;
        let times = Times { clock: 0, built: now - 86_400, saved: now, by_hand: None };
        for (produced_at, is_good) in [(now, true), (now + 900_000_000, true), (now - 300, true)] {
            assert_eq!(!is_past(times.floor(), produced_at), is_good, "{produced_at}");
        }
        let problem = |floor: Floor, at: u64| {
            assert!(is_past(floor, at));
            OcspError::Past { subject: String::new(), url: String::new(), at, floor }.to_string()
        };
        let vouched = problem(times.floor(), now - 301);
        assert!(vouched.contains("2029-12-31T23:54:59Z") && vouched.contains("vouched"), "{vouched}");
        let built = problem(Times { saved: 0, ..times }.floor(), 0);
        assert!(built.contains("1970-01-01") && built.contains("was built"), "{built}");
    }
}
