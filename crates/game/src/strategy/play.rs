//! What a strategy drives: a world with a server, and a victim as soon as the strategy wants one.

use authentick_wire::header::Header;
use authentick_wire::limits::HEADER_SIZE;
use authentick_wire::time::{NtpSpan, NtpTime};

use crate::model::{
    Acceptance, Certificate, Model, Party, Reply, SERVER, SERVICE, START, SessionId, Setting, VICTIM,
};
use crate::protocol::{Part, Protocol, Secret, header_of};

/// How long a message travels that nobody holds up.
pub const SHORT: NtpSpan = NtpSpan::from_nanos(10_000_000);
/// By how much the adversary wants clocks to be wrong.
pub const LONG: NtpSpan = NtpSpan::from_nanos(3_600_000_000_000);

/// By how much the victim's clock is wrong before anything is said: 250 ms, fast.
pub const WRONG: NtpSpan = NtpSpan::from_nanos(250_000_000);

/// Exchanges in which a client that is left alone has keys.
const PHASES_MAX: usize = 8;

/// A game in progress.
#[derive(Debug)]
pub struct Play<'p> {
    model: Model<'p>,
    server: SessionId,
    victim: Option<SessionId>,
    /// The victim's last request.
    request: Vec<u8>,
    /// All that was on the net.
    seen: Vec<Vec<u8>>,
    /// The first acceptance that counts.
    from: usize,
    notes: Vec<(usize, String)>,
}

impl<'p> Play<'p> {
    pub(super) fn new(protocol: &'p dyn Protocol, seed: u64, setting: Setting) -> Self {
        let mut model = Model::new(protocol, seed).with_setting(setting);
        let server = model.create_server(SERVER, START);
        let (request, seen, notes) = (vec![], vec![], vec![]);
        Play { model, server, victim: None, request, seen, from: 0, notes }
    }

