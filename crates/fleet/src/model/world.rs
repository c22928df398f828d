//! The fleet, what was said in it, and what can happen next.

use std::collections::{BTreeMap, BTreeSet};

use crate::acknowledgement::{Acknowledgement, Answer};
use crate::claim::{Claim, NONCE_SIZE, Nonce};
use crate::document::{Document, Lineage, Order};
use crate::kept::Kept;
use crate::keys::Keys as _;
use crate::name::Name;
use crate::rules::{Heard, Node, Origin, Rotation, Rule, Start};
use crate::toy::{Key, Toy};

/// Periods for which keys open after they have sealed.
pub(super) const KEEP: usize = 1;

/// How often what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Limits {
    pub(crate) rotations: u8,
    pub(crate) revocations: u8,
    pub(crate) crashes: u8,
    /// Crashes that take the disk along.
    pub(crate) losses: u8,
    pub(crate) refusals: u8,
    pub(crate) takeovers: u8,
    /// Rotations that leave a member behind.
    pub(crate) patience: u8,
    /// Hosts that appear with the name of another one.
    pub(crate) doubles: u8,
}

/// A fleet, with or without one of the rules.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    pub(crate) limits: Limits,
    /// The first node that may lose its disk or take over, for explorations that would take too long otherwise.
    pub(crate) first_unsteady: usize,
    /// Whether the second node has made first keys, too, and the third has none yet.
    pub(crate) is_made_twice: bool,
    /// The node whose name a third host uses, if doubles may appear: there are two members then.
    pub(crate) double_of: Option<usize>,
    pub(crate) without: Option<Rule>,
}

/// Everything that was ever said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Said {
    pub(super) documents: Vec<Document<Toy>>,
    pub(super) welcomes: Vec<(usize, Nonce, Document<Toy>)>,
    pub(super) claims: Vec<Claim>,
    pub(super) acknowledgements: Vec<Acknowledgement>,
    pub(super) answers: Vec<Answer<Toy>>,
}

fn add<T: PartialEq>(said: &mut Vec<T>, new: T) {
    if !said.contains(&new) {
        said.push(new);
    }
}

/// A state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(super) nodes: Vec<Node<Toy>>,
    pub(super) disks: Vec<Kept<Toy>>,
    pub(super) said: Said,
    pub(super) left: Limits,
    /// The key that was made last.
    pub(super) made: u8,
    nonces: u8,
    /// Keys that have sealed, and in which period last.
    pub(super) sealed: BTreeMap<Key, u64>,
    /// Keys that somebody revoked.
    pub(super) revoked: BTreeSet<Key>,
    /// Keys that a node had given up because they were revoked.
    pub(super) given_up: BTreeSet<(usize, Key)>,
    /// Whether a document on a disk was replaced by a lower one.
    pub(super) fell: bool,
    /// Who was left behind, until it has this document: it refuses clients, and others refuse its own.
    pub(super) left_behind: BTreeMap<usize, Order>,
    /// From which first keys those descend that a node has served with first: its clients are of these.
    pub(super) lineages: BTreeMap<usize, Lineage>,
}

/// What can happen to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It hears something that was said.
    Hear(usize, Told),
    /// It hears this document, and its disk refuses.
    Refuse(usize, usize),
    /// It does something, or loses something.
    Do(usize, Deed),
}

/// What a node can hear: the number of it among all that was said of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Document(usize),
    Welcome(usize),
    Claim(usize),
    Acknowledgement(usize),
    Answer(usize),
}

/// What a node can do, and what can befall it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Rotate(Rotation),
    /// A rotation that does not wait for this node.
    Leave(usize),
    Heal,
    /// A rotation during which the node crashes, after others may have seen the document and before the disk has it.
    RotateAndCrash,
    Revoke(u32),
    Crash,
    Lose,
    Claim,
    /// Without waiting for this node.
    TakeOver(Option<usize>),
    /// Another host appears under the name of this node, a live clone or one restored as of the beginning, and both
    /// find that out.
    Double(Image),
}

