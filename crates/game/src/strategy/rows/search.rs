//! Without a plan: random moves, and those that make the victim's clock as wrong as can be.

use authentick_crypto::Entropy;
use authentick_wire::time::NtpSpan;

use super::{BOUND, WIN};
use crate::model::{OTHER_CLIENT, START};
use crate::protocol::E;
use crate::schedule::{Change, Known};
use crate::strategy::{Expected, Play, Strategy};
use crate::verdict::Verdict;

/// Moves of the random one.
const MOVES: usize = 600;

pub(super) const ROWS: [Strategy; 2] = [
    Strategy {
        id: "random",
        title: "make six hundred random moves",
        says: "Requests, responses, changes to either and delays in any order. It is long enough to find what a plain \
               client loses by, and short delays only, so that nobody else loses.",
        play: random,
        expected: Expected::of([WIN, BOUND, BOUND, BOUND, BOUND, BOUND]),
    },
    Strategy {
        id: "greedy",
        title: "try delays of all lengths on either way, and keep what makes the largest error",
        says: "Where there is a bound, the largest error that is believed is half of it, and greed ends there. Where \
               there is none, it does not end.",
        play: greedy,
        expected: Expected::by_bound(Verdict::Bound, Verdict::WinAccuracy),
    },
];

fn random(play: &mut Play<'_>) {
    /// Messages that it looks at: the last few.
    const SIGHT: usize = 8;
    let request = play.request();
    let (other, first) = play.client(OTHER_CLIENT, START);
    play.up_to_time(other, first);
    let (victim, protocol) = (play.victim(), play.protocol());
    let mut entropy = Entropy::from_seed(play.model().log().seed);
    let mut below = |count: usize| entropy.u64() as usize % count.max(1);
    let mut known = vec![Known::new(protocol, &request)];
    for _ in 0..MOVES {
        play.pass(NtpSpan::from_nanos(below(1_000_000) as i64));
        if below(4) == 0 {
            let client = if below(2) == 0 { victim } else { other };
            let request = play.go_on(client);
            let request = play.up_to_time(client, request);
            known.push(Known::new(protocol, &request));
        }
        known.drain(..known.len().saturating_sub(SIGHT));
        let index = below(known.len());
        let changes = Change::all(&known, index);
        let change = if below(2) == 0 { Change::Nothing } else { changes[below(changes.len())] };
        let Some(message) = change.make(&known, index) else { continue };
        if known[index].is_request && change != Change::Reflect {
            let answers = play.serve(&message);
            known.extend(answers.iter().map(|answer| Known::new(protocol, answer)));
        } else {
            play.deliver(if below(3) == 0 { other } else { victim }, &message);
        }
    }
}

fn greedy(play: &mut Play<'_>) {
    /// Delays that are tried, as parts of E.
    const EIGHTHS: i64 = 12;
    let delay = |eighths: i64| NtpSpan::from_bits(E.to_bits() / 8 * eighths);
    for there in 0..=EIGHTHS {
        for back in 0..=EIGHTHS - there {
            play.exchange(delay(there), delay(back));
        }
    }
}
