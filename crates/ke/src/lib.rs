//! NTS key establishment over TLS 1.3: an event-driven server, and a client. RFC 8915 section 4.
//!
//! The only crate that knows TLS. It shares cookies and keys with the rest through `proto`, and can run on hosts that
//! serve no time.
#![forbid(unsafe_code)]

#[cfg(feature = "client")]
pub mod client;
#[cfg(any(all(test, feature = "client", feature = "server"), feature = "fuzzing"))]
pub mod fuzzing;
#[cfg(feature = "server")]
pub mod ntp_servers;
#[cfg(feature = "client")]
pub mod ocsp;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod session;
pub mod tls;

use authentick_crypto::{Algorithm, Key};
use authentick_proto::cookie::SessionKeys;
use authentick_wire::ke::{AeadId, PROTOCOL_NTPV4};
use zeroize::Zeroizing;

/// The application protocol that both sides must agree on. RFC 8915 section 4.
//= rfc8915#4-1
pub const ALPN: &[u8] = b"ntske/1";

/// The port for key exchange. RFC 8915 section 7.1.
pub const PORT: u16 = 4460;

//= rfc8915#4.3-2, rfc8915#5.1-2
const EXPORTER_LABEL: &[u8] = b"EXPORTER-network-time-security";

/// Exports the keys of a session out of its TLS connection. `context` is the AEAD number that goes into the exporter's
/// context: `algorithm`'s own, but for the quirk that [`quirky_context`] names. RFC 8915 section 5.1.
//= rfc8915#5.1-1, rfc8915#5.1-4, rfc8915#5.1-5, rfc8915#5.1-3, rfc8915#4.3-3
fn export_keys(
    algorithm: Algorithm,
    context: AeadId,
    export: impl Fn(&mut [u8], &[u8]) -> Result<(), rustls::Error>,
) -> Result<SessionKeys, rustls::Error> {
    let key = |direction: u8| {
        let ([protocol_high, protocol_low], [high, low]) =
            (PROTOCOL_NTPV4.to_be_bytes(), context.0.to_be_bytes());
        let mut octets = Zeroizing::new([0; 64]);
        let octets = &mut octets[..algorithm.key_size()];
        export(octets, &[protocol_high, protocol_low, high, low, direction])?;
        Ok::<_, rustls::Error>(Key::new(algorithm, octets).expect("the size is the algorithm's"))
    };
    Ok(SessionKeys::new(&key(0)?, &key(1)?).expect("both are of one algorithm"))
}

/// The AEAD number in the exporter's context where one side did not send record 1024: chrony 4.4 to 4.6.0 export keys
/// for AES-128-GCM-SIV as if for AEAD 15. chrony, "NTS AES-128-GCM-SIV compliant exporter".
const fn quirky_context(algorithm: Algorithm, compliant_128gcm: bool) -> AeadId {
    match algorithm {
        Algorithm::Aes128GcmSiv if !compliant_128gcm => AeadId::SIV_CMAC_256,
        _ => authentick_proto::auth::nts::aead_id(algorithm),
    }
}
