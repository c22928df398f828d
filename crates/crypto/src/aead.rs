//! AEAD algorithms of NTS, run over batches of independent jobs.
//!
//! The unit of work is a batch: [`SealBatch`] and [`OpenBatch`] take any number of jobs with different keys and
//! lengths, sort them by algorithm and run them side by side where the processor has AES instructions. On every other
//! processor they go through the RustCrypto crates, one at a time.

use aes::{Aes128, Aes192, Aes256};
use aes_gcm_siv::Aes128GcmSiv;
use aes_gcm_siv::aead::{AeadInOut, KeyInit};
use aes_siv::siv::CmacSiv;
pub use authentick_lanes::{Algorithm, CachedKey, Key, KeyRef, Open, Seal, TAG_SIZE, Text};
use authentick_lanes::{Path, Queue};

use crate::batch::{Batch, Job};
use crate::verdict;

/// Texts to encrypt. A nonce of a size that its algorithm does not accept is a mistake of who makes the job.
pub type SealBatch<'a> = Batch<Seal<'a>>;

/// Texts to verify and decrypt.
pub type OpenBatch<'a> = Batch<Open<'a>>;

impl Job for Seal<'_> {
    type Queue = Queue<Self>;

    #[inline(always)]
    fn push(self, path: Path, queue: &mut Queue<Self>) {
        let is_accepted = self.key.algorithm().accepts_nonce(self.nonce.len());
        assert!(is_accepted, "nonces are made to the algorithm's size");
        match path {
            Path::Portable => seal_one(self),
            Path::Vaes512 | Path::Vaes256 | Path::AesNi => queue.push(self),
        }
    }
}

impl Job for Open<'_> {
    type Queue = Queue<Self>;

    #[inline(always)]
    fn push(self, path: Path, queue: &mut Queue<Self>) {
        if !self.key.algorithm().accepts_nonce(self.nonce.len()) {
            self.text.into_out().fill(0);
            *self.genuine = false;
            return;
        }
        match path {
            Path::Portable => open_one(self),
            Path::Vaes512 | Path::Vaes256 | Path::AesNi => queue.push(self),
        }
    }
}

/// The octets of a key.
fn first<const N: usize>(key: KeyRef<'_>) -> &[u8; N] {
    key.expose().first_chunk().expect("a key has as many octets as its algorithm's keys")
}

fn seal_one(job: Seal<'_>) {
    let Seal { key, nonce, associated, text, tag } = job;
    let headers = associated.into_iter().chain([nonce]);
    let made = match key.algorithm() {
        Algorithm::SivCmac256 => {
            CmacSiv::<Aes128>::new(first::<32>(key).into()).encrypt_inout_detached(headers, text)
        }
        Algorithm::SivCmac384 => {
            CmacSiv::<Aes192>::new(first::<48>(key).into()).encrypt_inout_detached(headers, text)
        }
        Algorithm::SivCmac512 => {
            CmacSiv::<Aes256>::new(first::<64>(key).into()).encrypt_inout_detached(headers, text)
        }
        Algorithm::Aes128GcmSiv => Aes128GcmSiv::new(first::<16>(key).into()).encrypt_inout_detached(
            nonce.try_into().expect("the size was checked"),
            associated.unwrap_or_default(),
            text,
        ),
    };
    // This cannot fail: a packet is far shorter than any limit, and there are at most two headers.
    *tag = made.expect("a packet is within every limit of the algorithm").into();
}

fn open_one(mut job: Open<'_>) {
    let key = job.key;
    let headers = job.associated.into_iter().chain([job.nonce]);
    let text = job.text.reborrow();
    let tag = &(*job.tag).into();
    let opened = match key.algorithm() {
        Algorithm::SivCmac256 => {
            CmacSiv::<Aes128>::new(first::<32>(key).into()).decrypt_inout_detached(headers, text, tag)
        }
        Algorithm::SivCmac384 => {
            CmacSiv::<Aes192>::new(first::<48>(key).into()).decrypt_inout_detached(headers, text, tag)
        }
        Algorithm::SivCmac512 => {
            CmacSiv::<Aes256>::new(first::<64>(key).into()).decrypt_inout_detached(headers, text, tag)
        }
        Algorithm::Aes128GcmSiv => Aes128GcmSiv::new(first::<16>(key).into()).decrypt_inout_detached(
            job.nonce.try_into().expect("the size was checked"),
            job.associated.unwrap_or_default(),
            text,
            tag,
        ),
    };
    *job.genuine = verdict::made_public(opened.is_ok());
    if !*job.genuine {
        job.text.into_out().fill(0);
    }
}

#[cfg(test)]
mod tests;
