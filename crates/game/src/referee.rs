//! Who has won: the goals of the game, after what clients have believed.
//!
//! Reconstructed from the paper's sections 4 and 5, whose definitions 3 and 4 could not be had: a client session is
//! wrong if it believed time in a phase, was fresh by then, and either no session of its server has said this to this
//! request ([`Verdict::WinAuthentication`]), or one has, and the two clocks differ by more than delta
//! ([`Verdict::WinAccuracy`]). Delta is half of E, as the error of an exchange is half its round trip at most. Later
//! compromise does not undo an earlier acceptance.

use authentick_wire::time::NtpSpan;

use crate::model::{Acceptance, Clause, Model, SessionId};
use crate::protocol::E;
use crate::verdict::Verdict;

/// Delta: how wrong a clock may be.
pub const DELTA: NtpSpan = NtpSpan::from_bits(E.to_bits() / 2);

/// What came of one acceptance, if freshness asks for all clauses but that one.
#[must_use]
pub fn judge(acceptance: &Acceptance, without: Option<Clause>) -> Verdict {
    let mut broken = acceptance.broken.iter().filter(|clause| Some(**clause) != without);
    if acceptance.broken.contains(&Clause::Symmetric) && without != Some(Clause::Symmetric) {
        return Verdict::Void;
    }
    let verdict = match acceptance.error {
        None => Verdict::WinAuthentication,
        Some(error) if error > DELTA => Verdict::WinAccuracy,
        Some(_) => Verdict::Bound,
    };
    if verdict.is_win() && broken.next().is_some() { Verdict::Unfresh } else { verdict }
}

/// The worst that came of a client's acceptances from number `from` on; `None` if it believed nothing.
#[must_use]
pub fn worst(model: &Model<'_>, client: SessionId, from: usize, without: Option<Clause>) -> Option<Verdict> {
    let acceptances = model.acceptances().iter().skip(from);
    acceptances.filter(|acceptance| acceptance.session == client).map(|one| judge(one, without)).min()
}
