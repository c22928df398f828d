//! What holds in each state, and what each state leads to.

use std::collections::BTreeSet;

use stateright::{Model, Property};

use super::world::{Event, Fleet, KEEP, Said, World};
use crate::claim::NONCE_SIZE;
use crate::rules::{Heard, Node, Origin, Rotation};
use crate::toy::{Key, Toy};

/// Rounds without faults in which a fleet has to come to one document.
const ROUND_COUNT: usize = 8;

impl Model for Fleet {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        vec![self.first()]
    }

    fn actions(&self, world: &World, events: &mut Vec<Event>) {
        events.extend(self.events(world));
    }

    fn next_state(&self, world: &World, event: Event) -> Option<World> {
        self.next(world, event)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("what seals opens everywhere", |_, world: &World| world.seals_open_everywhere()),
            Property::always("what seals lies on the disk", |_, world: &World| world.seals_from_disk()),
            Property::always("what has sealed not long ago opens everywhere", |_, world: &World| {
                world.recent_keys_open()
            }),
            Property::always("what was given up stays so", |_, world: &World| world.given_up_stays()),
            Property::always("documents on disks never fall", |_, world: &World| !world.fell),
            Property::always("without faults there is one document", Fleet::comes_together),
            Property::sometimes("all rotations took place", |fleet: &Fleet, world: &World| {
                let is_bare = fleet.limits.takeovers == 0 || world.left.takeovers == 0;
                world.left.rotations == 0 && is_bare && world.is_one()
            }),
        ]
    }
}

impl World {
    pub(super) fn seals_open_everywhere(&self) -> bool {
        let serving =
            |index: &usize| self.document(*index).is_some() && !self.left_behind.contains_key(index);
        let serving: Vec<usize> = (0..self.nodes.len()).filter(serving).collect();
        let is_open = |index: usize, key| {
            let mut of_one =
                serving.iter().filter(|other| self.are_of_one(**other, self.lineages.get(&index).copied()));
            self.revoked.contains(&key) || of_one.all(|other| self.opens(*other, key))
        };
        serving.iter().all(|index| self.seals(*index).is_none_or(|key| is_open(*index, key)))
    }

    fn seals_from_disk(&self) -> bool {
        (0..self.nodes.len()).all(|index| {
            let on_disk = |key| {
                self.disks[index]
                    .document
                    .iter()
                    .any(|document| document.keys.all().any(|known| known == key))
            };
            self.seals(index).is_none_or(on_disk)
        })
    }

    fn recent_keys_open(&self) -> bool {
        self.sealed.iter().all(|(key, last)| {
            let lineage = self.lineage(*key);
            let mut of_one = (0..self.nodes.len()).filter(|index| self.are_of_one(*index, lineage));
            self.revoked.contains(key)
                || of_one.all(|index| {
                    let period = self.document(index).map(|document| document.period);
                    let is_recent = !self.left_behind.contains_key(&index)
                        && period.is_some_and(|period| period.saturating_sub(*last) < KEEP as u64);
                    !is_recent || self.opens(index, *key)
                })
        })
    }

    fn given_up_stays(&self) -> bool {
        self.given_up.iter().all(|(index, key)| !self.opens(*index, *key))
    }

    /// Whether all nodes have one document.
    fn is_one(&self) -> bool {
        let first = self.document(0);
        first.is_some() && (1..self.nodes.len()).all(|index| self.document(index) == first)
    }
}

