//! What the page of metrics says of a fleet, as this node sees it.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Instant;

use authentick_fleet::Name;

use super::Page;
use crate::fleet::post::PostCounters;
use crate::fleet::{Desk, FleetKind, FleetState};
use crate::metrics::counters::Counter;

/// A counter of each server: how its name ends, what it counts, and where it is.
type PerServer = (&'static str, &'static str, fn(&PostCounters) -> &Counter);

const PER_SERVER: [PerServer; 4] = [
    ("reads", "Times that the memcached server was read", |post| &post.reads),
    ("writes", "Values that the memcached server has taken", |post| &post.writes),
    ("failures", "Reads and writes that ended without an answer, or with one that is none", |post| {
        &post.failures
    }),
    ("refused_writes", "Values that the memcached server had no room for", |post| &post.refused),
];

const STRANGE_VALUES: (&str, &str) =
    ("strange_values", "Values found there that no member of the fleet has sealed, each counted once");

impl Page<'_, '_> {
    /// What became of the talk with memcached servers; `strange`: what values are called that are not taken, and what
    /// is wrong with them.
    pub(super) fn memcached(
        &mut self,
        prefix: &str,
        posts: &[&PostCounters],
        (strange, strange_help): (&'static str, &'static str),
    ) -> fmt::Result {
        let servers: Vec<(String, &PostCounters)> =
            posts.iter().map(|post| (post.server.to_string(), *post)).collect();
        let help = "Whether the last read of the memcached server succeeded";
        let up = servers.iter().map(|(address, post)| {
            ([("server", address.as_str())], f64::from(u8::from(post.is_up.load(Ordering::Relaxed))))
        });
        self.gauges(&format!("{prefix}_server_up"), help, up)?;
        let strange: PerServer = (strange, strange_help, |post| &post.strange);
        for (name, help, counter) in PER_SERVER.into_iter().chain([strange]) {
            let values =
                servers.iter().map(|(address, post)| ([("server", address.as_str())], counter(post).get()));
            self.counters(&format!("{prefix}_server_{name}"), help, values)?;
        }
        Ok(())
    }

    pub(super) fn fleet(&mut self, fleet: &FleetState) -> fmt::Result {
        let posts: Vec<&PostCounters> = fleet.links.iter().map(|link| &**link).collect();
        self.memcached("fleet", &posts, STRANGE_VALUES)?;
        let older = posts.iter().map(|post| (post.server.to_string(), post.older.get())).collect::<Vec<_>>();
        let help = "Times that a document was found there that is older than the one before";
        let older = older.iter().map(|(address, count)| ([("server", address.as_str())], *count));
        self.counters("fleet_server_older_documents", help, older)?;
        let help = "Times that the file of seal keys could not be read again";
        self.counter("fleet_seal_key_reload_failures", help, fleet.seal_failures.get())?;
        let kinds = fleet.cookie_keys.as_deref().map(Kind::of).into_iter();
        self.kinds(&kinds.chain(fleet.state_keys.as_deref().map(Kind::of)).collect::<Vec<_>>())
    }

    /// What there is for keys of each kind.
    fn kinds(&mut self, kinds: &[Kind]) -> fmt::Result {
        let label = |kind: &Kind| [("kind", kind.name)];
        let help = "Documents that were refused: two of one name, of other first keys, or with another key of one \
                    identifier";
        self.counters("fleet_refused_documents", help, kinds.iter().map(|kind| (label(kind), kind.clashes)))?;
        let help = "Members whose keys descend from other first keys than those of this node";
        self.gauges("fleet_strangers", help, kinds.iter().map(|kind| (label(kind), kind.strangers as f64)))?;
        let help = "Times that the disk began to refuse a document; its keys open from memory meanwhile";
        self.counters("fleet_disk_failures", help, kinds.iter().map(|kind| (label(kind), kind.unwritten)))?;
        // Nothing is shown before the start.
        let shown: Vec<(&Kind, &Shown)> =
            kinds.iter().filter_map(|kind| Some((kind, kind.shown.as_ref()?))).collect();
        let each =
            |value: fn(&Shown) -> f64| shown.iter().map(move |(kind, shown)| (label(kind), value(shown)));
        let help = "Term of the document in force: it rises with each take-over";
        self.gauges("fleet_document_term", help, each(|shown| shown.term))?;
        let help = "Version of the document in force: it rises with each rotation";
        self.gauges("fleet_document_version", help, each(|shown| shown.version))?;
        let help = "Whether this node makes and rotates the keys";
        self.gauges("fleet_writer", help, each(|shown| f64::from(u8::from(shown.writes))))?;
        let help = "How long the node that writes the keys has said nothing new; 0 where this one does";
        self.gauges("fleet_writer_silent_seconds", help, each(|shown| shown.silence))?;
        let help = "Whether the member has said that it has this node's document";
        let members = shown.iter().flat_map(|(kind, shown)| {
            shown.members.iter().map(|(name, has)| {
                ([("kind", kind.name), ("member", name.as_str())], f64::from(u8::from(*has)))
            })
        });
        self.gauges("fleet_member_acknowledged", help, members)?;
        let help = "Time since the member wrote something new";
        let members = shown.iter().flat_map(|(kind, shown)| {
            let label = |name| [("kind", kind.name), ("member", name)];
            shown.silences.iter().map(move |(name, silence)| (label(name.as_str()), *silence))
        });
        self.gauges("fleet_member_silent_seconds", help, members)?;
        let help = "Whether another host uses the name of this node";
        let doubled = kinds.iter().map(|kind| (label(kind), f64::from(u8::from(kind.is_doubled))));
        self.gauges("fleet_name_doubled", help, doubled)
    }
}

/// What is shown of keys of one kind.
struct Kind {
    name: &'static str,
    clashes: u64,
    strangers: usize,
    unwritten: u64,
    is_doubled: bool,
    shown: Option<Shown>,
}

/// What is shown of a node that has started.
struct Shown {
    term: f64,
    version: f64,
    writes: bool,
    silence: f64,
    /// The others, and whether each has acknowledged.
    members: Vec<(Name, bool)>,
    /// The others, and for how many seconds each has written nothing new.
    silences: Vec<(Name, f64)>,
}

impl Kind {
    fn of<K: FleetKind>(desk: &Desk<K>) -> Self {
        let shown = desk.shown().map(|node| {
            let (order, waiting, now) = (node.on_disk().order(), node.waiting(), Instant::now());
            let silence = |name: &Name| (name.clone(), desk.heard.silence(name, now).as_secs_f64());
            Shown {
                term: order.map_or(0.0, |order| order.term as f64),
                version: order.map_or(0.0, |order| order.version as f64),
                writes: node.writes().is_ok(),
                silence: desk.silent_writer(&node, now).map_or(0.0, |(_, silence)| silence.as_secs_f64()),
                members: node.others().map(|name| (name.clone(), !waiting.contains(name))).collect(),
                silences: node.others().map(silence).collect(),
            }
        });
        Kind {
            name: K::NAME,
            clashes: desk.clashes.get(),
            strangers: desk.strangers.load(Ordering::Relaxed),
            unwritten: desk.unwritten.get(),
            is_doubled: desk.is_doubled(),
            shown,
        }
    }
}
