//! The generator's side of one measurement: real requests, and a check on every answer.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_crypto::mac::{MacAlgorithm, MacKey};
use authentick_ke::client::{Ask, dial};
use authentick_ke::tls::{Roots, client_config};
use authentick_proto::client::{Exchange, NtsSession};
use authentick_proto::symmetric::SymmetricKey;
use authentick_wire::ke::AeadId;
use rustls::pki_types::ServerName;

use super::Error;
use super::floor::{Load, generate};

/// Clients with keys of their own.
const CLIENT_COUNT: usize = 128;
/// Symmetric keys, of which each client has one.
const KEY_COUNT: u32 = 8;
const SOCKET_COUNT: usize = 8;
/// Requests in flight on each socket.
const WINDOW: usize = 64;
/// One answer in so many is checked down to its tag.
const SAMPLE: u64 = 64;

/// What is asked of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 48 octets that come back as they are.
    EchoPlain,
    /// As many octets as a request with a MAC of 16 octets has.
    EchoMac,
    /// As many octets as an NTS request has.
    EchoNts,
    /// NTP.
    Plain,
    /// NTP with AES-CMAC, RFC 8573: eight keys that the clients share.
    Cmac,
    /// NTS with AEAD 15.
    Nts15,
    /// NTS with AEAD 30.
    Nts30,
}

impl Kind {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Kind::EchoPlain => "48 octets",
            Kind::EchoMac => "68 octets",
            Kind::EchoNts => "224 octets",
            Kind::Plain => "plain",
            Kind::Cmac => "AES-CMAC",
            Kind::Nts15 => "NTS, AEAD 15",
            Kind::Nts30 => "NTS, AEAD 30",
        }
    }

    const fn aead(self) -> Option<AeadId> {
        match self {
            Kind::Nts15 => Some(AeadId::SIV_CMAC_256),
            Kind::Nts30 => Some(AeadId::AES_128_GCM_SIV),
            Kind::EchoPlain | Kind::EchoMac | Kind::EchoNts | Kind::Plain | Kind::Cmac => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let echoes = [Kind::EchoPlain, Kind::EchoMac, Kind::EchoNts];
        let all = [Kind::Plain, Kind::Cmac, Kind::Nts15, Kind::Nts30].into_iter().chain(echoes);
        all.clone().find(|kind| kind.to_string() == text).ok_or_else(|| format!("no load {text}").into())
    }
}

/// Where the server is.
pub(crate) struct Target {
    pub(crate) ntp: SocketAddr,
    pub(crate) ke_port: u16,
    pub(crate) ca: PathBuf,
}

/// The result that the generator's process hands to the bench.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    answered: u64,
    pub(crate) invalid: u64,
    seconds: f64,
}

impl Measured {
    pub(crate) fn rate(&self) -> f64 {
        self.answered as f64 / self.seconds
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.answered, self.invalid, self.seconds)
    }
}

impl FromStr for Measured {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            [answered, invalid, seconds] => Ok(Measured {
                answered: answered.parse()?,
                invalid: invalid.parse()?,
                seconds: seconds.parse()?,
            }),
            _ => Err("no measurement".into()),
        }
    }
}

/// Requests, and what is needed to check their answers.
struct Clients {
    requests: Vec<Vec<u8>>,
    /// By transmit timestamp.
    waiting: HashMap<[u8; 8], (Exchange, Secret)>,
}

/// What the answer to a request is checked with.
enum Secret {
    Nothing,
    Key(SymmetricKey),
    Session(Box<NtsSession>),
}

/// The symmetric key with this identifier.
fn symmetric_key(id: u32) -> SymmetricKey {
    let key = MacKey::new(MacAlgorithm::Cmac128, &[id as u8; 16]).expect("a key of AES-128 has 16 octets");
    SymmetricKey::new(id, key)
}

