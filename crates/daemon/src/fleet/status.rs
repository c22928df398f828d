//! What a fleet looks like from outside: which document lies where, who has it, how often keys are used, and who would
//! refuse whom.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use authentick_fleet::{Acknowledgement, Count, Digest, Lineage, Name, Order, SymmetricUses};
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::limits::KEYS_AHEAD_MAX;
use serde::Serialize;

use super::found::Found;
use super::heard::FRESH;
use crate::config::Endpoint;
use crate::keystore::KeyKind;

/// A fleet at one time, by what it shares.
#[derive(Clone, Debug, Serialize)]
pub struct Statuses {
    /// Of cookie keys.
    #[serde(rename = "cookie-keys", skip_serializing_if = "Option::is_none")]
    pub(super) cookie_keys: Option<Status>,
    /// Of ANTP's state keys.
    #[serde(rename = "antp-state-keys", skip_serializing_if = "Option::is_none")]
    pub(super) state_keys: Option<Status>,
    /// Of symmetric keys, how often they were used everywhere.
    #[serde(rename = "symmetric-keys", skip_serializing_if = "Vec::is_empty")]
    symmetric_keys: Vec<SymmetricKeyStatus>,
}

/// A symmetric key at all members together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct SymmetricKeyStatus {
    key: u32,
    #[serde(rename = "type")]
    algorithm: String,
    /// Members that have counted.
    members: usize,
    /// Tags made under it there, before their start included.
    uses: u64,
    /// After how many it is to be replaced, if after any.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
}

impl SymmetricKeyStatus {
    /// What members say, added up by key and type.
    fn added(said: impl IntoIterator<Item = SymmetricUses>) -> Vec<Self> {
        let mut all: BTreeMap<(u32, String), SymmetricKeyStatus> = BTreeMap::new();
        for SymmetricUses { id, algorithm, uses, limit } in said {
            let new =
                || SymmetricKeyStatus { key: id, algorithm: algorithm.clone(), members: 0, uses: 0, limit };
            let sum = all.entry((id, algorithm.clone())).or_insert_with(new);
            sum.members += 1;
            sum.uses = sum.uses.saturating_add(uses);
            // A key with a salt has another limit than one without.
            sum.limit = sum.limit.into_iter().chain(limit).min();
        }
        all.into_values().collect()
    }
}

impl fmt::Display for SymmetricKeyStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SymmetricKeyStatus { key, algorithm, members, uses, limit } = self;
        write!(f, "symmetric key {key} ({algorithm}): {uses} uses at {members} host")?;
        write!(f, "{}", if *members == 1 { "" } else { "s together" })?;
        match limit {
            None => writeln!(f),
            Some(limit) if uses >= limit => writeln!(f, "; it should have been replaced after {limit}"),
            Some(limit) => writeln!(f, ", to be replaced after {limit}"),
        }
    }
}

impl Statuses {
    /// What there is of each kind, and what members say of symmetric keys.
    pub(super) fn new(
        cookie_keys: Option<Status>,
        state_keys: Option<Status>,
        symmetric: impl IntoIterator<Item = SymmetricUses>,
    ) -> Self {
        Statuses { cookie_keys, state_keys, symmetric_keys: SymmetricKeyStatus::added(symmetric) }
    }

    fn all(&self) -> impl Iterator<Item = &Status> {
        self.cookie_keys.iter().chain(&self.state_keys)
    }

    /// Whether that of each is good.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.all().all(Status::is_good)
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.all().try_for_each(|status| write!(f, "{status}"))?;
        self.symmetric_keys.iter().try_for_each(|key| write!(f, "{key}"))
    }
}

/// A fleet at one time, with keys of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// What the keys are called.
    #[serde(skip)]
    kind: &'static str,
    /// The highest document that lies in a server, in words.
    document: Option<String>,
    servers: Vec<ServerStatus>,
    members: Vec<MemberStatus>,
    /// The newest key first.
    keys: Vec<KeyStatus>,
    refusals: Vec<Refused>,
}

