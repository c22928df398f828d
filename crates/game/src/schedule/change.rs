//! Messages that were seen, and the changes that an adversary makes to one of them.

use std::rc::Rc;

use authentick_wire::header::{Header, Mode};
use authentick_wire::limits::HEADER_SIZE;

use crate::model::digest;
use crate::protocol::{Part, Protocol};

/// A message that was on the net.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its octets.
    pub octets: Rc<[u8]>,
    /// Its parts.
    pub parts: Rc<[Part]>,
    /// What it is, in a word or two.
    pub kind: &'static str,
    /// Whether a server may take it.
    pub is_request: bool,
    /// The kind of the request that it answers and what was done to that, if it has a part of another one.
    pub answers: Option<Rc<str>>,
    pub(super) digest: u64,
}

impl Known {
    /// A message of `protocol`.
    #[must_use]
    pub fn new(protocol: &dyn Protocol, octets: &[u8]) -> Self {
        let mode = octets.first().map(|first| Mode::from_bits(first & 7));
        Known {
            octets: octets.into(),
            parts: protocol.parts(octets).into(),
            kind: protocol.kind(octets),
            is_request: mode == Some(Mode::Client),
            answers: None,
            digest: digest(octets),
        }
    }
}

/// A change to one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// None.
    Nothing,
    /// One bit in the first octet of a part.
    FlipFirst(usize),
    /// One bit in the last octet of a part.
    FlipLast(usize),
    /// A part is taken out.
    Remove(usize),
    /// A part is replaced by the one of the same name in another message, by its number.
    Splice(usize, usize),
    /// A request becomes the response to itself: mode, origin, stratum, and times of the adversary's choice.
    Reflect,
    /// The origin becomes what a request, by its number, is to be answered with.
    Answer(usize),
}

impl Change {
    /// All changes to message number `index` of `known`.
    #[must_use]
    pub fn all(known: &[Known], index: usize) -> Vec<Change> {
        let message = &known[index];
        let mut changes = vec![Change::Nothing];
        if message.is_request {
            changes.push(Change::Reflect);
        }
        for (number, other) in known.iter().enumerate() {
            if !message.is_request && other.is_request {
                changes.push(Change::Answer(number));
            }
        }
        for (place, part) in message.parts.iter().enumerate() {
            changes.push(Change::FlipFirst(place));
            if part.end - part.start > 1 {
                changes.push(Change::FlipLast(place));
            }
            if part.is_field {
                changes.push(Change::Remove(place));
            }
            let others = known.iter().enumerate().filter(|(number, _)| *number != index);
            let alike = others.filter(|(_, other)| other.parts.iter().any(|one| one.name == part.name));
            changes.extend(alike.map(|(number, _)| Change::Splice(place, number)));
        }
        changes
    }

    /// Whether a part comes from another message.
    pub(super) const fn is_splice(self) -> bool {
        matches!(self, Change::Splice(..))
    }

    /// The message that comes of it; `None` if that is the one it was.
    #[must_use]
    pub fn make(self, known: &[Known], index: usize) -> Option<Vec<u8>> {
        let Known { octets, parts, .. } = &known[index];
        let mut changed = octets.to_vec();
        match self {
            Change::Nothing => return Some(changed),
            Change::FlipFirst(part) => changed[parts[part].start] ^= 1,
            Change::FlipLast(part) => changed[parts[part].end - 1] ^= 0x80,
            Change::Remove(part) => {
                changed.drain(parts[part].start..parts[part].end);
            }
            Change::Splice(part, other) => {
                let other = &known[other];
                let from = other.parts.iter().find(|one| one.name == parts[part].name)?;
                let piece = other.octets[from.start..from.end].iter().copied();
                changed.splice(parts[part].start..parts[part].end, piece);
            }
            Change::Reflect => {
                let header = changed.first_chunk_mut::<HEADER_SIZE>()?;
                let asked = Header::parse(header);
                let (mode, stratum) = (Mode::Server, 1);
                let response =
                    Header { mode, stratum, origin: asked.transmit, receive: asked.transmit, ..asked };
                response.emit(header);
            }
            Change::Answer(request) => {
                let asked = Header::parse(known[request].octets.first_chunk()?);
                let header = changed.first_chunk_mut::<HEADER_SIZE>()?;
                Header { origin: asked.transmit, ..Header::parse(header) }.emit(header);
            }
        }
        (changed[..] != octets[..]).then_some(changed)
    }

    /// What is done, in words, to message number `index`.
    #[must_use]
    pub fn says(self, known: &[Known], index: usize) -> String {
        let of = |part: usize| &known[index].parts[part].name;
        match self {
            Change::Nothing => String::new(),
            Change::FlipFirst(part) => format!(" with the first octet of {} changed", of(part)),
            Change::FlipLast(part) => format!(" with the last octet of {} changed", of(part)),
            Change::Remove(part) => format!(" without {}", of(part)),
            Change::Splice(part, other) => {
                format!(" with {} of {} {other}", of(part), known[other].kind)
            }
            Change::Reflect => " as the response to itself".to_owned(),
            Change::Answer(request) => format!(" as the answer to {} {request}", known[request].kind),
        }
    }

    /// The kind of change, and the part that it is made to.
    pub(super) fn class(self, known: &[Known], index: usize) -> String {
        let of = |part: usize| &known[index].parts[part].name;
        match self {
            Change::Nothing => "unchanged".to_owned(),
            Change::FlipFirst(part) | Change::FlipLast(part) => format!("{} changed", of(part)),
            Change::Remove(part) => format!("{} removed", of(part)),
            Change::Splice(part, _) => format!("{} of another", of(part)),
            Change::Reflect => "reflected".to_owned(),
            Change::Answer(_) => "origin of another request".to_owned(),
        }
    }
}
