//! The NTP servers that clients are sent to: each client to one of them, at random by weight. RFC 8915 sections 4.1.7
//! and 4.1.8.

use authentick_crypto::Entropy;

/// An NTP server as clients are told of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NtpServer {
    /// Its name or address, at most 255 octets of ASCII; absent: that of the key exchange server.
    pub name: Option<String>,
    /// Its port; absent: 123.
    pub port: Option<u16>,
}

/// NTP servers, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NtpServers {
    /// Each with its weight, which is not 0.
    weighted: Vec<(NtpServer, u32)>,
    /// The sum of all weights.
    total: u64,
}

impl Default for NtpServers {
    /// The key exchange server itself, where clients expect it.
    fn default() -> Self {
        NtpServers { weighted: vec![(NtpServer::default(), 1)], total: 1 }
    }
}

impl NtpServers {
    /// Servers, each with its weight. Those with weight 0 get no clients; `None` if there is no other.
    #[must_use]
    pub fn new(servers: impl IntoIterator<Item = (NtpServer, u32)>) -> Option<Self> {
        let weighted: Vec<_> = servers.into_iter().filter(|(_, weight)| *weight > 0).collect();
        let total = weighted.iter().map(|(_, weight)| u64::from(*weight)).sum();
        (total > 0).then_some(NtpServers { weighted, total })
    }

    /// The one that a client is sent to.
    #[must_use]
    pub fn pick(&self, entropy: &mut Entropy) -> &NtpServer {
        let (last, others) = self.weighted.split_last().expect("there is at least one");
        if others.is_empty() {
            return &last.0;
        }
        // The high half of the product is below the total, and each value as likely as the others but for total / 2^64.
        let drawn = (u128::from(entropy.u64()) * u128::from(self.total)) >> 64;
        let mut passed = 0;
        let reached = others.iter().find(|(_, weight)| {
            passed += u128::from(*weight);
            drawn < passed
        });
        &reached.unwrap_or(last).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> NtpServer {
        NtpServer { name: Some(name.to_owned()), port: None }
    }

    #[test]
    fn clients_are_sent_by_weight_and_nobody_to_weight_0() {
        let weights = [("a", 1), ("none", 0), ("b", 2), ("c", 1000), ("d", 7)];
        let servers = NtpServers::new(weights.map(|(name, weight)| (named(name), weight))).unwrap();
        let (mut entropy, count) = (Entropy::from_seed(1), 1_010_000_u32);
        let mut told = weights.map(|_| 0_u32);
        for _ in 0..count {
            let name = servers.pick(&mut entropy).name.as_deref();
            told[weights.iter().position(|(other, _)| name == Some(*other)).unwrap()] += 1;
        }
        for ((name, weight), told) in weights.into_iter().zip(told) {
            let expected = f64::from(weight) * 1000.0;
            // Five standard deviations of a binomial distribution, which are no more than five roots of its mean.
            let deviation = (f64::from(told) - expected).abs();
            assert!(deviation <= 5.0 * expected.sqrt(), "{name}: {told} of {count}");
        }
    }

    #[test]
    fn each_of_two_equal_servers_gets_the_half_that_is_its_own() {
        let servers = NtpServers::new([(named("a"), 1), (named("b"), 1)]).unwrap();
        let mut entropy = Entropy::from_seed(2);
        let first = (0..10_000).filter(|_| *servers.pick(&mut entropy) == named("a")).count();
        assert!((4_750..=5_250).contains(&first), "{first}");
    }

    #[test]
    fn one_server_is_told_to_all_and_none_is_no_list() {
        let servers = NtpServers::new([(named("a"), 3), (named("b"), 0)]).unwrap();
        let mut entropy = Entropy::from_seed(3);
        assert!((0..100).all(|_| *servers.pick(&mut entropy) == named("a")));
        assert_eq!(NtpServers::new([]), None);
        assert_eq!(NtpServers::new([(named("a"), 0)]), None);
        assert_eq!(*NtpServers::default().pick(&mut entropy), NtpServer::default());
    }
}
