//! Any octets as what a coordinator or an agent sends, and what is done with messages that parse.
//!
//! A blind change of a message seldom leaves its length right, and hardly ever its fields. So an input is octets as
//! they come, or texts that get their lengths here, or changes to one of the kept messages.

use std::sync::LazyLock;

use authentick_report::fuzzing::edit;
use authentick_report::load::HostPart;
use serde_json::Value;

use super::Limits;
use super::bounds::{check_order, check_plan};
use super::limits::SECOND_COUNT_MAX;
use super::message::{FromAgent, Inbox, Message, MessageError, ToAgent, emit, shown};
use super::share::{check, merge, split, split_plan};
use super::words::{order_in_words, plan_in_words};
use crate::allow::Allow;
use crate::plan::Plan;

/// The most octets that are pushed at once; a connection reads less.
const PIECE_SIZE_MAX: usize = 256;

/// What a reader may hold beyond one message: its length, and what came with its end.
const BEYOND: usize = 4 + PIECE_SIZE_MAX;

/// Every message of both directions, as JSON, with everything in them that there is.
static MESSAGES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("fuzzing/messages.json")).expect("the kept messages are a list")
});

/// Any octets, after one that says in which pieces they come: no reader panics or holds more than one message, an error
/// is the last thing that is read, and a message that is accepted can be acted upon. Returns whether there was one.
pub fn agent_message(octets: &[u8]) -> bool {
    let Some((&size, octets)) = octets.split_first() else { return false };
    let size = usize::from(size) + 1;
    let octets = &match octets {
        // No message is as long as this says, if it were a length.
        [b'{' | b'"', ..] => octets.split(|&octet| octet == b'\n').flat_map(framed).collect(),
        [chosen @ 0x80..=0xFF, shape, edits @ ..] => {
            let message = &MESSAGES[usize::from(chosen & 0x7F) % MESSAGES.len()];
            framed(edit::changed(message, shape & 1 != 0, edits).to_string().as_bytes())
        }
        _ => octets.to_vec(),
    };
    let mut count = 0;
    read(octets, size, |message| {
        count += 1;
        obey(message);
    });
    read(octets, size, |message| {
        count += 1;
        believe(message);
    });
    count > 0
}

/// A text with its length.
fn framed(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text].concat()
}

/// Reads messages of one direction, and hands each to `act`.
fn read<M: Message>(octets: &[u8], size: usize, mut act: impl FnMut(M)) {
    let mut inbox = Inbox::<M>::new();
    let mut pushed = 0;
    for piece in octets.chunks(size) {
        inbox.push(piece);
        pushed += piece.len();
        loop {
            match inbox.next() {
                Ok(Some(message)) => act(message),
                Ok(None) => break,
                Err(MessageError::TooLong { size, max }) => {
                    assert!(max == M::SIZE_MAX && size > max as usize);
                    return;
                }
                Err(MessageError::Malformed) => return,
            }
        }
        // Memory is taken as octets come, not as a length announces them; a vector doubles.
        let held_max = pushed.min(M::SIZE_MAX as usize + BEYOND);
        assert!(inbox.capacity() <= 2 * held_max.max(BEYOND), "{} octets are held", inbox.capacity());
    }
}

/// As an agent treats what a coordinator says, up to what would be sent.
fn obey(message: ToAgent) {
    let limits = Limits::default();
    match message {
        ToAgent::Prepare(plan) => {
            if check_plan(&plan, &Allow::default(), &limits).is_ok() {
                assert!(plan.clients <= limits.client_count_max && plan.workers <= limits.worker_count_max);
                assert!(!plan_in_words(&plan).is_empty());
                let _ = split_plan(&plan, 3);
            }
        }
        ToAgent::Step { order, .. } => {
            let plan = Plan::plain(([127, 0, 0, 1], 123).into());
            if check_order(&order, &plan, &limits).is_ok() {
                assert!(order.duration <= limits.duration_max);
                assert!(order.rate_rps.unwrap_or(0.0) + order.background_rps <= limits.rate_rps_max);
                assert!(!order_in_words(&order).is_empty());
                let shares = split(&order, 3);
                assert_eq!(
                    shares.iter().filter_map(|share| share.rate_rps).sum::<f64>(),
                    order.rate_rps.unwrap_or(0.0)
                );
            }
        }
        ToAgent::Ping { .. } | ToAgent::Stop | ToAgent::Beat => {}
    }
}

