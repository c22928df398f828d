//! RSA-2048 without padding, over aws-lc-sys: what aws-lc-rs does not offer, as it reports bad padding as an error.
//!
//! The private operation is blinded by the library. Padding, and what to do about a wrong one, is in [`super`].

use std::ptr::NonNull;

use aws_lc_sys as lc;
use zeroize::Zeroizing;

/// Octets of the modulus.
pub(super) const MODULUS_SIZE: usize = 256;

/// An RSA key of 2048 bits. The library overwrites a private one when it is freed.
pub(super) struct RsaKey(NonNull<lc::RSA>);

// SAFETY: openssl/rsa.h of AWS-LC: an RSA "may be used concurrently on multiple threads by non-mutating functions,
// provided no other thread is concurrently calling a mutating function"; encryption and decryption are non-mutating.
unsafe impl Send for RsaKey {}
// SAFETY: As above.
unsafe impl Sync for RsaKey {}

/// Which half of a key pair is to be read.
#[derive(Clone, Copy)]
enum Half {
    Private,
    Public,
}

impl RsaKey {
    /// A private key in PKCS#8; `None` if it is none of 2048 bits.
    pub(super) fn from_pkcs8(der: &[u8]) -> Option<Self> {
        RsaKey::parse(der, Half::Private)
    }

    /// A public key as a SubjectPublicKeyInfo; `None` if it is none of 2048 bits.
    pub(super) fn from_spki(der: &[u8]) -> Option<Self> {
        RsaKey::parse(der, Half::Public)
    }

    fn parse(der: &[u8], half: Half) -> Option<Self> {
        let mut cbs = std::mem::MaybeUninit::<lc::CBS>::uninit();
        // SAFETY: The place is ours to write; `der` outlives all uses of what is written: they end with this function.
        unsafe { lc::CBS_init(cbs.as_mut_ptr(), der.as_ptr(), der.len()) };
        // SAFETY: `CBS_init` has set all fields.
        let mut cbs = unsafe { cbs.assume_init() };
        let pkey = match half {
            // SAFETY: `cbs` is initialised and covers `der`.
            Half::Private => unsafe { lc::EVP_parse_private_key(&mut cbs) },
            // SAFETY: As above.
            Half::Public => unsafe { lc::EVP_parse_public_key(&mut cbs) },
        };
        let pkey = NonNull::new(pkey)?;
        // SAFETY: `pkey` is a live key; the result has a reference of its own, or is null for one that is not RSA.
        let rsa = unsafe { lc::EVP_PKEY_get1_RSA(pkey.as_ptr()) };
        // SAFETY: The reference that the parser gave is ours and is not used any more.
        unsafe { lc::EVP_PKEY_free(pkey.as_ptr()) };
        let key = RsaKey(NonNull::new(rsa)?);
        // SAFETY: `cbs` still covers `der`; only its length is read.
        let left = unsafe { lc::CBS_len(&cbs) };
        // SAFETY: The key is alive.
        let bits = unsafe { lc::RSA_bits(key.0.as_ptr()) };
        (left == 0 && bits as usize == 8 * MODULUS_SIZE).then_some(key)
    }

    /// The private operation on `input`; `None` if it is not below the modulus, which is public.
    pub(super) fn decrypt_raw(&self, input: &[u8; MODULUS_SIZE]) -> Option<Zeroizing<[u8; MODULUS_SIZE]>> {
        let mut out = Zeroizing::new([0; MODULUS_SIZE]);
        self.apply(lc::RSA_decrypt, input, &mut out).then_some(out)
    }

    /// The public operation on `input`; `None` if it is not below the modulus.
    pub(super) fn encrypt_raw(&self, input: &[u8; MODULUS_SIZE]) -> Option<[u8; MODULUS_SIZE]> {
        let mut out = [0; MODULUS_SIZE];
        self.apply(lc::RSA_encrypt, input, &mut out).then_some(out)
    }

    /// One of the two operations, without padding; whether there is a result.
    fn apply(&self, operation: Operation, input: &[u8; MODULUS_SIZE], out: &mut [u8; MODULUS_SIZE]) -> bool {
        let mut size = 0;
        // SAFETY: Both buffers have the sizes that are said, and neither operation keeps a pointer. The key is not
        // changed but for its blinding, which the library locks.
        let done = unsafe {
            operation(
                self.0.as_ptr(),
                &mut size,
                out.as_mut_ptr(),
                MODULUS_SIZE,
                input.as_ptr(),
                MODULUS_SIZE,
                lc::RSA_NO_PADDING,
            )
        };
        clear_errors(done);
        done == 1 && size == MODULUS_SIZE
    }
}

/// `RSA_decrypt` or `RSA_encrypt`: key, size of the result, its place and room, the input and its size, padding.
type Operation = unsafe extern "C" fn(*mut lc::RSA, *mut usize, *mut u8, usize, *const u8, usize, i32) -> i32;

/// A failure leaves an entry in the thread's queue of errors, which nobody reads.
fn clear_errors(done: i32) {
    if done != 1 {
        // SAFETY: The queue belongs to this thread.
        unsafe { lc::ERR_clear_error() };
    }
}

impl Drop for RsaKey {
    fn drop(&mut self) {
        // SAFETY: The reference is ours and was not freed before.
        unsafe { lc::RSA_free(self.0.as_ptr()) };
    }
}

/// An error on purpose, as the one in `net`, but made by the library: it shows that its C is looked at too.
#[cfg(all(test, authentick_sanitizer))]
mod sanitizer {
    use std::hint::black_box;
    use std::ptr;

    use super::lc;

    #[test]
    #[ignore = "a control: AddressSanitizer ends it"]
    fn aws_lc_writes_behind_the_end_of_a_block() {
        let mut block = vec![0_u8; size_of::<lc::CBS>() / 2];
        // SAFETY: none. The block is too small, and this is the error.
        unsafe { lc::CBS_init(black_box(block.as_mut_ptr()).cast(), ptr::null(), 0) };
        black_box(block);
    }
}
