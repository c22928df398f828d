//! The execution environment: parties, their sessions, and the queries with which an adversary drives them.
//!
//! After Dowling, Stebila and Zaverucha, "Authenticated Network Time Synchronization" (USENIX Security 2016), section
//! 5.1. The adversary owns the network and the clocks: it creates sessions at any time of its choice, delivers, drops,
//! repeats and changes messages, and lets time pass between messages and between two looks at a clock while one is
//! processed. It may learn session keys, long-term secrets and, in addition to the paper, the keys that seal cookies.
//!
//! What is ours, because the paper's text says otherwise or nothing:
//! - Clocks run alike *by construction*: a session's clock is what it was created with plus the world's time, and
//!   [`Model::tick`] moves the world. [`Model::tick_alone`] breaks that rule and is noted: the run is void.
//! - All servers are stateless, so a server's answer is a function of the request, its keys, the clock, and what it
//!   draws. What it draws follows from the seed and the call, so a call can be left out of a log without another
//!   changing.
//! - [`Model::corrupt_state`] gives the keys that seal cookies, C1 and C2 as they are now. The paper does not say
//!   whether they are part of the long-term secret.

mod log;
mod session;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use authentick_crypto::Entropy;
use authentick_crypto::kdf::sha256;
use authentick_proto::client::Sample;
use authentick_sim::{Arrival, Server};
use authentick_wire::time::{NtpSpan, NtpTime};

pub use self::log::{Call, Entry, Log, NotTheSame};
pub use self::session::{Acceptance, Clause};
use self::session::{Answered, ClientSession, ServerSession, Session};
use crate::protocol::{Heard, Protocol, Secret};

/// A session's number, in the order of creation.
pub type SessionId = usize;

/// A party's number. Servers come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Party(pub usize);

/// The server that the victim means.
pub const SERVER: Party = Party(0);
/// Another server, with secrets of its own.
pub const OTHER_SERVER: Party = Party(1);
/// The client that is attacked.
pub const VICTIM: Party = Party(2);
/// Another client of the same server.
pub const OTHER_CLIENT: Party = Party(3);

/// How many parties are servers.
const SERVER_COUNT: usize = 2;

/// A moment in 2026, at which clocks that are right stand when a game begins.
pub const START: NtpTime = NtpTime::from_unix(1_780_000_000, 0);

/// What a server takes from arrival to departure, if nobody wants more: about a microsecond. Two equal timestamps would
/// be told apart by a unit, as interleaved mode needs that.
pub const SERVICE: NtpSpan = NtpSpan::from_bits(1 << 12);

/// As long before [`START`] the certificate was valid that the server had before.
pub const TWENTY_YEARS: NtpSpan = NtpSpan::from_bits((20 * 31_557_600) << 32);

/// A certificate of a server, as far as an ideal key infrastructure has one: when it is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certificate {
    /// The one that it has.
    Current,
    /// One that it had [`TWENTY_YEARS`] ago.
    Expired,
}

impl Certificate {
    /// Whether a client whose clock shows `time` finds it valid: within a year.
    #[must_use]
    pub fn is_valid(self, time: NtpTime) -> bool {
        const YEAR: NtpSpan = NtpSpan::from_bits(31_557_600 << 32);
        let middle = match self {
            Certificate::Current => START,
            Certificate::Expired => START - TWENTY_YEARS,
        };
        magnitude(time.since(middle)) <= YEAR
    }
}

/// How a client sets its clock once it believes an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Setting {
    /// By the offset, from whatever the clock shows by then.
    #[default]
    Step,
    /// To the time of arrival plus the offset, however long ago that was. A mistake, kept to show what it costs.
    Absolute,
}