/// One key, over all members.
#[derive(Clone, Debug, Serialize)]
struct KeyStatus {
    key: String,
    /// Whether a member seals with it.
    seals: bool,
    /// Members that open it.
    opened_by: usize,
    /// Requests under it that were given time since each member's start; absent if no member has counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
    /// Of these, how many a second of late.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests_per_second: Option<f64>,
}

/// One server.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ServerStatus {
    address: String,
    /// Why it cannot be read.
    problem: Option<String>,
    /// Its document, in words.
    document: Option<String>,
    /// Places where something lies that no member has sealed.
    strange: Vec<String>,
}

impl ServerStatus {
    pub(super) fn of<K>(server: &Endpoint, found: &Result<Found<K>, String>) -> Self {
        let (problem, found) = match found {
            Ok(found) => (None, Some(found)),
            Err(problem) => (Some(problem.clone()), None),
        };
        let document = found.and_then(|found| found.document.as_ref());
        ServerStatus {
            address: server.to_string(),
            problem,
            document: document.map(|document| document.order.to_string()),
            strange: found.map_or_else(Vec::new, |found| found.strange.keys().cloned().collect()),
        }
    }
}

/// The highest document, and since when a member says to have it, in Unix seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Present {
    pub(super) place: Option<(Order, Digest)>,
    pub(super) since: Option<u64>,
}

/// Which keys clients may hold cookies or state under, beside those that members seal with.
#[derive(Clone, Debug)]
pub(super) enum Clients {
    /// These, by the present document.
    Promised(Vec<u32>),
    /// Those under which requests have come of late.
    Counted,
}

/// One member, as it says itself.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MemberStatus {
    name: String,
    /// Whether it has said anything.
    is_heard: bool,
    /// Why its page cannot be read, where it is asked itself.
    problem: Option<String>,
    /// How long ago, in seconds, by its clock and this one.
    said_s_ago: Option<i64>,
    /// Whether it has written nothing for a minute or more.
    is_silent: bool,
    /// Whether another host uses its name.
    is_doubled: bool,
    /// Whether it has the highest document.
    has_document: bool,
    /// Its document, in words.
    document: Option<String>,
    /// For how many seconds there has been a newer one than it says to have.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind_s: Option<i64>,
    /// From which first keys its own descend.
    #[serde(skip_serializing_if = "Option::is_none")]
    lineage: Option<String>,
    /// Who takes over, as it has heard.
    taker: Option<String>,
    /// Keys, as `keys list` shows them.
    seals: Option<String>,
    opens: Vec<String>,
    /// Requests that it gave time to of late, under all keys; absent if it has not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests_per_second: Option<f64>,
    /// Place and digest of its document.
    #[serde(skip)]
    place: Option<(Order, Digest)>,
    #[serde(skip)]
    keys: (Option<u32>, Vec<u32>),
    #[serde(skip)]
    counts: Vec<Count>,
}

impl MemberStatus {
    pub(super) fn of(name: &Name, said: Option<&Acknowledgement>, present: &Present, now: u64) -> Self {
        let ago = |time: u64| now.cast_signed().saturating_sub(time.cast_signed());
        let seals = said.and_then(|said| said.seals);
        let opens = said.map_or_else(Vec::new, |said| said.opens.clone());
        let document = said.and_then(|said| said.document.as_ref());
        let has_document = document.is_some() && document == present.place.as_ref();
        MemberStatus {
            name: name.to_string(),
            is_heard: said.is_some(),
            said_s_ago: said.map(|said| ago(said.time)),
            is_silent: said.is_some_and(|said| ago(said.time) >= FRESH.as_secs().cast_signed()),
            is_doubled: said.is_some_and(|said| said.is_doubled),
            place: document.cloned(),
            has_document,
            behind_s: present.since.filter(|_| !has_document).map(ago),
            document: document.map(|(order, _)| order.to_string()),
            lineage: said.and_then(|said| said.lineage).map(|lineage| lineage_shown(&lineage)),
            taker: said.and_then(|said| said.claim.as_ref()).map(|claim| claim.taker.to_string()),
            counts: said.map_or_else(Vec::new, |said| said.counts.clone()),
            ..MemberStatus::with_keys(name.to_string(), seals, opens)
        }
        .counted()
    }

