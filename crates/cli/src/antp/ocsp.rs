//! Trust by OCSP with a nonce, for a host whose clock may be wrong: the authorities of a chain are asked whether its
//! certificates are good now, and their signed answers, which cannot be old, tell when "now" is.
//!
//! First all of the chain is checked but its dates, so that only what an authority has signed for this server has any
//! effect. Then the responder of each certificate on the path is asked, the leaf's first, over plain HTTP (answers are
//! signed). Every answer must be good; the dates of the path are then judged, without slack, at the instant of each of
//! them, none of which may lie before the lower bound of rule 2. The host's clock has no say.
//!
//! What is absent: TLS, redirects and proxies on the way to a responder; answers stapled or kept from before.

use std::io::ErrorKind;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_ke::ocsp::{Question, RESPONSE_SIZE_MAX, Signer, responders};
use authentick_ke::tls::{CertificateInfo, Link};
use authentick_wire::antp::{Chain, Suite};
use serde::Serialize;
use ureq::http::Uri;

use super::store::instant;
use super::trust::{Anchor, Believed, Dates, Times, judge, way};
use crate::exit::{Exit, Failure};

/// How far a responder's clock may be behind that of a server which vouched for the time before.
const BEHIND_MAX_SECONDS: u64 = 300;

/// How responders are asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// The leaf's responder, and that of certificates that name none; absent: where the certificates say.
    pub(crate) url: Option<&'a str>,
    /// For each responder.
    pub(crate) timeout: Duration,
}

/// What a responder vouched for, in the words of the report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Vouch {
    /// Whom the certificate names.
    subject: String,
    responder: String,
    /// `issuer` or `delegate`.
    signed_by: &'static str,
    produced_at: String,
    this_update: String,
    next_update: Option<String>,
}

impl Vouch {
    /// For people.
    pub(crate) fn line(&self) -> String {
        format!("{} was good at {} ({})", self.subject, self.produced_at, self.responder)
    }
}

/// A chain that is believed by OCSP.
#[derive(Debug)]
pub(crate) struct Present {
    pub(crate) believed: Believed,
    /// One for each certificate of the path, the leaf's first.
    pub(crate) vouches: Vec<Vouch>,
    /// What time it is, by the leaf's responder, in Unix seconds.
    pub(crate) time: u64,
}

/// Judges the chain of a server that chose `suite` by the answers of its authorities. Of `times`, the floor counts.
///
/// # Errors
/// The check that failed, or the responder that could not be reached.
pub(crate) fn judge_now(
    anchor: &Anchor,
    times: &Times,
    ask: Ask<'_>,
    chain: &Chain<'_>,
    suite: Suite,
    entropy: &mut Entropy,
) -> Result<Present, Failure> {
    judge(anchor, &Dates::Ignored, chain, suite).map_err(rejected)?;
    let links = way(anchor, chain, suite).map_err(rejected)?;
    let mut vouches = Vec::new();
    let mut instants = Vec::new();
    for (index, link) in links.iter().enumerate() {
        let subject = CertificateInfo::parse(&link.certificate).map_or_else(String::new, |info| info.subject);
        let url = responder(link, index == 0, ask.url)
            .map_err(|problem| rejected(format!("ocsp responder: {subject}: {problem}")))?;
        let refused =
            |problem: &dyn std::fmt::Display| rejected(format!("{problem} ({subject}, asked at {url})"));
        let question = Question::new(link, entropy).map_err(|bad| refused(&bad))?;
        let response = exchange(&url, &question.request(), ask.timeout)?;
        let good = question.judge(&response).map_err(|bad| refused(&bad))?;
        check_floor(times, good.produced_at).map_err(|problem| refused(&problem))?;
        instants.push(good.produced_at);
        vouches.push(Vouch {
            subject,
            responder: url,
            signed_by: match good.signer {
                Signer::Issuer => "issuer",
                Signer::Delegate => "delegate",
            },
            produced_at: shown(good.produced_at),
            this_update: shown(good.this_update),
            next_update: good.next_update.map(shown),
        });
    }
    let time = *instants.first().ok_or_else(|| rejected("certificate: the chain is empty".to_owned()))?;
    let dates = Dates::VouchedFor { instants, links };
    let mut believed = judge(anchor, &dates, chain, suite).map_err(rejected)?;
    believed.by = "authorities and OCSP";
    believed.remarks.push(format!(
        "{}, by OCSP with a nonce: certificate dates are judged at that time, not at the time of this host's clock",
        vouches.iter().map(Vouch::line).collect::<Vec<_>>().join("; ")
    ));
    Ok(Present { believed, vouches, time })
}

