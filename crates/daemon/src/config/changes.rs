//! What another configuration changes of a server that runs: some values are put in force at once, others wait for a
//! restart. Nothing here has an effect.

use authentick_proto::server::limit::Rate;

use super::{Antp, AntpSuite, CertificatePair, Config, KeyExchange, Nts};

/// The keys that have other values, by when they count.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// From now on.
    pub(crate) at_once: Vec<String>,
    /// After a restart.
    pub(crate) after_restart: Vec<String>,
}

impl Changes {
    /// Takes a value over.
    fn take<T: Clone + PartialEq>(&mut self, key: &str, now: &mut T, newer: &T) {
        if now != newer {
            now.clone_from(newer);
            self.at_once.push(key.to_owned());
        }
    }

    /// Leaves a value as it is.
    fn leave<T: PartialEq>(&mut self, key: &str, now: &T, newer: &T) {
        if now != newer {
            self.after_restart.push(key.to_owned());
        }
    }
}

impl Config {
    /// This configuration with what `newer` has for it and can be put in force at once; and what has changed.
    pub(crate) fn followed_by(&self, newer: &Config) -> (Config, Changes) {
        let mut now = self.clone();
        let mut changes = Changes::default();
        // Named one by one, so that a new value cannot be forgotten.
        let Config {
            listen,
            bind_patience,
            workers,
            batch_size,
            engine,
            reference,
            // A part of it.
            reference_name: _,
            leap_seconds,
            state_directory,
            user,
            contain,
            // It follows from the next two.
            allow,
            allowed,
            denied,
            idle_bursts,
            kiss,
            interleaved,
            rate,
            nts,
            symmetric,
            antp,
            fleet,
            metrics,
            health,
            // It follows from the directory, and stays where that was at the start.
            state: _,
            skipped,
            file: _,
            origins,
        } = newer;
        now.skipped.clone_from(skipped);
        // For messages of what is read again.
        now.origins.clone_from(origins);
        now.allow.clone_from(allow);
        now.idle_bursts.clone_from(idle_bursts);
        changes.take("server.allow", &mut now.allowed, allowed);
        changes.take("server.deny", &mut now.denied, denied);
        changes.take("server.refusal", &mut now.kiss, kiss);
        changes.take("server.rate-limit", &mut now.rate, rate);
        changes.leave("server.listen", &now.listen, listen);
        changes.leave("server.bind-patience", &now.bind_patience, bind_patience);
        changes.leave("server.workers", &now.workers, workers);
        changes.leave("server.batch-size", &now.batch_size, batch_size);
        changes.leave("server.engine", &now.engine, engine);
        changes.leave("server.reference", &now.reference, reference);
        changes.leave("server.leap-seconds", &now.leap_seconds, leap_seconds);
        changes.leave("server.state-directory", &now.state_directory, state_directory);
        changes.leave("server.user", &now.user, user);
        changes.leave("server.containment", &now.contain, contain);
        changes.leave("server.interleaved", &now.interleaved, interleaved);
        match (&mut now.nts, nts) {
            (Some(now), Some(newer)) => now.follow(newer, &mut changes),
            (now, newer) => changes.leave("nts", &now.is_some(), &newer.is_some()),
        }
        match (&mut now.antp, antp) {
            (Some(now), Some(newer)) => now.follow(newer, &mut changes),
            (now, newer) => changes.leave("antp.enable", &now.is_some(), &newer.is_some()),
        }
        changes.leave("symmetric", &now.symmetric, symmetric);
        changes.leave("fleet", &now.fleet, fleet);
        changes.leave("metrics", &now.metrics, metrics);
        changes.leave("health", &now.health, health);
        (now, changes)
    }
}

impl Nts {
    fn follow(&mut self, newer: &Nts, changes: &mut Changes) {
        let Nts { exchange, keys } = newer;
        changes.leave("nts.cookie-keys", &self.keys, keys);
        match (&mut self.exchange, exchange) {
            (Some(now), Some(newer)) => now.follow(newer, changes),
            (now, newer) => changes.leave("nts.ke-listen", &now.is_some(), &newer.is_some()),
        }
    }
}

