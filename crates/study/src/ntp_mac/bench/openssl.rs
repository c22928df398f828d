//! OpenSSL's MACs, each in the fastest way that its public interface offers to a safe program.
//!
//! - Keyed digests: the functions of each SHA; for MD5 the general ones, with an algorithm that is fetched once.
//! - HMAC: two digests whose states after the key's blocks are kept and copied.
//! - CMAC: AES-CBC under a kept key, its last block masked here. The CMAC of the `openssl` crate sets the key up each
//!   time, and `openssl speed -cmac` is slower than this.
//! - GMAC: AES-GCM without a text.
//! - Poly1305: ChaCha20-Poly1305 without a text. Its tag is that of the packet and a block with its length, so it has
//!   four blocks where ours has three; Poly1305 alone makes a key object for each packet and is ten times slower.
//!
//! GCM-SIV is not in OpenSSL 3.0.

use std::hint::black_box;

use authentick_crypto::mac::MacAlgorithm;
use authentick_game::mac::factors::named;
use authentick_report::mac::{Implementation, KeyUse};
use openssl::cipher::Cipher;
use openssl::cipher_ctx::CipherCtx;
use openssl::error::ErrorStack;
use openssl::hash::{Hasher, MessageDigest};
use openssl::md::Md;
use openssl::md_ctx::MdCtx;
use openssl::sha::{Sha1, Sha224, Sha256, Sha384, Sha512};

use super::SIZE;
use super::subject::{NONCE_SIZE, Subject, key_of, nonce, packet_work};

const BLOCK: usize = 16;
/// Octets of a block of the digests that HMAC is made of here.
const DIGEST_BLOCK: usize = 64;

/// Computes the tag of a packet, or of `SIZE` octets and more; returns its untruncated form.
type Compute = Box<dyn FnMut(u64, &[u8]) -> Result<[u8; 64], ErrorStack>>;

/// With a kept key, and with one that is set up for each packet; none for what OpenSSL lacks.
pub(super) fn subjects(algorithm: MacAlgorithm) -> Result<Vec<Subject>, ErrorStack> {
    let mut subjects = Vec::new();
    for key in [KeyUse::Kept, KeyUse::SetUp] {
        let Some(mut compute) = computation(algorithm, key)? else { continue };
        let work = packet_work(move |number, packet| {
            black_box(compute(number, packet).expect("it worked when it was compared with ours"));
        });
        subjects.push(Subject::single(named(algorithm), Implementation::OpenSsl, key, work));
    }
    Ok(subjects)
}

/// What is compared with ours.
pub(super) struct Compared {
    pub(super) tag: Vec<u8>,
    /// The message of which ours is the same.
    pub(super) message: Vec<u8>,
}

/// A tag for comparison; `None` for what OpenSSL lacks.
pub(super) fn single(
    algorithm: MacAlgorithm,
    key: KeyUse,
    number: u64,
    message: &[u8; SIZE],
) -> Result<Option<Compared>, ErrorStack> {
    let Some(mut compute) = computation(algorithm, key)? else { return Ok(None) };
    // A kept key that has been used must not remember the packet before.
    compute(number - 1, &[0; SIZE])?;
    let tag = compute(number, message)?.to_vec();
    let mut same = message.to_vec();
    if algorithm == MacAlgorithm::Poly1305 {
        same.extend((SIZE as u64).to_le_bytes());
        same.extend(0_u64.to_le_bytes());
    }
    Ok(Some(Compared { tag, message: same }))
}

fn computation(algorithm: MacAlgorithm, key_use: KeyUse) -> Result<Option<Compute>, ErrorStack> {
    let key = key_of(algorithm);
    /// A keyed digest by the functions of one SHA. There is no key to set up.
    macro_rules! digest {
        ($digest:ty) => {
            Box::new(move |_, message| {
                let mut digest = <$digest>::new();
                digest.update(key);
                digest.update(message);
                Ok(wide(&digest.finish()))
            })
        };
    }
    Ok(Some(match algorithm {
        MacAlgorithm::Md5 => md5(key)?,
        MacAlgorithm::Sha1 => digest!(Sha1),
        MacAlgorithm::Sha256 => digest!(Sha256),
        MacAlgorithm::Sha384 => digest!(Sha384),
        MacAlgorithm::Sha512 => digest!(Sha512),
        MacAlgorithm::HmacMd5 => hmac_md5(key, key_use)?,
        MacAlgorithm::HmacSha224 => hmac_sha224(key, key_use),
        MacAlgorithm::Cmac128 => cmac(Cipher::fetch(None, "AES-128-CBC", None)?, key, key_use)?,
        MacAlgorithm::Cmac256 => cmac(Cipher::fetch(None, "AES-256-CBC", None)?, key, key_use)?,
        MacAlgorithm::Gmac128 => aead(Cipher::fetch(None, "AES-128-GCM", None)?, key, key_use)?,
        MacAlgorithm::Poly1305 => aead(Cipher::fetch(None, "ChaCha20-Poly1305", None)?, key, key_use)?,
        MacAlgorithm::GmacSiv128 => return Ok(None),
    }))
}

fn wide(tag: &[u8]) -> [u8; 64] {
    let mut wide = [0; 64];
    wide[..tag.len()].copy_from_slice(tag);
    wide
}