    /// The world.
    #[must_use]
    pub const fn model(&self) -> &Model<'p> {
        &self.model
    }

    /// The world, for queries that have no shorter name here.
    pub const fn model_mut(&mut self) -> &mut Model<'p> {
        &mut self.model
    }

    /// What is played.
    #[must_use]
    pub fn protocol(&self) -> &'p dyn Protocol {
        self.model.protocol()
    }

    /// The server's session.
    #[must_use]
    pub const fn server(&self) -> SessionId {
        self.server
    }

    /// Everything that was on the net.
    #[must_use]
    pub fn seen(&self) -> &[Vec<u8>] {
        &self.seen
    }

    /// Says what the adversary does next.
    pub fn note(&mut self, words: &str) {
        self.notes.push((self.model.log().entries().len(), words.to_owned()));
    }

    /// What the victim believed so far does not count: the attack begins.
    pub fn begin(&mut self) {
        self.from = self.model.acceptances().len();
    }

    pub(super) const fn from(&self) -> usize {
        self.from
    }

    pub(super) fn into_notes(self) -> Vec<(usize, String)> {
        self.notes
    }

    /// What the victim believed, as far as it counts.
    pub(super) fn believed(&self) -> Vec<Acceptance> {
        let counting = self.model.acceptances().iter().skip(self.from);
        counting.filter(|acceptance| Some(acceptance.session) == self.victim).cloned().collect()
    }

    /// The victim, whose clock is a quarter of a second fast at first: made when it is first asked for.
    pub fn victim(&mut self) -> SessionId {
        match self.victim {
            Some(victim) => victim,
            None => self.victim_at(START + WRONG),
        }
    }

    /// The same, whose clock shows `time` at first.
    pub fn victim_at(&mut self, time: NtpTime) -> SessionId {
        let (victim, messages) = self.client(VICTIM, time);
        self.victim = Some(victim);
        self.request = messages;
        victim
    }

    /// The victim, whose clock shows `time` at first and whose key exchange the adversary has answered with the private
    /// key of a `certificate` of the server; and the key that both have from it, if the victim found that valid.
    pub fn impersonated(&mut self, certificate: Certificate, time: NtpTime) -> Option<Secret> {
        let (victim, messages, secret) = self.model.impersonate(VICTIM, SERVER, time, certificate);
        self.seen.extend(messages.iter().cloned());
        (self.victim, self.request) = (Some(victim), messages.into_iter().next().unwrap_or_default());
        secret
    }

    pub(super) fn victim_session(&mut self) -> SessionId {
        self.victim()
    }

    /// Another client's session with the server, and its first request.
    pub fn client(&mut self, party: Party, time: NtpTime) -> (SessionId, Vec<u8>) {
        let (client, messages) = self.model.create_client(party, SERVER, time);
        self.seen.extend(messages.iter().cloned());
        (client, messages.into_iter().next().unwrap_or_default())
    }

    /// The victim's first request: for time, or for what comes before.
    pub fn first_request(&mut self) -> Vec<u8> {
        self.victim();
        self.request.clone()
    }

    /// The victim's next request for time. What comes before it is not disturbed.
    pub fn request(&mut self) -> Vec<u8> {
        let is_new = self.victim.is_none();
        let victim = self.victim();
        let request = if is_new { self.request.clone() } else { self.go_on(victim) };
        self.up_to_time(victim, request)
    }

    /// A client's next request, after what it has sent so far.
    pub fn go_on(&mut self, client: SessionId) -> Vec<u8> {
        let messages = self.model.go_on(client, &[]);
        self.seen.extend(messages.iter().cloned());
        messages.into_iter().next().unwrap_or_default()
    }

    /// Lets a client that has sent `request` go on, undisturbed, until it asks for time; returns what it asks with, or
    /// its last request if it does not come so far.
    pub fn up_to_time(&mut self, client: SessionId, mut request: Vec<u8>) -> Vec<u8> {
        for _ in 0..PHASES_MAX {
            if self.protocol().asks_for_time(&request) {
                break;
            }
            let mut next = None;
            for answer in self.serve(&request) {
                next = self.deliver(client, &answer).messages.into_iter().next().or(next);
            }
            request = match next {
                Some(next) => next,
                None => self.go_on(client),
            };
        }
        request
    }

    /// Puts a request before the server, which takes [`SERVICE`] to answer.
    pub fn serve(&mut self, request: &[u8]) -> Vec<Vec<u8>> {
        self.serve_slowly(request, SERVICE)
    }

    /// The same; the server takes its `time`.
    pub fn serve_slowly(&mut self, request: &[u8], time: NtpSpan) -> Vec<Vec<u8>> {
        let messages = self.model.send(self.server, request, &[NtpSpan::ZERO, time]).messages;
        self.seen.extend(messages.iter().cloned());
        messages
    }

    /// Puts a message before a client.
    pub fn deliver(&mut self, client: SessionId, message: &[u8]) -> Reply {
        let reply = self.model.send(client, message, &[]);
        self.seen.extend(reply.messages.iter().cloned());
        reply
    }

    /// Puts messages before the victim.
    pub fn deliver_all(&mut self, messages: &[Vec<u8>]) {
        let victim = self.victim();
        for message in messages {
            self.deliver(victim, message);
        }
    }

    /// Lets time pass.
    pub fn pass(&mut self, span: NtpSpan) {
        self.model.tick(span);
    }

    /// One exchange with these delays on the way there and back.
    pub fn exchange(&mut self, there: NtpSpan, back: NtpSpan) -> Vec<Vec<u8>> {
        let request = self.request();
        self.pass(there);
        let answers = self.serve(&request);
        self.pass(back);
        self.deliver_all(&answers);
        answers
    }

    /// Whether a client that is left alone has time after its next exchange.
    pub fn brings_time(&mut self, client: SessionId) -> bool {
        let before = self.model.acceptances().len();
        let request = self.go_on(client);
        let request = self.up_to_time(client, request);
        for answer in self.serve(&request) {
            self.deliver(client, &answer);
        }
        self.model.acceptances().len() > before
    }

    /// A header that answers `request`, an hour off.
    #[must_use]
    pub fn lie(&self, request: &[u8]) -> Header {
        let wrong = self.model.clock(self.server) + LONG;
        header_of(request, wrong, wrong)
    }

    /// The best answer to `request` that can be forged with a secret, an hour off. Where the protocol gives no way, one
    /// without anything behind its header.
    #[must_use]
    pub fn forge(&self, secret: Option<&Secret>, request: &[u8]) -> Vec<u8> {
        let lie = self.lie(request);
        self.protocol().forge(secret, request, &lie).unwrap_or_else(|| {
            let mut octets = [0; HEADER_SIZE];
            lie.emit(&mut octets);
            octets.to_vec()
        })
    }

    /// The part of a message that has that name.
    #[must_use]
    pub fn part(&self, message: &[u8], name: &str) -> Option<Part> {
        self.protocol().parts(message).into_iter().find(|part| part.name == name)
    }

    /// `message` with its part of that name as it is in `other`; as it is, if one of them has none.
    #[must_use]
    pub fn spliced(&self, message: &[u8], other: &[u8], name: &str) -> Vec<u8> {
        let mut changed = message.to_vec();
        if let (Some(to), Some(from)) = (self.part(message, name), self.part(other, name)) {
            changed.splice(to.start..to.end, other[from.start..from.end].iter().copied());
        }
        changed
    }
}
