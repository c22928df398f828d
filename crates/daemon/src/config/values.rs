//! Values that occur in more than one section: addresses, paths, numbers, durations, rates. A value of a wrong form and
//! one out of range are different mistakes, with different messages.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use authentick_net::udp::SOCKET_COUNT_MAX;
use authentick_proto::antp::source::PrefixSizes;
use authentick_proto::prefix::Prefix;
use authentick_proto::server::limit::Rate;

use super::{ConfigError, ListenAddress, Resolver, prefixes, raw};

impl Resolver<'_> {
    pub(super) fn wrong(
        &self,
        key: &str,
        value: impl fmt::Display,
        problem: impl fmt::Display,
        remedy: &str,
    ) -> ConfigError {
        ConfigError::new(self.file, key, value, problem, remedy)
    }

    /// Refuses the first key that is given, each with whether it is.
    pub(super) fn refuse_given(
        &self,
        keys: &[(&str, bool)],
        problem: &str,
        remedy: &str,
    ) -> Result<(), ConfigError> {
        match keys.iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => Err(self.wrong(key, "", problem, remedy)),
            None => Ok(()),
        }
    }

    /// What one of `words` stands for, the first if none is said; `what` is what they are all names of.
    pub(super) fn word<T: Clone>(
        &self,
        key: &str,
        text: Option<&str>,
        what: &str,
        words: &[(&str, T)],
    ) -> Result<T, ConfigError> {
        let text = text.unwrap_or(words[0].0);
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(meaning.clone());
        }
        let mut quoted: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let last = quoted.pop().unwrap_or_default();
        let remedy = match quoted.is_empty() {
            true => format!("write {last}"),
            false => format!("write {} or {last}", quoted.join(", ")),
        };
        Err(self.wrong(key, text, format!("unknown {what}"), &remedy))
    }

    /// The addresses of `key`, each once, or `otherwise`; none if the list is empty.
    pub(super) fn addresses(
        &self,
        key: &str,
        texts: Option<Vec<String>>,
        otherwise: [&str; 2],
    ) -> Result<Vec<ListenAddress>, ConfigError> {
        let texts = texts.unwrap_or_else(|| otherwise.map(str::to_owned).into());
        let addresses: Vec<ListenAddress> =
            texts.iter().map(|text| self.address(key, text)).collect::<Result<_, _>>()?;
        let twice = addresses
            .iter()
            .enumerate()
            .find(|(index, address)| address.port() != 0 && addresses[..*index].contains(address));
        if let Some((_, address)) = twice {
            return Err(self.wrong(key, address, "listed twice", "remove one of them"));
        }
        if addresses.len() > SOCKET_COUNT_MAX {
            let problem = format!("more than {SOCKET_COUNT_MAX} addresses");
            return Err(self.wrong(key, addresses.len(), problem, "listen on a wildcard address instead"));
        }
        Ok(addresses)
    }

    pub(super) fn thread_count(&self, key: &str, count: i64) -> Result<usize, ConfigError> {
        const THREAD_COUNT_MAX: usize = 1024;
        let valid = usize::try_from(count).ok().filter(|count| *count <= THREAD_COUNT_MAX);
        let remedy = format!("write 0 for one per processor, or a number up to {THREAD_COUNT_MAX}");
        valid.ok_or_else(|| self.wrong(key, count, "out of range", &remedy))
    }

    pub(super) fn absolute(&self, key: &str, text: &str) -> Result<PathBuf, ConfigError> {
        let path = PathBuf::from(text);
        match path.is_absolute() {
            true => Ok(path),
            false => Err(self.wrong(key, text, "relative path", "write a path that starts with a slash")),
        }
    }

    pub(super) fn prefixes(&self, key: &str, texts: &[String]) -> Result<Vec<Prefix>, ConfigError> {
        let prefix = |text: &String| {
            prefixes::parse(text).map_err(|(problem, remedy)| self.wrong(key, text, problem, &remedy))
        };
        texts.iter().map(prefix).collect()
    }

    /// A number in `range`, which is one of those that `T` has.
    pub(super) fn number<T: TryFrom<i64>>(
        &self,
        key: &str,
        value: i64,
        range: RangeInclusive<i64>,
    ) -> Result<T, ConfigError> {
        let number = T::try_from(value).ok().filter(|_| range.contains(&value));
        let remedy = format!("write a number from {} to {}", range.start(), range.end());
        number.ok_or_else(|| self.wrong(key, value, "out of range", &remedy))
    }

    pub(super) fn duration(
        &self,
        key: &str,
        text: &str,
        range: RangeInclusive<Duration>,
    ) -> Result<Duration, ConfigError> {
        let duration = humantime::parse_duration(text).map_err(|_| {
            let (problem, example) = match text.trim().parse::<u64>() {
                Ok(number) => {
                    let example = describe_duration(Duration::from_secs(number));
                    ("a duration without a unit", format!("write \"{example}\", if these are seconds"))
                }
                Err(_) => (
                    "invalid duration: expected a number and a unit",
                    "write \"90s\", \"12h\" or \"1d\"".to_owned(),
                ),
            };
            self.wrong(key, text, problem, &example)
        })?;
        if range.contains(&duration) {
            return Ok(duration);
        }
        let (least, most) = (describe_duration(*range.start()), describe_duration(*range.end()));
        Err(self.wrong(key, text, "out of range", &format!("write a duration from {least} to {most}")))
    }

    /// The rate of `key`, over the prefixes and with the burst of `raw`.
    pub(super) fn rate(
        &self,
        raw: &raw::RateLimit,
        key: &str,
        per_second: f64,
    ) -> Result<Option<Rate>, ConfigError> {
        let PrefixSizes { v4: prefix_v4, v6: prefix_v6 } = self.prefix_sizes(raw)?;
        let burst = self.number("server.rate-limit.burst", raw.burst.unwrap_or(16), 1..=1_000_000)?;
        let interval_us = self.interval_us(key, per_second)?;
        Ok(interval_us.map(|interval_us| Rate { interval_us, burst, prefix_v4, prefix_v6 }))
    }

    /// The sizes of the prefixes whose clients are limited together.
    pub(super) fn prefix_sizes(&self, raw: &raw::RateLimit) -> Result<PrefixSizes, ConfigError> {
        Ok(PrefixSizes {
            v4: self.number("server.rate-limit.per-prefix-v4", raw.per_prefix_v4.unwrap_or(32), 1..=32)?,
            v6: self.number("server.rate-limit.per-prefix-v6", raw.per_prefix_v6.unwrap_or(64), 1..=128)?,
        })
    }

    /// Microseconds between two at this rate; `None` for no limit.
    pub(super) fn interval_us(&self, key: &str, per_second: f64) -> Result<Option<u64>, ConfigError> {
        if per_second == 0.0 {
            return Ok(None);
        }
        if !(0.000_1..=1_000_000.0).contains(&per_second) {
            let remedy = "write 0 for no limit, or a number from 0.0001 to 1000000";
            return Err(self.wrong(key, per_second, "out of range", remedy));
        }
        Ok(Some((1e6 / per_second) as u64))
    }
}