/// What a host that appears under another's name has on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Image {
    /// What the other has.
    Live,
    /// The first document.
    Old,
}

pub(super) fn fleet_name() -> Name {
    Name::new("f").expect("it is a name")
}

pub(super) const NODE_COUNT: usize = 3;

/// The host that may appear under the name of another one.
const DOUBLE: usize = 2;

impl Fleet {
    /// The name of a node.
    pub(super) fn node_name(&self, index: usize) -> Name {
        let named = self.double_of.filter(|_| index == DOUBLE).unwrap_or(index);
        Name::new(["a", "b", "c"][named]).expect("it is a name")
    }

    /// Nodes that there are from the beginning.
    const fn first_count(&self) -> usize {
        if self.double_of.is_some() { DOUBLE } else { NODE_COUNT }
    }

    /// All nodes with the first document, acknowledged by all; or two of them with one each that they have made.
    pub(super) fn first(&self) -> World {
        let first = |index, keys| Kept {
            document: Some(Document::first(fleet_name(), self.node_name(index), keys)),
            ..Kept::default()
        };
        let disks = match self.is_made_twice {
            false => vec![first(0, Toy::first()); self.first_count()],
            true => vec![first(0, Toy::first()), first(1, Toy::another_first()), Kept::default()],
        };
        let mut world = World {
            nodes: Vec::new(),
            disks: disks.clone(),
            said: Said::default(),
            left: self.limits,
            made: 2,
            nonces: 0,
            sealed: BTreeMap::new(),
            revoked: BTreeSet::new(),
            given_up: BTreeSet::new(),
            fell: false,
            left_behind: BTreeMap::new(),
            lineages: BTreeMap::new(),
        };
        for (index, kept) in disks.into_iter().enumerate() {
            world.nodes.push(self.start(index, kept, [0; NONCE_SIZE]));
        }
        (0..world.nodes.len()).for_each(|index| world.show(index));
        world.note();
        world
    }

    pub(super) fn start(&self, index: usize, kept: Kept<Toy>, nonce: Nonce) -> Node<Toy> {
        let members = (0..NODE_COUNT).map(|index| self.node_name(index));
        let mut node = Node::new(fleet_name(), self.node_name(index), members, Start::Welcomed, kept, nonce);
        node.without = self.without;
        node
    }

