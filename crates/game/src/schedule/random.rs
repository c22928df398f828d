//! Random schedules, and what the worst of them did.

use authentick_crypto::Entropy;
use authentick_wire::time::NtpSpan;
use serde::Serialize;

use super::{Board, Effect, Start};
use crate::protocol::Protocol;
use crate::referee::judge;

/// Moves of a schedule, if nobody says how many.
pub(super) const LENGTH: usize = 12;

/// What came of random schedules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wander {
    /// The protocol.
    pub protocol: String,
    /// Schedules.
    pub schedules: u64,
    /// Moves.
    pub moves: u64,
    /// Acceptances.
    pub believed: u64,
    /// Of these, wins of the adversary.
    pub wins: u64,
    /// The largest error of an acceptance that the client's server had said, in units of 2^-32 s.
    pub error_max: i64,
    /// The largest part of its round trip that such an error was, in thousandths: 500 is the bound.
    pub share_max: i64,
}

/// Plays `schedules` of `length` moves each, which follow from `seed`.
#[must_use]
pub fn wander(protocol: &dyn Protocol, seed: u64, schedules: u64, length: usize) -> Wander {
    const ROOM: usize = 12;
    let (mut moves, mut believed, mut wins) = (0, 0, 0);
    let (mut error_max, mut share_max) = (0, 0);
    let (board, model) = Board::new(protocol, seed, Start::Keyed, ROOM);
    for schedule in 0..schedules {
        let mut entropy = Entropy::from_seed(seed ^ schedule.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (mut board, mut model) = (board.clone(), model.fork());
        for _ in 0..length {
            // Delays of any length, up to half more than E: what is exhaustive knows two.
            if entropy.u64().is_multiple_of(4) {
                model.tick(NtpSpan::from_bits((entropy.u64() % (3 << 31)).cast_signed()));
            }
            let Some(one) = board.draw(&mut entropy) else { break };
            moves += 1;
            if board.make(&mut model, one) == Effect::Believed {
                believed += 1;
                let Some(last) = model.acceptances().last() else { continue };
                wins += u64::from(judge(last, None).is_win());
                if let Some(error) = last.error {
                    let (error, round_trip) = (error.to_bits(), last.round_trip.to_bits());
                    error_max = error_max.max(error);
                    // The mean of two differences is rounded, so that errors of a unit come of nothing.
                    share_max = share_max.max((error - 1).max(0).saturating_mul(1000) / round_trip.max(1));
                }
            }
        }
    }
    Wander { protocol: protocol.name().to_owned(), schedules, moves, believed, wins, error_max, share_max }
}