/// As a coordinator treats what an agent says.
fn believe(message: FromAgent) {
    // What parses can be said again, unless it has grown by what it left out.
    assert!(!matches!(emit(&message), Err(MessageError::Malformed)));
    match message {
        FromAgent::Done { part, .. } => {
            if check(&part).is_err() {
                return;
            }
            assert!(part.tally.adds_up() && part.series.len() <= SECOND_COUNT_MAX);
            let mut part = *part;
            part.tally.summarise();
            let _ = part.lateness_ns.percentiles(1000.0);
            let row = |name: &str| HostPart {
                name: name.to_owned(),
                tally: part.tally.clone(),
                ..HostPart::default()
            };
            let (whole, rows) =
                merge(vec![(row("a"), part.clone()), (row("b"), part.clone())]).expect("alike");
            assert!(whole.tally.adds_up() && rows.len() == 2);
            assert_eq!(whole.tally.sent, 2 * part.tally.sent);
            // A record with another share would be refused by whoever reads it.
            let share = whole.antp.as_ref().and_then(|antp| antp.client_crypto_share);
            assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)), "a share of {share:?}");
        }
        FromAgent::Welcome(about) => {
            for text in [&about.version, &about.cpu, &about.kernel] {
                assert!(!shown(text).chars().any(char::is_control));
            }
        }
        FromAgent::Busy { with: text }
        | FromAgent::Refused { why: text }
        | FromAgent::Failed { why: text, .. } => {
            assert!(!shown(&text).chars().any(char::is_control));
        }
        FromAgent::Ready | FromAgent::Pong { .. } | FromAgent::Beat { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use authentick_report::load::{AntpFigures, AntpHistograms, Backlog, Evidence, Second, Tally};

    use super::super::message::About;
    use super::super::tests::{order, plan, tally};
    use super::*;
    use crate::plan::{Joinable, Part};

    /// Messages of both directions, with everything in them that there is.
    fn seeds() -> Vec<(&'static str, Vec<u8>)> {
        let about = About {
            version: "1.0".to_owned(),
            cpu: "x".to_owned(),
            cpu_count: 2,
            kernel: "y".to_owned(),
            ..About::default()
        };
        let figures = AntpFigures {
            client_crypto_share: Some(0.5),
            histograms: AntpHistograms { phases_ns: vec![(700, 7)].into(), ..AntpHistograms::default() },
            ..AntpFigures::default()
        };
        let part = Part {
            tally: Tally { backlog: Backlog { start: 7, middle: 1, end: 4 }, ..tally(10, 3) },
            accompanying: Some(tally(2, 1)),
            background: Some(tally(4, 0)),
            background_accompanying: Some(tally(1, 0)),
            seconds: 1.5,
            why_invalid: Some("late".to_owned()),
            lateness_ns: vec![(-5, 2), (900, 8)].into(),
            busy_share: Some(0.5),
            evidence: Evidence { idle_share: Some(0.5), steal_share: Some(0.01), ..Evidence::default() },
            series: vec![Second { sent: 10, answered: 7, failed: 3, p50_us: Some(20.0), p99_us: None }],
            series_ns: vec![vec![(20_000, 7)].into()],
            antp: Some(figures),
            request_size: 48,
            response_size: 48,
            joinables: vec![Joinable { source: ([10, 0, 0, 1], 9).into(), transmit: Some(7), whole_ns: 5 }],
            ..Part::default()
        };
        let duration = Duration::from_secs(1);
        let to = [
            ("prepare", ToAgent::Prepare(Box::new(plan()))),
            ("ping", ToAgent::Ping { number: 1 }),
            ("step", ToAgent::Step { number: 1, order: order(100.0, duration.as_secs_f64()), start_ns: 5 }),
            ("stop", ToAgent::Stop),
            ("alive", ToAgent::Beat),
        ];
        let from = [
            ("welcome", FromAgent::Welcome(about)),
            ("busy", FromAgent::Busy { with: "a".to_owned() }),
            ("ready", FromAgent::Ready),
            ("refused", FromAgent::Refused { why: "no".to_owned() }),
            ("pong", FromAgent::Pong { number: 1, received_ns: 2, sent_ns: 3 }),
            ("beat", FromAgent::Beat { step: 1, counts: [3, 2, 1] }),
            (
                "done",
                FromAgent::Done { step: 1, started_ns: Some(9), counts: [10, 7, 3], part: Box::new(part) },
            ),
            ("failed", FromAgent::Failed { step: 1, why: "no".to_owned() }),
        ];
        let to = to.map(|(name, message)| (name, emit(&message).unwrap()));
        let from = from.map(|(name, message)| (name, emit(&message).unwrap()));
        to.into_iter().chain(from).map(|(name, octets)| (name, [&[63], &octets[..]].concat())).collect()
    }

    #[test]
    fn kept_corpus_has_no_finding_and_reaches_every_message() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/agent_message");
        let mut kept = Vec::new();
        for entry in std::fs::read_dir(folder).expect("the corpus is kept") {
            kept.push(std::fs::read(entry.unwrap().path()).unwrap());
        }
        let read_count = kept.iter().filter(|octets| agent_message(octets)).count();
        assert!(read_count >= 10, "{read_count} of {}", kept.len());
        // A corpus whose messages do not parse any more reaches nothing.
        let names = |octets: &[u8]| {
            let octets = octets.get(1..).unwrap_or_default();
            let (mut to, mut from) = (Inbox::<ToAgent>::new(), Inbox::<FromAgent>::new());
            to.push(octets);
            from.push(octets);
            let to = to.next().ok().flatten().map(|message| std::mem::discriminant(&message));
            let from = from.next().ok().flatten().map(|message| std::mem::discriminant(&message));
            (to, from)
        };
        let reached: Vec<_> = kept.iter().map(|octets| names(octets)).collect();
        for (name, octets) in seeds() {
            agent_message(&octets);
            assert!(reached.contains(&names(&octets)), "no {name} in the corpus");
        }
    }

    #[test]
    fn announced_length_takes_no_memory() {
        let mut inbox = Inbox::<FromAgent>::new();
        inbox.push(&FromAgent::SIZE_MAX.to_be_bytes());
        inbox.push(b"{");
        assert_eq!(inbox.next(), Ok(None));
        assert!(inbox.capacity() < 1024);
    }

    /// Else changes to messages would reach nothing.
    #[test]
    fn messages_that_inputs_change_are_all_that_there_are() {
        let kept: Vec<&Value> = MESSAGES.iter().collect();
        for (name, octets) in seeds() {
            let message: Value = serde_json::from_slice(&octets[1 + 4..]).unwrap();
            assert!(kept.contains(&&message), "{name} is not among the kept messages: {message}");
        }
        for index in 0..MESSAGES.len() as u8 {
            assert!(agent_message(&[63, 0x80 | index, 0]), "{}", MESSAGES[usize::from(index)]);
        }
    }

    #[test]
    #[ignore = "writes the kept messages, and the first inputs of the corpus"]
    fn write_seeds() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/agent_message");
        std::fs::create_dir_all(folder).unwrap();
        let mut lines = Vec::new();
        for (index, (name, octets)) in seeds().into_iter().enumerate() {
            lines.push(String::from_utf8(octets[1 + 4..].to_vec()).unwrap());
            std::fs::write(format!("{folder}/{name}"), octets).unwrap();
            std::fs::write(format!("{folder}/changed-{name}"), [63, 0x80 | index as u8, 1, 0, 9, 3, 200])
                .unwrap();
        }
        std::fs::write(format!("{folder}/lines"), format!("\u{7}{}", lines.join("\n"))).unwrap();
        let messages = concat!(env!("CARGO_MANIFEST_DIR"), "/src/agent/fuzzing/messages.json");
        std::fs::write(messages, format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
    }
}