impl KeyExchange {
    fn follow(&mut self, newer: &KeyExchange, changes: &mut Changes) {
        let KeyExchange {
            listen,
            certificates,
            hand_over,
            workers,
            priority,
            limits,
            rates,
            advertised,
            algorithms,
        } = newer;
        self.follow_certificates(certificates, changes);
        changes.take("nts.hand-over", &mut self.hand_over, hand_over);
        changes.take("the rates of nts.ke-limits", &mut self.rates, rates);
        changes.take("nts.advertise", &mut self.advertised, advertised);
        changes.take("nts.aeads", &mut self.algorithms, algorithms);
        changes.leave("nts.ke-listen", &self.listen, listen);
        changes.leave("nts.ke-workers", &self.workers, workers);
        changes.leave("nts.ke-priority", &self.priority, priority);
        changes.leave("nts.ke-limits", &self.limits, limits);
    }

    /// Which files there are; where they are handed over follows from that.
    fn follow_certificates(&mut self, newer: &[CertificatePair], changes: &mut Changes) {
        let short = |pairs: &[CertificatePair]| matches!(pairs, [pair] if pair.table == "nts");
        match (&self.certificates[..], newer) {
            ([now], [newer]) if short(&self.certificates) && short(std::slice::from_ref(newer)) => {
                let mut now = now.clone();
                changes.take("nts.certificate-chain", &mut now.certificate_chain, &newer.certificate_chain);
                changes.take("nts.private-key", &mut now.private_key, &newer.private_key);
            }
            (now, newer) => {
                let told = |pairs: &[CertificatePair]| {
                    let pairs = pairs.iter().cloned();
                    pairs.map(|pair| CertificatePair { handed_over: None, ..pair }).collect::<Vec<_>>()
                };
                changes.take("nts.certificate", &mut told(now), &told(newer));
            }
        }
        self.certificates = newer.to_vec();
    }
}

impl Antp {
    /// All limits on how often something may be asked for.
    pub(crate) const fn rates(&self) -> [Option<Rate>; 5] {
        [
            self.negotiation_rate,
            self.exchange_rate,
            self.network_exchange_rate,
            self.all_exchange_rate,
            self.time_rate,
        ]
    }