    /// A member that says itself which key it seals with, which it opens, and how often they were used.
    pub(super) fn asked(name: String, said: Result<(Option<u32>, Vec<Count>), String>) -> Self {
        match said {
            Ok((seals, counts)) => {
                let opens = counts.iter().map(|count| count.id).collect();
                let heard = MemberStatus::with_keys(name, seals, opens);
                MemberStatus { is_heard: true, counts, ..heard }.counted()
            }
            Err(problem) => {
                MemberStatus { problem: Some(problem), ..MemberStatus::with_keys(name, None, Vec::new()) }
            }
        }
    }

    /// A member of which no more is known than its keys.
    fn with_keys(name: String, seals: Option<u32>, opens: Vec<u32>) -> Self {
        MemberStatus {
            name,
            is_heard: false,
            problem: None,
            said_s_ago: None,
            is_silent: false,
            is_doubled: false,
            place: None,
            has_document: false,
            document: None,
            behind_s: None,
            lineage: None,
            taker: None,
            seals: seals.map(shown),
            opens: opens.iter().copied().map(shown).collect(),
            requests_per_second: None,
            keys: (seals, opens),
            counts: Vec::new(),
        }
    }

    fn counted(self) -> Self {
        let last_minute = sum(self.counts.iter().map(|count| count.last_minute));
        MemberStatus { requests_per_second: last_minute.map(a_second), ..self }
    }
}

/// A member that would refuse the clients of another.
#[derive(Clone, Debug, Serialize)]
struct Refused {
    /// Who refuses.
    by: String,
    /// Whose clients: of who seals with the key, or else of those who open it.
    clients_of: String,
    /// The key that these have cookies or state under.
    key: String,
    /// What they get: `NTSN`, or of ANTP `expired`; or `silence` where the key is on its way.
    answer: &'static str,
    /// How many requests a second come under that key of late, to all members that open it; absent if none has
    /// counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests_per_second: Option<f64>,
}

/// As much of it as tells it from another.
fn lineage_shown(lineage: &Lineage) -> String {
    lineage[..4].iter().map(|octet| format!("{octet:02x}")).collect()
}

fn shown(id: u32) -> String {
    format!("{id:08x}")
}

/// What comes in a second if so much came in the last minute.
pub(super) fn a_second(last_minute: u64) -> f64 {
    last_minute as f64 / 60.0
}

/// All counts together; `None` if there are none, which is not the same as zero.
pub(super) fn sum(counts: impl Iterator<Item = u64>) -> Option<u64> {
    counts.reduce(|all, one| all + one)
}

/// The keys that any member opens or seals with, the newest first, with what members count.
fn keys_of(members: &[MemberStatus]) -> BTreeMap<Reverse<u32>, KeyStatus> {
    let mut keys = BTreeMap::new();
    for member in members {
        let (seals, opens) = &member.keys;
        for id in opens.iter().chain(seals) {
            keys.entry(Reverse(*id)).or_insert_with(|| {
                let opened_by = members.iter().filter(|member| member.keys.1.contains(id)).count();
                let counts =
                    || members.iter().flat_map(|member| &member.counts).filter(|count| count.id == *id);
                KeyStatus {
                    key: shown(*id),
                    seals: members.iter().any(|member| member.keys.0 == Some(*id)),
                    opened_by,
                    requests: sum(counts().map(|count| count.requests)),
                    requests_per_second: sum(counts().map(|count| count.last_minute)).map(a_second),
                }
            });
        }
    }
    keys
}

