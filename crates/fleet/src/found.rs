//! What lies in a store, what of it members of the fleet have said, and what a node puts there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use zeroize::Zeroizing;

use crate::acknowledgement::{Acknowledgement, Answer};
use crate::claim::{Claim, Nonce};
use crate::document::Document;
use crate::keys::Keys;
use crate::memcached;
use crate::name::Name;
use crate::rules::{Heard, Node, Origin};
use crate::seal::{SealKeys, Topic};
use crate::text::TextError;

/// Something that a member said.
#[derive(Clone, Debug)]
pub enum Said<K> {
    /// A document, and how it came.
    Document(Box<Document<K>>, Origin),
    /// That somebody begins a new term.
    Claim(Claim),
    /// What a member has.
    Acknowledgement(Box<Acknowledgement>),
    /// What a member had when it kept a claim.
    Answer(Box<Answer<K>>),
}

impl<K: Keys> Said<K> {
    /// Has a node hear it.
    #[must_use]
    pub fn tell(&self, node: &mut Node<K>) -> Heard<K> {
        match self {
            Said::Document(document, origin) => node.hear_document(document, *origin),
            Said::Claim(claim) => node.hear_claim(claim),
            Said::Acknowledgement(said) => {
                node.hear_acknowledgement(said);
                Heard::Nothing
            }
            Said::Answer(answer) => {
                node.hear_answer(answer);
                Heard::Nothing
            }
        }
    }
}

impl<K> fmt::Display for Said<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Document(document, _) => write!(f, "{}", document.order),
            Said::Claim(claim) => write!(f, "the claim of {}", claim.taker),
            Said::Acknowledgement(said) => write!(f, "what {} says of itself", said.node),
            Said::Answer(answer) => write!(f, "the answer of {}", answer.node),
        }
    }
}

/// Who asks, and for what.
#[derive(Clone, Debug)]
pub struct Asker {
    /// Of which fleet.
    pub fleet: Name,
    /// The node.
    pub me: Name,
    /// All, this node included.
    pub members: Vec<Name>,
    /// What a store calls the keys.
    pub kind: &'static str,
}

impl Asker {
    /// The names of everything, in the order in which [`Found::of`] wants the values.
    #[must_use]
    pub fn names(&self) -> Vec<memcached::Name> {
        let each = |topic: fn(&Name) -> Topic<'_>| self.members.iter().map(topic);
        [Topic::Document, Topic::Claim]
            .into_iter()
            .chain(each(|name| Topic::Node(name)))
            .chain(each(|name| Topic::Answer(name)))
            .chain(each(|name| Topic::Welcome(name, Nonce::default())))
            .map(|topic| self.name(topic))
            .collect()
    }

    /// Where something is.
    ///
    /// # Panics
    /// If what a store calls the keys is no part of a name there.
    #[must_use]
    pub fn name(&self, topic: Topic<'_>) -> memcached::Name {
        memcached::Name::new(&topic.name(&self.fleet, self.kind))
            .expect("names of fleets and nodes are bounded")
    }
}

/// What lies in a store. `V` is a value as it came from there, with whatever is needed to replace it.
#[derive(Clone, Debug)]
pub struct Found<K, V> {
    /// The document.
    pub document: Option<Document<K>>,
    /// The claim of a new term.
    pub claim: Option<Claim>,
    /// What members say of themselves.
    pub acknowledgements: BTreeMap<Name, Acknowledgement>,
    /// What members answer to a claim.
    pub answers: BTreeMap<Name, Answer<K>>,
    /// For whom, with the nonce that this node has; for others with the nonce that they show.
    pub welcomes: BTreeMap<Name, (Nonce, Document<K>)>,
    /// Places where something lies that no member has said there, and what is wrong with it.
    pub strange: BTreeMap<String, &'static str>,
    /// Places where something lies that another seal key than the first has sealed.
    aged: BTreeSet<String>,
    /// What lies where, as it is.
    values: BTreeMap<String, V>,
}

