//! A message as it is on the net, with what authenticates it: what the adversary sees, and what it makes.
//!
//! In a packet the nonce travels in an extension field, which the tag covers too; a salt does not travel. What an
//! attack needs of a packet is what stands in that field, the octets under the MAC, and the tag; what it gives back is
//! the same.

use std::fmt::Write as _;

use authentick_wire::mac::{MacFields, NONCE_BODY_SIZE};
use authentick_wire::packet::Packet;
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// Octets of a nonce.
pub const NONCE_SIZE: usize = NONCE_BODY_SIZE;

/// A nonce of GMAC's: the salt, which does not travel, and what was drawn.
#[must_use]
pub fn salted(salt: [u8; 4], drawn: [u8; 8]) -> [u8; NONCE_SIZE] {
    let mut nonce = [0; NONCE_SIZE];
    nonce[..4].copy_from_slice(&salt);
    nonce[4..].copy_from_slice(&drawn);
    nonce
}

/// A message and its tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagged {
    /// Salt and nonce, under an algorithm that takes one. Of a packet: what its nonce field says, which lacks the salt.
    pub nonce: Option<[u8; NONCE_SIZE]>,
    /// The octets that the tag is about.
    pub message: Vec<u8>,
    /// The tag, or its first octets.
    pub tag: Vec<u8>,
}

impl Tagged {
    /// What a packet with a MAC behind it says, and the identifier of the key; `None` for any other packet. The message
    /// is all that the tag covers, nonce field included.
    #[must_use]
    pub fn from_packet(packet: &[u8]) -> Option<(u32, Tagged)> {
        let fields = MacFields::locate(&Packet::parse(packet).ok()?)?;
        let message = packet[..fields.covered_size()].to_vec();
        let nonce = fields.nonce_of(packet).copied();
        Some((fields.key_id, Tagged { nonce, message, tag: fields.digest.of(packet).to_vec() }))
    }

    /// The packet with a MAC behind it. RFC 5905 section 7.3.
    #[must_use]
    pub fn to_packet(&self, key_id: u32) -> Vec<u8> {
        [&self.message[..], &key_id.to_be_bytes(), &self.tag].concat()
    }
}

impl Serialize for Tagged {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Tagged", 3)?;
        fields.serialize_field("nonce", &self.nonce.map(|nonce| hex(&nonce)))?;
        fields.serialize_field("message", &hex(&self.message))?;
        fields.serialize_field("tag", &hex(&self.tag))?;
        fields.end()
    }
}

/// Octets as hexadecimal digits.
#[must_use]
pub fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::with_capacity(2 * octets.len()), |mut text, octet| {
        write!(text, "{octet:02x}").expect("writing to a string cannot fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_and_what_it_says_are_turned_into_each_other() {
        let mut message = vec![0; 48];
        message[0] = 4 << 3 | 3;
        let tagged = Tagged { nonce: None, message, tag: vec![9; 16] };
        let packet = tagged.to_packet(7);
        assert_eq!((packet.len(), Tagged::from_packet(&packet)), (68, Some((7, tagged))));
        assert_eq!(Tagged::from_packet(&packet[..48]), None);
        let mut message = vec![0; 64];
        message[0] = 4 << 3 | 3;
        message[48..52].copy_from_slice(&[0xfb, 0x01, 0, 16]);
        message[52..].fill(5);
        let tagged = Tagged { nonce: Some([5; 12]), message, tag: vec![9; 16] };
        assert_eq!(Tagged::from_packet(&tagged.to_packet(7)), Some((7, tagged)));
        assert_eq!(Tagged::from_packet(&packet[..47]), None);
    }

    #[test]
    fn json_has_hexadecimal_digits() {
        let tagged = Tagged { nonce: Some([0xab; 12]), message: vec![1, 0x2f], tag: Vec::new() };
        let json = serde_json::to_string(&tagged).unwrap();
        assert_eq!(json, r#"{"nonce":"abababababababababababab","message":"012f","tag":""}"#);
    }
}