/// Who opens a key.
fn openers(members: &[MemberStatus], id: u32) -> String {
    let openers = members.iter().filter(|member| member.keys.1.contains(&id));
    openers.map(|member| member.name.as_str()).collect::<Vec<_>>().join(", ")
}

impl Clients {
    /// Whether clients may hold what was sealed under a key that somebody opens.
    fn may_hold(&self, id: u32, key: &KeyStatus) -> bool {
        match self {
            Clients::Promised(promised) => promised.contains(&id),
            Clients::Counted => key.requests_per_second.is_some_and(|a_second| a_second > 0.0),
        }
    }
}

impl Status {
    pub(super) fn new(
        kind: &'static str,
        document: Option<String>,
        servers: Vec<ServerStatus>,
        members: Vec<MemberStatus>,
        clients: &Clients,
    ) -> Self {
        let keys = keys_of(&members);
        let refuses = |by: &MemberStatus, key: u32, clients_of: String| {
            if !by.is_heard || by.keys.1.contains(&key) {
                return None;
            }
            let newest = by.keys.1.iter().max();
            let is_ahead = newest.is_none_or(|newest| key.wrapping_sub(*newest) <= KEYS_AHEAD_MAX);
            let refusal = if kind == StateKeys::WORDS { "expired" } else { "NTSN" };
            let answer = if is_ahead { "silence" } else { refusal };
            let requests_per_second = keys.get(&Reverse(key)).and_then(|key| key.requests_per_second);
            Some(Refused { by: by.name.clone(), clients_of, key: shown(key), answer, requests_per_second })
        };
        let of_sealing = |by| {
            let seals = members.iter().filter_map(|of| Some((of.keys.0?, of.name.clone())));
            seals.filter_map(move |(key, of)| refuses(by, key, of)).collect::<Vec<_>>()
        };
        // What seals is told of above.
        let held: Vec<(u32, String)> = keys
            .iter()
            .filter(|(Reverse(id), key)| !key.seals && clients.may_hold(*id, key))
            .map(|(Reverse(id), _)| (*id, openers(&members, *id)))
            .collect();
        let of_holding =
            |by| held.iter().filter_map(move |(key, of)| refuses(by, *key, of.clone())).collect::<Vec<_>>();
        let refusals = members.iter().flat_map(|by| [of_sealing(by), of_holding(by)].concat()).collect();
        Status { kind, document, servers, refusals, keys: keys.into_values().collect(), members }
    }

    /// Members by the first keys from which theirs descend.
    fn lineages(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for member in &self.members {
            let lineage = member.lineage.as_deref();
            lineage.into_iter().for_each(|lineage| all.entry(lineage).or_default().push(&member.name));
        }
        all
    }

