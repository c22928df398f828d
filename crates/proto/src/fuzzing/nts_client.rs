//! Responses to a client of NTS: octets that nobody sealed, and the same behind a tag that is right, as the server that
//! gave the keys might send them.

use authentick_crypto::{Algorithm, Entropy};
use authentick_wire::Writer;
use authentick_wire::extension::{self, FieldType};
use authentick_wire::limits::{COOKIE_COUNT, DATAGRAM_SIZE_MAX, HEADER_SIZE, IDENTIFIER_SIZE_MIN};
use authentick_wire::nts::{Span, emit_authenticator};

use super::{seal, session_keys};
use crate::client::{Exchange, NtsSession};

/// Where the identifier stands in a request: in its first field, behind that field's header.
const IDENTIFIER_AT: usize = HEADER_SIZE + 4;

/// Any octets as a response to an NTS request: none of them passes without the right tag, not even those that repeat
/// its identifier. Behind a right tag at most one passes, with a time that can be followed, and brings what there is
/// room for in the jar; but for one bit of the tag or of the text, or with the identifier of another request, none
/// does.
pub fn client_response(octets: &[u8]) {
    let asked = Asked::new(Algorithm::SivCmac256);
    asked.refuses(&asked.aimed(octets));
    let Some((header, rest)) = octets.split_first_chunk::<HEADER_SIZE>() else { return };
    if let Some(response) = asked.identified(&asked.identifier, header, |out| out.put(rest)) {
        asked.refuses(&response);
    }
    let Some((&shape, rest)) = rest.split_first() else { return };
    let cut = usize::from(shape >> 2) * rest.len() / 64;
    sealed(Algorithm::ALL[usize::from(shape) & 3], header, &rest[..cut], &rest[cut..]);
}

/// A client that has asked.
struct Asked {
    session: NtsSession,
    exchange: Exchange,
    /// The transmit timestamp, which a response repeats as its origin.
    token: [u8; 8],
    identifier: [u8; IDENTIFIER_SIZE_MIN],
}

impl Asked {
    fn new(algorithm: Algorithm) -> Self {
        let mut session = NtsSession::new(session_keys(algorithm), None);
        session.jar.add(&[7; 100]);
        let mut request = [0; DATAGRAM_SIZE_MAX];
        let (exchange, _) =
            Exchange::nts(&mut session, &mut Entropy::from_seed(3), &mut request).expect("there is a cookie");
        let token = *request[40..].first_chunk().expect("it has a header");
        let identifier = *request[IDENTIFIER_AT..].first_chunk().expect("it has an identifier");
        Asked { session, exchange, token, identifier }
    }

    /// `octets` past the origin check, which a fuzzer cannot guess.
    fn aimed(&self, octets: &[u8]) -> Vec<u8> {
        let mut response = octets.to_vec();
        if let Some(header) = response.first_chunk_mut::<HEADER_SIZE>() {
            header[24..32].copy_from_slice(&self.token);
        }
        response
    }

    /// A response of the right mode and version with an identifier, and what follows; `None` if that is too much.
    fn identified(
        &self,
        identifier: &[u8; IDENTIFIER_SIZE_MIN],
        header: &[u8; HEADER_SIZE],
        rest: impl FnOnce(&mut Writer<'_>) -> Result<(), authentick_wire::NoRoom>,
    ) -> Option<Vec<u8>> {
        let mut octets = vec![0; DATAGRAM_SIZE_MAX];
        let mut out = Writer::new(&mut octets);
        let mut header = self.aimed(header);
        header[0] = header[0] & 0xC0 | 0x24;
        out.put(&header).ok()?;
        extension::emit(&mut out, FieldType::UNIQUE_IDENTIFIER, identifier).ok()?;
        rest(&mut out).ok()?;
        let size = out.offset();
        octets.truncate(size);
        Some(octets)
    }

    /// The same with `fields`, and `plaintext` encrypted behind them, under the right key; and where that is.
    fn sealed(
        &self,
        identifier: &[u8; IDENTIFIER_SIZE_MIN],
        header: &[u8; HEADER_SIZE],
        [fields, plaintext]: [&[u8]; 2],
    ) -> Option<(Vec<u8>, Span)> {
        let algorithm = self.session.algorithm();
        let nonce = &[7; 16][..algorithm.nonce_size()];
        let mut placed = None;
        let mut response = self.identified(identifier, header, |out| {
            out.put(fields)?;
            out.zeros(fields.len().next_multiple_of(4) - fields.len())?;
            let associated_size = out.offset();
            let (_, sealed) = emit_authenticator(out, nonce, 16 + plaintext.len(), 0)?;
            placed = Some((associated_size, sealed));
            Ok(())
        })?;
        let (associated_size, place) = placed?;
        let key = session_keys(algorithm);
        seal(key.s2c(), nonce, &mut response, associated_size, place, plaintext)?;
        Some((response, place))
    }

    fn refuses(&self, response: &[u8]) {
        let (mut exchange, mut session) = (self.exchange.clone(), self.session.clone());
        let end = exchange.receive(&mut response.to_vec(), Some(&mut session));
        assert!(end.is_err(), "a forged response passed");
        assert_eq!(session.jar.count(), 0, "it brought cookies");
    }
}

/// `fields` and what is encrypted behind them, under the right key.
fn sealed(algorithm: Algorithm, header: &[u8; HEADER_SIZE], fields: &[u8], plaintext: &[u8]) {
    let asked = Asked::new(algorithm);
    let texts = [fields, plaintext];
    let Some((mut response, place)) = asked.sealed(&asked.identifier, header, texts) else { return };
    for at in [place.start(), place.end() - 1] {
        response[at] ^= 1;
        asked.refuses(&response);
        response[at] ^= 1;
    }
    let mut identifier = asked.identifier;
    identifier[0] ^= 1;
    if let Some((response, _)) = asked.sealed(&identifier, header, texts) {
        asked.refuses(&response);
    }
    let Asked { mut session, mut exchange, .. } = asked;
    match exchange.receive(&mut response.clone(), Some(&mut session)) {
        Ok(passed) => {
            assert!((1..16).contains(&passed.header.stratum), "a server without time gives none");
            assert!(!passed.header.receive.is_zero() && !passed.header.transmit.is_zero());
            assert_eq!(session.jar.count(), passed.cookie_count);
            assert!(passed.cookie_count <= COOKIE_COUNT);
            let again = exchange.receive(&mut response, Some(&mut session));
            assert!(again.is_err(), "one response each");
            assert_eq!(session.jar.count(), passed.cookie_count);
        }
        // A kiss that is genuine brings cookies, too.
        Err(_) => assert!(session.jar.count() <= COOKIE_COUNT),
    }
}