impl<K: Keys, V: AsRef<[u8]>> Found<K, V> {
    /// What the values under [`Asker::names`] say to a node with the nonce `nonce`, if it has one.
    #[must_use]
    pub fn of(asker: &Asker, nonce: Option<Nonce>, seals: &SealKeys, values: Vec<Option<V>>) -> Self {
        let names = asker.names().into_iter().map(|name| name.as_str().to_owned());
        let values = names.zip(values).filter_map(|(name, value)| Some((name, value?))).collect();
        let mut reader = Reader { asker, seals, values, strange: BTreeMap::new(), aged: BTreeSet::new() };
        let Asker { fleet, me, members, .. } = asker;
        let document = reader.read(Topic::Document, Document::parse);
        let claim = reader.read(Topic::Claim, |text| Claim::parse(text, fleet));
        let mut found = Found {
            document,
            claim,
            acknowledgements: BTreeMap::new(),
            answers: BTreeMap::new(),
            welcomes: BTreeMap::new(),
            strange: BTreeMap::new(),
            aged: BTreeSet::new(),
            values: BTreeMap::new(),
        };
        for name in members {
            let said = reader.read(Topic::Node(name), |text| Acknowledgement::parse(text, fleet, name));
            let answer = reader.read(Topic::Answer(name), |text| Answer::parse(text, fleet, name));
            // What this node showed earlier may lie there again: only its own nonce of now counts.
            let nonce = if name == me { nonce } else { said.as_ref().and_then(|said| said.nonce) };
            // A welcome that was for an earlier nonce is nobody's fault.
            let welcome = nonce.and_then(|nonce| {
                let read = |text: &str| Document::parse(text);
                Some((nonce, reader.open(Topic::Welcome(name, nonce), read)?.ok()?.0))
            });
            found.acknowledgements.extend(said.map(|said| (name.clone(), said)));
            found.answers.extend(answer.map(|answer| (name.clone(), answer)));
            found.welcomes.extend(welcome.map(|welcome| (name.clone(), welcome)));
        }
        (found.strange, found.aged, found.values) = (reader.strange, reader.aged, reader.values);
        found
    }

    /// What lies there, as it is.
    #[must_use]
    pub fn value(&self, name: &memcached::Name) -> Option<&V> {
        self.values.get(name.as_str())
    }

    /// Whether what lies there was sealed by a key that does not come first any more: once that key is removed it opens
    /// nowhere. Who would say the same seals it anew; what others say they seal themselves.
    #[must_use]
    pub fn is_aged(&self, name: &memcached::Name) -> bool {
        self.aged.contains(name.as_str())
    }

    /// Whether somebody says that a member keeps another claim, of the term of `claim` or a higher one, or has a
    /// document of such a term. No such member will ever answer `claim`.
    #[must_use]
    pub fn contests(&self, claim: &Claim) -> bool {
        let kept = self.acknowledgements.values().filter_map(|said| said.claim.as_ref());
        let mut claims = kept.chain(&self.claim);
        let had = self.acknowledgements.values().filter_map(|said| said.document.as_ref());
        let orders = had.map(|(order, _)| order).chain(self.document.iter().map(|document| &document.order));
        claims.any(|other| other != claim && other.term >= claim.term)
            || orders.into_iter().any(|order| order.term >= claim.term)
    }

    /// What `node`, who asked, puts there as it is missing or behind: all but what it says of itself.
    #[must_use]
    pub fn missing<'f>(&'f self, asker: &'f Asker, node: &Node<K>) -> Vec<(Topic<'f>, Zeroizing<String>)> {
        let Asker { fleet, me, .. } = asker;
        let mut missing = Vec::new();
        let is_aged = |topic| self.is_aged(&asker.name(topic));
        let kept = node.on_disk();
        let ours = kept.document.as_ref().filter(|ours| {
            is_aged(Topic::Document)
                && self.document.as_ref().is_some_and(|found| found.digest() == ours.digest())
        });
        if let Some(document) = node.put_back(self.document.as_ref()).or(ours) {
            missing.push((Topic::Document, document.emit()));
        }
        let ours =
            kept.claim.as_ref().filter(|ours| is_aged(Topic::Claim) && self.claim.as_ref() == Some(ours));
        if let Some(claim) = node.put_claim_back(self.claim.as_ref()).or(ours) {
            missing.push((Topic::Claim, Zeroizing::new(claim.emit(fleet))));
        }
        if let Some(answer) = node.answer().map(|answer| answer.emit(fleet)) {
            let there = self.answers.get(me).map(|answer| answer.emit(fleet));
            if there.as_ref() != Some(&answer) || is_aged(Topic::Answer(me)) {
                missing.push((Topic::Answer(me), answer));
            }
        }
        for said in self.acknowledgements.values() {
            let Some((nonce, document)) = node.welcome(said) else { continue };
            let there = self.welcomes.get(&said.node).map(|(nonce, welcome)| (*nonce, &welcome.order));
            if there != Some((nonce, &document.order)) {
                missing.push((Topic::Welcome(&said.node, nonce), document.emit()));
            }
        }
        missing
    }

    /// All that the node `me` has to hear.
    #[must_use]
    pub fn said(self, me: &Name) -> Vec<Said<K>> {
        let document = |document, origin| Said::Document(Box::new(document), origin);
        let Found { document: stored, claim, acknowledgements, answers, mut welcomes, .. } = self;
        // Claims come before what they bar, and documents before those who acknowledge them.
        let mut said: Vec<Said<K>> = claim.into_iter().map(Said::Claim).collect();
        said.extend(welcomes.remove(me).map(|(_, welcome)| document(welcome, Origin::Welcome)));
        said.extend(stored.map(|stored| document(stored, Origin::Store)));
        let others = acknowledgements.into_iter().filter(|(name, _)| name != me);
        said.extend(others.map(|(_, said)| Said::Acknowledgement(Box::new(said))));
        said.extend(answers.into_values().map(|answer| Said::Answer(Box::new(answer))));
        said
    }
}

