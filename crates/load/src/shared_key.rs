//! A symmetric key as part of a plan: it goes to agents as JSON, only over mutual TLS, and is neither printed nor kept
//! in a record.

use std::fmt;

use authentick_crypto::mac::{MacAlgorithm, MacKey};
use authentick_crypto::wipe;
use authentick_proto::symmetric::{SALT_SIZE, SymmetricKey};
use serde::{Deserialize, Serialize};

/// The key that all clients of a run share with the server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedKey {
    id: u32,
    /// The name of the algorithm in key files.
    algorithm: String,
    octets: Vec<u8>,
    salt: Option<[u8; SALT_SIZE]>,
}

impl From<&SymmetricKey> for SharedKey {
    fn from(key: &SymmetricKey) -> Self {
        SharedKey {
            id: key.id(),
            algorithm: key.algorithm().name().to_owned(),
            octets: key.key().expose().to_vec(),
            salt: key.salt(),
        }
    }
}

impl SharedKey {
    /// The key, expanded.
    ///
    /// # Errors
    /// A sentence, if the parts make no key: a plan of another version may name what is not known here.
    pub fn expand(&self) -> Result<SymmetricKey, String> {
        let algorithm = MacAlgorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == self.algorithm)
            .ok_or_else(|| format!("key {}: no MAC algorithm is called {:?}", self.id, self.algorithm))?;
        let wrong = |error: &dyn fmt::Display| format!("key {}: {error}", self.id);
        let key = MacKey::new(algorithm, &self.octets).map_err(|error| wrong(&error))?;
        match (SymmetricKey::new(self.id, key), self.salt) {
            _ if self.id == 0 => Err("the key identifier 0 stands for no key".to_owned()),
            (key, None) => Ok(key),
            (key, Some(salt)) => key.with_salt(salt).map_err(|error| wrong(&error)),
        }
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedKey({}, {})", self.id, self.algorithm)
    }
}

impl Drop for SharedKey {
    fn drop(&mut self) {
        wipe(&mut self.octets);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A key under which nobody serves.
    pub(crate) fn key(algorithm: MacAlgorithm) -> SymmetricKey {
        SymmetricKey::new(7, MacKey::new(algorithm, &vec![1; *algorithm.key_sizes().start()]).unwrap())
    }

    #[test]
    fn key_goes_through_json_whole_and_prints_no_secret() {
        let salted = key(MacAlgorithm::Gmac128).with_salt(*b"salt").unwrap();
        for key in MacAlgorithm::ALL.map(key).into_iter().chain([salted]) {
            let shared = SharedKey::from(&key);
            let json = serde_json::to_string(&shared).unwrap();
            let again: SharedKey = serde_json::from_str(&json).unwrap();
            assert_eq!(again, shared);
            let expanded = again.expand().unwrap();
            assert_eq!(
                (expanded.id(), expanded.algorithm(), expanded.salt()),
                (7, key.algorithm(), key.salt())
            );
            assert_eq!(expanded.key().expose(), key.key().expose());
            assert_eq!(format!("{again:?}"), format!("SharedKey(7, {})", key.algorithm()));
        }
    }

    #[test]
    fn parts_that_make_no_key_are_named() {
        let good = SharedKey::from(&key(MacAlgorithm::Cmac128));
        let error = |change: &dyn Fn(&mut SharedKey)| {
            let mut bad = good.clone();
            change(&mut bad);
            bad.expand().unwrap_err()
        };
        assert!(error(&|key| key.algorithm = "AES129".to_owned()).contains("\"AES129\""));
        assert!(error(&|key| key.octets.push(0)).contains("16 octets, this one has 17"));
        assert!(error(&|key| key.salt = Some([0; 4])).contains("has no salt"));
        assert!(error(&|key| key.id = 0).contains("identifier 0"));
    }
}