    fn applies(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    pub(super) fn events(&self, world: &World) -> Vec<Event> {
        let mut events = Vec::new();
        for index in 0..world.nodes.len() {
            for number in 0..world.said.documents.len() {
                events.push(Event::Hear(index, Told::Document(number)));
                if world.left.refusals > 0 {
                    events.push(Event::Refuse(index, number));
                }
            }
            events.extend(self.told(world, index).into_iter().map(|told| Event::Hear(index, told)));
            events.extend(self.deeds(world, index).into_iter().map(|deed| Event::Do(index, deed)));
        }
        events
    }

    /// What a node can hear, beside documents.
    fn told(&self, world: &World, index: usize) -> Vec<Told> {
        let said = &world.said;
        let is_writer = world.nodes[index].writes().is_ok();
        let listens = is_writer || world.document(index).is_some() && !self.applies(Rule::WriterWelcomes);
        let heard = if listens { said.acknowledgements.len() } else { 0 };
        let welcomes = (0..said.welcomes.len()).map(Told::Welcome);
        let claims = (0..said.claims.len()).map(Told::Claim);
        let acknowledgements = (0..heard).map(Told::Acknowledgement);
        let answers = (0..said.answers.len()).map(Told::Answer);
        welcomes.chain(claims).chain(acknowledgements).chain(answers).collect()
    }

    /// What a node can do.
    fn deeds(&self, world: &World, index: usize) -> Vec<Deed> {
        let left = world.left;
        let others = || {
            let is_other = move |other: &usize| self.node_name(*other) != self.node_name(index);
            (0..self.first_count()).filter(is_other)
        };
        let mut deeds = Vec::new();
        if world.left.doubles > 0 && self.double_of == Some(index) {
            deeds.extend([Image::Live, Image::Old].map(Deed::Double));
        }
        if left.rotations > 0 {
            deeds.extend([Rotation::Due, Rotation::ByHand].map(Deed::Rotate));
            if left.patience > 0 {
                deeds.extend(others().map(Deed::Leave));
            }
        }
        deeds.push(Deed::Heal);
        if let (Some(document), true) = (world.document(index), left.revocations > 0) {
            deeds.extend(document.keys.identifiers().into_iter().map(|(_, id)| Deed::Revoke(id)));
        }
        if left.crashes > 0 {
            deeds.push(Deed::Crash);
            if left.rotations > 0 && !self.applies(Rule::DiskBeforeStore) {
                deeds.push(Deed::RotateAndCrash);
            }
        }
        if left.losses > 0 && index >= self.first_unsteady {
            deeds.push(Deed::Lose);
        }
        if left.takeovers > 0 && index >= self.first_unsteady {
            deeds.push(Deed::Claim);
        }
        deeds.extend(others().map(Some).chain([None]).map(Deed::TakeOver));
        deeds
    }

    /// What becomes of a state; `None` if nothing does.
    pub(super) fn next(&self, before: &World, event: Event) -> Option<World> {
        let mut world = match event {
            Event::Hear(index, told) => self.hear(before, index, told)?,
            Event::Refuse(index, number) => Self::refuse(before, index, number)?,
            Event::Do(index, deed) => self.act(before, index, deed)?,
        };
        world.note();
        Some(world)
    }

    /// Everybody hears everything, until nothing is new.
    pub(super) fn settle(&self, world: &mut World) {
        let is_told = |event: &Event| matches!(event, Event::Hear(..));
        while let Some(next) =
            self.events(world).into_iter().filter(is_told).find_map(|event| self.next(world, event))
        {
            *world = next;
        }
    }

    /// What becomes of a state in which a node hears something.
    fn hear(&self, before: &World, index: usize, told: Told) -> Option<World> {
        let (said, mut node) = (&before.said, before.nodes[index].clone());
        let heard = match told {
            Told::Document(number) => node.hear_document(&said.documents[number], Origin::Store),
            Told::Welcome(number) => {
                let (to, nonce, document) = &said.welcomes[number];
                let is_for_it = *to == index && node.acknowledgement().nonce == Some(*nonce);
                is_for_it.then(|| node.hear_document(document, Origin::Welcome))?
            }
            Told::Claim(number) => node.hear_claim(&said.claims[number]),
            Told::Acknowledgement(number) => {
                return before.acknowledged(self, index, node, &said.acknowledgements[number]);
            }
            Told::Answer(number) => {
                node.hear_answer(&said.answers[number]);
                return (node != before.nodes[index]).then(|| before.with(index, node));
            }
        };
        // Terms that were heard of come up again with whatever else is heard.
        let Heard::Keep(kept) = heard else { return None };
        let mut world = before.with(index, node);
        world.set(index, *kept);
        if matches!(told, Told::Claim(_)) && !self.applies(Rule::ClaimKept) {
            world.disks[index] = before.disks[index].clone();
        }
        Some(world)
    }

    /// What becomes of a state in which a node hears a document, and its disk refuses.
    fn refuse(before: &World, index: usize, number: usize) -> Option<World> {
        let mut node = before.nodes[index].clone();
        let heard = node.hear_document(&before.said.documents[number], Origin::Store);
        let Heard::Keep(kept) = heard else { return None };
        node.not_kept(*kept);
        let mut world = before.with(index, node);
        world.left.refusals -= 1;
        world.show(index);
        Some(world)
    }

    /// What becomes of a state in which something is done.
    fn act(&self, before: &World, index: usize, deed: Deed) -> Option<World> {
        let none = BTreeSet::new();
        let mut world = before.clone();
        let node = &before.nodes[index];
        match deed {
            Deed::Rotate(rotation) => {
                let kept = node.rotate(rotation, KEEP, &none, &mut world.made).ok()?;
                world.left.rotations -= 1;
                world.set(index, kept);
            }
            Deed::Leave(other) => {
                let leave = BTreeSet::from([self.node_name(other)]);
                // Where nobody has to be left, it is a rotation as any other.
                if !node.waiting().contains(&self.node_name(other)) {
                    return None;
                }
                let kept = node.rotate(Rotation::Due, KEEP, &leave, &mut world.made).ok()?;
                world.left.rotations -= 1;
                world.left.patience -= 1;
                world.left_behind.insert(other, kept.order()?.clone());
                world.set(index, kept);
            }
            Deed::Heal => {
                let kept = node.heal(KEEP, &none, &mut world.made).ok()??;
                world.set(index, kept);
            }
            Deed::RotateAndCrash => {
                let kept = node.rotate(Rotation::Due, KEEP, &none, &mut world.made).ok()?;
                world.left.rotations -= 1;
                world.left.crashes -= 1;
                world.said.documents.extend(kept.document);
                world.restart(self, index);
            }
            Deed::Revoke(id) => {
                let kept = node.revoke(id, KEEP, &none, &mut world.made).ok()?;
                world.left.revocations -= 1;
                let keys = before.document(index)?.keys.all();
                world.revoked.extend(keys.filter(|(known, _)| *known == id));
                world.set(index, kept);
            }
            Deed::Crash => {
                world.left.crashes -= 1;
                world.restart(self, index);
            }
            Deed::Lose => {
                world.left.losses -= 1;
                world.lose(self, index);
            }
            Deed::Claim => {
                world.left.takeovers -= 1;
                let nonce = world.nonce();
                world.set(index, node.claim(nonce));
            }
            Deed::TakeOver(without) => {
                let left = without.map(|other| self.node_name(other)).into_iter().collect();
                let kept = node.take_over(&left).ok()?;
                if let Some(other) = without.filter(|_| node.take_over(&none).is_err()) {
                    world.left_behind.insert(other, kept.order()?.clone());
                }
                world.set(index, kept);
            }
            Deed::Double(image) => {
                world.left.doubles -= 1;
                let kept = match image {
                    Image::Live => before.disks[index].clone(),
                    Image::Old => self.first().disks[index].clone(),
                };
                world.double(self, index, kept);
            }
        }
        Some(world)
    }
}

impl World {
    /// Another host appears under the name of a node, with this on its disk, and both find out.
    fn double(&mut self, fleet: &Fleet, index: usize, kept: Kept<Toy>) {
        let nonce = self.nonce();
        self.nodes.push(fleet.start(DOUBLE, kept.clone(), nonce));
        // One that was restored has missed what came since, until it hears of it.
        let missed = self.disks[index].order().filter(|order| kept.order() != Some(order));
        self.left_behind.extend(missed.cloned().map(|order| (DOUBLE, order)));
        self.disks.push(kept);
        self.lineages.extend(self.lineages.get(&index).copied().map(|lineage| (DOUBLE, lineage)));
        for host in [index, DOUBLE] {
            self.nodes[host].set_doubled(true);
            self.show(host);
        }
    }

