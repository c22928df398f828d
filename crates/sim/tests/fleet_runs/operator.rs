//! What people do to a fleet: they rotate, revoke, have another node take over, and change the seal keys.
//!
//! A command works as the daemon's does: it makes a node of what lies on the disk and in the stores, asks the rules,
//! and writes what they allow to the disk, where a running server finds it.

use std::collections::BTreeSet;

use authentick_crypto::Entropy;
use authentick_fleet::seal::Topic;
use authentick_fleet::{Heard, Kept, Leave, Node, Refusal, Rotation, Start, Why};
use authentick_proto::generations::Role;

use super::host::{Crashed, Host, Written};
use super::keys::{Cookies, Source};
use super::store::Store;
use super::truth::Scene;

/// For how long a command tries. Whoever has a node take over runs it again then.
const PATIENCE: u64 = 20;

/// After so many seconds a take-over does not wait for hosts that are down.
const WAIT_FOR_DOWN: u64 = 25;

/// What somebody wants of a node.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    Rotate,
    /// The key with this role: the oldest, if several have it.
    Revoke(Role),
    TakeOver,
}

/// A command that is trying.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) host: usize,
    pub(crate) wish: Wish,
    /// When it was first run, and last.
    begun: u64,
    since: u64,
    /// Whether a take-over has written its claim.
    is_claimed: bool,
}

/// What was seen in one look.
struct Seen {
    node: Node<Cookies>,
    text: Option<std::rc::Rc<str>>,
    /// Whether this node has not taken yet what others say.
    is_behind: bool,
    /// Whether somebody keeps another claim than this node, of its term or a higher one.
    is_contested: bool,
}

impl Command {
    pub(crate) const fn new(host: usize, wish: Wish, now: u64) -> Self {
        Command { host, wish, begun: now, since: now, is_claimed: false }
    }

    /// Tries; returns whether it is over.
    pub(crate) fn try_once(
        &mut self,
        hosts: &mut [Host],
        stores: &mut [Store],
        scene: &mut Scene<'_>,
    ) -> bool {
        let is_late = scene.now - self.since > PATIENCE;
        let down: BTreeSet<_> =
            hosts.iter().filter(|host| host.process.is_none()).map(|host| host.name().clone()).collect();
        let host = &mut hosts[self.host];
        let Some(seen) = look(host, stores, scene) else { return is_late };
        if is_late && matches!(self.wish, Wish::TakeOver) {
            (self.since, self.is_claimed) = (scene.now, false);
        }
        let over = match self.wish.clone() {
            Wish::Rotate | Wish::Revoke(_) if seen.is_behind => Ok(is_late),
            Wish::Rotate => {
                let mut source = source(host);
                let kept =
                    seen.node.rotate(Rotation::ByHand, scene.settings.keep, &Leave::new(), &mut source);
                self.write(host, &seen, kept, scene, |counts| counts.by_hand += 1).map(|over| over || is_late)
            }
            Wish::Revoke(role) => {
                let id = seen.node.on_disk().document.as_ref().and_then(|document| {
                    let ids = authentick_fleet::Keys::identifiers(&document.keys);
                    ids.into_iter().rfind(|(known, _)| *known == role).map(|(_, id)| id)
                });
                let Some(id) = id else { return true };
                let mut source = source(host);
                let kept = seen.node.revoke(id, scene.settings.keep, &Leave::new(), &mut source);
                if kept.is_ok() {
                    scene.say(format_args!("{} revokes {id:08x}, {role:?}", host.name()));
                    scene.truth.revoked.insert(id);
                }
                self.write(host, &seen, kept, scene, |counts| counts.revocations += 1)
                    .map(|over| over || is_late)
            }
            // It goes on until it has taken over: its claim keeps everybody else from writing.
            Wish::TakeOver => self.take_over(host, &seen, stores, &down, scene),
        };
        over.unwrap_or_else(|Crashed| {
            host.process = None;
            host.down_until = scene.now + 3;
            true
        })
    }

    /// Writes what is to be kept; returns whether the command is over.
    fn write(
        &self,
        host: &mut Host,
        seen: &Seen,
        kept: Result<Kept<Cookies>, Refusal>,
        scene: &mut Scene<'_>,
        count: impl Fn(&mut super::truth::Counts),
    ) -> Result<bool, Crashed> {
        let kept = match kept {
            Ok(kept) => kept,
            Err(Refusal::Waiting(_)) => return Ok(false),
            Err(refusal) => {
                scene.say(format_args!("{}, by hand, {:?}: {refusal}", host.name(), self.wish));
                return Ok(true);
            }
        };
        let written = host.disk.write(seen.text.as_ref(), &kept, scene);
        if host.order() == kept.order() {
            scene.truth.writes(host.index, host.order());
        }
        match written? {
            Written::Lost => Ok(false),
            Written::Refused => Ok(true),
            Written::Done => {
                scene.say(format_args!("{}, by hand, {:?}: {:?}", host.name(), self.wish, kept.order()));
                count(&mut scene.truth.counts);
                Ok(true)
            }
        }
    }

