//! TLS for fuzz targets: a server whose key everybody knows, and clients that trust it.

use std::sync::{Arc, LazyLock};

use authentick_wire::ke::AeadId;
use rustls::ServerConfig;
use rustls::pki_types::ServerName;

use crate::client::Ask;
use crate::tls::{Identity, Roots, client_config, server_config};

/// A certificate of the key below for `fuzz.test`, from 2020 to 9999, signed with the same key.
const CERTIFICATE: &[u8] = include_bytes!("certificate.pem");

/// Ed25519 with 32 octets of 0x41.
const KEY: &[u8] = b"-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIEFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB\n\
    -----END PRIVATE KEY-----\n";

/// The server's settings, the same for every input: they take longer to make than a handshake.
pub(crate) static SERVER: LazyLock<Arc<ServerConfig>> = LazyLock::new(|| {
    let identity = Identity::from_pem(CERTIFICATE, KEY).expect("the certificate is of the key");
    server_config(&identity)
});

/// What a client asks that trusts this server.
pub(crate) static ASK: LazyLock<Ask> = LazyLock::new(|| Ask {
    tls: client_config(Roots::from_pem(CERTIFICATE).expect("it is a certificate")),
    server_name: ServerName::try_from("fuzz.test").expect("it is a name"),
    aeads: vec![AeadId::AES_128_GCM_SIV, AeadId::SIV_CMAC_256],
});
