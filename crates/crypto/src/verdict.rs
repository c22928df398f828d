//! Whether a tag is right: the one thing computed from secrets that is public, and where it becomes so for memcheck
//! (`authentick_lanes::secrecy`). What it was computed from stays secret, also a text that was opened.

use authentick_lanes::secrecy;
use subtle::Choice;

/// Makes the outcome of a comparison in constant time public.
#[inline(always)]
pub(crate) fn of(equal: Choice) -> bool {
    secrecy::made_public(equal.unwrap_u8()) == 1
}

/// Makes public what a crate says that has compared by itself.
#[inline(always)]
pub(crate) fn made_public(is_genuine: bool) -> bool {
    secrecy::made_public(u8::from(is_genuine)) == 1
}
