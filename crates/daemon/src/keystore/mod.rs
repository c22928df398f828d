//! Where the keys of cookies and of ANTP's state outlive the process.

pub(crate) mod age;
mod cookie;
mod file;
mod lines;
mod state;

use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::KeySet;

pub use file::{KeyFileError, SetFile, Stored, Turned};
pub use lines::Lines;

/// The file of cookie keys.
pub type KeyFile = SetFile<KeySet>;
/// The file of ANTP's state keys.
pub type StateKeyFile = SetFile<StateKeys>;
