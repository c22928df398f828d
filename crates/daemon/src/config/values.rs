//! Values that occur in more than one section: addresses, paths, numbers, durations, rates.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use authentick_net::udp::SOCKET_COUNT_MAX;
use authentick_proto::antp::source::PrefixSizes;
use authentick_proto::prefix::{Prefix, PrefixSet};
use authentick_proto::server::limit::Rate;

use super::{ConfigError, ListenAddress, Resolver, raw};

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
        Err(self.wrong(key, text, format!("no such {what}"), &remedy))
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

    pub(super) fn thread_count(&self, key: &str, count: usize) -> Result<usize, ConfigError> {
        const THREAD_COUNT_MAX: usize = 1024;
        match count {
            0..=THREAD_COUNT_MAX => Ok(count),
            _ => Err(self.wrong(key, count, "too many threads", "write 0 for one per processor")),
        }
    }

    pub(super) fn absolute(&self, key: &str, text: &str) -> Result<PathBuf, ConfigError> {
        let path = PathBuf::from(text);
        match path.is_absolute() {
            true => Ok(path),
            false => Err(self.wrong(key, text, "relative path", "write a path that starts with a slash")),
        }
    }

    pub(super) fn prefixes(&self, key: &str, texts: &[String]) -> Result<PrefixSet, ConfigError> {
        let prefixes: Result<Vec<Prefix>, _> = texts
            .iter()
            .map(|text| {
                text.parse().map_err(|error| {
                    self.wrong(key, text, error, "prefixes look like \"192.0.2.0/24\" or \"2001:db8::/32\"")
                })
            })
            .collect();
        Ok(PrefixSet::new(prefixes?))
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
        let duration = humantime::parse_duration(text).map_err(|error| {
            self.wrong(key, text, error, "durations look like \"1d\", \"12h\" or \"90s\"")
        })?;
        if range.contains(&duration) {
            return Ok(duration);
        }
        let (least, most) =
            (humantime::format_duration(*range.start()), humantime::format_duration(*range.end()));
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