    fn take_over(
        &mut self,
        host: &mut Host,
        seen: &Seen,
        stores: &mut [Store],
        down: &BTreeSet<authentick_fleet::Name>,
        scene: &mut Scene<'_>,
    ) -> Result<bool, Crashed> {
        let own = seen.node.on_disk().claim.as_ref().is_some_and(|claim| claim.taker == *host.name());
        if !own && self.is_claimed {
            scene.say(format_args!("{} does not take over: somebody else does", host.name()));
            return Ok(true);
        }
        if !own || !self.is_claimed && seen.is_contested {
            let kept = seen.node.claim(host.entropy.array());
            if host.disk.write(seen.text.as_ref(), &kept, scene)? == Written::Done {
                self.is_claimed = true;
                scene.say(format_args!("{} claims term {}", host.name(), kept.term()));
                tell_claim(host, &kept, stores, scene.now);
            }
            return Ok(false);
        }
        self.is_claimed = true;
        let without = if scene.now - self.begun > WAIT_FOR_DOWN { down.clone() } else { BTreeSet::new() };
        let kept = match seen.node.take_over(&without) {
            Ok(kept) => kept,
            Err(Why::Waiting(_) | Why::NotClaimed) => return Ok(false),
            Err(
                why @ (Why::Claimed(..)
                | Why::Doubled(_)
                | Why::Strangers(_)
                | Why::Nothing
                | Why::TooManyRevoked(_)),
            ) => {
                scene.say(format_args!("{} does not take over: {why}", host.name()));
                return Ok(true);
            }
        };
        let left: Vec<_> = match seen.node.take_over(&BTreeSet::new()) {
            Err(Why::Waiting(names)) => names.into_iter().collect(),
            Ok(_) | Err(_) => Vec::new(),
        };
        let written = host.disk.write(seen.text.as_ref(), &kept, scene);
        let order = kept.order().expect("a take-over makes a document");
        // A host that crashes may have written.
        if host.order() == Some(order) {
            scene.say(format_args!("{} takes over without {left:?}: {order}", host.name()));
            for (index, name) in scene.settings.members.iter().enumerate() {
                if left.contains(name) {
                    scene.truth.leaves_behind(index, order);
                    scene.truth.says_gone = true;
                }
            }
        }
        if written? != Written::Done {
            return Ok(false);
        }
        scene.truth.counts.take_overs += 1;
        host.is_writer = true;
        Ok(true)
    }
}

fn source(host: &mut Host) -> Source {
    Source { now: 1_700_000_000, entropy: Entropy::from_seed(host.entropy.u64()) }
}

/// The node of what is on the disk, and all that others say; `None` if no store can be read.
fn look(host: &mut Host, stores: &mut [Store], scene: &Scene<'_>) -> Option<Seen> {
    let (kept, text) = (host.disk.read(), host.disk.text.clone());
    let (fleet, me) = (host.asker.fleet.clone(), host.asker.me.clone());
    let nonce = host.entropy.array();
    let mut node = Node::new(fleet, me.clone(), host.asker.members.clone(), Start::Welcomed, kept, nonce);
    let found: Vec<_> = stores
        .iter_mut()
        .enumerate()
        .filter_map(|(number, store)| host.read(number, store, None, scene.now))
        .collect();
    if found.is_empty() {
        return None;
    }
    let claim = node.on_disk().claim.clone();
    let is_contested = claim.is_some_and(|claim| found.iter().any(|found| found.contests(&claim)));
    let mut is_behind = false;
    for said in found.into_iter().flat_map(|found| found.said(&me)) {
        is_behind |= matches!(said.tell(&mut node), Heard::Keep(_));
    }
    Some(Seen { node, text, is_behind, is_contested })
}

/// Puts a claim into each store where none as high lies.
fn tell_claim(host: &mut Host, kept: &Kept<Cookies>, stores: &mut [Store], now: u64) {
    let Some(claim) = &kept.claim else { return };
    let text = claim.emit(&host.asker.fleet);
    for (number, store) in stores.iter_mut().enumerate() {
        let Some(found) = host.read(number, store, None, now) else { continue };
        if found.claim.as_ref().is_none_or(|known| known.term < claim.term) {
            host.put((number, store), Topic::Claim, &text, &found, now);
        }
    }
}

/// The change of the seal keys, host by host: all have the new one before it seals, and the old one goes last.
#[derive(Clone, Debug)]
pub(crate) struct SealRotation {
    pub(crate) old: u8,
    /// Which step, and the hosts that have taken it.
    step: usize,
    done: BTreeSet<usize>,
}

impl SealRotation {
    pub(crate) const fn new(old: u8) -> Self {
        SealRotation { old, step: 0, done: BTreeSet::new() }
    }

    /// The next host takes its step; returns whether that was the last one of all.
    pub(crate) fn go_on(&mut self, hosts: &mut [Host], index: usize) -> bool {
        let (old, new) = (self.old, self.old.wrapping_add(1));
        if self.done.insert(index) {
            let keys = [vec![old, new], vec![new, old], vec![new]];
            hosts[index].seal_with(&keys[self.step]);
        }
        if self.done.len() == hosts.len() {
            self.done.clear();
            self.step += 1;
        }
        self.step == 3
    }
}