    /// Members with different documents of one place: keys of one number may differ between them.
    fn conflicts<'a>(&'a self) -> Vec<(&'a Order, Vec<&'a str>)> {
        let mut places: BTreeMap<&Order, Vec<(&Digest, &'a str)>> = BTreeMap::new();
        for member in &self.members {
            let place = member.place.iter();
            place.for_each(|(order, digest)| places.entry(order).or_default().push((digest, &member.name)));
        }
        places.retain(|_, held| held.iter().any(|(digest, _)| *digest != held[0].0));
        let names = |held: Vec<(&Digest, &'a str)>| held.into_iter().map(|(_, name)| name).collect();
        places.into_iter().map(|(order, held)| (order, names(held))).collect()
    }

    /// Whether all members have written within the last minute, each name is used by one host, their keys descend from
    /// the same first ones and are the same, and none would refuse the clients of another.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.refusals.is_empty()
            && self.lineages().len() <= 1
            && self.conflicts().is_empty()
            && self.members.iter().all(|member| member.is_heard && !member.is_silent && !member.is_doubled)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = "no document";
        match &self.servers[..] {
            [] => writeln!(f, "{}: no others are on pages of metrics", self.kind)?,
            _ => writeln!(f, "{}: {}", self.kind, self.document.as_deref().unwrap_or(none))?,
        }
        for ServerStatus { address, problem, document, strange } in &self.servers {
            match problem {
                Some(problem) => writeln!(f, "memcached {problem}")?,
                None => writeln!(f, "memcached {address}: {}", document.as_deref().unwrap_or(none))?,
            }
            for place in strange {
                writeln!(f, "memcached {address}: what lies under {place} was sealed by no member")?;
            }
        }
        self.members.iter().try_for_each(|member| writeln!(f, "{member}"))?;
        let lineages = self.lineages();
        for (lineage, names) in lineages.iter().filter(|_| lineages.len() > 1) {
            let names = names.join(", ");
            writeln!(f, "first keys {lineage}: {names}; keep those of one node, and remove the others")?;
        }
        for (order, names) in self.conflicts() {
            let names = names.join(", ");
            writeln!(
                f,
                "{order}: different documents at {names}; their keys of one number differ: keep those of one node"
            )?;
        }
        for KeyStatus { key, seals, opened_by, requests, requests_per_second } in &self.keys {
            let seals = if *seals { ", which seals" } else { "" };
            write!(f, "key {key}{seals}: {opened_by} of {} open it", self.members.len())?;
            if let (Some(requests), Some(a_second)) = (requests, requests_per_second) {
                write!(f, "; {requests} requests, {a_second:.1} a second")?;
            }
            writeln!(f)?;
        }
        let what = if self.kind == StateKeys::WORDS { "state" } else { "cookies" };
        for Refused { by, clients_of, key, answer, requests_per_second } in &self.refusals {
            write!(f, "{by} would refuse clients of {clients_of}: {answer} to {what} under {key}")?;
            if let Some(a_second) = requests_per_second {
                write!(f, ", under which {a_second:.1} requests a second come")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for MemberStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemberStatus { name, is_heard, problem, said_s_ago, opens, requests_per_second, .. } = self;
        if let Some(problem) = problem {
            return write!(f, "{name}: {problem}");
        }
        if !is_heard {
            return write!(f, "{name}: has said nothing");
        }
        write!(f, "{name}: ")?;
        if said_s_ago.is_some() {
            write!(f, "{}", self.document.as_deref().unwrap_or("no document"))?;
            if !self.has_document {
                write!(f, ", which is not that document")?;
                self.behind_s.map_or(Ok(()), |behind| write!(f, ", which has been there for {behind} s"))?;
            }
            write!(f, "; ")?;
        }
        if let Some(key) = &self.seals {
            write!(f, "{key} seals; ")?;
        }
        if let Some(taker) = &self.taker {
            write!(f, "{taker} is taking over; ")?;
        }
        write!(f, "{} keys open", opens.len())?;
        if let Some(a_second) = requests_per_second {
            write!(f, "; {a_second:.1} requests a second")?;
        }
        if self.is_doubled {
            write!(f, "; ANOTHER HOST HAS THIS NAME: stop it, or give it a name of its own")?;
        }
        match said_s_ago {
            Some(ago) if self.is_silent => write!(f, "; SILENT for {ago} s"),
            Some(ago) => write!(f, "; said {ago} s ago"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use authentick_proto::keyset::KeySet;

    use super::*;

    fn said(name: &Name, seals: Option<u32>, opens: &[u32], version: u64) -> Acknowledgement {
        let order = Order { term: 1, version, writer: Name::new("a").unwrap() };
        Acknowledgement {
            fleet: Name::new("fleet").unwrap(),
            node: name.clone(),
            time: 90,
            document: Some((order, [version as u8; 32])),
            lineage: None,
            since: Some(60 + version),
            claim: None,
            nonce: None,
            is_doubled: false,
            seals,
            opens: opens.to_vec(),
            dropped: Vec::new(),
            counts: Vec::new(),
            symmetric: Vec::new(),
        }
    }

    /// What `a`, which seals with 0x105 and opens five, and `b` make of each other.
    fn with(b: Option<(Option<u32>, &[u32], u64)>) -> Status {
        of_kind(KeySet::WORDS, b, |said| said)
    }

    /// The same of keys of some kind, where members say more, too.
    fn of_kind(
        kind: &'static str,
        b: Option<(Option<u32>, &[u32], u64)>,
        more: fn(Acknowledgement) -> Acknowledgement,
    ) -> Status {
        let [a, other] = ["a", "b"].map(|name| Name::new(name).unwrap());
        let ours = more(said(&a, Some(0x105), &[0x102, 0x103, 0x104, 0x105, 0x106], 4));
        let theirs = b.map(|(seals, opens, version)| more(said(&other, seals, opens, version)));
        let present = Present { place: ours.document.clone(), since: ours.since };
        let members = [(&a, Some(&ours)), (&other, theirs.as_ref())]
            .map(|(name, said)| MemberStatus::of(name, said, &present, 100));
        // Of the keys that `a` opens the oldest is kept no more, and the future one has sealed nothing.
        let clients = Clients::Promised(vec![0x103, 0x104, 0x105]);
        Status::new(kind, Some("it".to_owned()), Vec::new(), members.into(), &clients)
    }

    fn refusals(status: &Status) -> Vec<(&str, &str, &str, &str)> {
        status
            .refusals
            .iter()
            .map(|it| (it.by.as_str(), it.clients_of.as_str(), it.key.as_str(), it.answer))
            .collect()
    }

    #[test]
    fn members_that_open_what_others_seal_with_refuse_nobody() {
        for version in [3, 4] {
            let status = with(Some((Some(0x104), &[0x103, 0x104, 0x105], version)));
            assert!(status.is_good() && refusals(&status).is_empty(), "{status}");
            let lags =
                "b: version 3 of term 1 by a, which is not that document, which has been there for 36 s; ";
            assert_eq!(status.to_string().contains(lags), version == 3, "{status}");
            let json = serde_json::to_value(&status).unwrap();
            assert_eq!(json["members"][1]["behind_s"].as_i64(), (version == 3).then_some(36));
            assert!(json["members"][0].get("behind_s").is_none());
        }
    }

    #[test]
    fn who_lacks_a_key_that_clients_may_hold_would_refuse_them_though_nobody_seals_with_it() {
        let status = with(Some((Some(0x105), &[0x104, 0x105, 0x106], 4)));
        assert_eq!(refusals(&status), [("b", "a", "00000103", "NTSN")]);
        assert!(!status.is_good());
        // Pages of metrics say nothing of documents: what was used of late may be held.
        let page = |name: &str, counts: &[(u32, u64)]| {
            let count =
                |(id, last_minute): &(u32, u64)| Count { id: *id, requests: 9, last_minute: *last_minute };
            MemberStatus::asked(name.to_owned(), Ok((Some(5), counts.iter().map(count).collect())))
        };
        let of = |used| {
            let members = vec![
                page("a", &[(3, 0), (4, used), (5, 7), (6, 0)]),
                page("b", &[(5, 7), (6, 0)]),
                page("c", &[(4, 0), (5, 0)]),
            ];
            Status::new(KeySet::WORDS, None, Vec::new(), members, &Clients::Counted)
        };
        assert!(of(0).is_good());
        assert_eq!(refusals(&of(60)), [("b", "a, c", "00000004", "NTSN")]);
    }

    #[test]
    fn who_is_behind_keeps_silent_and_who_has_dropped_a_key_sends_clients_away() {
        let behind = with(Some((Some(0x103), &[0x102, 0x103, 0x104], 2)));
        assert_eq!(refusals(&behind), [("b", "a", "00000105", "silence")]);
        let dropped = with(Some((Some(0x107), &[0x104, 0x106, 0x107, 0x108], 6)));
        let expected = [
            ("a", "b", "00000107", "silence"),
            ("b", "a", "00000105", "NTSN"),
            ("b", "a", "00000103", "NTSN"),
        ];
        assert_eq!(refusals(&dropped), expected);
        assert!(!behind.is_good() && !dropped.is_good());
        assert!(dropped.to_string().contains("b would refuse clients of a: NTSN to cookies under 00000105"));
        // One that has nothing yet says nothing to cookies.
        let expected = ["00000105", "00000104", "00000103"].map(|key| ("b", "a", key, "silence"));
        assert_eq!(refusals(&with(Some((None, &[], 0)))), expected);
    }

    #[test]
    fn uses_of_symmetric_keys_are_added_up_by_key_and_type() {
        let of = |id, algorithm: &str, uses, limit| SymmetricUses {
            id,
            algorithm: algorithm.to_owned(),
            uses,
            limit,
        };
        let said = [
            of(1, "AES128", 7, Some(100)),
            of(2, "SHA1", 5, None),
            of(1, "AES128", 93, Some(100)),
            of(1, "SHA1", 4, None),
            of(3, "GMAC128", u64::MAX, Some(1 << 32)),
            of(3, "GMAC128", 1, Some(1 << 16)),
            of(4, "AES256", 1, Some(1000)),
        ];
        let statuses = Statuses::new(None, None, said);
        assert_eq!(
            statuses.to_string(),
            "symmetric key 1 (AES128): 100 uses at 2 hosts together; it should have been replaced after 100\n\
             symmetric key 1 (SHA1): 4 uses at 1 host\n\
             symmetric key 2 (SHA1): 5 uses at 1 host\n\
             symmetric key 3 (GMAC128): 18446744073709551615 uses at 2 hosts together; it should have been \
             replaced after 65536\n\
             symmetric key 4 (AES256): 1 uses at 1 host, to be replaced after 1000\n"
        );
        let json = serde_json::to_value(&statuses).unwrap();
        let first =
            serde_json::json!({ "key": 1, "type": "AES128", "members": 2, "uses": 100, "limit": 100 });
        assert_eq!(
            (json["symmetric-keys"].as_array().unwrap().len(), &json["symmetric-keys"][0]),
            (5, &first)
        );
    }

    #[test]
    fn member_that_says_nothing_is_no_good_sign() {
        let status = with(None);
        assert!(
            !status.is_good()
                && refusals(&status).is_empty()
                && status.to_string().contains("b: has said nothing")
        );
    }

    #[test]
    fn what_nobody_has_counted_is_left_out_and_zero_is_not() {
        let b = Some((Some(0x107), &[0x104, 0x106, 0x107, 0x108][..], 6));
        let none = of_kind(StateKeys::WORDS, b, |said| said);
        let (text, json) = (none.to_string(), serde_json::to_string(&none).unwrap());
        assert!(!text.contains("requests") && !json.contains("requests"), "{text}\n{json}");
        assert!(text.contains("key 00000107, which seals: 1 of 2 open it\n"), "{text}");
        assert!(text.contains("b would refuse clients of a: expired to state under 00000105\n"), "{text}");
        let counted = of_kind(KeySet::WORDS, b, |said| {
            let requests = |id| if id == 0x106 { 7 } else { 0 };
            let count = |id: &u32| Count { id: *id, requests: requests(*id), last_minute: 6 * requests(*id) };
            Acknowledgement { counts: said.opens.iter().map(count).collect(), ..said }
        });
        let text = counted.to_string();
        for line in [
            "key 00000106: 2 of 2 open it; 14 requests, 1.4 a second\n",
            "key 00000107, which seals: 1 of 2 open it; 0 requests, 0.0 a second\n",
            "4 keys open; 0.7 requests a second; said 10 s ago\n",
            "NTSN to cookies under 00000105, under which 0.0 requests a second come\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        let json = serde_json::to_value(&counted).unwrap();
        assert_eq!(
            json["keys"]
                .as_array()
                .unwrap()
                .iter()
                .map(|key| &key["requests"])
                .filter(|it| it.is_u64())
                .count(),
            7
        );
    }
}