/// The responder that a URL names, if it can be asked.
///
/// # Errors
/// What is wrong with it, and what would do.
pub(crate) fn check_url(text: &str) -> Result<String, String> {
    let wanted = "name one such as http://ocsp.example.net/";
    let uri: Uri = text.parse().map_err(|error| format!("no URL ({error}); {wanted}"))?;
    match uri.scheme_str() {
        Some("http") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(text.to_owned()),
        Some("https") => Err(format!(
            "OCSP goes over plain http: answers are signed, and TLS would need a time of its own; {wanted}"
        )),
        _ => Err(format!("no http:// URL; {wanted}")),
    }
}

/// Whom to ask about a certificate: for the leaf whom the user names, else whom the certificate names, else again whom
/// the user names.
fn responder(link: &Link, is_leaf: bool, by_user: Option<&str>) -> Result<String, String> {
    if let (true, Some(url)) = (is_leaf, by_user) {
        return Ok(url.to_owned());
    }
    let named = responders(&link.certificate);
    if let Some(url) = named.iter().find_map(|url| check_url(url).ok()) {
        return Ok(url);
    }
    by_user.map(str::to_owned).ok_or_else(|| match named.first() {
        None => "the certificate names none; name one with --ocsp URL".to_owned(),
        Some(url) => {
            format!("the certificate names {url}, and plain http is needed; name one with --ocsp URL")
        }
    })
}

/// One request over HTTP. RFC 6960 appendix A.
fn exchange(url: &str, request: &[u8], timeout: Duration) -> Result<Vec<u8>, Failure> {
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
        .map_err(|error| unanswered(url, timeout, &error))?;
    if response.status() != 200 {
        let message = format!("ocsp responder {url}: it answers {}", response.status());
        return Err(Failure::new(Exit::Unavailable, message));
    }
    let body = response.body_mut().with_config().limit(RESPONSE_SIZE_MAX as u64 + 1).read_to_vec();
    body.map_err(|error| unanswered(url, timeout, &error))
}

fn unanswered(url: &str, timeout: Duration, error: &ureq::Error) -> Failure {
    let silence = |problem: &str| Failure::new(Exit::Silence, format!("ocsp responder {url}: {problem}"));
    match error {
        ureq::Error::BodyExceedsLimit(_) => {
            rejected(format!("ocsp response: longer than {RESPONSE_SIZE_MAX} octets (asked at {url})"))
        }
        ureq::Error::Timeout(_) => silence(&format!("no answer within {} s", timeout.as_secs_f64())),
        ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
            silence("nothing listens there; name one with --ocsp URL")
        }
        _ => silence(&error.to_string()),
    }
}

/// Whether it can be that late already: the present is not before what is known.
fn check_floor(times: &Times, produced_at: u64) -> Result<(), String> {
    let (floor, why) = times.floor_and_reason();
    if produced_at.saturating_add(BEHIND_MAX_SECONDS) >= floor {
        return Ok(());
    }
    Err(format!(
        "ocsp time: the responder says that it is {}, which is before {}, when {why}",
        shown(produced_at),
        shown(floor)
    ))
}

fn shown(unix_seconds: u64) -> String {
    humantime::format_rfc3339_seconds(instant(unix_seconds)).to_string()
}

fn rejected(problem: String) -> Failure {
    Failure::new(Exit::Authentication, problem)
}