/// The lines of a key file, which chrony reads too.
pub(crate) fn key_file() -> String {
    (1..=KEY_COUNT).map(|id| format!("{id} AES128 HEX:{}\n", format!("{id:02x}").repeat(16))).collect()
}

pub(crate) fn run(kind: Kind, target: &Target, duration: Duration) -> Result<Measured, Error> {
    let load = match kind {
        Kind::EchoPlain => echoed(target, 48, duration)?,
        Kind::EchoMac => echoed(target, 68, duration)?,
        Kind::EchoNts => echoed(target, 224, duration)?,
        Kind::Plain | Kind::Cmac | Kind::Nts15 | Kind::Nts30 => {
            served(&Clients::new(kind, target)?, target, duration)?
        }
    };
    Ok(Measured { answered: load.answered, invalid: load.invalid, seconds: load.seconds })
}

fn echoed(target: &Target, size: usize, duration: Duration) -> std::io::Result<Load> {
    let requests: Vec<Vec<u8>> = (0..CLIENT_COUNT).map(|octet| vec![octet as u8; size]).collect();
    generate(target.ntp, &requests, SOCKET_COUNT, WINDOW, duration, |answer| answer.len() == size)
}

fn served(clients: &Clients, target: &Target, duration: Duration) -> std::io::Result<Load> {
    let mut count = 0u64;
    generate(target.ntp, &clients.requests, SOCKET_COUNT, WINDOW, duration, |answer| {
        count += 1;
        // Mode 4, and a stratum: no kiss.
        let plausible = answer.len() >= 48 && answer[0] & 7 == 4 && answer[1] > 0;
        plausible && (!count.is_multiple_of(SAMPLE) || clients.accept(answer))
    })
}

impl Clients {
    fn new(kind: Kind, target: &Target) -> Result<Self, Error> {
        let mut entropy = Entropy::from_system()?;
        let mut clients = Clients { requests: Vec::new(), waiting: HashMap::new() };
        for number in 0..CLIENT_COUNT as u32 {
            let mut request = vec![0; 2048];
            let (exchange, size, secret) = match kind.aead() {
                None if kind == Kind::Cmac => {
                    let key = symmetric_key(1 + number % KEY_COUNT);
                    let (exchange, size) = Exchange::mac(&key, &mut entropy, &mut request);
                    (exchange, size, Secret::Key(key))
                }
                None => {
                    let (exchange, size) = Exchange::plain(&mut entropy, &mut request);
                    (exchange, size, Secret::Nothing)
                }
                Some(aead) => {
                    let mut session = session(target, aead)?;
                    let (exchange, size) = Exchange::nts(&mut session, &mut entropy, &mut request)?;
                    (exchange, size, Secret::Session(Box::new(session)))
                }
            };
            request.truncate(size);
            let transmit = request[40..48].try_into()?;
            clients.waiting.insert(transmit, (exchange, secret));
            clients.requests.push(request);
        }
        Ok(clients)
    }

    /// Whether an answer passes every check of its client.
    fn accept(&self, answer: &mut [u8]) -> bool {
        let origin: [u8; 8] = answer[24..32].try_into().expect("eight octets");
        let Some((exchange, secret)) = self.waiting.get(&origin) else { return false };
        let mut exchange = exchange.clone();
        match secret {
            Secret::Nothing => exchange.receive(answer, None).is_ok(),
            Secret::Key(key) => exchange.receive_mac(answer, key).is_ok(),
            Secret::Session(session) => exchange.receive(answer, Some(&mut session.as_ref().clone())).is_ok(),
        }
    }
}

fn session(target: &Target, aead: AeadId) -> Result<NtsSession, Error> {
    let roots = Roots::from_pem(&std::fs::read(&target.ca)?)?;
    let ask =
        Ask { tls: client_config(roots), server_name: ServerName::try_from("ntp.test")?, aeads: vec![aead] };
    let address = SocketAddr::new(target.ntp.ip(), target.ke_port);
    Ok(dial(&ask, &[address], Duration::from_secs(5))?.established.session)
}
