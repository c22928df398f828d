//! What key encapsulation takes on one thread: the crypto library's operation, and ours around it.

use std::hint::black_box;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_crypto::kem::{Kem, PrivateKey, PublicKey};
use authentick_net::clock::thread_cpu_ns;
use authentick_report::study::antp::{Primitive, Suite};
use aws_lc_rs::agreement::{self, ECDH_P256, UnparsedPublicKey};
use aws_lc_rs::rsa::{Pkcs1PrivateDecryptingKey, PrivateDecryptingKey};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, PublicKeyData, RsaKeySize};

use crate::Error;

/// Rounds in which all that is compared takes its turn; the median counts.
const ROUND_COUNT: usize = 9;

/// Both suites. Each operation runs for `turn` in each round.
pub(super) fn measure(turn: Duration) -> Result<Vec<Primitive>, Error> {
    let bug = |what: &str| Error::Bug(format!("cannot measure the primitives of ANTP: {what}"));
    let mut entropy = Entropy::from_system()?;
    let mut primitives = Vec::new();
    for suite in Suite::ALL {
        let (kem, pair) = match suite {
            Suite::Ecdh => (Kem::P256, KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)),
            Suite::Rsa => (Kem::RsaPkcs1, KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)),
        };
        let pair = pair.map_err(|error| bug(&error.to_string()))?;
        let der = pair.serialize_der();
        let private = PrivateKey::from_pkcs8(kem, &der).map_err(|bad| bug(&bad.to_string()))?;
        let public = PublicKey::from_spki(kem, &pair.subject_public_key_info())
            .map_err(|bad| bug(&bad.to_string()))?;
        let (ciphertext, _) = public.encapsulate(&mut entropy);
        let library = library(suite, &der).ok_or_else(|| bug("the library refuses the key"))?;
        if library(&ciphertext).is_none() || private.decapsulate(&ciphertext).is_none() {
            return Err(bug("what was encapsulated does not open"));
        }
        let [library_us, decapsulation_us, encapsulation_us] = medians(
            [
                &mut || {
                    black_box(library(black_box(&ciphertext)));
                },
                &mut || {
                    black_box(private.decapsulate(black_box(&ciphertext)));
                },
                &mut || {
                    black_box(public.encapsulate(&mut entropy));
                },
            ],
            turn,
        );
        primitives.push(Primitive { suite, library_us, decapsulation_us, encapsulation_us });
    }
    Ok(primitives)
}

/// Does something with a ciphertext; `None` if it is none.
type Operation = Box<dyn Fn(&[u8]) -> Option<()>>;

/// The library's own operation on a ciphertext, without anything of ours.
fn library(suite: Suite, der: &[u8]) -> Option<Operation> {
    match suite {
        Suite::Ecdh => {
            let key = agreement::PrivateKey::from_private_key_der(&ECDH_P256, der).ok()?;
            Some(Box::new(move |ciphertext| {
                let peer = UnparsedPublicKey::new(&ECDH_P256, ciphertext);
                agreement::agree(&key, peer, (), |secret| {
                    black_box(secret);
                    Ok(())
                })
                .ok()
            }))
        }
        Suite::Rsa => {
            let key = PrivateDecryptingKey::from_pkcs8(der).ok()?;
            let key = Pkcs1PrivateDecryptingKey::new(key).ok()?;
            Some(Box::new(move |ciphertext| {
                let mut text = [0; 256];
                key.decrypt(ciphertext, &mut text).ok().map(|text| {
                    black_box(text);
                })
            }))
        }
    }
}

/// Microseconds of each operation: medians over rounds.
fn medians(mut operations: [&mut dyn FnMut(); 3], turn: Duration) -> [f64; 3] {
    let mut rounds = [const { Vec::new() }; 3];
    for _ in 0..ROUND_COUNT {
        for (operation, times) in operations.iter_mut().zip(&mut rounds) {
            times.push(time(*operation, turn));
        }
    }
    rounds.map(|mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

/// Microseconds of processor time of an operation that is repeated for `turn`, at least once.
fn time(operation: &mut dyn FnMut(), turn: Duration) -> f64 {
    let (start, mut count) = (thread_cpu_ns(), 0.0);
    loop {
        operation();
        count += 1.0;
        let elapsed = Duration::from_nanos(thread_cpu_ns() - start);
        if elapsed >= turn {
            return elapsed.as_secs_f64() * 1e6 / count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_suites_are_measured_and_rsa_is_the_slower() {
        let primitives = measure(Duration::from_millis(2)).unwrap();
        assert_eq!(primitives.iter().map(|one| one.suite).collect::<Vec<_>>(), Suite::ALL);
        assert!(
            primitives.iter().all(|one| one.library_us > 0.0 && one.encapsulation_us > 0.0),
            "{primitives:?}"
        );
        assert!(primitives[1].library_us > primitives[0].library_us, "{primitives:?}");
    }
}
