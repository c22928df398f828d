//! ANTP in the demo: keys and certificates of its own for two suites, a session with each, and what a load is told.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authentick_client::Learnt;
use authentick_client::antp::establish_by_clock;
use authentick_client::antp::phases::TimeAsk;
use authentick_crypto::Entropy;
use authentick_ke::tls::Roots;
use authentick_net::replace::replace;
use authentick_proto::antp::client::{Bounds, Session};
use authentick_report::AntpPhases;
use authentick_wire::antp::Suite;
use rcgen::{CertificateParams, KeyPair, RsaKeySize};

use super::{TIMEOUT, nanos};
use crate::exit::{Exit, Failure};
use crate::trust;

/// The paper's two suites, as the configuration and the command line call them.
const SUITES: [(&str, Suite); 2] = [("ecdh", Suite::P256), ("rsa", Suite::RSA_PKCS1)];

fn chain_file(folder: &Path, suite: &str) -> PathBuf {
    folder.join(format!("antp-{suite}-chain.pem"))
}

/// The suite that the load is under, as the command line calls it, and what its clients trust. One suite stands for
/// all: time requests are the same under each.
pub(super) fn loaded(folder: &Path) -> (&'static str, PathBuf) {
    let (name, _) = SUITES[0];
    (name, chain_file(folder, name))
}

/// Makes keys and certificates in `folder`; returns the part of the configuration that names them.
pub(super) fn configuration(folder: &Path) -> Result<String, Failure> {
    let internal =
        |error: rcgen::Error| Failure::new(Exit::Internal, format!("cannot make a certificate: {error}"));
    // Everything comes from one address here, and hundreds of clients at once.
    let mut text =
        "[antp]\nenable = true\nrate-limit = { negotiations-per-second = 0, exchanges-per-second = 0, \
                    times-per-second = 0, all-exchanges-per-second = 0 }\n"
            .to_owned();
    for (name, suite) in SUITES {
        let key = match suite {
            Suite::RSA_PKCS1 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
            _ => KeyPair::generate(),
        };
        let key = key.map_err(internal)?;
        let params = CertificateParams::new(vec!["localhost".to_owned()]).map_err(internal)?;
        let certificate = params.self_signed(&key).map_err(internal)?;
        let (chain, key_file) = (chain_file(folder, name), folder.join(format!("antp-{name}-key.pem")));
        fs::write(&chain, certificate.pem())?;
        replace(&key_file, key.serialize_pem().as_bytes(), None).map_err(|(_, error)| error)?;
        writeln!(text, "[antp.{name}]\ncertificate-chain = {chain:?}\nprivate-key = {key_file:?}")
            .expect("writing to a string cannot fail");
    }
    Ok(text)
}

/// A session, and how it asks for time.
pub(super) struct Asked {
    pub(super) session: Session,
    pub(super) ask: TimeAsk,
    /// Of the suite, and of the tag if it comes by itself.
    pub(super) name: String,
    /// What the session took to make; absent where it was made for another contestant.
    pub(super) phases: Option<AntpPhases>,
}

/// A session with each suite, and one more whose tags come by themselves.
pub(super) fn sessions(folder: &Path, server: SocketAddr) -> Result<Vec<Asked>, Failure> {
    let mut entropy = Entropy::from_system()?;
    let mut asked = Vec::new();
    for (name, suite) in SUITES {
        let (session, phases) = establish(&chain_file(folder, name), suite, server, &mut entropy)?;
        let ask = TimeAsk { is_separate: false, is_fresh: false, bounds: Bounds::WAN };
        asked.push(Asked { session, ask, name: suite.to_string(), phases: Some(phases) });
    }
    let first = &asked[0];
    let separate = Asked {
        session: first.session.clone(),
        ask: TimeAsk { is_separate: true, ..first.ask },
        name: format!("{}, separate tag", first.name),
        phases: None,
    };
    asked.push(separate);
    Ok(asked)
}

/// The first two phases, with every check.
fn establish(
    chain: &Path,
    suite: Suite,
    server: SocketAddr,
    entropy: &mut Entropy,
) -> Result<(Session, AntpPhases), Failure> {
    let internal = |problem: &str| Failure::new(Exit::Internal, format!("ANTP with {suite}: {problem}"));
    let roots = Roots::from_pem(&fs::read(chain)?).map_err(|problem| internal(&problem))?;
    let anchor = trust::authorities(&roots, "localhost")?;
    let mut learnt = Learnt::default();
    let established = establish_by_clock(server, suite, &anchor, entropy, TIMEOUT, &mut learnt)
        .map_err(|(_, why)| internal(&why.to_string()))?;
    let ns = |spent: Option<Duration>| spent.map_or(0, nanos);
    let times = learnt.times;
    let phases = AntpPhases {
        negotiation_ns: ns(times.negotiation),
        certificate_check_ns: ns(times.certificate_check),
        encapsulation_ns: ns(times.encapsulation),
        exchange_ns: ns(times.key_exchange),
    };
    Ok((established.session, phases))
}