/// Reads values, and notes which nobody has said.
struct Reader<'r, V> {
    asker: &'r Asker,
    seals: &'r SealKeys,
    values: BTreeMap<String, V>,
    strange: BTreeMap<String, &'static str>,
    aged: BTreeSet<String>,
}

impl<V: AsRef<[u8]>> Reader<'_, V> {
    /// What lies there, opened, and whether the first seal key has sealed it; `None` if nothing does.
    fn open<T>(
        &self,
        topic: Topic<'_>,
        parse: impl Fn(&str) -> Result<T, TextError>,
    ) -> Option<Result<(T, bool), &'static str>> {
        let value = self.values.get(self.asker.name(topic).as_str())?;
        let Some((text, key)) = self.seals.open(topic, self.asker.kind, value.as_ref()) else {
            return Some(Err("no seal key of ours has sealed it"));
        };
        let parsed = parse(&text).map(|said| (said, key == 0));
        Some(parsed.map_err(|_| "it is sealed, and not understood: another version may have written it"))
    }

    fn read<T>(&mut self, topic: Topic<'_>, parse: impl Fn(&str) -> Result<T, TextError>) -> Option<T> {
        let place = || self.asker.name(topic).as_str().to_owned();
        match self.open(topic, parse)? {
            Ok((said, true)) => Some(said),
            Ok((said, false)) => {
                let place = place();
                self.aged.insert(place);
                Some(said)
            }
            Err(why) => {
                let place = place();
                self.strange.insert(place, why);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use authentick_crypto::Entropy;

    use super::*;
    use crate::claim::NONCE_SIZE;
    use crate::kept::Kept;
    use crate::rules::Start;
    use crate::seal::SEAL_KEY_SIZE;
    use crate::toy::Toy;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    /// Two members, and what `b` reads of what lies in its server.
    struct Reading {
        asker: Asker,
        seals: SealKeys,
        entropy: Entropy,
        values: BTreeMap<String, Vec<u8>>,
    }

    impl Reading {
        fn new() -> Self {
            let asker = Asker {
                fleet: name("fleet"),
                me: name("b"),
                members: vec![name("a"), name("b")],
                kind: "cookie-keys",
            };
            let seals = SealKeys::new(name("fleet"), &[Zeroizing::new([7; SEAL_KEY_SIZE])]).unwrap();
            Reading { asker, seals, entropy: Entropy::from_seed(1), values: BTreeMap::new() }
        }

        /// Puts into the place `at` what was sealed for `topic`.
        fn put(&mut self, at: Topic<'_>, topic: Topic<'_>, text: &str) {
            let octets = self.seals.seal(topic, self.asker.kind, text, &mut self.entropy);
            let name = self.asker.name(at).as_str().to_owned();
            self.values.insert(name, octets);
        }

        fn read(&self, nonce: Option<Nonce>) -> Found<Toy, Vec<u8>> {
            let names = self.asker.names();
            let values = names.iter().map(|name| self.values.get(name.as_str()).cloned());
            Found::of(&self.asker, nonce, &self.seals, values.collect())
        }
    }

    fn first() -> Document<Toy> {
        Document::first(name("fleet"), name("a"), Toy::first())
    }

    fn document() -> String {
        first().emit().to_string()
    }

    #[test]
    fn what_was_said_elsewhere_or_by_nobody_counts_for_nothing_and_is_named() {
        let mut reading = Reading::new();
        let (a, b) = (name("a"), name("b"));
        let said = Acknowledgement {
            fleet: name("fleet"),
            node: a.clone(),
            time: 1,
            document: None,
            lineage: None,
            since: None,
            claim: None,
            nonce: None,
            is_doubled: false,
            seals: None,
            opens: Vec::new(),
            dropped: Vec::new(),
            counts: Vec::new(),
            symmetric: Vec::new(),
        };
        reading.put(Topic::Document, Topic::Document, &document());
        reading.put(Topic::Node(&a), Topic::Node(&a), &said.emit());
        let found = reading.read(None);
        assert!(found.document.is_some() && found.acknowledgements.contains_key(&a), "{found:?}");
        assert!(found.strange.is_empty());
        // In another place, one octet off, of another fleet, and without sense.
        reading.put(Topic::Claim, Topic::Document, &document());
        reading.put(Topic::Node(&b), Topic::Node(&a), &said.emit());
        let place = reading.asker.name(Topic::Document).as_str().to_owned();
        *reading.values.get_mut(&place).unwrap().last_mut().unwrap() ^= 1;
        reading.put(Topic::Answer(&a), Topic::Answer(&a), "authentick-fleet-answer 9\n");
        let other = Acknowledgement { fleet: name("other"), ..said };
        reading.put(Topic::Node(&a), Topic::Node(&a), &other.emit());
        let found = reading.read(None);
        assert!(found.document.is_none() && found.claim.is_none() && found.acknowledgements.is_empty());
        let strange: Vec<&str> = found
            .strange
            .keys()
            .map(|name| name.strip_prefix("authentick/fleet/cookie-keys/").unwrap())
            .collect();
        assert_eq!(strange, ["answer/a", "claim", "document", "node/a", "node/b"]);
        assert!(found.said(&b).is_empty());
    }

    #[test]
    fn welcome_is_heard_by_the_start_that_it_was_for() {
        let mut reading = Reading::new();
        let b = name("b");
        let [now, before]: [Nonce; 2] = [[1; 16], [2; 16]];
        reading.put(Topic::Welcome(&b, now), Topic::Welcome(&b, before), &document());
        let found = reading.read(Some(now));
        assert!(found.welcomes.is_empty() && found.strange.is_empty(), "that was for an earlier start");
        reading.put(Topic::Welcome(&b, now), Topic::Welcome(&b, now), &document());
        assert!(reading.read(None).welcomes.is_empty(), "it has a document");
        let said = reading.read(Some(now)).said(&b);
        assert!(matches!(said[..], [Said::Document(_, Origin::Welcome)]), "{said:?}");
    }

    #[test]
    fn what_a_node_puts_is_missing_until_it_lies_there() {
        let (mut reading, a, b) = (Reading::new(), name("a"), name("b"));
        reading.asker.me = a.clone();
        let members = [a.clone(), b.clone()];
        let nonce = [3; NONCE_SIZE];
        let start = |me: &Name, kept| {
            Node::new(name("fleet"), me.clone(), members.clone(), Start::Welcomed, kept, nonce)
        };
        let writer = start(&a, Kept { document: Some(first()), ..Kept::default() });
        let newcomer = start(&b, Kept::<Toy>::default());
        let topics = |reading: &Reading, node: &Node<Toy>| -> Vec<String> {
            let found = reading.read(None);
            let missing = found.missing(&reading.asker, node).into_iter();
            missing
                .map(|(topic, _)| topic.name(&name("fleet"), "").rsplit("//").next().unwrap().to_owned())
                .collect()
        };
        assert_eq!(topics(&reading, &writer), ["document"]);
        reading.put(Topic::Document, Topic::Document, &document());
        assert!(topics(&reading, &writer).is_empty());
        reading.put(Topic::Node(&b), Topic::Node(&b), &newcomer.acknowledgement().emit());
        assert_eq!(topics(&reading, &writer), ["welcome/b"]);
        // One for an earlier start is none for this one.
        reading.put(Topic::Welcome(&b, [4; NONCE_SIZE]), Topic::Welcome(&b, [4; NONCE_SIZE]), &document());
        assert_eq!(topics(&reading, &writer), ["welcome/b"]);
        reading.put(Topic::Welcome(&b, nonce), Topic::Welcome(&b, nonce), &document());
        assert!(topics(&reading, &writer).is_empty());
        // Who keeps another one's claim answers it, and puts it back.
        let claim = Claim { term: 2, taker: b.clone(), nonce };
        let answering =
            start(&a, Kept { document: Some(first()), claim: Some(claim.clone()), ..Kept::default() });
        assert_eq!(topics(&reading, &answering), ["claim", "answer/a"]);
        reading.put(Topic::Claim, Topic::Claim, &claim.emit(&name("fleet")));
        reading.put(Topic::Answer(&a), Topic::Answer(&a), &answering.answer().unwrap().emit(&name("fleet")));
        assert!(topics(&reading, &answering).is_empty());
    }

    #[test]
    fn what_a_node_says_is_sealed_anew_once_another_key_comes_first() {
        let (mut reading, a) = (Reading::new(), name("a"));
        reading.asker.me = a.clone();
        let claim = Claim { term: 2, taker: name("b"), nonce: [3; NONCE_SIZE] };
        let start = |document| {
            let kept = Kept { document: Some(document), claim: Some(claim.clone()), ..Kept::default() };
            Node::new(name("fleet"), a.clone(), [], Start::Welcomed, kept, [0; NONCE_SIZE])
        };
        let node = start(first());
        let said = [
            (Topic::Document, document()),
            (Topic::Claim, claim.emit(&name("fleet"))),
            (Topic::Answer(&a), node.answer().unwrap().emit(&name("fleet")).to_string()),
            (Topic::Node(&a), node.acknowledgement().emit().to_string()),
        ];
        said.iter().for_each(|(topic, text)| reading.put(*topic, *topic, text));
        let missing = |reading: &Reading, node: &Node<Toy>| {
            let found = reading.read(None);
            let missing = found.missing(&reading.asker, node).into_iter();
            let topics: Vec<String> = missing.map(|(topic, _)| topic.name(&name("fleet"), "")).collect();
            (topics.len(), found.is_aged(&reading.asker.name(Topic::Node(&a))))
        };
        let keys = |octets: &[u8]| {
            let keys: Vec<_> = octets.iter().map(|octet| Zeroizing::new([*octet; SEAL_KEY_SIZE])).collect();
            SealKeys::new(name("fleet"), &keys).unwrap()
        };
        // A new one opens, and does not seal yet.
        reading.seals = keys(&[7, 8]);
        assert_eq!(missing(&reading, &node), (0, false));
        reading.seals = keys(&[8, 7]);
        assert_eq!(missing(&reading, &node), (3, true));
        // Whoever has another document says nothing of this one.
        let mut other = first();
        other.order.writer = name("0");
        assert_eq!(missing(&reading, &start(other)), (2, true));
        said.iter().for_each(|(topic, text)| reading.put(*topic, *topic, text));
        assert_eq!(missing(&reading, &node), (0, false));
        reading.seals = keys(&[8]);
        assert!(reading.read(None).strange.is_empty());
    }

    #[test]
    fn claim_is_contested_by_another_one_of_its_term_or_a_higher_one() {
        let claim = |term, taker: &str, octet| Claim { term, taker: name(taker), nonce: [octet; NONCE_SIZE] };
        let a = name("a");
        for (other, contests) in [
            (claim(3, "b", 1), false),
            (claim(2, "a", 2), false),
            (claim(3, "b", 2), true),
            (claim(3, "a", 1), true),
            (claim(4, "a", 1), true),
        ] {
            let ours = claim(3, "b", 1);
            let mut reading = Reading::new();
            reading.put(Topic::Claim, Topic::Claim, &other.emit(&name("fleet")));
            assert_eq!(reading.read(None).contests(&ours), contests, "{other:?} in the store");
            let kept = Kept::<Toy> { claim: Some(other.clone()), ..Kept::default() };
            let node = Node::new(name("fleet"), a.clone(), [], Start::Welcomed, kept, [0; NONCE_SIZE]);
            let mut reading = Reading::new();
            reading.put(Topic::Node(&a), Topic::Node(&a), &node.acknowledgement().emit());
            assert_eq!(reading.read(None).contests(&ours), contests, "{other:?} on a disk");
        }
    }

    /// A node that lost its disk had been the writer of that term, and stores that forget let it claim it once more.
    #[test]
    fn claim_is_contested_by_a_document_of_its_term() {
        let a = name("a");
        let claim = |term| Claim { term, taker: name("b"), nonce: [1; NONCE_SIZE] };
        let kept = Kept { document: Some(first()), ..Kept::default() };
        let node = Node::new(name("fleet"), a.clone(), [], Start::Welcomed, kept, [0; NONCE_SIZE]);
        let mut said = Reading::new();
        said.put(Topic::Node(&a), Topic::Node(&a), &node.acknowledgement().emit());
        let mut lying = Reading::new();
        lying.put(Topic::Document, Topic::Document, &document());
        for reading in [said, lying] {
            let found = reading.read(None);
            assert!(found.contests(&claim(1)) && !found.contests(&claim(2)));
        }
    }
}
