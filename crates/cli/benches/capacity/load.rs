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
use authentick_net::clock;
use authentick_proto::antp::client::{Event, KeyExchange, Session, TimeExchange};
use authentick_proto::client::{Exchange, NtsSession};
use authentick_proto::symmetric::SymmetricKey;
use authentick_wire::antp::{KeyResponse, Suite, TimeResponse};
use authentick_wire::ke::AeadId;
use authentick_wire::limits::HEADER_SIZE;
use rustls::pki_types::ServerName;

use super::floor::{Flow, Load, generate};
use super::{Error, antp};

/// Clients with keys of their own.
const CLIENT_COUNT: usize = 128;
/// Symmetric keys, of which each client has one.
const KEY_COUNT: u32 = 8;
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
    /// As many octets as a time request of ANTP has.
    EchoAntp,
    /// NTP.
    Plain,
    /// NTP with AES-CMAC, RFC 8573: eight keys that the clients share.
    Cmac,
    /// NTS with AEAD 15.
    Nts15,
    /// NTS with AEAD 30.
    Nts30,
    /// ANTP's time requests.
    Antp,
    /// ANTP's key exchanges with ECDH on P-256.
    AntpEcdh,
    /// ANTP's key exchanges with RSA.
    AntpRsa,
}

impl Kind {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Kind::EchoPlain => "48 octets",
            Kind::EchoMac => "68 octets",
            Kind::EchoNts => "224 octets",
            Kind::EchoAntp => "152 octets",
            Kind::Plain => "plain",
            Kind::Cmac => "AES-CMAC",
            Kind::Nts15 => "NTS, AEAD 15",
            Kind::Nts30 => "NTS, AEAD 30",
            Kind::Antp => "ANTP",
            Kind::AntpEcdh => "ANTP, ECDH",
            Kind::AntpRsa => "ANTP, RSA",
        }
    }

    /// Octets of every answer, where a refusal could be told by its size alone.
    const fn answer_size(self) -> Option<usize> {
        match self {
            Kind::Antp => Some(HEADER_SIZE + TimeResponse::field_size(false)),
            Kind::AntpEcdh | Kind::AntpRsa => Some(HEADER_SIZE + KeyResponse::FIELD_SIZE),
            Kind::EchoPlain
            | Kind::EchoMac
            | Kind::EchoNts
            | Kind::EchoAntp
            | Kind::Plain
            | Kind::Cmac
            | Kind::Nts15
            | Kind::Nts30 => None,
        }
    }

    /// A server refuses key exchanges for which its queue has no room: what waits there is not lost, however long.
    const fn flow(self) -> Flow {
        match self {
            Kind::AntpEcdh | Kind::AntpRsa => Flow { socket_count: 8, window: 8, patience: Duration::MAX },
            Kind::EchoPlain
            | Kind::EchoMac
            | Kind::EchoNts
            | Kind::EchoAntp
            | Kind::Plain
            | Kind::Cmac
            | Kind::Nts15
            | Kind::Nts30
            | Kind::Antp => Flow { socket_count: 8, window: 64, patience: Duration::from_millis(20) },
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
        let echoes = [Kind::EchoPlain, Kind::EchoMac, Kind::EchoNts, Kind::EchoAntp];
        let antp = [Kind::Antp, Kind::AntpEcdh, Kind::AntpRsa];
        let all = [Kind::Plain, Kind::Cmac, Kind::Nts15, Kind::Nts30].into_iter().chain(echoes).chain(antp);
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
    pub(crate) sent: u64,
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
        write!(f, "{} {} {} {}", self.sent, self.answered, self.invalid, self.seconds)
    }
}

