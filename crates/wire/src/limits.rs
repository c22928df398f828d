//! Sizes and counts of the wire formats, and how they relate.

/// The fixed NTP header. RFC 5905 section 7.3.
pub const HEADER_SIZE: usize = 48;

/// The longest datagram that is looked at: a jumbo-free Ethernet frame carries less.
pub const DATAGRAM_SIZE_MAX: usize = 2048;

/// An extension field's type and length.
pub const FIELD_HEADER_SIZE: usize = 4;

/// The shortest extension field, header included. RFC 7822 section 3.
pub const FIELD_SIZE_MIN: usize = 16;

/// The shortest last field of a packet without MAC. RFC 7822 section 3.
pub const LAST_FIELD_SIZE_MIN: usize = 28;

/// The longest legacy MAC: key identifier and a 20-octet digest. RFC 7822 section 3.
pub const MAC_SIZE_MAX: usize = 24;

/// The shortest unique identifier. RFC 8915 section 5.3.
pub const IDENTIFIER_SIZE_MIN: usize = 32;

/// The most placeholders that earn a cookie; a request carries one cookie beside them. RFC 8915 section 5.7.
pub const PLACEHOLDER_COUNT_MAX: usize = 7;

/// Cookies that a client keeps and a key exchange hands out. RFC 8915 section 4.1.6.
pub const COOKIE_COUNT: usize = PLACEHOLDER_COUNT_MAX + 1;

/// The longest cookie a client accepts, in octets; peers send 64 to 168.
pub const COOKIE_SIZE_MAX: usize = 512;

/// The most octets of a key exchange request that a server reads. RFC 8915 section 4 demands at least 1024.
//= rfc8915#4-8
pub const KE_REQUEST_SIZE_MAX: usize = 4096;

/// The most octets of a key exchange response that a client reads. RFC 8915 section 4 advises at least 65536.
//= rfc8915#4-9
pub const KE_RESPONSE_SIZE_MAX: usize = 65536;

/// The largest datagram with an ANTP message, in octets of UDP payload: it crosses any IPv6 path whole.
pub const ANTP_PAYLOAD_SIZE_MAX: usize = 1232;

/// The largest ANTP datagram unless both ends are configured for more: 1024 octets of fields, which receivers that
/// follow chrony's buffer sizes can take.
pub const ANTP_PAYLOAD_SIZE_DEFAULT: usize = HEADER_SIZE + 1024;

/// Suites that a negotiation request can offer.
pub const ANTP_SUITE_COUNT_MAX: usize = 8;

/// The longest certificate chain, in octets with the lengths between them: ten rounds of negotiation.
pub const ANTP_CHAIN_SIZE_MAX: usize = 8192;

/// Certificates in a chain. Public authorities use two or three.
pub const ANTP_CERTIFICATE_COUNT_MAX: usize = 8;

const _: () = assert!(ANTP_PAYLOAD_SIZE_DEFAULT < ANTP_PAYLOAD_SIZE_MAX, "the default is the cautious one");
const _: () = assert!(ANTP_PAYLOAD_SIZE_MAX < DATAGRAM_SIZE_MAX, "every ANTP datagram is read whole");
const _: () =
    assert!(ANTP_CHAIN_SIZE_MAX <= u16::MAX as usize, "a chain's size and offsets have sixteen bits");
const _: () = assert!(KE_REQUEST_SIZE_MAX >= 1024, "RFC 8915 section 4: servers take at least 1024 octets");
const _: () = assert!(LAST_FIELD_SIZE_MIN > MAC_SIZE_MAX, "a last field can never be mistaken for a MAC");
const _: () = assert!(
    HEADER_SIZE + COOKIE_COUNT * 172 < DATAGRAM_SIZE_MAX,
    "eight of the longest cookies in use (168 octets and a field header) fit a datagram"
);
