//! One client of the world: what it asks with, and what it makes of a datagram.

use std::collections::HashSet;
use std::net::SocketAddr;

use authentick_crypto::{Algorithm, Entropy};
use authentick_proto::antp::client::{self as antp, Bounds, Wanted};
use authentick_proto::client::{Check, Exchange, NoCookie, NtsSession, Sample};
use authentick_proto::symmetric::SymmetricKey;
use authentick_wire::antp::Suite;
use authentick_wire::time::NtpTime;

use crate::antp::{AntpClient, Heard};
use crate::{Clock, Server, TrueTime};

/// How a client is to authenticate its server.
#[derive(Debug)]
pub enum Scheme {
    /// Not at all.
    Plain,
    /// With a key that the server has too.
    Mac(SymmetricKey),
    /// With NTS, under keys of its own.
    Nts(Algorithm),
    /// With ANTP: the suite that it offers, whose published key it trusts, and what it asks for beside time.
    Antp(Suite, Wanted),
}

impl Credentials {
    /// What a key exchange with `server` or a published key gives a client of `scheme`.
    pub(crate) fn new(scheme: Scheme, server: &mut Server) -> Self {
        match scheme {
            Scheme::Plain => Credentials::Plain,
            Scheme::Mac(key) => Credentials::Mac(key),
            Scheme::Nts(algorithm) => {
                Credentials::Nts { session: Box::new(server.exchange_keys(algorithm)), spent: HashSet::new() }
            }
            Scheme::Antp(suite, wanted) => {
                Credentials::Antp(Box::new(AntpClient::new(&[suite], wanted, Bounds::WAN)))
            }
        }
    }
}

/// A client; see [`crate::World::add_client`].
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) clock: Clock,
    credentials: Credentials,
    /// The last request that waits for an answer, and when it was sent; of ANTP it is in the credentials.
    waiting: Option<(Exchange, NtpTime)>,
}

/// What a client has of a [`Scheme`].
#[derive(Debug)]
pub(crate) enum Credentials {
    Plain,
    Mac(SymmetricKey),
    Nts {
        session: Box<NtsSession>,
        /// Cookies that are never to be seen again.
        spent: HashSet<Vec<u8>>,
    },
    Antp(Box<AntpClient>),
}

/// What became of a datagram at its client.
pub(crate) enum Verdict {
    Accepted(Sample),
    Rejected(Check),
    RejectedAntp(antp::Check),
    /// A message that comes before time.
    Part {
        /// Whether the client asks again at once.
        asks: bool,
    },
}

impl Client {
    pub(crate) const fn new(address: SocketAddr, clock: Clock, credentials: Credentials) -> Self {
        Client { address, clock, credentials, waiting: None }
    }

    /// Takes what another key exchange gave.
    ///
    /// # Panics
    /// If it is no client of NTS.
    pub(crate) fn use_session(&mut self, new: NtsSession) {
        match &mut self.credentials {
            Credentials::Nts { session, .. } => **session = new,
            Credentials::Plain | Credentials::Mac(_) | Credentials::Antp(_) => {
                panic!("only a client of NTS exchanges keys over TLS")
            }
        }
    }

    pub(crate) fn cookie_count(&self) -> usize {
        match &self.credentials {
            Credentials::Nts { session, .. } => session.jar.count(),
            Credentials::Plain | Credentials::Mac(_) | Credentials::Antp(_) => 0,
        }
    }

    /// Writes a request to `out`; returns its size.
    pub(crate) fn ask(
        &mut self,
        now: TrueTime,
        entropy: &mut Entropy,
        out: &mut [u8],
    ) -> Result<usize, NoCookie> {
        let shown = self.clock.at(now);
        let (exchange, size) = match &mut self.credentials {
            Credentials::Plain => Exchange::plain(entropy, out),
            Credentials::Mac(key) => Exchange::mac(key, entropy, out),
            Credentials::Nts { session, spent } => {
                let made = Exchange::nts(session, entropy, out)?;
                // Header 48, identifier 36, field header 4: then comes the cookie.
                let cookie_end = 48 + 36 + usize::from(u16::from_be_bytes([out[86], out[87]]));
                assert!(spent.insert(out[88..cookie_end].to_vec()), "a cookie was used twice");
                made
            }
            Credentials::Antp(client) => return Ok(client.ask(now.seconds(), shown, entropy, out)),
        };
        self.waiting = Some((exchange, shown));
        Ok(size)
    }

    /// Takes a datagram.
    pub(crate) fn receive(&mut self, datagram: &mut [u8], now: TrueTime) -> Verdict {
        let shown = self.clock.at(now);
        if let Credentials::Antp(client) = &mut self.credentials {
            return match client.receive(datagram, now.seconds(), shown) {
                Ok(Heard::Time(accepted)) => Verdict::Accepted(accepted.sample),
                Ok(Heard::Early | Heard::Keys) => Verdict::Part { asks: false },
                Ok(Heard::Asking) => Verdict::Part { asks: true },
                Err(check) => Verdict::RejectedAntp(check),
            };
        }
        let Some((exchange, sent)) = &mut self.waiting else { return Verdict::Rejected(Check::Origin) };
        let response = match &mut self.credentials {
            Credentials::Mac(key) => exchange.receive_mac(datagram, key),
            Credentials::Nts { session, .. } => exchange.receive(datagram, Some(session)),
            Credentials::Plain | Credentials::Antp(_) => exchange.receive(datagram, None),
        };
        match response {
            Ok(response) => Verdict::Accepted(Sample::new(&response.header, *sent, shown)),
            Err(check) => Verdict::Rejected(check),
        }
    }
}
