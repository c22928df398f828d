//! Prefixes as people write them: what other programs take, and we do not, is refused with the form that is meant.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use authentick_proto::prefix::{Prefix, PrefixError};

/// What is wrong with a text, and the remedy.
type Mistake = (String, String);

/// Reads a prefix that can apply to clients.
///
/// # Errors
/// If it is not a prefix, or can never apply: IPv4 clients are known by their IPv4 address, and none has 0.0.0.0.
pub(super) fn parse(text: &str) -> Result<Prefix, Mistake> {
    let prefix: Prefix = match text.parse() {
        Ok(prefix) => prefix,
        Err(error) => return Err(mistake(text, error)),
    };
    let (address, length) = (prefix.address(), prefix.length());
    if let IpAddr::V6(v6) = address
        && let (Some(v4), Some(length)) = (v6.to_ipv4_mapped(), length.checked_sub(96))
    {
        let remedy =
            Prefix::new(v4.into(), length).map_or_else(String::new, |prefix| format!("write \"{prefix}\""));
        return Err(("without effect: IPv4 clients are known by their IPv4 address".to_owned(), remedy));
    }
    if address.is_unspecified() && (length == 32 && address.is_ipv4() || length == 128) {
        let remedy = format!("write \"{address}/0\" for all addresses of {}", family(address));
        return Err(("without effect: clients never have this address".to_owned(), remedy));
    }
    Ok(prefix)
}

/// The family of an address, for messages.
pub(crate) const fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn mistake(text: &str, error: PrefixError) -> Mistake {
    let plain = text.trim();
    let write = |prefix: Prefix| format!("write \"{prefix}\"");
    match plain.to_ascii_lowercase().as_str() {
        "all" | "any" | "*" | "everyone" | "everybody" | "world" | "0/0" => {
            return (
                "unknown prefix: there is no word for all addresses".to_owned(),
                "write \"0.0.0.0/0\" for IPv4 and \"::/0\" for IPv6".to_owned(),
            );
        }
        "none" | "" => return ("unknown prefix".to_owned(), "write [] for an empty list".to_owned()),
        "localhost" | "local" | "loopback" => {
            return (
                "a name: expected an address".to_owned(),
                "write \"127.0.0.0/8\" for IPv4 and \"::1\" for IPv6".to_owned(),
            );
        }
        _ => {}
    }
    if plain != text
        && let Ok(prefix) = plain.parse()
    {
        return ("a prefix with white space around it".to_owned(), write(prefix));
    }
    match error {
        PrefixError::HostBits(prefix) => ("bits beyond the prefix are set".to_owned(), write(prefix)),
        PrefixError::Length => length_mistake(plain),
        PrefixError::Address => match shortened(plain) {
            Some(prefix) => ("an address that is not whole".to_owned(), write(prefix)),
            None => (
                "invalid prefix: expected ADDRESS/LENGTH".to_owned(),
                "write it as in \"192.0.2.0/24\" or \"2001:db8::/32\"".to_owned(),
            ),
        },
    }
}

/// A good address, and behind the slash something else than a length of its family.
fn length_mistake(text: &str) -> Mistake {
    let (address, length) = text.split_once('/').unwrap_or((text, ""));
    if let (Ok(address), Ok(mask)) = (address.parse::<Ipv4Addr>(), length.parse::<Ipv4Addr>()) {
        let bits = mask.to_bits();
        let prefix = Prefix::new(address.into(), bits.leading_ones() as u8);
        if let Some(prefix) =
            prefix.filter(|_| bits.leading_ones() + bits.trailing_zeros() == 32 || bits == 0)
        {
            return ("a netmask: expected a prefix length".to_owned(), format!("write \"{prefix}\""));
        }
    }
    let bound = if address.parse::<Ipv6Addr>().is_ok() { 128 } else { 32 };
    (
        "the prefix length is out of range".to_owned(),
        format!("write a length from 0 to {bound} behind the slash"),
    )
}

/// The prefix of an IPv4 address whose last octets are left out or asterisks, as in `10/8`, `192.168.1` or `127.*`.
fn shortened(text: &str) -> Option<Prefix> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let parts: Vec<&str> = address.trim_end_matches('.').split('.').collect();
    let known: Vec<u8> = parts.iter().map_while(|part| part.parse().ok()).collect();
    let is_short =
        known.len() < 4 && parts.len() <= 4 && parts[known.len()..].iter().all(|part| *part == "*");
    if known.is_empty() || !is_short || length.is_none() && parts.len() == 1 {
        return None;
    }
    let mut octets = [0; 4];
    octets[..known.len()].copy_from_slice(&known);
    Prefix::new(Ipv4Addr::from(octets).into(), length.unwrap_or(known.len() as u8 * 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_of_another_program_is_refused_with_ours() {
        for (text, expected) in [
            ("all", "\"0.0.0.0/0\" for IPv4 and \"::/0\""),
            ("ANY", "\"0.0.0.0/0\" for IPv4 and \"::/0\""),
            ("localhost", "\"127.0.0.0/8\""),
            ("10/8", "\"10.0.0.0/8\""),
            ("192.168.1", "\"192.168.1.0/24\""),
            ("192.168.1.", "\"192.168.1.0/24\""),
            ("127.*", "\"127.0.0.0/8\""),
            ("10.1.*.*", "\"10.1.0.0/16\""),
            ("127.0.0.0/255.0.0.0", "\"127.0.0.0/8\""),
            ("127.0.0.5/8", "\"127.0.0.0/8\""),
            (" 127.0.0.0/8 ", "\"127.0.0.0/8\""),
            ("127.0.0.0/33", "0 to 32"),
            ("::1/129", "0 to 128"),
            ("127.0.0.0/255.0.255.0", "0 to 32"),
            ("::ffff:127.0.0.0/104", "\"127.0.0.0/8\""),
            ("::ffff:127.0.0.1", "\"127.0.0.1/32\""),
            ("0.0.0.0", "\"0.0.0.0/0\""),
            ("::", "\"::/0\""),
            ("time.example.net", "\"192.0.2.0/24\""),
            ("", "[]"),
            ("7", "\"192.0.2.0/24\""),
        ] {
            let (problem, remedy) = parse(text).unwrap_err();
            assert!(!problem.is_empty() && remedy.contains(expected), "{text}: {problem}; {remedy}");
        }
        for text in ["127.0.0.1", "0.0.0.0/0", "::/0", "2001:db8::/32", "::1", "0.0.0.0/8"] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }
}
