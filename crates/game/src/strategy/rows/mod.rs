//! What adversaries do, by what they need for it.

mod delay;
mod denial;
mod forgery;
mod negotiation;
mod search;
mod secrets;

use super::Strategy;
use crate::verdict::Verdict;

const WIN: Option<Verdict> = Some(Verdict::WinAuthentication);
const REJECT: Option<Verdict> = Some(Verdict::Reject);
const BOUND: Option<Verdict> = Some(Verdict::Bound);
const STALL: Option<Verdict> = Some(Verdict::Stall);
const UNFRESH: Option<Verdict> = Some(Verdict::Unfresh);

pub(super) fn all() -> Vec<Strategy> {
    [&delay::ROWS[..], &forgery::ROWS, &negotiation::ROWS, &secrets::ROWS, &denial::ROWS, &search::ROWS]
        .concat()
}
