//! What the page of metrics says of a node. Names follow those of ntpd-rs where the meaning is the same.

mod certificates;
mod cfnts;
mod fleet;

use std::fmt;
use std::sync::Arc;

use authentick_ke::server::Outcome as KeOutcome;
use authentick_proto::antp::server::ExchangeOutcome;
use authentick_proto::keyset::{CookieKey, KeySet};
use authentick_proto::server::outcome::Outcome;
use authentick_wire::antp::Suite;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::counters::{Totals, WorkerCounters, key_uses};
use crate::antp::AntpState;
use crate::containment::ThreadKind;
use crate::fleet::pages;
use crate::log_queue::LOG;
use crate::renewal::Reloads;
use crate::rotator::InForce;
use crate::shared::{ExchangeState, NtsState, Shared};
use crate::symmetric::keeper::{Shown, SymmetricState};

/// Symmetric keys with counters of their own on the page.
const SHOWN_KEY_COUNT_MAX: usize = 1024;

/// The node as a source of metrics, read at each scrape.
#[derive(Debug)]
pub(super) struct NodeMetrics(pub(super) Arc<Shared>);

impl Collector for NodeMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let shared = &*self.0;
        let mut page = Page { encoder: &mut encoder };
        if !shared.workers.is_empty() {
            page.packets(&Totals::of(&shared.workers), shared.antp.is_some())?;
        }
        page.addresses(shared)?;
        page.refusals()?;
        let help = "Lines of the log that were lost, as standard error was not read";
        page.counter("ntp_server_log_lines_lost", help, LOG.lost_count())?;
        page.clock(shared)?;
        if let Some(symmetric) = &shared.symmetric {
            page.symmetric(symmetric)?;
        }
        if let Some(antp) = &shared.antp {
            page.antp(antp)?;
        }
        if let Some(nts) = &shared.nts {
            page.nts(nts, &shared.workers)?;
        }
        if let Some(fleet) = &shared.fleet {
            page.fleet(fleet)?;
        }
        if let Some(cfnts) = &shared.cfnts {
            page.cfnts(cfnts.counters())?;
        }
        Ok(())
    }
}

/// The word for a suite in configuration and metrics.
const fn suite_word(suite: Suite) -> &'static str {
    match suite {
        Suite::P256 => "ecdh",
        Suite::RSA_PKCS1 => "rsa",
        Suite::RSA_OAEP => "rsa-oaep",
        Suite::X25519 => "x25519",
        Suite(_) => "other",
    }
}

struct Page<'e, 'a> {
    encoder: &'e mut DescriptorEncoder<'a>,
}

