//! What coordinator and agent tell each other: JSON after its length.
//!
//! ```text
//! +----------------+------------------------+
//! | length, 4      | JSON, `length` octets  |
//! | big endian     | of UTF-8               |
//! +----------------+------------------------+
//! ```
//!
//! Reads octets, never a socket: the same code runs under any connection and under the property tests.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::limits::{ORDER_SIZE_MAX, REPORT_SIZE_MAX};
use crate::plan::{Order, Part, Plan};

/// What a coordinator tells an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToAgent {
    /// The plan of all steps; sent once, and first.
    Prepare(Box<Plan>),
    /// Asks for the agent's clock.
    Ping {
        /// Returned in the answer.
        number: u64,
    },
    /// One step.
    Step {
        /// The first step is 1.
        number: u64,
        /// What to do.
        order: Order,
        /// When, by the agent's clock, in nanoseconds.
        start_ns: u64,
    },
    /// Send no more requests in this step.
    Stop,
    /// A sign of life.
    Beat,
}

/// What an agent says of its host, for the record of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The version of authentick.
    pub version: String,
    /// The model of the processor.
    pub cpu: String,
    /// How many processors it may use.
    pub cpu_count: u32,
    /// How many processors the host has online; `None` if the agent does not know.
    pub online_cpu_count: Option<u32>,
    /// The quota of its control group in thousandths of a processor; `None`: none.
    pub cpu_quota_millicpus: Option<u32>,
    /// Name and release of the kernel.
    pub kernel: String,
}

/// What an agent tells a coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FromAgent {
    /// Orders are taken.
    Welcome(About),
    /// Another coordinator is served; the connection ends.
    Busy {
        /// Which one.
        with: String,
    },
    /// The generator has been created.
    Ready,
    /// The plan or an order is not carried out; the connection ends.
    Refused {
        /// Names what is not accepted, and the remedy.
        why: String,
    },
    /// Answers a ping.
    Pong {
        /// The ping's.
        number: u64,
        /// When the ping came, by the agent's clock, in nanoseconds.
        received_ns: u64,
        /// When this answer left.
        sent_ns: u64,
    },
    /// A sign of life.
    Beat {
        /// The step in progress, or the last one; 0 before the first.
        step: u64,
        /// Operations of it so far: sent, answered, failed.
        counts: [u64; 3],
    },
    /// The report of a step.
    Done {
        /// Which.
        step: u64,
        /// When the first operation really began, less its planned distance from the start, by the agent's clock, in
        /// nanoseconds; absent if the step was stopped before.
        started_ns: Option<u64>,
        /// Operations: sent, answered, failed.
        counts: [u64; 3],
        /// What the generator reports.
        part: Box<Part>,
    },
    /// The generator could not do a step.
    Failed {
        /// Which.
        step: u64,
        /// A sentence.
        why: String,
    },
}

/// A message for the network.
pub(crate) trait Message: Serialize + DeserializeOwned {
    /// The longest, in octets, without the length before it.
    const SIZE_MAX: u32;
}

impl Message for ToAgent {
    const SIZE_MAX: u32 = ORDER_SIZE_MAX;
}

impl Message for FromAgent {
    const SIZE_MAX: u32 = REPORT_SIZE_MAX;
}

/// Why octets are no message, or a message does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageError {
    /// It is longer than it may be; both in octets.
    #[error("a message of {size} octets; {max} are the limit")]
    TooLong { size: usize, max: u32 },
    /// It is no JSON, or not what is told here.
    #[error("a message that is not understood here")]
    Malformed,
}

const LENGTH_SIZE: usize = size_of::<u32>();

/// The octets of a message, its length first.
pub(crate) fn emit<M: Message>(message: &M) -> Result<Vec<u8>, MessageError> {
    let mut octets = vec![0; LENGTH_SIZE];
    serde_json::to_writer(&mut octets, message).map_err(|_| MessageError::Malformed)?;
    let size = octets.len() - LENGTH_SIZE;
    match u32::try_from(size) {
        Ok(length) if length <= M::SIZE_MAX => octets[..LENGTH_SIZE].copy_from_slice(&length.to_be_bytes()),
        _ => return Err(MessageError::TooLong { size, max: M::SIZE_MAX }),
    }
    Ok(octets)
}

/// Octets that have arrived, until they form messages. Holds at most one message and the last octets pushed.
#[derive(Debug)]
pub(crate) struct Inbox<M> {
    octets: Vec<u8>,
    messages: PhantomData<fn() -> M>,
}

impl<M: Message> Inbox<M> {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Inbox { octets: Vec::new(), messages: PhantomData }
    }

    /// Whether no part of a message is here.
    pub(crate) fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// Octets for which it has taken memory.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn capacity(&self) -> usize {
        self.octets.capacity()
    }

    /// Adds octets as they arrive.
    pub(crate) fn push(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// The next message, if all of it is here. After an error nothing more can be read.
    pub(crate) fn next(&mut self) -> Result<Option<M>, MessageError> {
        let Some((length, rest)) = self.octets.split_first_chunk::<LENGTH_SIZE>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length);
        if length > M::SIZE_MAX {
            return Err(MessageError::TooLong { size: length as usize, max: M::SIZE_MAX });
        }
        let Some(text) = rest.get(..length as usize) else { return Ok(None) };
        let message = serde_json::from_slice(text).map_err(|_| MessageError::Malformed)?;
        self.octets.drain(..LENGTH_SIZE + length as usize);
        Ok(Some(message))
    }
}

