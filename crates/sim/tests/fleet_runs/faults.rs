//! What befalls a world, as its seed has it.

use std::collections::BTreeSet;

use authentick_proto::generations::Role;
use authentick_sim::Clock;

use super::host::{CrashAt, Disk, Host, STORE_COUNT};
use super::keys::KeyName;
use super::operator::{Command, SealRotation, Wish};
use super::store::{Mood, Store};
use super::world::{NODE_COUNT, World};

/// Commands that try at the same time.
const COMMAND_COUNT_MAX: usize = 2;

/// How far clocks are from each other, in seconds.
const SPREAD: i64 = 30;

const SECOND: i64 = 1_000_000_000;

impl World {
    /// Sets a host's clock somewhere within half a minute, and has it drift.
    pub(crate) fn spread_clock(&mut self, index: usize) {
        // The first and the last are as far apart as clocks get.
        let offset = SPREAD * index as i64 / (NODE_COUNT as i64 - 1) - SPREAD / 2;
        let drift = (self.clocks.u64() % 200_000) as i64 - 100_000;
        self.set_clock(index, Clock { offset_ns: offset * SECOND, drift_ppb: drift });
    }

    fn set_clock(&mut self, index: usize, clock: Clock) {
        if !self.are_clocks_right {
            self.hosts[index].wall = clock;
        }
    }

    /// Steps a host's clock, by a second or by a year.
    fn step_clock(&mut self, index: usize) {
        let size = [1, 60, 86_400, 31_536_000][(self.clocks.u64() % 4) as usize];
        let seconds = if self.clocks.u64().is_multiple_of(2) { size } else { -size };
        let clock = self.hosts[index].wall;
        let offset_ns = clock.offset_ns + seconds * SECOND;
        // Not so far that nobody could write that time down.
        if offset_ns.abs() < 400 * 86_400 * SECOND {
            self.set_clock(index, Clock { offset_ns, ..clock });
        }
    }

    /// Whether something happens in this second that happens once in `seconds` in the worst runs.
    fn happens(&mut self, seconds: u64) -> bool {
        let below = seconds * self.calm;
        self.draw(below) == 0
    }

    /// What happens to hosts and stores in a second, and what people begin.
    pub(crate) fn befall(&mut self) {
        let index = self.draw(NODE_COUNT as u64) as usize;
        let number = self.draw(STORE_COUNT as u64) as usize;
        if self.happens(15) {
            self.stores[number].change_mood();
            self.log.say(self.now, format_args!("store {number} is {:?}", self.stores[number].mood));
        }
        if self.happens(80) {
            self.stores[number].restart();
            self.log.say(self.now, format_args!("store {number} is empty"));
        }
        if self.happens(20) {
            self.step_clock(index);
        }
        self.befall_host(index, number);
        self.begin(index);
    }

    fn befall_host(&mut self, index: usize, number: usize) {
        let now = self.now;
        let is_up = self.hosts[index].process.is_some();
        if self.happens(30) && is_up {
            self.crash(index, "and keeps its disk");
            // The clock that is never set begins anew, and others cannot be reached either.
            if self.draw(3) == 0 {
                let until = now + self.draw(60);
                self.hosts[index].cut_until = [until; STORE_COUNT];
            }
        }
        if self.happens(40) && is_up {
            let when = if self.draw(2) == 0 { CrashAt::Before } else { CrashAt::After };
            self.hosts[index].disk.crash = Some(when);
        }
        if self.happens(120) && is_up && self.can_lose(index) {
            self.lose_disk(index);
        }
        if self.happens(60) {
            let until = now + 3 + self.draw(40);
            self.hosts[index].disk.refuses_until = until;
            self.log.say(now, format_args!("the disk of {} refuses until {until}", self.hosts[index].name()));
        }
        if self.happens(25) {
            let until = now + 3 + self.draw(40);
            let all = self.draw(2) == 0;
            for cut in 0..STORE_COUNT {
                if all || cut == number {
                    self.hosts[index].cut_until[cut] = until;
                }
            }
            self.log.say(now, format_args!("{} is cut off until {until}", self.hosts[index].name()));
        }
    }

    /// Whether somebody else who runs has keys, so that these are not lost for good.
    fn can_lose(&self, index: usize) -> bool {
        self.hosts.iter().any(|host| host.index != index && host.keys().is_some())
    }

