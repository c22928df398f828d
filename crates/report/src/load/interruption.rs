//! Why a run ended before its last step.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// Who ended a run. Stored as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Interruption {
    /// Its user.
    ByUser,
    /// Nobody knows: the record was written while the run went on.
    Unfinished,
    /// A fault, of this host or of an agent: which.
    Fault(String),
}

impl Deref for Interruption {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Interruption::ByUser => "stopped by the user",
            Interruption::Unfinished => "not finished; this was written while the run went on",
            Interruption::Fault(fault) => fault,
        }
    }
}

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl From<String> for Interruption {
    fn from(stored: String) -> Self {
        let mut known = [Interruption::ByUser, Interruption::Unfinished].into_iter();
        known.find(|known| **known == *stored).unwrap_or(Interruption::Fault(stored))
    }
}

impl From<Interruption> for String {
    fn from(interruption: Interruption) -> Self {
        interruption.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruption_is_stored_as_its_sentence() {
        for (interruption, text) in [
            (Interruption::ByUser, "\"stopped by the user\""),
            (Interruption::Unfinished, "\"not finished; this was written while the run went on\""),
            (Interruption::Fault("agent B: gone".to_owned()), "\"agent B: gone\""),
        ] {
            assert_eq!(serde_json::to_string(&interruption).unwrap(), text);
            assert_eq!(serde_json::from_str::<Interruption>(text).unwrap(), interruption);
        }
    }
}