/// The world of one game. See the module's documentation.
pub struct Model<'p> {
    protocol: &'p dyn Protocol,
    seed: u64,
    setting: Setting,
    /// How far all clocks have run.
    now: NtpSpan,
    /// Shared with copies: a server's answers depend on nothing that it was asked before.
    servers: Vec<Rc<RefCell<Server>>>,
    sessions: Vec<Session>,
    /// Long-term secrets that are known.
    corrupted: Vec<Party>,
    /// Keys for cookies that are known, by server.
    state_keys: Vec<(Party, u32)>,
    is_symmetric: bool,
    acceptances: Vec<Acceptance>,
    log: Log,
}

/// What a session did with a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// What it sends.
    pub messages: Vec<Vec<u8>>,
    /// What a client makes of the message, in a word or a sentence.
    pub said: String,
}

impl<'p> Model<'p> {
    /// A world in which nothing has happened. Keys and all that parties draw follow from `seed`.
    #[must_use]
    pub fn new(protocol: &'p dyn Protocol, seed: u64) -> Self {
        let server = |party| Rc::new(RefCell::new(protocol.server(Party(party), seed)));
        Model::among((0..SERVER_COUNT).map(server).collect(), protocol, seed)
    }

    fn among(servers: Vec<Rc<RefCell<Server>>>, protocol: &'p dyn Protocol, seed: u64) -> Self {
        Model {
            protocol,
            seed,
            setting: Setting::Step,
            now: NtpSpan::ZERO,
            servers,
            sessions: Vec::new(),
            corrupted: Vec::new(),
            state_keys: Vec::new(),
            is_symmetric: true,
            acceptances: Vec::new(),
            log: Log::new(protocol.name().to_owned(), seed),
        }
    }

    /// The same with clients that set their clocks in another way.
    #[must_use]
    pub fn with_setting(mut self, setting: Setting) -> Self {
        self.setting = setting;
        self
    }

    /// The same without a log, for searches.
    #[must_use]
    pub fn without_log(mut self) -> Self {
        self.log.stop();
        self
    }