fn md5(key: &'static [u8]) -> Result<Compute, ErrorStack> {
    let (md5, mut context) = (Md::fetch(None, "MD5", None)?, MdCtx::new()?);
    Ok(Box::new(move |_, message| {
        let mut tag = [0; 16];
        context.digest_init(&md5)?;
        context.digest_update(key)?;
        context.digest_update(message)?;
        context.digest_final(&mut tag)?;
        Ok(wide(&tag))
    }))
}

/// The blocks that HMAC begins its two digests with. RFC 2104 section 2.
fn pads(key: &[u8]) -> [[u8; DIGEST_BLOCK]; 2] {
    [0x36, 0x5c].map(|pad| {
        let mut block = [pad; DIGEST_BLOCK];
        block.iter_mut().zip(black_box(key)).for_each(|(octet, key)| *octet ^= key);
        block
    })
}

fn hmac_md5(key: &'static [u8], key_use: KeyUse) -> Result<Compute, ErrorStack> {
    let keyed = move || -> Result<[Hasher; 2], ErrorStack> {
        let [inner, outer] = pads(key);
        let mut hashers = [Hasher::new(MessageDigest::md5())?, Hasher::new(MessageDigest::md5())?];
        hashers[0].update(&inner)?;
        hashers[1].update(&outer)?;
        Ok(hashers)
    };
    let finish = |[mut inner, mut outer]: [Hasher; 2], message: &[u8]| {
        inner.update(message)?;
        outer.update(&inner.finish()?)?;
        Ok(wide(&outer.finish()?))
    };
    Ok(match key_use {
        KeyUse::Kept => {
            let kept = keyed()?;
            Box::new(move |_, message| finish(kept.clone(), message))
        }
        KeyUse::SetUp => Box::new(move |_, message| finish(keyed()?, message)),
    })
}

fn hmac_sha224(key: &'static [u8], key_use: KeyUse) -> Compute {
    let keyed = move || {
        pads(key).map(|pad| {
            let mut digest = Sha224::new();
            digest.update(&pad);
            digest
        })
    };
    let finish = |[mut inner, mut outer]: [Sha224; 2], message: &[u8]| {
        inner.update(message);
        outer.update(&inner.finish());
        Ok(wide(&outer.finish()))
    };
    match key_use {
        KeyUse::Kept => {
            let kept = keyed();
            Box::new(move |_, message| finish(kept.clone(), message))
        }
        KeyUse::SetUp => Box::new(move |_, message| finish(keyed(), message)),
    }
}

/// CMAC of a message of whole blocks. RFC 4493 section 2.4.
fn cmac(cipher: Cipher, key: &'static [u8], key_use: KeyUse) -> Result<Compute, ErrorStack> {
    const ZERO: [u8; BLOCK] = [0; BLOCK];
    let mut context = CipherCtx::new()?;
    let mut subkey = cmac_key(&mut context, &cipher, key)?;
    let mut out = [0; SIZE + BLOCK];
    Ok(Box::new(move |_, message| {
        if key_use == KeyUse::SetUp {
            subkey = cmac_key(&mut context, &cipher, black_box(key))?;
        }
        context.encrypt_init(None, None, Some(&ZERO))?;
        let mut masked = [0; SIZE];
        masked.copy_from_slice(message);
        masked[SIZE - BLOCK..].iter_mut().zip(subkey).for_each(|(octet, key)| *octet ^= key);
        context.cipher_update(&masked, Some(&mut out))?;
        Ok(wide(&out[SIZE - BLOCK..SIZE]))
    }))
}

/// Sets a key up, and returns K1: the encrypted zero block, doubled. RFC 4493 section 2.3.
fn cmac_key(context: &mut CipherCtx, cipher: &Cipher, key: &[u8]) -> Result<[u8; BLOCK], ErrorStack> {
    let mut encrypted = [0; 2 * BLOCK];
    context.encrypt_init(Some(cipher), Some(key), Some(&[0; BLOCK]))?;
    context.set_padding(false);
    context.cipher_update(&[0; BLOCK], Some(&mut encrypted))?;
    let (block, _) = encrypted.split_first_chunk().expect("it has two blocks");
    let zero = u128::from_be_bytes(*block);
    let carry = if zero >> 127 == 1 { 0x87 } else { 0 };
    Ok((zero << 1 ^ carry).to_be_bytes())
}

/// The tag of an AEAD without a text.
fn aead(cipher: Cipher, key: &'static [u8], key_use: KeyUse) -> Result<Compute, ErrorStack> {
    let mut context = CipherCtx::new()?;
    context.encrypt_init(Some(&cipher), Some(key), Some(&[0; NONCE_SIZE]))?;
    Ok(Box::new(move |number, message| {
        let nonce = nonce(number);
        match key_use {
            KeyUse::Kept => context.encrypt_init(None, None, Some(&nonce))?,
            KeyUse::SetUp => context.encrypt_init(Some(&cipher), Some(black_box(key)), Some(&nonce))?,
        }
        let mut tag = [0; BLOCK];
        context.cipher_update(message, None)?;
        context.cipher_final(&mut [])?;
        context.tag(&mut tag)?;
        Ok(wide(&tag))
    }))
}
