//! Bodies of the fuzz targets of this crate; `fuzz/` calls them with new octets, the tests with the kept corpus.

use crate::extension::Fields;
use crate::ke::{AeadId, Response};
use crate::limits::{FIELD_HEADER_SIZE, HEADER_SIZE};
use crate::mac::MacFields;
use crate::nts::{self, NtsFields};
use crate::packet::{Packet, Trailer};

/// Any octets as a packet: no panic, and header, fields and trailer add up to the datagram.
pub fn packet(octets: &[u8]) {
    let Ok(packet) = Packet::parse(octets) else { return };
    let fields: usize = packet.fields().map(|field| field.end() - field.offset).sum();
    let trailer = match packet.trailer() {
        Trailer::None => 0,
        Trailer::CryptoNak => 4,
        Trailer::Mac { digest, .. } => 4 + digest.len(),
    };
    assert_eq!(HEADER_SIZE + fields + trailer, octets.len());
    let mut header = [0; HEADER_SIZE];
    packet.header().emit(&mut header);
    assert_eq!(header, octets[..HEADER_SIZE]);
    if let Some(mac) = MacFields::locate(&packet) {
        assert_eq!(mac.digest.end(), octets.len());
        assert_eq!(octets[mac.covered_size()..][..4], mac.key_id.to_be_bytes());
        assert!(mac.nonce.is_none_or(|nonce| nonce.end() == mac.covered_size()));
    }
    if let Ok(fields) = NtsFields::locate(&packet) {
        let spans = [fields.identifier, fields.cookie].into_iter().flatten();
        let inner = fields.authenticator.iter().flat_map(|a| [a.nonce, a.ciphertext]);
        spans.chain(inner).for_each(|span| assert_eq!(span.of(octets).len(), span.size()));
    }
}

/// Any octets as a decrypted text of extension fields: no panic, and the fields add up.
pub fn extension_fields(octets: &[u8]) {
    let mut end = 0;
    let mut whole = true;
    for field in Fields::new(octets, 0, FIELD_HEADER_SIZE) {
        match field {
            Ok(field) => {
                assert_eq!(field.offset, end);
                end = field.end();
            }
            Err(malformed) => {
                assert_eq!(malformed.offset, end);
                whole = false;
            }
        }
    }
    assert_eq!(whole, end == octets.len());
    let _ = nts::count_encrypted_placeholders(octets, 100);
}

/// Any octets as a key exchange response: no panic, and an agreement is on something that was offered.
pub fn ke_response(octets: &[u8]) {
    let offered = [AeadId::AES_128_GCM_SIV, AeadId::SIV_CMAC_256];
    if let Ok(Response::Agreed(agreement)) = Response::parse(octets, &offered) {
        assert!(offered.contains(&agreement.aead));
        assert!(agreement.cookies().count() > 0);
        assert_ne!(agreement.port, Some(0));
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    fn replay(target: &str, run: fn(&[u8])) {
        let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let mut count = 0;
        for entry in std::fs::read_dir(folder).expect("the corpus is kept") {
            run(&std::fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 10, "{target}: {count}");
    }

    #[test]
    fn kept_corpora_have_no_finding() {
        replay("packet", super::packet);
        replay("extension_fields", super::extension_fields);
        replay("ke_response", super::ke_response);
    }
}
