//! The variables of a session, and what is known of a moment at which a client believed something.

use std::rc::Rc;

use authentick_wire::time::{NtpSpan, NtpTime};
use serde::Serialize;

use super::{Party, SessionId};
use crate::protocol::Client;

/// A clause of the definition of freshness: what the adversary must not have done before a client believes an answer,
/// for that to be its win.
///
/// Reconstructed: the text of the paper that could be had ends before its definitions 3 and 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Clause {
    /// It learnt the session key.
    Reveal,
    /// It learnt the server's long-term secret.
    Corrupt,
    /// It learnt a key that has sealed a cookie, C1 or C2 of the session. Ours.
    State,
    /// It let clocks run at different rates.
    Symmetric,
}

impl Clause {
    /// All of them.
    pub const ALL: [Clause; 4] = [Clause::Reveal, Clause::Corrupt, Clause::State, Clause::Symmetric];
}

/// A moment at which a client believed time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Acceptance {
    /// Whose.
    pub session: SessionId,
    /// The client.
    pub party: Party,
    /// What it took the difference of the clocks for.
    #[serde(serialize_with = "span")]
    pub offset: NtpSpan,
    /// R: the round trip without the server's own time, as the client saw it.
    #[serde(serialize_with = "span")]
    pub round_trip: NtpSpan,
    /// Server sessions that were sent this request and have said this.
    pub matching: Vec<SessionId>,
    /// How wrong the client's clock is now, against the nearest of these; never negative.
    #[serde(serialize_with = "optional_span")]
    pub error: Option<NtpSpan>,
    /// What of freshness did not hold by then.
    pub broken: Vec<Clause>,
}

fn span<S: serde::Serializer>(span: &NtpSpan, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(span.to_bits())
}

fn optional_span<S: serde::Serializer>(span: &Option<NtpSpan>, serializer: S) -> Result<S::Ok, S::Error> {
    span.map(NtpSpan::to_bits).serialize(serializer)
}

/// A session of either role.
#[derive(Debug)]
pub(super) enum Session {
    Client(Box<ClientSession>),
    Server(ServerSession),
}

impl Session {
    pub(super) const fn party(&self) -> Party {
        match self {
            Session::Client(session) => session.party,
            Session::Server(session) => session.party,
        }
    }

    /// What the clock showed when the world began.
    pub(super) const fn clock(&self) -> NtpTime {
        match self {
            Session::Client(session) => session.clock,
            Session::Server(session) => session.clock,
        }
    }

    pub(super) const fn clock_mut(&mut self) -> &mut NtpTime {
        match self {
            Session::Client(session) => &mut session.clock,
            Session::Server(session) => &mut session.clock,
        }
    }

    pub(super) fn fork(&self) -> Self {
        match self {
            Session::Client(session) => Session::Client(Box::new(session.fork())),
            Session::Server(session) => Session::Server(session.clone()),
        }
    }
}

/// A client's session.
#[derive(Debug)]
pub(super) struct ClientSession {
    pub(super) party: Party,
    /// The server that it believes to talk to.
    pub(super) peer: Party,
    pub(super) clock: NtpTime,
    pub(super) client: Box<dyn Client>,
    /// The last one, as it was sent.
    pub(super) request: Vec<u8>,
    /// Requests so far.
    pub(super) asked: u64,
    /// Whether the server said what the client takes the negotiation for.
    pub(super) is_negotiated: bool,
    /// Whether the server said what the client's key rests on. What has its key from elsewhere has that from the start.
    pub(super) is_keyed: bool,
    pub(super) is_revealed: bool,
    /// Whether it found the certificate valid that it was shown; if not, it asks nothing.
    pub(super) trusts: bool,
    /// Keys that sealed what it has sent.
    pub(super) state_keys: Vec<u32>,
    /// A digest of all that has had an effect on it.
    pub(super) history: u64,
}

impl ClientSession {
    pub(super) fn new(
        party: Party,
        peer: Party,
        clock: NtpTime,
        client: Box<dyn Client>,
        trusts: bool,
    ) -> Self {
        ClientSession {
            party,
            peer,
            clock,
            client,
            request: Vec::new(),
            asked: 0,
            is_negotiated: true,
            is_keyed: true,
            is_revealed: false,
            trusts,
            state_keys: Vec::new(),
            history: 0,
        }
    }

    fn fork(&self) -> Self {
        ClientSession {
            client: self.client.fork(),
            request: self.request.clone(),
            state_keys: self.state_keys.clone(),
            ..*self
        }
    }
}

/// A server's session: what the model keeps beside a server that keeps nothing.
#[derive(Clone, Debug)]
pub(super) struct ServerSession {
    pub(super) party: Party,
    pub(super) clock: NtpTime,
    /// Shared with copies until one of them is asked something.
    pub(super) answered: Rc<Vec<Answered>>,
}

/// A request that reached a server, and what it said.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) request: Vec<u8>,
    pub(super) datagrams: Vec<Vec<u8>>,
}