    /// An operator ends the host that appeared under the name of another one.
    pub(super) fn end_double(&mut self) {
        if self.nodes.iter().any(Node::is_doubled) {
            self.left_behind.remove(&DOUBLE);
            self.lineages.remove(&DOUBLE);
            self.nodes.truncate(DOUBLE);
            self.disks.truncate(DOUBLE);
            self.nodes.iter_mut().for_each(|node| node.set_doubled(false));
        }
    }

    /// This state, with a node that has heard something.
    fn with(&self, index: usize, node: Node<Toy>) -> World {
        let mut world = self.clone();
        world.nodes[index] = node;
        world
    }

    /// What becomes of it when a node, which is given, hears an acknowledgement and welcomes who gave it.
    fn acknowledged(
        &self,
        fleet: &Fleet,
        index: usize,
        mut node: Node<Toy>,
        said: &Acknowledgement,
    ) -> Option<World> {
        node.hear_acknowledgement(said);
        let to = (0..NODE_COUNT).find(|to| fleet.node_name(*to) == said.node)?;
        let welcome = node.welcome(said).map(|(nonce, document)| (to, nonce, document.clone()));
        let welcome = welcome.filter(|welcome| !self.said.welcomes.contains(welcome));
        if node == self.nodes[index] && welcome.is_none() {
            return None;
        }
        let mut world = self.with(index, node);
        world.said.welcomes.extend(welcome);
        Some(world)
    }

