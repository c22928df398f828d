//! What an adversary without a strategy sees of a world, and its moves.

use std::rc::Rc;

use authentick_crypto::Entropy;
use authentick_wire::time::NtpSpan;

use super::{Change, Known};
use crate::model::{Model, OTHER_CLIENT, SERVER, SERVICE, START, SessionId, VICTIM};
use crate::protocol::{E, Family, Protocol};

/// How far clients are when the adversary begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// They have sent their first request, whatever that is for.
    Fresh,
    /// They have the answers to that, and have sent what comes next: m3 of ANTP.
    Negotiated,
    /// They have keys, and have asked for time.
    Keyed,
}

impl Start {
    /// What clients have sent by then, in a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Start::Fresh => "m1",
            Start::Negotiated => "m3",
            Start::Keyed => "keys",
        }
    }

    /// All that differ for `protocol`, the latest first.
    #[must_use]
    pub fn all(protocol: &dyn Protocol) -> &'static [Start] {
        match protocol.family() {
            Family::Antp | Family::AntpSeparate => &[Start::Keyed, Start::Negotiated, Start::Fresh],
            _ => &[Start::Keyed],
        }
    }

    /// Whether a client whose `first` message that was is there with this one.
    fn is_reached(self, protocol: &dyn Protocol, first: &[u8], message: &[u8]) -> bool {
        match self {
            Start::Fresh => true,
            Start::Negotiated => protocol.kind(message) != protocol.kind(first),
            Start::Keyed => protocol.asks_for_time(message),
        }
    }
}

/// One of the two clients.
const CLIENTS: [usize; 2] = [0, 1];

/// A move of the adversary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// A client asks again, or goes on.
    Ask(usize),
    /// The server gets a message, by its number.
    Serve(usize, Change),
    /// A client gets a message.
    Deliver(usize, Change, usize),
    /// Time passes: E, or a little more.
    Wait(bool),
}

impl Move {
    /// Whether a message is changed by it.
    #[must_use]
    pub fn is_change(self) -> bool {
        match self {
            Move::Serve(_, change) | Move::Deliver(_, change, _) => change != Change::Nothing,
            Move::Ask(_) | Move::Wait(_) => false,
        }
    }
}

/// What came of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that anybody will notice later.
    Nothing,
    /// The world is another.
    Changed,
    /// A client believes something: the last acceptance of the world.
    Believed,
}

/// As near to E as matters: servers may move a timestamp by a unit of 2^-32 s, and means are rounded.
const NEAR: NtpSpan = NtpSpan::from_bits(2);

/// The adversary's view.
#[derive(Clone, Debug)]
pub struct Board {
    server: SessionId,
    clients: [SessionId; 2],
    known: Vec<Known>,
    /// Messages that it looks at: later ones are lost.
    room: usize,
    /// How often it has let time pass.
    waits: usize,
}

/// How often time passes at most: more is never needed for one answer to be late both ways.
const WAITS_MAX: usize = 2;

