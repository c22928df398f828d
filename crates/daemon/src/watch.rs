//! Reads the clock's state on a thread that does little else, so that no file operation, however slow, delays it. It
//! also notices when the supervisor hangs, when an address comes or goes, and when members of the fleet fall silent.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use crate::heartbeat::{Looked, STALE_AFTER, TICK};
use crate::reference::Watcher;
use crate::retired::Retired;
use crate::shared::Shared;

/// The thread that reads the clock's state.
pub(crate) struct Watch {
    pub(crate) shared: Arc<Shared>,
    pub(crate) watcher: Watcher,
}

impl Watch {
    /// Works until the other end of `stop` is dropped.
    pub(crate) fn run(mut self, stop: &Receiver<()>) {
        let (mut is_hanging, mut retired, mut reloads) = (false, Retired::default(), 0);
        while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(TICK) {
            let reloads_now = self.shared.reloads.get();
            if std::mem::replace(&mut reloads, reloads_now) != reloads_now {
                self.watcher.look_up_again();
            }
            let snapshot = self.watcher.look();
            let boot_ns = self.shared.clock.boot_ns();
            retired.replace(&self.shared.looked, Arc::new(Looked::new(snapshot, boot_ns)));
            self.shared.choose_servers();
            self.shared.addresses.look();
            let hangs = self.shared.files.age(boot_ns) > STALE_AFTER;
            if hangs != is_hanging {
                is_hanging = hangs;
                self.tell(hangs);
            }
        }
    }

    fn tell(&self, hangs: bool) {
        let work = self.shared.files.work();
        match hangs {
            true => log::error!(
                "{work} hangs: time is still served, but until it ends no key rotates and SIGHUP changes nothing; see \
                 whether the disk answers"
            ),
            false => log::info!("files can be worked on again"),
        }
    }
}