#[cfg(test)]
mod tests {
    use authentick_ke::tls::{Issuer, Roots};
    use authentick_lab::ocsp::{OcspSigner, Reply, Responder};
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use rustls::pki_types::CertificateDer;

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
            let anchor = Anchor::authorities(&roots, "ntp.test").unwrap();
            Below { anchor, chain, root: of_root, between: of_between }
        }

        fn judge(&self, url: Option<&str>) -> Result<Present, Failure> {
            let times = Times { clock: 0, built: 0, saved: 0, by_hand: None };
            let chain = Chain::parse(&self.chain).unwrap();
            let ask = Ask { url, timeout: Duration::from_secs(5) };
            judge_now(&self.anchor, &times, ask, &chain, Suite::P256, &mut Entropy::from_seed(1))
        }
    }

    #[test]
    fn each_certificate_but_the_root_is_asked_about_at_its_own_authority() {
        let below = Below::new(NOW + 60, NOW, true);
        let present = below.judge(None).unwrap();
        let asked: Vec<_> =
            present.vouches.iter().map(|vouch| (vouch.subject.as_str(), &vouch.responder)).collect();
        assert_eq!(asked, [("CN=leaf", &below.between.url()), ("CN=between", &below.root.url())]);
        assert_eq!((present.time, present.believed.by), (NOW, "authorities and OCSP"));
        let remark = present.believed.remarks.concat();
        assert!(remark.contains("CN=leaf was good at 2030-06-01T00:00:00Z"), "{remark}");
        // A certificate that names nobody is asked about where the user says, here the wrong place.
        let unnamed = Below::new(NOW, NOW, false);
        let problem = unnamed.judge(None).unwrap_err();
        assert!(problem.message.contains("CN=between: the certificate names none"), "{problem:?}");
        let problem = unnamed.judge(Some(&unnamed.between.url())).unwrap_err();
        assert!(problem.message.starts_with("ocsp signer: ") && problem.message.contains("CN=between"));
        assert_eq!(problem.exit, Exit::Authentication);
    }

    /// Who has the key of an authority that is over makes it say that it is not; the root's answer tells the time.
    #[test]
    fn dates_of_the_whole_path_are_judged_at_the_time_of_each_answer() {
        for (root_says, between_says, part) in
            [(NOW + YEAR, NOW, "expired"), (NOW, NOW + YEAR, "expired"), (NOW - YEAR, NOW, "not yet valid")]
        {
            let problem = Below::new(root_says, between_says, true).judge(None).unwrap_err();
            assert!(problem.message.contains(part), "{problem:?}");
            assert_eq!(problem.exit, Exit::Authentication);
        }
    }

    #[test]
    fn responder_is_asked_over_plain_http_alone() {
        for url in ["http://ocsp.test", "http://127.0.0.1:8080/a/b", "http://[::1]:80/"] {
            assert_eq!(check_url(url).as_deref(), Ok(url));
        }
        assert!(check_url("https://ocsp.test/").unwrap_err().contains("plain http"));
        for text in ["ocsp.test", "ldap://ocsp.test/", "http://", "", "/path", "http:// /"] {
            assert!(check_url(text).unwrap_err().contains("http://ocsp.example.net/"), "{text}");
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
        assert_eq!(responder(&named, true, None).as_deref(), Ok(own));
        assert_eq!(responder(&named, true, Some(users)).as_deref(), Ok(users));
        assert_eq!(responder(&named, false, Some(users)).as_deref(), Ok(own));
        assert_eq!(responder(&link(None), false, Some(users)).as_deref(), Ok(users));
        for (url, part) in [(None, "names none"), (Some("https://own.test/"), "plain http is needed")] {
            let problem = responder(&link(url), true, None).unwrap_err();
            assert!(problem.contains(part) && problem.contains("--ocsp URL"), "{problem}");
        }
    }

    #[test]
    fn responder_may_be_minutes_behind_what_is_known_and_the_clock_does_not_count() {
        let now = 1_893_456_000;
        let times = Times { clock: 0, built: now - 86_400, saved: now, by_hand: None };
        for (produced_at, is_good) in [(now, true), (now + 900_000_000, true), (now - 300, true)] {
            assert_eq!(check_floor(&times, produced_at).is_ok(), is_good, "{produced_at}");
        }
        let problem = check_floor(&times, now - 301).unwrap_err();
        assert!(problem.contains("2029-12-31T23:54:59Z") && problem.contains("vouched"), "{problem}");
        let problem = check_floor(&Times { saved: 0, ..times }, 0).unwrap_err();
        assert!(problem.contains("1970-01-01") && problem.contains("was built"), "{problem}");
    }
}