impl FromStr for Measured {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            [sent, answered, invalid, seconds] => Ok(Measured {
                sent: sent.parse()?,
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
    waiting: HashMap<[u8; 8], Waiting>,
}

/// What the answer to a request is checked with.
enum Waiting {
    Plain(Exchange),
    Mac(Exchange, SymmetricKey),
    Nts(Exchange, Box<NtsSession>),
    Time(Box<TimeExchange>, Box<Session>),
    Key(Box<KeyExchange>),
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

/// What the generator's process does: measures, and prints the result.
pub(crate) fn measure([kind, ntp, ke_port, ca, milliseconds]: [&str; 5]) -> Result<(), Error> {
    let target = Target { ntp: ntp.parse()?, ke_port: ke_port.parse()?, ca: ca.into() };
    println!("{}", run(kind.parse()?, &target, Duration::from_millis(milliseconds.parse()?))?);
    Ok(())
}

fn run(kind: Kind, target: &Target, duration: Duration) -> Result<Measured, Error> {
    let load = match kind {
        Kind::EchoPlain => echoed(kind, target, 48, duration)?,
        Kind::EchoMac => echoed(kind, target, 68, duration)?,
        Kind::EchoNts => echoed(kind, target, 224, duration)?,
        Kind::EchoAntp => echoed(kind, target, 152, duration)?,
        Kind::Plain
        | Kind::Cmac
        | Kind::Nts15
        | Kind::Nts30
        | Kind::Antp
        | Kind::AntpEcdh
        | Kind::AntpRsa => served(&Clients::new(kind, target)?, kind, target, duration)?,
    };
    let Load { sent, answered, invalid, seconds } = load;
    Ok(Measured { sent, answered, invalid, seconds })
}

fn echoed(kind: Kind, target: &Target, size: usize, duration: Duration) -> std::io::Result<Load> {
    let requests: Vec<Vec<u8>> = (0..CLIENT_COUNT).map(|octet| vec![octet as u8; size]).collect();
    generate(target.ntp, &requests, kind.flow(), duration, |answer| answer.len() == size)
}

fn served(clients: &Clients, kind: Kind, target: &Target, duration: Duration) -> std::io::Result<Load> {
    let mut count = 0u64;
    generate(target.ntp, &clients.requests, kind.flow(), duration, |answer| {
        count += 1;
        // Mode 4, and a stratum: no kiss.
        let plausible = answer.len() >= HEADER_SIZE
            && answer[0] & 7 == 4
            && answer[1] > 0
            && kind.answer_size().is_none_or(|size| answer.len() == size);
        plausible && (!count.is_multiple_of(SAMPLE) || clients.accept(answer))
    })
}

impl Clients {
    fn new(kind: Kind, target: &Target) -> Result<Self, Error> {
        let made: Vec<(Vec<u8>, Waiting)> = match kind {
            Kind::Antp => antp::times(target, CLIENT_COUNT)?
                .into_iter()
                .map(|(request, exchange, session)| {
                    (request, Waiting::Time(Box::new(exchange), Box::new(session)))
                })
                .collect(),
            Kind::AntpEcdh | Kind::AntpRsa => {
                let suite = if kind == Kind::AntpRsa { Suite::RSA_PKCS1 } else { Suite::P256 };
                let made = antp::exchanges(target, suite, CLIENT_COUNT)?.into_iter();
                made.map(|(request, exchange)| (request, Waiting::Key(Box::new(exchange)))).collect()
            }
            Kind::EchoPlain
            | Kind::EchoMac
            | Kind::EchoNts
            | Kind::EchoAntp
            | Kind::Plain
            | Kind::Cmac
            | Kind::Nts15
            | Kind::Nts30 => {
                let mut entropy = Entropy::from_system()?;
                let numbers = 0..CLIENT_COUNT as u32;
                numbers.map(|number| client(kind, target, number, &mut entropy)).collect::<Result<_, _>>()?
            }
        };
        let mut clients = Clients { requests: Vec::new(), waiting: HashMap::new() };
        for (request, waiting) in made {
            clients.waiting.insert(request[40..48].try_into()?, waiting);
            clients.requests.push(request);
        }
        Ok(clients)
    }

    /// Whether an answer passes every check of its client.
    fn accept(&self, answer: &mut [u8]) -> bool {
        let origin: [u8; 8] = answer[24..32].try_into().expect("eight octets");
        match self.waiting.get(&origin) {
            None => false,
            Some(Waiting::Plain(exchange)) => exchange.clone().receive(answer, None).is_ok(),
            Some(Waiting::Mac(exchange, key)) => exchange.clone().receive_mac(answer, key).is_ok(),
            Some(Waiting::Nts(exchange, session)) => {
                exchange.clone().receive(answer, Some(&mut session.as_ref().clone())).is_ok()
            }
            Some(Waiting::Time(exchange, session)) => {
                let (mut exchange, mut session) = (exchange.as_ref().clone(), session.as_ref().clone());
                let event = exchange.receive(answer, clock::now(), &mut session);
                matches!(event, Ok(Event::Accepted(_)))
            }
            Some(Waiting::Key(exchange)) => exchange.as_ref().clone().receive(answer).is_ok(),
        }
    }
}

/// The request of a client of NTP, with or without a MAC or NTS.
fn client(
    kind: Kind,
    target: &Target,
    number: u32,
    entropy: &mut Entropy,
) -> Result<(Vec<u8>, Waiting), Error> {
    let mut request = vec![0; 2048];
    let (size, waiting) = match kind {
        Kind::Cmac => {
            let key = symmetric_key(1 + number % KEY_COUNT);
            let (exchange, size) = Exchange::mac(&key, entropy, &mut request);
            (size, Waiting::Mac(exchange, key))
        }
        Kind::Nts15 | Kind::Nts30 => {
            let aead = if kind == Kind::Nts15 { AeadId::SIV_CMAC_256 } else { AeadId::AES_128_GCM_SIV };
            let mut session = session(target, aead)?;
            let (exchange, size) = Exchange::nts(&mut session, entropy, &mut request)?;
            (size, Waiting::Nts(exchange, Box::new(session)))
        }
        Kind::Plain => {
            let (exchange, size) = Exchange::plain(entropy, &mut request);
            (size, Waiting::Plain(exchange))
        }
        Kind::EchoPlain
        | Kind::EchoMac
        | Kind::EchoNts
        | Kind::EchoAntp
        | Kind::Antp
        | Kind::AntpEcdh
        | Kind::AntpRsa => return Err(format!("{kind} is no request of NTP's own").into()),
    };
    request.truncate(size);
    Ok((request, waiting))
}

fn session(target: &Target, aead: AeadId) -> Result<NtsSession, Error> {
    let roots = Roots::from_pem(&std::fs::read(&target.ca)?)?;
    let ask =
        Ask { tls: client_config(roots), server_name: ServerName::try_from("ntp.test")?, aeads: vec![aead] };
    let address = SocketAddr::new(target.ntp.ip(), target.ke_port);
    Ok(dial(&ask, &[address], Duration::from_secs(5))?.established.session)
}
