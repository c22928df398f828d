//! All queries of a game, in order: to show, to play again, and to shorten.

use std::fmt;

use authentick_wire::time::{NtpSpan, NtpTime};
use serde::{Serialize, Serializer};

use super::{Certificate, Model, Party, Reply, SessionId};
use crate::mac::tagged::hex;
use crate::protocol::Protocol;

/// A query, with what it takes. Times and spans are in 2^-32 s.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "query", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is the query of the model that has its name, and its arguments")]
pub enum Call {
    CreateServer {
        party: Party,
        time: u64,
    },
    CreateClient {
        party: Party,
        peer: Party,
        time: u64,
    },
    Impersonate {
        party: Party,
        peer: Party,
        time: u64,
        certificate: Certificate,
    },
    GoOn {
        session: SessionId,
        advances: Vec<i64>,
    },
    Send {
        session: SessionId,
        #[serde(serialize_with = "as_hex")]
        message: Vec<u8>,
        advances: Vec<i64>,
    },
    Tick {
        span: i64,
    },
    TickAlone {
        session: SessionId,
        span: i64,
    },
    Reveal {
        session: SessionId,
    },
    Corrupt {
        party: Party,
    },
    CorruptState {
        party: Party,
    },
    Rotate {
        party: Party,
    },
    LoseState {
        party: Party,
    },
}

impl Call {
    /// Asks it of `model`.
    fn ask(&self, model: &mut Model<'_>) {
        let spans = |bits: &[i64]| bits.iter().map(|&bits| NtpSpan::from_bits(bits)).collect::<Vec<_>>();
        match self {
            Call::CreateServer { party, time } => {
                model.create_server(*party, NtpTime::from_bits(*time));
            }
            Call::CreateClient { party, peer, time } => {
                model.create_client(*party, *peer, NtpTime::from_bits(*time));
            }
            Call::Impersonate { party, peer, time, certificate } => {
                model.impersonate(*party, *peer, NtpTime::from_bits(*time), *certificate);
            }
            Call::GoOn { session, advances } => {
                model.go_on(*session, &spans(advances));
            }
            Call::Send { session, message, advances } => {
                model.send(*session, message, &spans(advances));
            }
            Call::Tick { span } => model.tick(NtpSpan::from_bits(*span)),
            Call::TickAlone { session, span } => model.tick_alone(*session, NtpSpan::from_bits(*span)),
            Call::Reveal { session } => {
                model.reveal(*session);
            }
            Call::Corrupt { party } => {
                model.corrupt(*party, &[]);
            }
            Call::CorruptState { party } => model.corrupt_state(*party),
            Call::Rotate { party } => model.rotate(*party),
            Call::LoseState { party } => model.lose_state(*party),
        }
    }

    /// Whether a game without it can be asked the others: sessions keep their numbers.
    const fn may_be_left_out(&self) -> bool {
        !matches!(self, Call::CreateServer { .. } | Call::CreateClient { .. } | Call::Impersonate { .. })
    }
}

/// A query and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// How far all clocks had run before it, in 2^-32 s.
    pub now: i64,
    /// The query.
    #[serde(flatten)]
    pub call: Call,
    /// What was sent in return.
    #[serde(serialize_with = "all_as_hex", skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Vec<u8>>,
    /// What the party made of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub said: String,
}

fn as_hex<S: Serializer>(octets: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex(octets))
}

fn all_as_hex<S: Serializer>(messages: &[Vec<u8>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(messages.iter().map(|message| hex(message)))
}

/// A game's queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// What was played.
    pub protocol: String,
    /// From what keys and all draws follow.
    pub seed: u64,
    entries: Vec<Entry>,
    is_kept: bool,
}

/// A game that is played again goes another way from this query on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("query {0} has another reply than in the log")]
pub struct NotTheSame(pub usize);

impl Log {
    pub(super) fn new(protocol: String, seed: u64) -> Self {
        Log { protocol, seed, entries: Vec::new(), is_kept: true }
    }

    pub(super) fn stop(&mut self) {
        self.is_kept = false;
    }

    pub(super) fn note(&mut self, now: NtpSpan, entry: impl FnOnce() -> (Call, Reply)) {
        if self.is_kept {
            let (call, Reply { messages, said }) = entry();
            self.entries.push(Entry { now: now.to_bits(), call, messages, said });
        }
    }

    /// The queries and what came of each.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Asks all queries of a new world of `protocol`.
    ///
    /// # Errors
    /// If a reply is another than it was.
    pub fn replay<'p>(&self, protocol: &'p dyn Protocol) -> Result<Model<'p>, NotTheSame> {
        let mut model = Model::new(protocol, self.seed);
        self.entries.iter().for_each(|entry| entry.call.ask(&mut model));
        let pairs = self.entries.iter().zip(&model.log.entries);
        match pairs.into_iter().position(|(then, now)| then != now) {
            None => Ok(model),
            Some(index) => Err(NotTheSame(index)),
        }
    }

    /// A shorter log whose game still `holds`: as many queries as can be are left out, one by one.
    #[must_use]
    pub fn shortened(&self, protocol: &dyn Protocol, holds: impl Fn(&Model<'_>) -> bool) -> Log {
        let mut kept: Vec<Call> = self.entries.iter().map(|entry| entry.call.clone()).collect();
        let play = |calls: &[Call]| {
            let mut model = Model::new(protocol, self.seed);
            calls.iter().for_each(|call| call.ask(&mut model));
            model
        };
        let mut at = kept.len();
        while let Some(index) = at.checked_sub(1) {
            at = index;
            if kept[index].may_be_left_out() {
                let mut fewer = kept.clone();
                fewer.remove(index);
                if holds(&play(&fewer)) {
                    kept = fewer;
                }
            }
        }
        play(&kept).log
    }
}

/// JSON, a line for each query.
impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            let line = serde_json::to_string(entry).map_err(|_| fmt::Error)?;
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}