    /// What is played.
    #[must_use]
    pub fn protocol(&self) -> &'p dyn Protocol {
        self.protocol
    }

    /// How far all clocks have run since the beginning.
    #[must_use]
    pub const fn now(&self) -> NtpSpan {
        self.now
    }

    /// All queries so far.
    #[must_use]
    pub const fn log(&self) -> &Log {
        &self.log
    }

    /// Each time that a client believed something.
    #[must_use]
    pub fn acceptances(&self) -> &[Acceptance] {
        &self.acceptances
    }

    /// Whether all clocks ran alike so far.
    #[must_use]
    pub const fn is_symmetric(&self) -> bool {
        self.is_symmetric
    }

    /// Create, for a server: a session of `party` whose clock shows `time`.
    ///
    /// # Panics
    /// If the party is no server.
    pub fn create_server(&mut self, party: Party, time: NtpTime) -> SessionId {
        assert!(party.0 < SERVER_COUNT, "only servers have server sessions");
        self.sessions.push(Session::Server(ServerSession {
            party,
            clock: time - self.now,
            answered: Rc::default(),
        }));
        let id = self.sessions.len() - 1;
        self.log.note(self.now, || (Call::CreateServer { party, time: time.to_bits() }, Reply::default()));
        id
    }

    /// Create, for a client: a session of `party` with server `peer` whose clock shows `time`; and its first message.
    ///
    /// # Panics
    /// If `peer` is no server, or `party` is one.
    pub fn create_client(&mut self, party: Party, peer: Party, time: NtpTime) -> (SessionId, Vec<Vec<u8>>) {
        let (id, reply) = self.create(party, peer, peer, time, Certificate::Current);
        let call = || Call::CreateClient { party, peer, time: time.to_bits() };
        self.log.note(self.now, || (call(), reply.clone()));
        (id, reply.messages)
    }

    /// Create, for a client whose ideal key exchange the adversary answers in the name of `peer`, with a server of its
    /// own and the private key of a `certificate`, which it knows from then on. Returns the key that both have, too, if
    /// the client finds the certificate valid.
    ///
    /// # Panics
    /// As [`Model::create_client`].
    pub fn impersonate(
        &mut self,
        party: Party,
        peer: Party,
        time: NtpTime,
        certificate: Certificate,
    ) -> (SessionId, Vec<Vec<u8>>, Option<Secret>) {
        self.corrupted.push(peer);
        let (id, reply) = self.create(party, peer, OTHER_SERVER, time, certificate);
        let call = || Call::Impersonate { party, peer, time: time.to_bits(), certificate };
        self.log.note(self.now, || (call(), reply.clone()));
        let session = self.client_mut(id);
        let secret = session.trusts.then(|| session.client.secret()).flatten();
        (id, reply.messages, secret)
    }

    /// A session of `party` with `peer`, and its first message. What comes before the first message is with `host`,
    /// which shows `certificate`.
    fn create(
        &mut self,
        party: Party,
        peer: Party,
        host: Party,
        time: NtpTime,
        certificate: Certificate,
    ) -> (SessionId, Reply) {
        assert!(party.0 >= SERVER_COUNT && peer.0 < SERVER_COUNT, "clients ask servers");
        let seed = self.entropy(party, &[&self.sessions.len().to_be_bytes()]);
        let mut server = self.servers[host.0].borrow_mut();
        server.reseed(seed);
        let client = self.protocol.client(party, &mut server, self.seed);
        drop(server);
        let trusts = !self.protocol.looks_at_dates() || certificate.is_valid(time);
        let session = ClientSession::new(party, peer, time - self.now, client, trusts);
        self.sessions.push(Session::Client(Box::new(session)));
        let id = self.sessions.len() - 1;
        let reply = self.client_goes_on(id, &[]);
        (id, reply)
    }

    /// Send without a message: the client goes on with its next request, after `advances` at its looks at the clock.
    ///
    /// # Panics
    /// If the session is none of a client.
    pub fn go_on(&mut self, id: SessionId, advances: &[NtpSpan]) -> Vec<Vec<u8>> {
        let before = self.now;
        let reply = self.client_goes_on(id, advances);
        let messages = reply.messages.clone();
        self.log.note(before, || (Call::GoOn { session: id, advances: bits(advances) }, reply));
        messages
    }

    /// Send: a session processes `message`. Before its l-th look at the clock, time advances by `advances[l]`: a server
    /// looks twice (arrival, departure), a client as often (arrival, setting its clock).
    ///
    /// # Panics
    /// If there is no such session.
    pub fn send(&mut self, id: SessionId, message: &[u8], advances: &[NtpSpan]) -> Reply {
        let before = self.now;
        let reply = match &self.sessions[id] {
            Session::Server(_) => self.server_answers(id, message, advances),
            Session::Client(_) => self.client_hears(id, message, advances),
        };
        let call = || Call::Send { session: id, message: message.to_vec(), advances: bits(advances) };
        self.log.note(before, || (call(), reply.clone()));
        reply
    }

    /// Tick, for all sessions alike.
    pub fn tick(&mut self, span: NtpSpan) {
        let before = self.now;
        self.now = self.now + span;
        self.log.note(before, || (Call::Tick { span: span.to_bits() }, Reply::default()));
    }

    /// Tick for one session alone, which breaks the rule that clocks run alike.
    ///
    /// # Panics
    /// If there is no such session.
    pub fn tick_alone(&mut self, id: SessionId, span: NtpSpan) {
        let clock = self.sessions[id].clock_mut();
        *clock = *clock + span;
        self.is_symmetric = false;
        let call = || Call::TickAlone { session: id, span: span.to_bits() };
        self.log.note(self.now, || (call(), Reply::default()));
    }

    /// Reveal: the session key of a client's session, if it has one.
    ///
    /// # Panics
    /// If the session is none of a client.
    pub fn reveal(&mut self, id: SessionId) -> Option<Secret> {
        let session = self.client_mut(id);
        session.is_revealed = true;
        let secret = session.client.secret();
        self.log.note(self.now, || (Call::Reveal { session: id }, Reply::default()));
        secret
    }

    /// Corrupt: what the long-term secret of a server says of the key under which `seen` was sent, all of which was on
    /// the net.
    pub fn corrupt(&mut self, party: Party, seen: &[Vec<u8>]) -> Option<Secret> {
        if !self.corrupted.contains(&party) {
            self.corrupted.push(party);
        }
        self.log.note(self.now, || (Call::Corrupt { party }, Reply::default()));
        self.protocol.corrupt(&self.servers[party.0].borrow(), seen)
    }

    /// The keys that seal a server's cookies become known, as they are now.
    pub fn corrupt_state(&mut self, party: Party) {
        let ids = self.protocol.state_key_ids(&self.servers[party.0].borrow());
        self.state_keys.extend(ids.into_iter().map(|id| (party, id)));
        self.log.note(self.now, || (Call::CorruptState { party }, Reply::default()));
    }

    /// What the keys that are known for a server's cookies open of `request`.
    #[must_use]
    pub fn open_state(&self, party: Party, request: &[u8]) -> Option<Secret> {
        let id = self.protocol.state_key_of(request)?;
        let is_known = self.state_keys.contains(&(party, id));
        is_known.then(|| self.protocol.open_state(&self.servers[party.0].borrow(), request)).flatten()
    }

    /// The server replaces the keys that seal its cookies, and keeps none of the old ones but the last.
    pub fn rotate(&mut self, party: Party) {
        self.protocol.rotate(&mut self.servers[party.0].borrow_mut(), seconds(self.now));
        self.log.note(self.now, || (Call::Rotate { party }, Reply::default()));
    }

    /// The server loses the keys that seal its cookies, as one does that keeps them in memory and restarts.
    pub fn lose_state(&mut self, party: Party) {
        self.protocol.lose_state(&mut self.servers[party.0].borrow_mut(), seconds(self.now));
        self.log.note(self.now, || (Call::LoseState { party }, Reply::default()));
    }

    /// Whether a client's session has a session key.
    ///
    /// # Panics
    /// If the session is none of a client.
    pub fn has_key(&mut self, id: SessionId) -> bool {
        self.client_mut(id).client.secret().is_some()
    }

    /// What a session's clock shows.
    ///
    /// # Panics
    /// If there is no such session.
    #[must_use]
    pub fn clock(&self, id: SessionId) -> NtpTime {
        self.sessions[id].clock() + self.now
    }

    fn client_mut(&mut self, id: SessionId) -> &mut ClientSession {
        match &mut self.sessions[id] {
            Session::Client(session) => session,
            Session::Server(_) => panic!("session {id} is none of a client"),
        }
    }

    /// Lets time pass before a look at the clock.
    fn advance(&mut self, advances: &[NtpSpan], look: usize) {
        self.now = self.now + advances.get(look).copied().unwrap_or(NtpSpan::ZERO);
    }

    /// What a party draws during a call: it follows from the seed, who draws, and on what occasion.
    fn entropy(&self, party: Party, occasion: &[&[u8]]) -> u64 {
        let (seed, party) = (self.seed.to_be_bytes(), party.0.to_be_bytes());
        let mut parts: Vec<&[u8]> = vec![&seed, &party];
        parts.extend(occasion);
        let hash = sha256(&parts);
        u64::from_be_bytes(*hash.first_chunk().expect("a hash has 32 octets"))
    }

    fn client_goes_on(&mut self, id: SessionId, advances: &[NtpSpan]) -> Reply {
        self.advance(advances, 0);
        let (now, second, protocol) = (self.clock(id), seconds(self.now), self.protocol);
        let (party, count) = {
            let session = self.client_mut(id);
            if !session.trusts {
                let said = "finds no certificate of the server valid by its clock".to_owned();
                return Reply { messages: vec![], said };
            }
            session.asked += 1;
            (session.party, session.asked)
        };
        let seed = self.entropy(party, &[&id.to_be_bytes(), &count.to_be_bytes()]);
        let session = self.client_mut(id);
        let Some(request) = session.client.ask(now, second, &mut Entropy::from_seed(seed)) else {
            return Reply { messages: vec![], said: "has no cookie left".to_owned() };
        };
        session.state_keys.extend(protocol.state_key_of(&request));
        session.request.clone_from(&request);
        session.history = chained(session.history, now, &request);
        Reply { messages: vec![request], said: String::new() }
    }

    fn server_answers(&mut self, id: SessionId, message: &[u8], advances: &[NtpSpan]) -> Reply {
        self.advance(advances, 0);
        let received = self.clock(id);
        self.advance(advances, 1);
        let sent = self.clock(id);
        let party = self.sessions[id].party();
        let seed = self.entropy(party, &[&received.to_be_bytes(), message]);
        let mut server = self.servers[party.0].borrow_mut();
        server.reseed(seed);
        let source = ([198, 18, 0, 2], 123).into();
        let arrival = Arrival { source, received, octets: message.to_vec() };
        let answer = server.answer(arrival, sent);
        drop(server);
        if let Session::Server(session) = &mut self.sessions[id] {
            let datagrams = answer.datagrams.clone();
            Rc::make_mut(&mut session.answered).push(Answered { request: message.to_vec(), datagrams });
        }
        Reply { messages: answer.datagrams, said: format!("outcome {}", answer.outcome.label()) }
    }

    fn client_hears(&mut self, id: SessionId, message: &[u8], advances: &[NtpSpan]) -> Reply {
        self.advance(advances, 0);
        let (arrived, second) = (self.clock(id), seconds(self.now));
        let heard = self.client_mut(id).client.receive(message, arrived, second);
        if !matches!(heard, Heard::Rejected(_)) {
            let session = self.client_mut(id);
            session.history = chained(session.history, arrived, message);
        }
        match heard {
            Heard::Rejected(said) | Heard::Spent(said) => Reply { messages: vec![], said },
            Heard::Part => Reply { messages: vec![], said: "goes on waiting".to_owned() },
            Heard::Asks => {
                self.client_mut(id).is_negotiated = self.has_match(id, message);
                let mut reply = self.client_goes_on(id, advances.get(1..).unwrap_or(&[]));
                reply.said = "believes it, and asks on".to_owned();
                reply
            }
            Heard::Keys => {
                let is_match = self.has_match(id, message);
                let session = self.client_mut(id);
                session.is_keyed = session.is_negotiated && is_match;
                Reply { messages: vec![], said: "has a session key".to_owned() }
            }
            Heard::Time(sample) => {
                self.advance(advances, 1);
                self.accept(id, message, sample, arrived);
                Reply { messages: vec![], said: format!("believes it: offset {}", sample.offset) }
            }
        }
    }

    /// Whether the server that a client means has answered its last request with `message`.
    fn has_match(&mut self, id: SessionId, message: &[u8]) -> bool {
        let session = self.client_mut(id);
        let (peer, request) = (session.peer, session.request.clone());
        !self.matching(peer, &request, message).is_empty()
    }

    /// A client believes time: who said so, and how wrong it is now, are taken down.
    fn accept(&mut self, id: SessionId, message: &[u8], sample: Sample, arrived: NtpTime) {
        let shown = self.clock(id);
        let session = self.client_mut(id);
        let (peer, request, is_keyed) = (session.peer, session.request.clone(), session.is_keyed);
        // What rests on a key exchange in which the server said something else rests on nothing.
        let matching = if is_keyed { self.matching(peer, &request, message) } else { vec![] };
        let set_to = match self.setting {
            Setting::Step => shown + sample.offset,
            Setting::Absolute => arrived + sample.offset,
        };
        let now = self.now;
        let session = self.client_mut(id);
        session.clock = set_to - now;
        let clock = session.clock;
        let errors = matching.iter().map(|&server| magnitude(self.sessions[server].clock().since(clock)));
        let acceptance = Acceptance {
            session: id,
            party: self.sessions[id].party(),
            offset: sample.offset,
            round_trip: sample.delay,
            matching: matching.clone(),
            error: errors.min(),
            broken: self.broken(id, peer),
        };
        self.acceptances.push(acceptance);
    }

    /// The server sessions of `peer` that were sent this request, and answered it with this message, as far as each is
    /// vouched for.
    fn matching(&self, peer: Party, request: &[u8], message: &[u8]) -> Vec<SessionId> {
        let is_same = |one: &[u8], other: &[u8]| self.protocol.covered(one) == self.protocol.covered(other);
        let is_match = |answered: &Answered| {
            is_same(&answered.request, request)
                && answered.datagrams.iter().any(|datagram| is_same(datagram, message))
        };
        let sessions = self.sessions.iter().enumerate();
        let found = sessions.filter_map(|(id, session)| match session {
            Session::Server(server) if server.party == peer => {
                server.answered.iter().any(is_match).then_some(id)
            }
            _ => None,
        });
        found.collect()
    }

    /// The clauses of freshness that do not hold of a client's session.
    fn broken(&self, id: SessionId, peer: Party) -> Vec<Clause> {
        let Session::Client(session) = &self.sessions[id] else { return vec![] };
        let is_known = |key: &u32| self.state_keys.contains(&(peer, *key));
        let clauses = [
            (Clause::Reveal, session.is_revealed),
            (Clause::Corrupt, self.corrupted.contains(&peer)),
            (Clause::State, session.state_keys.iter().any(is_known)),
            (Clause::Symmetric, !self.is_symmetric),
        ];
        clauses.into_iter().filter_map(|(clause, is_broken)| is_broken.then_some(clause)).collect()
    }

    /// A digest of all that decides how the game goes on but for what is on the net: two worlds with the same are
    /// alike.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let clients = self.sessions.iter().map(|session| match session {
            Session::Client(session) => session.history,
            Session::Server(_) => 0,
        });
        let start = self.now.to_bits().cast_unsigned();
        clients.fold(start, |hash, history| mixed(hash ^ history))
    }

    /// A copy for a search to go on with: clients as they are, servers as they were made.
    #[must_use]
    pub fn fork(&self) -> Self {
        let mut copy = Model::among(self.servers.clone(), self.protocol, self.seed).without_log();
        copy.sessions = self.sessions.iter().map(Session::fork).collect();
        copy.corrupted.clone_from(&self.corrupted);
        copy.state_keys.clone_from(&self.state_keys);
        copy.acceptances.clone_from(&self.acceptances);
        (copy.setting, copy.now, copy.is_symmetric) = (self.setting, self.now, self.is_symmetric);
        copy
    }
}

impl fmt::Debug for Model<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Model");
        shown.field("protocol", &self.protocol.name()).field("seed", &self.seed).field("now", &self.now);
        shown.finish_non_exhaustive()
    }
}

/// `history` after `octets` have had an effect at `time`.
fn chained(history: u64, time: NtpTime, octets: &[u8]) -> u64 {
    let start = mixed(history ^ time.to_bits());
    octets.chunks(8).fold(start, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mixed(hash.rotate_left(5) ^ u64::from_le_bytes(word))
    })
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
const fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// A digest of a message, as good as a search needs.
pub(crate) fn digest(octets: &[u8]) -> u64 {
    chained(0, NtpTime::ZERO, octets)
}

/// Whole seconds of a span that is not negative.
fn seconds(span: NtpSpan) -> u64 {
    span.to_bits().unsigned_abs() >> 32
}

/// How long a span is, whichever way.
#[must_use]
pub(crate) fn magnitude(span: NtpSpan) -> NtpSpan {
    NtpSpan::from_bits(span.to_bits().saturating_abs())
}

fn bits(spans: &[NtpSpan]) -> Vec<i64> {
    spans.iter().map(|span| span.to_bits()).collect()
}