impl Fleet {
    /// Whether rounds in which nothing goes wrong, over a store that starts empty, lead to one document, from which the
    /// writer can rotate. Where no writer is left, an operator has a node take over.
    fn comes_together(&self, world: &World) -> bool {
        if (0..world.nodes.len()).all(|index| world.document(index).is_none()) {
            return true;
        }
        let given_up: BTreeSet<Key> = world.given_up.iter().map(|(_, key)| *key).collect();
        let mut world = world.clone();
        world.said = Said::default();
        self.rounds(&mut world);
        world.end_double();
        self.rounds(&mut world);
        self.settle_on_one_lineage(&mut world);
        if !world.nodes.iter().any(|node| node.writes().is_ok()) {
            self.operator(&mut world);
            self.rounds(&mut world);
        }
        let none = BTreeSet::new();
        let mut made = world.made;
        let mut can_rotate = |node: &Node<Toy>| node.rotate(Rotation::Due, KEEP, &none, &mut made).is_ok();
        let is_revoked = |key: &Key| (0..world.nodes.len()).all(|index| !world.opens(index, *key));
        world.is_one() && world.nodes.iter().any(&mut can_rotate) && given_up.iter().all(is_revoked)
    }

    /// An operator removes what nodes have that descends from other first keys than the highest document.
    fn settle_on_one_lineage(&self, world: &mut World) {
        let lineage = |world: &World, index| world.document(index).map(|document| document.lineage);
        let Some(one) = highest(world).and_then(|index| lineage(world, index)) else { return };
        for index in 0..world.nodes.len() {
            if lineage(world, index).is_some_and(|other| other != one) {
                world.lose(self, index);
            }
        }
        self.rounds(world);
    }

    /// The highest node that has a document takes over.
    fn operator(&self, world: &mut World) {
        let Some(index) = highest(world) else { return };
        let claim = world.nodes[index].claim([0xff; NONCE_SIZE]);
        world.set(index, claim);
        self.rounds(world);
        if let Ok(kept) = world.nodes[index].take_over(&BTreeSet::new()) {
            world.set(index, kept);
        }
    }

    /// Rounds of an honest store, which has the last of each thing that was put there, until nothing changes any more.
    fn rounds(&self, world: &mut World) {
        let none = BTreeSet::new();
        let (mut document, mut claim) = (None, None);
        for _ in 0..ROUND_COUNT {
            let before = (world.nodes.clone(), document.clone(), claim.clone());
            for index in 0..world.nodes.len() {
                let node = &world.nodes[index];
                document = node.put_back(document.as_ref()).cloned().or(document);
                claim = node.put_claim_back(claim.as_ref()).cloned().or(claim);
                if let Some(claim) = &claim {
                    let heard = world.nodes[index].hear_claim(claim);
                    Self::take(world, index, heard);
                }
                if let Some(document) = &document {
                    let heard = world.nodes[index].hear_document(document, Origin::Store);
                    Self::take(world, index, heard);
                }
                for other in (0..world.nodes.len()).filter(|other| *other != index) {
                    Self::exchange(world, index, other);
                }
                if let Ok(Some(kept)) = world.nodes[index].heal(KEEP, &none, &mut world.made) {
                    world.set(index, kept);
                }
            }
            if world.nodes == before.0 && (&document, &claim) == (&before.1, &before.2) {
                return;
            }
        }
    }

    /// What a node hears of another one.
    fn exchange(world: &mut World, index: usize, other: usize) {
        let said = world.nodes[other].acknowledgement();
        world.nodes[index].hear_acknowledgement(&said);
        if let Some(answer) = world.nodes[other].answer() {
            world.nodes[index].hear_answer(&answer);
        }
        let welcome = world.nodes[index].welcome(&said).map(|(_, document)| document.clone());
        if let Some(document) = welcome {
            let heard = world.nodes[other].hear_document(&document, Origin::Welcome);
            Self::take(world, other, heard);
        }
    }

    fn take(world: &mut World, index: usize, heard: Heard<Toy>) {
        if let Heard::Keep(kept) = heard {
            world.set(index, *kept);
        }
    }
}

/// The node with the highest document.
fn highest(world: &World) -> Option<usize> {
    let serving = (0..world.nodes.len()).filter(|index| world.document(*index).is_some());
    serving.max_by_key(|index| world.document(*index).map(|document| &document.order))
}