/// A duration as a configuration has it, in units of one length: no months, which have several.
pub(super) fn describe_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [
        (u128::from(seconds / 86_400), "d"),
        (u128::from(seconds % 86_400 / 3600), "h"),
        (u128::from(seconds % 3600 / 60), "m"),
        (u128::from(seconds % 60), "s"),
        (u128::from(duration.subsec_millis()), "ms"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect();
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// The address and port that an IPv6 address without brackets may be meant as: `::1:123`, but not `::1`.
pub(super) fn unbracketed(text: &str) -> Option<SocketAddr> {
    let (head, digits) = text.rsplit_once(':')?;
    let port: u16 = digits.parse().ok().filter(|port| *port != 0)?;
    let head = if head == ":" && port > 1 { "::" } else { head };
    Some((head.parse::<Ipv6Addr>().ok()?, port).into())
}

/// What is wrong with a text that is not an address and a port, and the remedy. A wildcard is proposed for what all
/// clients may reach, and loopback for metrics and probes.
pub(super) fn address_mistake(key: &str, text: &str) -> (String, String) {
    let here: SocketAddr = match key {
        "metrics.listen" => (Ipv4Addr::LOCALHOST, 9975).into(),
        "health.listen" => (Ipv4Addr::LOCALHOST, 9976).into(),
        "nts.ke-listen" => (Ipv4Addr::UNSPECIFIED, 4460).into(),
        _ => (Ipv4Addr::UNSPECIFIED, 123).into(),
    };
    let write = |address: SocketAddr| {
        let address = ListenAddress::from(address).checked();
        address.map_or_else(|(_, remedy)| remedy, |address| format!("write \"{address}\""))
    };
    let bare = |text: &str| text.trim_matches(['[', ']']).parse::<IpAddr>();
    if let Ok(address) = text.trim().parse() {
        return ("an address with white space around it".to_owned(), write(address));
    }
    if let Ok(ip) = text.parse::<Ipv6Addr>()
        && let Some(address) = unbracketed(text)
    {
        let whole = write((ip, here.port()).into());
        let remedy = format!("{} (or, if {ip} is the address, {whole})", write(address));
        return ("an IPv6 address needs brackets".to_owned(), remedy);
    }
    if let Ok(ip) = bare(text) {
        return ("the port is missing".to_owned(), write((ip, here.port()).into()));
    }
    if let Some((ip, zone)) = text.trim_matches(['[', ']']).split_once('%')
        && ip.parse::<Ipv6Addr>().is_ok()
        && !zone.contains([':', ']'])
    {
        let remedy = format!("write \"[{ip}%{zone}]:{}\"", here.port());
        return ("the port is missing".to_owned(), remedy);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(match text.bytes().all(|c| c.is_ascii_digit()) {
        true => ("", text),
        false => (text, ""),
    });
    let is_number = !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit());
    match (host, port.parse::<u16>()) {
        (_, Err(_)) if is_number => (
            format!("port {port} is out of range"),
            format!("write a port from 1 to 65535, as in \"{here}\""),
        ),
        ("" | "*", Ok(port)) => ("the address is missing".to_owned(), write((here.ip(), port).into())),
        (host, Ok(port)) => match bare(host) {
            Ok(ip) => ("an IPv6 address needs brackets".to_owned(), write((ip, port).into())),
            Err(_) => (
                "invalid address: expected the IP address of an interface, and a port".to_owned(),
                format!("write it as in \"{here}\" or \"[::]:{}\"", here.port()),
            ),
        },
        (_, Err(_)) => (
            "invalid address: expected ADDRESS:PORT or [ADDRESS]:PORT".to_owned(),
            format!("write it as in \"{here}\" or \"[::]:{}\"", here.port()),
        ),
    }
}
