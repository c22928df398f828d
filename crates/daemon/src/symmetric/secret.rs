//! The octets of a key, as one program or the other writes them.

use authentick_crypto::mac::{MacAlgorithm, MacKey};
use authentick_proto::symmetric::{SALT_SIZE, SymmetricKey};
use zeroize::Zeroizing;

use super::entry::{Entry, Prefixed, Wrong, prefix, wrong};
use super::keys::{Dialect, Warning};
use super::types::is_ours;

/// ntpd reads a key of more characters as hexadecimal.
pub(super) const NTP_TEXT_SIZE_MAX: usize = 20;
/// ntpd cuts a longer key.
pub(super) const NTP_KEY_SIZE_MAX: usize = 32;
/// chrony warns of shorter keys: 80 bits.
const SOUND_SIZE_MIN: usize = 10;

/// The key of a line. `format` is whose file it is as the reader says, `dialect` as anything shows.
pub(super) fn key(
    entry: &Entry<'_>,
    algorithm: MacAlgorithm,
    format: Option<Dialect>,
    dialect: Option<Dialect>,
    warnings: &mut Vec<Warning>,
) -> Result<SymmetricKey, Wrong> {
    let (line, id) = (entry.line, entry.id);
    let Decoded { octets, salt } = decode(entry, algorithm, format, dialect, warnings)?;
    if octets.len() < SOUND_SIZE_MIN {
        let bits = 8 * octets.len();
        let problem = format!("has {bits} bits; fewer than 80 can be guessed");
        warnings.push(Warning { line, id, problem });
    }
    let key = MacKey::new(algorithm, &octets)
        .map_err(|error| (format!("key {id}: {error}"), size_remedy(algorithm)))?;
    let key = SymmetricKey::new(id, key);
    Ok(match salt {
        Some(salt) => key.with_salt(salt).expect("a salt was read only for GMAC"),
        None => key,
    })
}

struct Decoded {
    octets: Zeroizing<Vec<u8>>,
    salt: Option<[u8; SALT_SIZE]>,
}

impl Decoded {
    fn text(text: &[u8]) -> Self {
        Decoded { octets: Zeroizing::new(text.to_vec()), salt: None }
    }
}

fn decode(
    entry: &Entry<'_>,
    algorithm: MacAlgorithm,
    format: Option<Dialect>,
    dialect: Option<Dialect>,
    warnings: &mut Vec<Warning>,
) -> Result<Decoded, Wrong> {
    let (id, word) = (entry.id, entry.word);
    if prefix(word).is_some() && format == Some(Dialect::Ntp) && !is_ours(algorithm) {
        let problem = format!("key {id}: ntpd knows neither HEX: nor ASCII: before a key");
        return wrong(problem, "write more than 20 hexadecimal digits alone, or read the file as chrony's");
    }
    match prefix(word) {
        Some(Prefixed::Hex(digits)) => return decode_hex(id, algorithm, digits),
        Some(Prefixed::Ascii(b"")) => {
            return wrong(format!("key {id}: nothing after ASCII:"), "write the key there");
        }
        Some(Prefixed::Ascii(text)) => return Ok(Decoded::text(text)),
        None => {}
    }
    let lower = word.to_ascii_lowercase();
    let lower = Zeroizing::new(lower);
    if lower.starts_with(b"hex:") || lower.starts_with(b"ascii:") {
        let problem =
            format!("key {id}: chrony knows HEX: and ASCII: in capitals only, and takes this for text");
        return wrong(problem, "write HEX: or ASCII: in capitals");
    }
    if word.len() <= NTP_TEXT_SIZE_MAX {
        return Ok(Decoded::text(word));
    }
    let is_hex = word.iter().all(u8::is_ascii_hexdigit);
    let fits = |size: usize| algorithm.key_sizes().contains(&size);
    let is_text = match entry.named.or(dialect) {
        _ if format == Some(Dialect::Chrony) => true,
        _ if format == Some(Dialect::Ntp) => false,
        // Chrony refuses such a line: as hexadecimal it is at least the key that was meant.
        Some(Dialect::Chrony) => !is_hex || fits(word.len()),
        Some(Dialect::Ntp) => false,
        None => !is_hex,
    };
    if is_text {
        return Ok(Decoded::text(word));
    }
    if !is_hex {
        let problem =
            format!("key {id}: ntpd takes a key of more than 20 characters for hexadecimal, and this is not");
        return wrong(problem, "write it in hexadecimal");
    }
    if word.len() > 2 * NTP_KEY_SIZE_MAX {
        let problem = format!("key {id}: {} octets, of which ntpd uses the first 32", word.len() / 2);
        return wrong(problem, "write 64 hexadecimal digits at most, or HEX: before them for more");
    }
    if entry.named.or(dialect).is_none() && !is_ours(algorithm) && fits(word.len()) && fits(word.len() / 2) {
        let problem = format!(
            "is read as {} octets in hexadecimal, as ntpd does; to chrony it is {} characters of text: write HEX: or \
             ASCII: before it, or say whose file it is",
            word.len() / 2,
            word.len()
        );
        warnings.push(Warning { line: entry.line, id, problem });
    }
    decode_hex(id, algorithm, word)
}

/// Hexadecimal digits, and with GMAC a salt after a colon.
fn decode_hex(id: u32, algorithm: MacAlgorithm, digits: &[u8]) -> Result<Decoded, Wrong> {
    let (digits, salt) = match digits.iter().position(|&octet| octet == b':') {
        None => (digits, None),
        Some(_) if algorithm != MacAlgorithm::Gmac128 => {
            let problem = format!("key {id}: a salt after the key, and {algorithm} takes none");
            return wrong(problem, "remove the colon and what follows it");
        }
        Some(colon) => {
            let salt = hex(id, "salt", &digits[colon + 1..])?;
            let salt = salt.as_slice().try_into();
            let salt = salt.or_else(|_| {
                wrong(format!("key {id}: a salt has 4 octets"), "write 8 digits after the colon")
            })?;
            (&digits[..colon], Some(salt))
        }
    };
    Ok(Decoded { octets: hex(id, "key", digits)?, salt })
}

fn hex(id: u32, what: &str, digits: &[u8]) -> Result<Zeroizing<Vec<u8>>, Wrong> {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        let problem = format!("key {id}: something in the {what} is no hexadecimal digit");
        return wrong(problem, "write digits and the letters A to F, or ASCII: for text");
    }
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        let problem = format!("key {id}: {} hexadecimal digits in the {what}", digits.len());
        return wrong(problem, "write two for each octet; one may be missing");
    }
    let nibble = |digit: u8| (digit as char).to_digit(16).expect("all are hexadecimal") as u8;
    let octets = digits.chunks_exact(2).map(|pair| nibble(pair[0]) << 4 | nibble(pair[1]));
    // The size is known, so that no copy of a secret is left behind by growth.
    Ok(Zeroizing::new(octets.collect()))
}

fn size_remedy(algorithm: MacAlgorithm) -> String {
    let sizes = algorithm.key_sizes();
    match sizes.start() == sizes.end() {
        true => format!("write HEX: and {} digits; nothing is padded or cut here", 2 * sizes.start()),
        false => format!("write a key of {} to {} octets", sizes.start(), sizes.end()),
    }
}
