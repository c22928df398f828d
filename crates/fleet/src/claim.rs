//! What a node that takes over says before it does: that it begins a new term.

use crate::name::Name;
use crate::text::{Lines, TextError, digits, number, octets};

/// Octets of a nonce.
pub const NONCE_SIZE: usize = 16;

/// Random octets by which something that is said now is told from what was said earlier.
pub type Nonce = [u8; NONCE_SIZE];

const MAGIC: &str = "authentick-fleet-claim 1";

/// The claim of a term. A node that keeps one takes and writes nothing of a lower term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The term, higher than any that its taker knew.
    pub term: u64,
    /// Who takes over.
    pub taker: Name,
    /// Drawn for this claim: an answer to an earlier one, of a taker that has lost its disk, is none to this one.
    pub nonce: Nonce,
}

impl Claim {
    /// The text, for the store.
    #[must_use]
    pub fn emit(&self, fleet: &Name) -> String {
        format!("{MAGIC}\nfleet {fleet}\nclaim {}\n", self.value())
    }

    /// The claim that a text makes in this fleet.
    ///
    /// # Errors
    /// If it makes none.
    pub fn parse(text: &str, fleet: &Name) -> Result<Self, TextError> {
        let lines = Lines::parse(text, MAGIC, &["fleet", "claim"], None)?;
        lines.one("fleet", |name| (name == fleet.as_str()).then_some(()))?;
        lines.one("claim", Claim::of)
    }

    /// The value of a line that holds a claim.
    pub(crate) fn value(&self) -> String {
        format!("{} {} {}", self.term, self.taker, digits(&self.nonce))
    }

    /// The claim that a line holds.
    pub(crate) fn of(value: &str) -> Option<Self> {
        let mut words = value.split(' ');
        let (term, taker, nonce) = (words.next()?, words.next()?, words.next()?);
        let claim = Claim { term: number(term)?, taker: Name::new(taker)?, nonce: octets(nonce)? };
        words.next().is_none().then_some(claim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim_is_read_back_in_its_own_fleet_alone() {
        let name = |text| Name::new(text).expect("it is a name");
        let claim = Claim { term: 7, taker: name("b"), nonce: [0xa5; NONCE_SIZE] };
        let text = claim.emit(&name("f"));
        assert_eq!(Claim::parse(&text, &name("f")), Ok(claim));
        assert_eq!(Claim::parse(&text, &name("g")), Err(TextError::Value("fleet")));
        assert_eq!(Claim::parse(&text.replace("7 b", "07 b"), &name("f")), Err(TextError::Value("claim")));
        assert_eq!(Claim::parse(&text.replace("a5\n", "a5 x\n"), &name("f")), Err(TextError::Value("claim")));
    }
}