/// Text of the other side, made safe for a terminal: one line, no control characters, limited length.
pub(crate) fn shown(text: &str) -> String {
    const LENGTH_MAX: usize = 500;
    text.chars().take(LENGTH_MAX).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn messages() -> Vec<FromAgent> {
        vec![
            FromAgent::Welcome(About { version: "1.2.3".to_owned(), cpu_count: 4, ..About::default() }),
            FromAgent::Busy { with: "CN=a (192.0.2.1:9)".to_owned() },
            FromAgent::Pong { number: 3, received_ns: 0, sent_ns: u64::MAX },
            FromAgent::Done {
                step: 2,
                started_ns: Some(7),
                counts: [5, 4, 1],
                part: Box::new(Part { why_invalid: Some("it fell behind".to_owned()), ..Part::default() }),
            },
        ]
    }

    fn octets() -> Vec<u8> {
        messages().iter().flat_map(|message| emit(message).unwrap()).collect()
    }

    /// Everything that comes of octets in pieces of `size`.
    fn read(octets: &[u8], size: usize) -> Result<Vec<FromAgent>, MessageError> {
        let mut inbox = Inbox::new();
        let mut found = Vec::new();
        for piece in octets.chunks(size) {
            inbox.push(piece);
            while let Some(message) = inbox.next()? {
                found.push(message);
            }
        }
        Ok(found)
    }

    #[test]
    fn messages_survive_any_cut() {
        for size in [1, 2, 3, 5, 64, 10_000] {
            assert_eq!(read(&octets(), size), Ok(messages()), "{size}");
        }
    }

    #[test]
    fn prefix_of_a_message_is_no_message() {
        let whole = emit(&messages()[1]).unwrap();
        for size in 0..whole.len() {
            assert_eq!(read(&whole[..size], 7), Ok(vec![]), "{size}");
        }
    }

    #[test]
    fn length_beyond_the_bound_is_refused_before_the_octets_come() {
        let mut inbox = Inbox::<ToAgent>::new();
        inbox.push(&(ORDER_SIZE_MAX + 1).to_be_bytes());
        let error = MessageError::TooLong { size: ORDER_SIZE_MAX as usize + 1, max: ORDER_SIZE_MAX };
        assert_eq!(inbox.next(), Err(error));
        inbox = Inbox::new();
        inbox.push(&ORDER_SIZE_MAX.to_be_bytes());
        assert_eq!(inbox.next(), Ok(None));
    }

    #[test]
    fn message_beyond_the_bound_is_not_sent() {
        let why = "x".repeat(REPORT_SIZE_MAX as usize);
        assert!(matches!(
            emit(&FromAgent::Refused { why }),
            Err(MessageError::TooLong { max: REPORT_SIZE_MAX, .. })
        ));
    }

    #[test]
    fn deep_nesting_and_huge_numbers_do_no_harm() {
        let step = |rate: &str, seconds: &str, more: &str| {
            let order = format!(
                r#"{{"rate_rps":{rate},"background_rps":0,"duration":{{"secs":{seconds},"nanos":4}}}}"#
            );
            let text = format!(r#"{{"step":{{"number":1,"order":{order},"more":{more},"start_ns":1}}}}"#);
            let mut inbox = Inbox::<ToAgent>::new();
            inbox.push(&u32::try_from(text.len()).unwrap().to_be_bytes());
            inbox.push(text.as_bytes());
            inbox.next()
        };
        let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let plain = step("1", "1", "1");
        assert!(matches!(plain, Ok(Some(ToAgent::Step { .. }))));
        assert_eq!(step("1", "1", &nested), plain, "fields of a later version are passed over");
        assert_eq!(step(&nested, "1", "1"), Err(MessageError::Malformed));
        assert_eq!(step("1e999", "1", "1"), Err(MessageError::Malformed));
        assert_eq!(step("1", "18446744073709551616", "1"), Err(MessageError::Malformed));
    }

    #[test]
    fn foreign_text_cannot_steer_the_terminal() {
        assert_eq!(shown("a\x1b[2Jb\nc\u{9b}"), "a [2Jb c ");
        assert_eq!(shown(&"é".repeat(9000)).chars().count(), 500);
    }

    proptest! {
        #[test]
        fn no_octets_panic_the_reader(octets in prop::collection::vec(any::<u8>(), 0..600), size in 1usize..50) {
            let _ = read(&octets, size);
        }

        /// Behind a length that fits.
        #[test]
        fn no_text_panics_the_reader(text in "[{}\\[\\]\",:a-z0-9.e-]{0,200}", size in 1usize..50) {
            let mut octets = u32::try_from(text.len()).unwrap().to_be_bytes().to_vec();
            octets.extend_from_slice(text.as_bytes());
            let _ = read(&octets, size);
        }

        /// Messages with some octets changed: most of the way into the parser.
        #[test]
        fn no_change_of_a_message_panics_the_reader(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            size in 1usize..500,
        ) {
            let mut octets = octets();
            for (at, octet) in changes {
                let at = at.index(octets.len());
                octets[at] = octet;
            }
            let _ = read(&octets, size);
        }
    }
}
