//! Time alone: what the adversary holds up, and what clocks do meanwhile.

use authentick_wire::time::NtpSpan;

use super::{BOUND, REJECT, STALL};
use crate::model::{START, TWENTY_YEARS};
use crate::protocol::E;
use crate::strategy::{Expected, LONG, Play, SHORT, Strategy};
use crate::verdict::Verdict;

/// A unit more or less would do, but the mean of two differences is rounded, and a server of NTP may move the time of
/// arrival by a unit, so that it is not that of departure.
const UP_TO_E: NtpSpan = NtpSpan::from_bits(E.to_bits() - 2);
const BEYOND_E: NtpSpan = NtpSpan::from_bits(E.to_bits() + 2);

pub(super) const ROWS: [Strategy; 8] = [
    Strategy {
        id: "faithful",
        title: "deliver everything, with the same delay both ways",
        says: "What an adversary does that does nothing. Clocks agree to the last unit.",
        play: |play| {
            play.exchange(SHORT, SHORT);
        },
        expected: Expected::all(Verdict::Bound),
    },
    Strategy {
        id: "delay-e",
        title: "hold the response back for E",
        says: "The error of an exchange is half the difference of the two ways, so here it is half of E: the bound of \
               the theorem is reached, and no sharper one would be true.",
        play: |play| {
            play.exchange(NtpSpan::ZERO, UP_TO_E);
        },
        expected: Expected::all(Verdict::Bound),
    },
    Strategy {
        id: "delay-beyond-e",
        title: "hold the response back for longer than E",
        says: "No authentication helps against a message that is late and genuine. Only a bound on the round trip \
               does: ANTP has one, and a client of other protocols may have.",
        play: |play| {
            play.exchange(NtpSpan::ZERO, BEYOND_E);
        },
        expected: Expected::by_bound(Verdict::Reject, Verdict::WinAccuracy),
    },
    Strategy {
        id: "delay-request",
        title: "hold the request back for longer than E",
        says: "The same on the way there: the error has the other sign.",
        play: |play| {
            play.exchange(BEYOND_E, NtpSpan::ZERO);
        },
        expected: Expected::by_bound(Verdict::Reject, Verdict::WinAccuracy),
    },
    Strategy {
        id: "late-setting",
        title: "let an hour pass between the arrival of a response and the setting of the clock",
        says: "A clock is set by an offset, from whatever it shows by then, so it does not matter how long that takes. \
               One that is set to the time of arrival plus the offset is an hour late.",
        play: |play| {
            let request = play.request();
            play.pass(SHORT);
            let answers = play.serve(&request);
            play.pass(SHORT);
            let victim = play.victim();
            for answer in answers {
                play.model_mut().send(victim, &answer, &[NtpSpan::ZERO, LONG]);
            }
        },
        expected: Expected::all(Verdict::Bound),
    },
    Strategy {
        id: "slow-server",
        title: "let three seconds pass between arrival and departure at the server",
        says: "The server says both times, so its own time does not count. ANTP bounds it as well, at two seconds.",
        play: |play| {
            let request = play.request();
            play.pass(SHORT);
            let answers = play.serve_slowly(&request, NtpSpan::from_nanos(3_000_000_000));
            play.pass(SHORT);
            play.deliver_all(&answers);
        },
        expected: Expected { antp: REJECT, antp_separate: REJECT, ..Expected::all(Verdict::Bound) },
    },
    Strategy {
        id: "decades-off",
        title: "start a client whose clock is decades off",
        says: "Offsets are differences of 64 bits, good for 68 years. But by such a clock no certificate is valid, so \
               NTS and ANTP bring no time until somebody vouches for the date.",
        play: |play| {
            play.victim_at(START - TWENTY_YEARS);
            play.exchange(SHORT, SHORT);
        },
        expected: Expected::of([BOUND, BOUND, BOUND, STALL, STALL, STALL]),
    },
    Strategy {
        id: "unequal-clocks",
        title: "let the client's clock run slower than the server's during an exchange",
        says: "Against the rules: nobody can tell time by a clock that runs as somebody else likes. The referee calls \
               it void, whatever the error is.",
        play: unequal_clocks,
        expected: Expected::all(Verdict::Void),
    },
];

fn unequal_clocks(play: &mut Play<'_>) {
    let request = play.request();
    let answers = play.serve(&request);
    // Three seconds for the server, of which the client notices half a second.
    play.pass(NtpSpan::from_nanos(3_000_000_000));
    let victim = play.victim();
    play.model_mut().tick_alone(victim, NtpSpan::from_nanos(-2_500_000_000));
    play.deliver_all(&answers);
}