impl Page<'_, '_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let metric = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let metric = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)
    }

    /// Counters of one name, each with its labels.
    fn counters<'s, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'s str, &'s str); N], u64)>,
    ) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// Gauges of one name, each with its labels.
    fn gauges<'s, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'s str, &'s str); N], f64)>,
    ) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in values {
            ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// `has_antp`: otherwise outcomes of ANTP are left out, unless one has a count.
    fn packets(&mut self, totals: &Totals, has_antp: bool) -> fmt::Result {
        self.counter("ntp_server_received_packets", "Datagrams received", totals.received)?;
        let help = "Datagrams by what became of them; they add up to those received";
        let values =
            Outcome::ALL.iter().map(|&outcome| ([("outcome", outcome.label())], totals.of_outcome(outcome)));
        let is_shown = |([(_, label)], count): &([(&str, &str); 1], u64)| {
            has_antp || *count > 0 || !label.starts_with("antp_")
        };
        self.counters("ntp_server_packets", help, values.filter(is_shown))?;
        let help = "Responses that the kernel refused to send";
        self.counter("ntp_server_response_send_errors", help, totals.send_failures)?;
        let help = "Responses dropped because the send buffer had no room; also counted as send errors";
        self.counter("ntp_server_send_buffer_full", help, totals.send_buffer_full)?;
        let help = "Times that the kernel failed to receive, and the server went on";
        self.counter("ntp_server_receive_errors", help, totals.receive_failures)?;
        let help = "Datagrams that the kernel dropped because the server did not read them in time";
        self.counter("ntp_server_socket_drops", help, totals.dropped)
    }

    fn addresses(&mut self, shared: &Shared) -> fmt::Result {
        let all = shared.addresses.all();
        let texts: Vec<String> = all.iter().map(|served| served.address.to_string()).collect();
        let values = all.iter().zip(&texts).map(|(served, text)| {
            ([("key", served.key), ("address", text)], f64::from(u8::from(served.is_there())))
        });
        let help = "Whether an interface has this address of the configuration (1) or none does (0)";
        self.gauges("ntp_server_address_present", help, values)
    }

    fn refusals(&mut self) -> fmt::Result {
        let refused = ThreadKind::ALL.map(|kind| ([("thread", kind.name())], kind.refused_count()));
        let help = "System calls that a thread of this kind has no business with, refused by its filter";
        self.counters("ntp_server_refused_system_calls", help, refused)
    }

    fn clock(&mut self, shared: &Shared) -> fmt::Result {
        let snapshot = shared.snapshot();
        let dispersion = snapshot.root_dispersion_at(shared.clock.now());
        self.gauge("ntp_system_stratum", "Stratum that is served", f64::from(snapshot.stratum))?;
        let help = "Leap indicator that is served: 3 means not synchronised";
        self.gauge("ntp_system_leap_indicator", help, f64::from(snapshot.leap.to_bits()))?;
        let help = "Round trip to the reference clock";
        self.gauge("ntp_system_root_delay_seconds", help, snapshot.root_delay.as_nanos() as f64 / 1e9)?;
        let help = "Largest error with respect to the reference clock";
        self.gauge("ntp_system_root_dispersion_seconds", help, dispersion.as_nanos() as f64 / 1e9)?;
        if let Some(end) = shared.leaps.as_ref().and_then(|leaps| leaps.load().end()) {
            let help = "End of the list that leap seconds are announced by";
            self.gauge("ntp_leap_seconds_expiry_timestamp_seconds", help, end as f64)?;
        }
        let boot_ns = shared.clock.boot_ns();
        let ages = [("clock", shared.looked.load().age(boot_ns)), ("files", shared.files.age(boot_ns))];
        let help = "Time since a thread of the supervisor last completed its loop; the clock's state counts \
                    for 10 seconds";
        let values = ages.map(|(thread, age)| ([("thread", thread)], age.as_secs_f64()));
        self.gauges("ntp_heartbeat_age_seconds", help, values)?;
        let help = "Time since the server started";
        self.gauge("ntp_uptime_seconds", help, shared.started.elapsed().as_secs_f64())?;
        let help = "Always 1; the label says which version runs";
        self.gauges("ntp_build_info", help, [([("version", env!("CARGO_PKG_VERSION"))], 1.0)])
    }

    fn exchange(&mut self, exchange: &ExchangeState) -> fmt::Result {
        let help = "Key exchange connections accepted";
        self.counter("nts_ke_connections_accepted", help, exchange.ke.accepted.get())?;
        let help = "Times that the kernel had no descriptor or no memory for a key exchange connection";
        self.counter("nts_ke_accept_failures", help, exchange.ke.accept_failures.get())?;
        let help = "Key exchange connections by how they ended";
        let ended = |&outcome: &KeOutcome| ([("outcome", outcome.label())], exchange.ke.ended(outcome).get());
        let values = KeOutcome::ALL.iter().map(ended);
        self.counters("nts_ke_connections", help, values)?;
        let help = "Key exchange connections open now";
        self.gauge("nts_ke_connections_open", help, exchange.ke.open_count() as f64)?;
        let advertiser = exchange.advertiser.load();
        let servers: Vec<_> =
            advertiser.shown().map(|(name, port, is_in)| (name, port.to_string(), is_in)).collect();
        let labels = |name, port| [("server", name), ("port", port)];
        let shown = servers
            .iter()
            .map(|(name, port, is_in)| (labels(*name, port.as_str()), f64::from(u8::from(*is_in))));
        self.gauges("nts_ke_advertised", "Whether new clients are to be sent to the server", shown)?;
        self.certificates(exchange.certificates().served())
    }

    /// What became of renewed certificates.
    fn reloads(&mut self, prefix: &str, reloads: &Reloads) -> fmt::Result {
        let help = "Times that renewed certificates were put in force since the start";
        self.counter(&format!("{prefix}_reloads"), help, reloads.done.get())?;
        let help = "Times that certificates could not be read again; the old ones stay in force";
        self.counter(&format!("{prefix}_reload_failures"), help, reloads.failed.get())?;
        let help = "When certificates were last put in force since the start, in Unix seconds; 0 if never";
        let last = reloads.last().unwrap_or(0) as f64;
        self.gauge(&format!("{prefix}_reloaded_timestamp_seconds"), help, last)
    }

    fn nts(&mut self, nts: &NtsState, workers: &[WorkerCounters]) -> fmt::Result {
        if let Some(exchange) = &nts.exchange {
            self.exchange(exchange)?;
        }
        let keys = nts.keys.keys.load();
        self.cookie_keys(keys.as_deref(), workers)?;
        let keys = keys.as_ref().map_or((0, 0), |keys| (keys.keys().count(), keys.rotated()));
        self.rotation("nts_cookie_key", ["Cookie key", "cookies"], keys, &nts.keys)
    }

    /// Each key that opens.
    fn cookie_keys(&mut self, keys: Option<&KeySet>, workers: &[WorkerCounters]) -> fmt::Result {
        let uses = key_uses(workers);
        let opening = keys.into_iter().flat_map(KeySet::opening_keys).map(CookieKey::id);
        let ids: Vec<(u32, String)> = opening.map(|id| (id, format!("{id:08x}"))).collect();
        let help = "Requests with a cookie under the key that were given time";
        let requests = ids.iter().map(|(id, key)| ([("key", &**key)], uses.get(id).copied().unwrap_or(0)));
        self.counters(pages::REQUESTS, help, requests)?;
        let current = keys.map(|keys| keys.current().id());
        let seals =
            ids.iter().map(|(id, key)| ([("key", &**key)], f64::from(u8::from(current == Some(*id)))));
        self.gauges(pages::SEALS, "Whether the key seals new cookies; all that are shown open them", seals)
    }

    fn antp(&mut self, antp: &AntpState) -> fmt::Result {
        let exchanges = &antp.exchanges;
        let (depth, room) = exchanges.depth();
        let help = "Key exchanges that wait for a public-key thread";
        self.gauge("antp_key_exchanges_waiting", help, depth as f64)?;
        self.gauge("antp_key_exchanges_waiting_limit", "How many may wait; more are refused", room as f64)?;
        let help = "Key exchanges that were refused because too many waited";
        self.counter("antp_key_exchanges_refused", help, exchanges.refused.get())?;
        let help = "Answers to key exchanges that the kernel refused to send";
        self.counter("antp_key_exchange_send_errors", help, exchanges.send_failures.get())?;
        let ended = Suite::ALL.into_iter().enumerate().flat_map(|(index, suite)| {
            ExchangeOutcome::ALL.iter().map(move |&outcome| {
                let labels = [("suite", suite_word(suite)), ("outcome", outcome.label())];
                (labels, exchanges.ended[outcome as usize][index].get())
            })
        });
        let help = "Key exchanges of the public-key threads by suite and end";
        self.counters("antp_key_exchanges", help, ended)?;
        let help = "When the certificate of a suite ends, in Unix seconds";
        let loaded = antp.loaded.load();
        let ends = loaded.certificates.iter();
        let values = ends.map(|(suite, info)| ([("suite", suite_word(*suite))], info.not_after as f64));
        self.gauges("antp_certificate_expiry_timestamp_seconds", help, values)?;
        self.reloads("antp_certificate", &antp.reloads)?;
        let keys = antp.keys.keys.load();
        let keys = keys.as_ref().map_or((0, 0), |keys| (keys.keys().count(), keys.rotated()));
        self.rotation("antp_state_key", ["State key", "state"], keys, &antp.keys)
    }

    /// How many keys of a kind there are and how they rotate. `words`: one key in prose, at the start of a
    /// sentence, and what it opens; `keys`: how many there are, and when the current one began to seal, in Unix
    /// seconds; `in_force`: which rotations were made, and which failed.
    fn rotation<K>(
        &mut self,
        prefix: &str,
        words: [&str; 2],
        keys: (usize, u64),
        in_force: &InForce<K>,
    ) -> fmt::Result {
        let ([kind, opened], (count, rotated)) = (words, keys);
        let key = kind.to_lowercase();
        self.gauge(&format!("{prefix}s"), &format!("{kind}s that open {opened}"), count as f64)?;
        let help = format!("When the current {key} began to seal, in Unix seconds");
        self.gauge(&format!("{prefix}_rotated_timestamp_seconds"), &help, rotated as f64)?;
        let help = format!("Rotations of the {key}s");
        self.counter(&format!("{prefix}_rotations"), &help, in_force.rotations.get())?;
        let help = "Rotations that failed, for example on a full disk; the old keys stay in force";
        self.counter(&format!("{prefix}_rotation_failures"), help, in_force.rotation_failures.get())
    }

    fn symmetric(&mut self, symmetric: &SymmetricState) -> fmt::Result {
        let all = symmetric.shown();
        self.gauge("ntp_symmetric_keys", "Symmetric keys in force", all.len() as f64)?;
        let help = "Times that the key file could not be read again; the old keys stay in force";
        self.counter("ntp_symmetric_key_reload_failures", help, symmetric.reload_failures.get())?;
        let requests = |key: &Shown| key.counts.answered + key.counts.wrong_tags + key.counts.not_allowed;
        // With thousands of keys the page would be long: then it shows only keys that a request has named.
        let few = all.len() <= SHOWN_KEY_COUNT_MAX;
        let named = all.into_iter().filter(|key| few || requests(key) > 0).take(SHOWN_KEY_COUNT_MAX);
        let keys: Vec<(String, Shown)> = named.map(|key| (key.id.to_string(), key)).collect();
        let counts: [Figure<'_, u64>; 4] = [
            ("requests", "Requests that named the key", &requests),
            ("answers", "Answers under the key", &|key| key.counts.answered),
            ("wrong_tags", "Requests that named the key and whose tag was wrong", &|key| {
                key.counts.wrong_tags
            }),
            ("not_allowed", "Requests that named the key while its algorithm is not allowed", &|key| {
                key.counts.not_allowed
            }),
        ];
        for (name, help, value) in counts {
            let values = keys.iter().map(|(id, key)| (labels(id, key), value(key)));
            self.counters(&format!("ntp_symmetric_key_{name}"), help, values)?;
        }
        let states: [Figure<'_, Option<u64>>; 3] = [
            (
                "uses",
                "Tags made under the key by clients and by this server, those before its start included",
                &|key| Some(key.uses),
            ),
            ("uses_limit", "Uses after which the key should be another one", &|key| key.limit),
            (
                "retires_timestamp_seconds",
                "From when on the key is not accepted any more, in Unix seconds",
                &|key| key.retires,
            ),
        ];
        for (name, help, value) in states {
            let values = keys.iter().filter_map(|(id, key)| Some((labels(id, key), value(key)? as f64)));
            self.gauges(&format!("ntp_symmetric_key_{name}"), help, values)?;
        }
        Ok(())
    }
}

/// A figure of each symmetric key: how its name ends, what it means, and what it is.
type Figure<'f, T> = (&'f str, &'f str, &'f dyn Fn(&Shown) -> T);

/// The labels of a symmetric key.
fn labels<'k>(id: &'k str, key: &Shown) -> [(&'k str, &'k str); 2] {
    [("key", id), ("type", key.name)]
}
