//! This server as a node of a fleet: the rules of [`authentick_fleet`], driven with a disk, sockets and threads.
//!
//! - [`FleetStore`]: the key store, whose file is what the node keeps. The supervisor looks at it each second.
//! - `link`: a thread for each server, which reads it each second and puts there what is missing, of keys of all kinds.
//! - `desk`: what these have in common, so that none waits for another.
//! - `heard`: when members were heard of, for whoever sends clients to them.
//! - `post`: the way to a server, within bounds; `server`: one memcached server, asked with deadlines; `found`: what
//!   lies in it, as the rules' crate reads it.
//! - [`by_hand`]: what an operator does to a fleet on a command line; `status`: what it looks like from there,
//!   and `pages`: from members' pages of metrics.
//! - [`seal_file`]: the keys under which nodes seal what they say.

pub mod by_hand;
mod desk;
pub(crate) mod disk;
mod found;
mod heard;
mod keys;
mod link;
pub(crate) mod pages;
pub(crate) mod post;
pub mod seal_file;
pub(crate) mod server;
mod status;
mod store;

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use arc_swap::ArcSwap;
use authentick_crypto::Entropy;
use authentick_fleet::Name;
use authentick_fleet::seal::SealKeys;
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::KeySet;

use crate::config::{Config, Fleet};
use crate::metrics::counters::{Counter, WorkerCounters, key_uses, state_key_uses};
use crate::names::ServerAddresses;
use crate::supervisor::Command;
use crate::symmetric::keeper::SymmetricState;

pub use self::keys::FleetKind;
pub use self::pages::status as status_of_pages;
pub use self::status::{Status, Statuses};
pub use self::store::FleetStore;

pub(crate) use self::desk::{Bell, Desk};
use self::link::{Link, Place, Side};
use self::post::{Post, PostCounters};

/// The stores of those keys that a fleet shares.
#[derive(Clone, Debug, Default)]
pub struct FleetStores {
    pub(crate) cookie_keys: Option<Arc<FleetStore<KeySet>>>,
    pub(crate) state_keys: Option<Arc<FleetStore<StateKeys>>>,
    bell: Arc<Bell>,
}

impl FleetStores {
    /// Those that a configuration names.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        fn store<K: FleetKind>(config: &Config, bell: &Arc<Bell>) -> Option<Arc<FleetStore<K>>> {
            let keys = K::settings(config).filter(|keys| keys.are_shared())?;
            let fleet = config.fleet.clone()?;
            Some(Arc::new(FleetStore::new(fleet, keys.keep, &config.state, bell)))
        }
        let bell = Arc::default();
        FleetStores { cookie_keys: store(config, &bell), state_keys: store(config, &bell), bell }
    }
}

/// What the threads of a node share of its fleet.
#[derive(Debug)]
pub(crate) struct FleetState {
    pub(crate) cookie_keys: Option<Arc<Desk<KeySet>>>,
    pub(crate) state_keys: Option<Arc<Desk<StateKeys>>>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) seals: Arc<ArcSwap<SealKeys>>,
    /// How often the file of seal keys could not be read again.
    pub(crate) seal_failures: Counter,
    /// Of each server.
    pub(crate) links: Vec<Arc<PostCounters>>,
    fleet: Fleet,
    symmetric: Option<Arc<SymmetricState>>,
}

impl FleetState {
    pub(crate) fn new(
        fleet: &Fleet,
        stores: &FleetStores,
        seals: SealKeys,
        symmetric: Option<Arc<SymmetricState>>,
    ) -> Self {
        FleetState {
            cookie_keys: stores.cookie_keys.as_ref().map(|store| store.desk()),
            state_keys: stores.state_keys.as_ref().map(|store| store.desk()),
            bell: Arc::clone(&stores.bell),
            seals: Arc::new(ArcSwap::from_pointee(seals)),
            seal_failures: Counter::default(),
            links: fleet.servers.iter().map(|server| Arc::new(PostCounters::new(server.clone()))).collect(),
            fleet: fleet.clone(),
            symmetric,
        }
    }

    /// Notes how often keys were used up to `now`, as the workers have counted.
    pub(crate) fn note_uses(&self, now: Instant, workers: &[WorkerCounters]) {
        if let Some(desk) = &self.cookie_keys {
            desk.uses.note(now, || key_uses(workers));
        }
        if let Some(desk) = &self.state_keys {
            desk.uses.note(now, || state_key_uses(workers));
        }
    }

    /// What an operator has to look at, a line each: members that are silent, and another host of this node's name.
    pub(crate) fn notes(&self) -> Vec<String> {
        let now = Instant::now();
        let of_cookies = self.cookie_keys.iter().flat_map(|desk| desk.notes(now));
        of_cookies.chain(self.state_keys.iter().flat_map(|desk| desk.notes(now))).collect()
    }

    /// The key that this node seals cookies with, if it has one.
    pub(crate) fn sealing_key(&self) -> Option<u32> {
        self.cookie_keys.as_ref()?.shown()?.acknowledgement().seals
    }

    /// Whether the member opens cookies under `key`, as far as is known at `now`. This node does.
    pub(crate) fn opens(&self, member: &Name, key: u32, now: Instant) -> bool {
        let opens = |desk: &Arc<Desk<KeySet>>| desk.heard.opens(member, key, now);
        *member == self.fleet.node || self.cookie_keys.as_ref().is_some_and(opens)
    }

    /// What the thread of a server at `addresses` does, for keys of all kinds; `entropy` gives it random octets, and
    /// the supervisor is told of what is new there.
    pub(crate) fn link(
        &self,
        index: usize,
        addresses: ServerAddresses,
        mut entropy: Entropy,
        supervisor: Sender<Command>,
    ) -> Link {
        let post = Post::new(Arc::clone(&self.links[index]), addresses, &mut entropy, Instant::now());
        let cookie_keys = self.cookie_keys.as_ref().map(|desk| self.side(desk, true));
        let is_first = cookie_keys.is_none();
        let state_keys = self.state_keys.as_ref().map(|desk| self.side(desk, is_first));
        let symmetric = self.symmetric.clone();
        let sides = cookie_keys.into_iter().chain(state_keys);
        Link {
            sides: sides.collect(),
            bell: Arc::clone(&self.bell),
            place: Place { index, post, seals: Arc::clone(&self.seals), symmetric, entropy, supervisor },
        }
    }

    fn side<K: FleetKind>(&self, desk: &Arc<Desk<K>>, is_first: bool) -> Box<dyn Side> {
        let kinds = u32::from(self.cookie_keys.is_some()) + u32::from(self.state_keys.is_some());
        Box::new(link::Talk::new(found::asker::<K>(&self.fleet), Arc::clone(desk), is_first, kinds))
    }
}