    fn follow(&mut self, newer: &Antp, changes: &mut Changes) {
        let Antp {
            settings,
            keys,
            workers,
            queue,
            negotiation_rate,
            exchange_rate,
            network_exchange_rate,
            all_exchange_rate,
            time_rate,
            suites,
        } = newer;
        if self.rates() != newer.rates() {
            self.negotiation_rate = *negotiation_rate;
            self.exchange_rate = *exchange_rate;
            self.network_exchange_rate = *network_exchange_rate;
            self.all_exchange_rate = *all_exchange_rate;
            self.time_rate = *time_rate;
            changes.at_once.push("antp.rate-limit".to_owned());
        }
        let of = |suites: &[AntpSuite]| suites.iter().map(|suite| suite.suite).collect::<Vec<_>>();
        if of(&self.suites) == of(suites) {
            changes.take("certificates and keys of [antp]", &mut self.suites, suites);
        } else {
            changes.after_restart.push("the suites of [antp]".to_owned());
        }
        // The sizes of prefixes are in them.
        changes.leave("antp.payload-size, antp.lifetime or antp.check-source", &self.settings, settings);
        changes.leave("antp.state-keys", &self.keys, keys);
        changes.leave("antp.workers", &self.workers, workers);
        changes.leave("antp.queue", &self.queue, queue);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const BASE: &str = "[server]\nlisten = [\"127.0.0.1:123\"]\n[nts]\ncertificate-chain = \"/c\"\n\
        private-key = \"/k\"\n[antp]\nenable = true\necdh = { certificate-chain = \"/ac\", private-key = \"/ak\" }\n";

    fn parse(text: &str) -> Config {
        Config::parse(Path::new("test.toml"), text).unwrap()
    }

    /// What changes when lines follow a table's heading.
    fn changes(table: &str, lines: &str) -> Changes {
        let heading = format!("[{table}]\n");
        let newer = parse(&BASE.replace(&heading, &format!("{heading}{lines}\n")));
        let now = parse(BASE);
        let (followed, changes) = now.followed_by(&newer);
        let (_, rest) = followed.followed_by(&newer);
        assert_eq!(rest.at_once, Vec::<String>::new(), "it is all in force");
        assert_eq!(rest.after_restart, changes.after_restart, "it still waits");
        changes
    }

    #[test]
    fn same_configuration_changes_nothing() {
        assert_eq!(changes("server", ""), Changes::default());
    }

    #[test]
    fn who_may_ask_and_how_often_and_where_clients_go_change_at_once() {
        for (table, line, key) in [
            ("server", "allow = [\"192.0.2.0/24\"]", "server.allow"),
            ("server", "deny = [\"192.0.2.7\"]", "server.deny"),
            ("server", "refusal = \"kiss\"", "server.refusal"),
            ("nts", "ke-limits = { per-prefix-rate = 1 }", "the rates of nts.ke-limits"),
            ("nts", "advertise = { server = \"a.example\" }", "nts.advertise"),
            ("nts", "aeads = [15]", "nts.aeads"),
            ("antp", "rate-limit = { times-per-second = 1 }", "antp.rate-limit"),
        ] {
            let Changes { at_once, after_restart } = changes(table, line);
            assert_eq!((at_once, after_restart), (vec![key.to_owned()], vec![]), "{line}");
        }
        let limited = changes("server", "rate-limit = { requests-per-second = 1 }");
        assert!(limited.at_once.contains(&"server.rate-limit".to_owned()), "{limited:?}");
        let (_, moved) = parse(BASE).followed_by(&parse(&BASE.replace("\"/c\"", "\"/d\"")));
        assert_eq!(moved.at_once, ["nts.certificate-chain"]);
        let tables = BASE.replace(
            "[antp]",
            "[[nts.certificate]]\ncertificate-chain = \"/c\"\n\
            private-key = \"/k\"\n[antp]",
        );
        let tables = tables.replacen("certificate-chain = \"/c\"\nprivate-key = \"/k\"\n", "", 1);
        let (followed, moved) = parse(BASE).followed_by(&parse(&tables));
        assert_eq!(moved.at_once, ["nts.certificate"], "the same pair, but other words in messages");
        let more = tables.replace("[antp]", "names = [\"a.example\"]\n[antp]");
        assert_eq!(followed.followed_by(&parse(&more)).1.at_once, ["nts.certificate"]);
        let handed = more.replace("[nts]\n", "[nts]\nhand-over = \"/run/a\"\n");
        let (followed, moved) = parse(&more).followed_by(&parse(&handed));
        assert_eq!(moved.at_once, ["nts.hand-over"]);
        assert!(followed.exchange().unwrap().certificates[0].handed_over.is_some());
        let (_, moved) = parse(BASE).followed_by(&parse(&BASE.replace("\"/ac\"", "\"/ad\"")));
        assert_eq!(moved.at_once, ["certificates and keys of [antp]"]);
    }

    #[test]
    fn all_else_waits_for_a_restart_and_is_named() {
        for (table, line, key) in [
            ("server", "workers = 7", "server.workers"),
            ("server", "bind-patience = \"7s\"", "server.bind-patience"),
            ("server", "batch-size = 7", "server.batch-size"),
            ("server", "reference = { stratum = 1, id = \"GPS\" }", "server.reference"),
            ("server", "state-directory = \"/s\"", "server.state-directory"),
            ("server", "user = \"root\"", "server.user"),
            ("server", "interleaved = false", "server.interleaved"),
            ("nts", "ke-listen = [\"127.0.0.1:1\"]", "nts.ke-listen"),
            ("nts", "ke-workers = 7", "nts.ke-workers"),
            ("nts", "ke-priority = \"idle\"", "nts.ke-priority"),
            ("nts", "ke-limits = { connections = 7 }", "nts.ke-limits"),
            ("nts", "cookie-keys = { keep = 3 }", "nts.cookie-keys"),
            ("antp", "workers = 2", "antp.workers"),
            ("antp", "check-source = false", "antp.payload-size, antp.lifetime or antp.check-source"),
        ] {
            let Changes { at_once, after_restart } = changes(table, line);
            assert!(
                at_once.is_empty() && after_restart.contains(&key.to_owned()),
                "{line}: {after_restart:?}"
            );
        }
        // How many ECDH exchanges may come at once is made from it.
        let Changes { at_once, after_restart } = changes("antp", "queue = 2");
        assert_eq!(
            (at_once, after_restart),
            (vec!["antp.rate-limit".to_owned()], vec!["antp.queue".to_owned()])
        );
        let without = |from: &str| parse(BASE).followed_by(&parse(BASE.split_once(from).unwrap().0)).1;
        assert_eq!(without("[antp]").after_restart, ["antp.enable"]);
        assert_eq!(without("[nts]").after_restart, ["nts", "antp.enable"]);
        let more = format!("{BASE}[metrics]\nlisten = \"127.0.0.1:9\"\n[symmetric]\nkeys = \"/y\"\n");
        assert_eq!(parse(BASE).followed_by(&parse(&more)).1.after_restart, ["symmetric", "metrics"]);
    }
}
