//! Bodies of the fuzz targets of this crate; `fuzz/` calls them with new octets, the tests with the kept corpus.

use crate::Writer;
use crate::antp::{Antp, Chain, MAGIC, Message, VERSION};
use crate::extension::{self, FieldType, Fields};
use crate::ke::{AeadId, Response};
use crate::limits::{ANTP_PAYLOAD_SIZE_MAX, FIELD_HEADER_SIZE, HEADER_SIZE};
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

/// Any octets as an ANTP packet, as they are and as the value of each ANTP field: no panic, and what is read is what
/// would be written.
pub fn antp(octets: &[u8]) {
    antp_packet(octets);
    let mut packet = [0; ANTP_PAYLOAD_SIZE_MAX];
    let Some((&kind, value)) = octets.split_first() else { return };
    let mut out = Writer::new(&mut packet);
    let written = out.put(&[4 << 3 | 3]).and_then(|()| out.zeros(HEADER_SIZE - 1)).and_then(|()| {
        let body_size = MAGIC.len() + 1 + value.len();
        extension::emit_header(&mut out, FieldType(0xFA00 | u16::from(kind & 0x0F)), body_size)?;
        out.put(&MAGIC)?;
        out.put(&[VERSION])?;
        out.put(value)?;
        out.zeros(body_size.next_multiple_of(4) - body_size)
    });
    let size = out.offset();
    if written.is_ok() {
        antp_packet(&packet[..size]);
    }
}

fn antp_packet(octets: &[u8]) {
    let Ok(packet) = Packet::parse(octets) else { return };
    let Ok(Some(found)) = Antp::locate(&packet) else { return };
    assert!(octets.len() <= ANTP_PAYLOAD_SIZE_MAX && found.padding_size <= octets.len());
    let mut again = [0; 2 * ANTP_PAYLOAD_SIZE_MAX];
    again[..HEADER_SIZE].copy_from_slice(&octets[..HEADER_SIZE]);
    let mut out = Writer::new(&mut again[HEADER_SIZE..]);
    found.message.emit(&mut out).expect("what fitted a packet fits two");
    let size = HEADER_SIZE + out.offset();
    // A chunk that is shorter than its field can end in fewer octets than a field has.
    if let Ok(Some(second)) = Packet::parse(&again[..size]).and_then(|packet| Antp::locate(&packet)) {
        assert_eq!(second.message, found.message);
    } else {
        assert!(
            matches!(found.message, Message::NegotiationResponse(_, Some(chunk)) if chunk.octets.len() < 4)
        );
    }
}

/// Any octets as a certificate chain: no panic, and the certificates make the chain.
pub fn antp_chain(octets: &[u8]) {
    let Ok(chain) = Chain::parse(octets) else { return };
    let count = chain.certificates().count();
    assert!((1..=crate::limits::ANTP_CERTIFICATE_COUNT_MAX).contains(&count));
    let size: usize = chain.certificates().map(|certificate| 2 + certificate.len()).sum();
    assert_eq!(size, octets.len());
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
        replay("antp", super::antp);
        replay("antp_chain", super::antp_chain);
    }
}
