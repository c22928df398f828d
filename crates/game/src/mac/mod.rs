//! The game of message authentication codes: what draft-aanchal4-ntp-mac-00 and draft-ietf-ntp-mac say of them, as programs.

pub mod digest;
pub mod gmac_nonce;
pub mod length_extension;
pub mod others;
pub mod poly1305_nonce;
pub mod tagged;
pub mod victim;