impl Board {
    /// A world with two clients, and the view of one who looks at the first `room` messages.
    #[must_use]
    pub fn new<'p>(protocol: &'p dyn Protocol, seed: u64, start: Start, room: usize) -> (Self, Model<'p>) {
        let mut model = Model::new(protocol, seed);
        let server = model.create_server(SERVER, START);
        let (victim, first) = model.create_client(VICTIM, SERVER, START);
        let (other, second) = model.create_client(OTHER_CLIENT, SERVER, START);
        let clients = [victim, other];
        let mut board = Board { server, clients, known: Vec::new(), room, waits: 0 };
        for (client, messages) in clients.into_iter().zip([first, second]) {
            let messages = board.undisturbed(&mut model, client, messages, start);
            board.note(protocol, &messages, None);
        }
        (board, model)
    }

    /// Lets a client, which has sent `requests`, get as far as `start` undisturbed; returns what it sends then.
    fn undisturbed(
        &self,
        model: &mut Model<'_>,
        client: SessionId,
        mut requests: Vec<Vec<u8>>,
        start: Start,
    ) -> Vec<Vec<u8>> {
        let first = requests.first().cloned().unwrap_or_default();
        while let Some(request) =
            requests.first().filter(|one| !start.is_reached(model.protocol(), &first, one))
        {
            let answers = model.send(self.server, request, &[NtpSpan::ZERO, SERVICE]).messages;
            requests = answers.iter().flat_map(|answer| model.send(client, answer, &[]).messages).collect();
            if requests.is_empty() {
                requests = model.go_on(client, &[]);
            }
        }
        requests
    }

    /// Looks at `messages`, if there is room. `answers`: what was done to the request that brought them, if it has
    /// parts of another one.
    fn note(&mut self, protocol: &dyn Protocol, messages: &[Vec<u8>], answers: Option<&Rc<str>>) -> bool {
        let before = self.known.len();
        for message in messages {
            let known = Known { answers: answers.cloned(), ..Known::new(protocol, message) };
            if self.known.len() < self.room && self.known.iter().all(|one| one.digest != known.digest) {
                self.known.push(known);
            }
        }
        self.known.len() > before
    }

    /// Messages that were seen.
    #[must_use]
    pub fn known(&self) -> &[Known] {
        &self.known
    }

    /// The client that is attacked.
    #[must_use]
    pub const fn victim(&self) -> SessionId {
        self.clients[0]
    }

    /// Every move that could have an effect.
    #[must_use]
    pub fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        if self.waits < WAITS_MAX {
            moves.extend([Move::Wait(false), Move::Wait(true)]);
        }
        let has_room = self.known.len() < self.room;
        if has_room {
            moves.extend(CLIENTS.map(Move::Ask));
        }
        for (index, message) in self.known.iter().enumerate() {
            for change in Change::all(&self.known, index) {
                // A reflected request is a response; everything else stays what it was.
                if message.is_request && has_room && change != Change::Reflect {
                    moves.push(Move::Serve(index, change));
                }
                if !message.is_request || change == Change::Reflect {
                    moves.extend(CLIENTS.map(|client| Move::Deliver(index, change, client)));
                }
            }
        }
        moves
    }

    /// A move that is drawn: each kind of move is as likely as another, and so is a message without a change.
    pub fn draw(&self, entropy: &mut Entropy) -> Option<Move> {
        let below = |entropy: &mut Entropy, count: usize| entropy.u64() as usize % count.max(1);
        let client = below(entropy, CLIENTS.len());
        if entropy.u64().is_multiple_of(3) && self.known.len() < self.room {
            return Some(Move::Ask(client));
        }
        let index = below(entropy, self.known.len());
        let is_request = self.known.get(index)?.is_request;
        let changes = if entropy.u64().is_multiple_of(2) { Change::all(&self.known, index) } else { vec![] };
        let change = *changes.get(below(entropy, changes.len())).unwrap_or(&Change::Nothing);
        Some(match is_request && change != Change::Reflect {
            true => Move::Serve(index, change),
            false => Move::Deliver(index, change, client),
        })
    }

    /// Makes a move.
    pub fn make(&mut self, model: &mut Model<'_>, one: Move) -> Effect {
        let protocol = model.protocol();
        let changed = |is_changed| if is_changed { Effect::Changed } else { Effect::Nothing };
        match one {
            Move::Wait(is_beyond) => {
                self.waits += 1;
                model.tick(if is_beyond { E + NEAR } else { E - NEAR });
                Effect::Changed
            }
            Move::Ask(client) => {
                let messages = model.go_on(self.clients[client], &[]);
                changed(self.note(protocol, &messages, None))
            }
            Move::Serve(index, change) => {
                let Some(message) = change.make(&self.known, index) else { return Effect::Nothing };
                let messages = model.send(self.server, &message, &[NtpSpan::ZERO, SERVICE]).messages;
                let answers = change.is_splice().then(|| self.class(index, change).into());
                changed(self.note(protocol, &messages, answers.as_ref()))
            }
            Move::Deliver(index, change, client) => {
                let Some(message) = change.make(&self.known, index) else { return Effect::Nothing };
                let (client, believed) = (self.clients[client], model.acceptances().len());
                let before = model.fingerprint();
                let messages = model.send(client, &message, &[]).messages;
                self.note(protocol, &messages, None);
                match model.acceptances().len() > believed {
                    true => Effect::Believed,
                    false => changed(model.fingerprint() != before),
                }
            }
        }
    }

    /// A digest of what is on the net and of `model`, by which two worlds are told apart.
    #[must_use]
    pub fn fingerprint(&self, model: &Model<'_>) -> u64 {
        // Messages count whatever their order is.
        let net = self.known.iter().fold(0, |sum: u64, known| sum.wrapping_add(known.digest));
        model.fingerprint() ^ net.rotate_left(17)
    }

    /// What kind of message a client gets by a move, and the kind of change that was made to it, or to the request that
    /// it answers; a move in words, if a client gets nothing.
    #[must_use]
    pub fn class_of(&self, one: Move) -> String {
        let Move::Deliver(index, change, _) = one else { return self.says(one) };
        match &self.known[index].answers {
            Some(request) if change == Change::Nothing => {
                format!("{}, of {request}", self.class(index, change))
            }
            _ => self.class(index, change),
        }
    }

    /// What kind of change a move makes, and to what kind of message; `None` if it changes none.
    #[must_use]
    pub fn change_of(&self, one: Move) -> Option<String> {
        match one {
            Move::Serve(index, change) | Move::Deliver(index, change, _) if one.is_change() => {
                Some(self.class(index, change))
            }
            _ => None,
        }
    }

    fn class(&self, index: usize, change: Change) -> String {
        format!("{}, {}", self.known[index].kind, change.class(&self.known, index))
    }

    /// A move in words.
    #[must_use]
    pub fn says(&self, one: Move) -> String {
        let client = |number: usize| if number == 0 { "the victim" } else { "the other client" };
        let message = |index: usize, change: Change| {
            format!("{} {index}{}", self.known[index].kind, change.says(&self.known, index))
        };
        match one {
            Move::Ask(number) => format!("{} asks", client(number)),
            Move::Serve(index, change) => format!("the server gets {}", message(index, change)),
            Move::Deliver(index, change, number) => {
                format!("{} gets {}", client(number), message(index, change))
            }
            Move::Wait(false) => "E passes".to_owned(),
            Move::Wait(true) => "a little more than E passes".to_owned(),
        }
    }
}