    fn lose_disk(&mut self, index: usize) {
        self.crash(index, "and loses its disk");
        self.truth.counts.lost_disks += 1;
        // Half of the time it meets nothing but old words when it starts.
        if self.draw(2) == 0 {
            self.stores.iter_mut().for_each(|store| store.mood = Mood::Repeating);
            let (number, until) = (self.draw(STORE_COUNT as u64) as usize, self.now + 40);
            self.hosts[index].cut_until[number] = until;
        }
        let host = &mut self.hosts[index];
        let lost = std::mem::take(&mut host.disk);
        host.given_up.clear();
        self.forget_disk(index, &lost);
    }

    /// What only one disk had is gone with it. That can be a key that seals only where patience, or an operator, had
    /// its writer wait for nobody.
    fn forget_disk(&mut self, index: usize, lost: &Disk) {
        let count = self.forget(&lost.keys(), |other| other != index);
        assert!(count == 0 || self.settings.patience.is_some(), "{count} keys are gone with a disk");
    }

    /// What only those had of whom an operator said that they are gone is given up.
    pub(crate) fn forget_gone(&mut self) {
        let is_gone = |(index, _): &(usize, &Host)| self.truth.left_behind.contains_key(index);
        let gone: Vec<_> = self.hosts.iter().enumerate().filter(is_gone).collect();
        let given_up = gone.iter().flat_map(|(_, host)| host.disk.keys()).collect();
        let gone: BTreeSet<usize> = gone.into_iter().map(|(index, _)| index).collect();
        self.forget(&given_up, |other| !gone.contains(&other));
    }

    /// Has nobody promised anything for those of these keys that have sealed and that none of those hosts has; returns
    /// how many they are.
    fn forget(&mut self, keys: &BTreeSet<KeyName>, is_there: impl Fn(usize) -> bool) -> usize {
        let there: Vec<&Host> = self.hosts.iter().filter(|host| is_there(host.index)).collect();
        let periods = there.iter().filter_map(|host| Some(host.disk.read().document?.period));
        let period = periods.max().unwrap_or_default();
        let known: BTreeSet<KeyName> = there.iter().flat_map(|host| host.disk.keys()).collect();
        let is_promised = |key: &&KeyName| {
            let last = self.truth.sealed.get(key);
            !self.truth.revoked.contains(&key.0)
                && last.is_some_and(|last| period.saturating_sub(*last) < self.settings.keep as u64)
        };
        let lost: Vec<KeyName> = keys.difference(&known).filter(is_promised).copied().collect();
        for key in &lost {
            self.log.say(self.now, format_args!("nobody has key {:08x} any more", key.0));
            self.truth.sealed.remove(key);
        }
        self.truth.counts.lost_keys += lost.len() as u64;
        lost.len()
    }

    /// What people begin.
    fn begin(&mut self, index: usize) {
        let now = self.now;
        if self.seal.is_none() && self.happens(60) {
            self.seal = Some(SealRotation::new(self.seal_number));
        }
        if self.commands.len() >= COMMAND_COUNT_MAX {
            return;
        }
        let writer = self
            .hosts
            .iter()
            .find(|host| host.process.as_ref().is_some_and(|process| process.node.writes().is_ok()));
        let writer = writer.map(|host| host.index);
        if let (Some(writer), true) = (writer, self.happens(40)) {
            self.commands.push(Command::new(writer, Wish::Rotate, now));
        }
        if let (Some(writer), true) = (writer, self.happens(60)) {
            let role = match self.draw(6) {
                0 => Role::Current,
                1 => Role::Future,
                _ => Role::Retired,
            };
            self.commands.push(Command::new(writer, Wish::Revoke(role), now));
        }
        if self.happens(100) && self.hosts[index].process.is_some() {
            self.commands.push(Command::new(index, Wish::TakeOver, now));
        }
    }

    /// Everything works from now on, and everybody is awake.
    pub(crate) fn end_faults(&mut self) {
        self.log.say(self.now, format_args!("faults end"));
        self.stores.iter_mut().for_each(Store::repent);
        for host in &mut self.hosts {
            (host.cut_until, host.down_until) = ([0; STORE_COUNT], 0);
            (host.disk.refuses_until, host.disk.crash) = (0, None);
        }
        self.clients.iter_mut().for_each(|client| client.asleep_until = 0);
        // A take-over that has begun is brought to its end; nothing else is.
        self.commands.retain(|command| matches!(command.wish, Wish::TakeOver));
    }
}