    fn nonce(&mut self) -> Nonce {
        self.nonces += 1;
        [self.nonces; NONCE_SIZE]
    }

    /// What a node keeps from now on; it shows that.
    pub(super) fn set(&mut self, index: usize, kept: Kept<Toy>) {
        let before = std::mem::replace(&mut self.disks[index], kept.clone());
        if let (Some(before), Some(after)) = (before.order(), kept.order()) {
            self.fell |= after < before;
        }
        let has_caught_up = |order: &Order| kept.order().is_some_and(|ours| ours >= order);
        if self.left_behind.get(&index).is_some_and(has_caught_up) {
            self.left_behind.remove(&index);
        }
        self.nodes[index].kept(kept);
        self.show(index);
    }

    /// A node loses its disk, or an operator removes what is on it; and it starts again.
    pub(super) fn lose(&mut self, fleet: &Fleet, index: usize) {
        self.disks[index] = Kept::default();
        self.given_up.retain(|(node, _)| *node != index);
        self.lineages.remove(&index);
        self.restart(fleet, index);
    }

    pub(super) fn restart(&mut self, fleet: &Fleet, index: usize) {
        let nonce = self.nonce();
        let is_doubled = self.nodes[index].is_doubled();
        self.nodes[index] = fleet.start(index, self.disks[index].clone(), nonce);
        self.nodes[index].set_doubled(is_doubled);
        self.show(index);
    }

    fn show(&mut self, index: usize) {
        let (node, kept) = (&self.nodes[index], &self.disks[index]);
        if let Some(document) = &kept.document {
            add(&mut self.said.documents, document.clone());
        }
        if let Some(claim) = kept.claim.as_ref().filter(|claim| claim.taker == *node.name()) {
            add(&mut self.said.claims, claim.clone());
        }
        add(&mut self.said.acknowledgements, node.acknowledgement());
        if let Some(answer) = node.answer() {
            add(&mut self.said.answers, answer);
        }
    }

    /// Notes who seals with what, and who has given up what.
    fn note(&mut self) {
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(document) = &node.on_disk().document {
                self.lineages.entry(index).or_insert(document.lineage);
            }
            if let (Some(key), Some(document)) = (self.seals(index), &node.on_disk().document) {
                let last = self.sealed.entry(key).or_default();
                *last = document.period.max(*last);
            }
            let revoked = node.on_disk().revoked();
            let given_up = self.revoked.iter().filter(|(id, _)| revoked.contains(id));
            self.given_up.extend(given_up.map(|key| (index, *key)));
        }
    }

    /// Whether clients of the one node are also those of the other, who would be lost if it did not open their cookies.
    pub(super) fn are_of_one(&self, index: usize, lineage: Option<Lineage>) -> bool {
        self.lineages.get(&index).copied() == lineage
    }

    /// From which first keys a key descends.
    pub(super) fn lineage(&self, key: Key) -> Option<Lineage> {
        let of = |document: &&Document<Toy>| document.keys.all().any(|known| known == key);
        self.said.documents.iter().find(of).map(|document| document.lineage)
    }

    /// The key that a node seals with.
    pub(super) fn seals(&self, index: usize) -> Option<Key> {
        self.nodes[index].in_force().map(|used| used.keys.current)
    }

    /// Whether a node opens with a key.
    pub(super) fn opens(&self, index: usize, key: Key) -> bool {
        self.nodes[index].in_force().is_some_and(|used| {
            let mut all = used.keys.all().chain(used.beside.iter().flat_map(|beside| beside.all()));
            !used.revoked.contains(&key.0) && all.any(|known| known == key)
        })
    }

    /// The document of a node, if it serves.
    pub(super) fn document(&self, index: usize) -> Option<&Document<Toy>> {
        self.nodes[index].on_disk().document.as_ref()
    }
}
