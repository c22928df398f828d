//! The clocks of this host, and what a sending thread does with its time: how long it has nothing to do, and when it
//! stands still.
//!
//! It has nothing to do while it waits for answers, and while it spins because something is due soon. All else is work:
//! also a look at sockets that finds something.
//!
//! It stands still if more time passes between two looks at the clock than any work in between takes
//! ([`STALL_MIN_NS`]), or if it wakes that much later than it asked to. The loop and the core look at the clock at
//! least once for each batch of datagrams and each system call that sends; for the public-key work of a key exchange
//! there is an allowance. Whoever had the processor meanwhile, another thread, a quota, a signal or the hypervisor,
//! does not show here.

use std::cell::Cell;
use std::time::Duration;

use authentick_generator::{Clock, nanos};
use authentick_net::clock;
use authentick_report::load::Stalls;
use authentick_wire::time::NtpTime;

use crate::limits::{KE_WORK_MAX_NS, STALL_MIN_NS};

/// The clocks, with the account of one thread that looks at them.
#[derive(Debug, Default)]
pub(super) struct HostClock {
    /// The last look at the monotonic clock.
    seen_ns: Cell<u64>,
    account: Cell<Account>,
}

/// What was seen of a thread in the measured part of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    /// The part that is measured.
    from_ns: u64,
    to_ns: u64,
    /// For how long there was nothing to do.
    pub(super) idle_ns: u64,
    stall_count: u64,
    longest_ns: u64,
    stalled_ns: u64,
}

impl Account {
    /// Of a step that is measured from `from_ns` to `to_ns`.
    const fn new(from_ns: u64, to_ns: u64) -> Self {
        Account { from_ns, to_ns, idle_ns: 0, stall_count: 0, longest_ns: 0, stalled_ns: 0 }
    }

    /// How much of a time is measured.
    fn measured_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        to_ns.min(self.to_ns).saturating_sub(from_ns.max(self.from_ns))
    }

    /// There was nothing to do from `from_ns` to `to_ns`.
    fn idle(&mut self, from_ns: u64, to_ns: u64) {
        self.idle_ns += self.measured_ns(from_ns, to_ns);
    }

    /// Work went on from `from_ns` to `to_ns`, which takes `work_max_ns` at most: beyond that the thread stood still.
    fn worked(&mut self, from_ns: u64, to_ns: u64, work_max_ns: u64) {
        let lasted_ns = self.measured_ns(from_ns, to_ns);
        if lasted_ns >= work_max_ns {
            self.stall_count += 1;
            self.longest_ns = self.longest_ns.max(lasted_ns);
            self.stalled_ns += lasted_ns;
        }
    }

    /// The thread asked at `from_ns` to wake by `asked_ns`, and woke at `to_ns`.
    fn waited(&mut self, from_ns: u64, asked_ns: u64, to_ns: u64) {
        self.idle(from_ns, to_ns.min(asked_ns));
        self.worked(asked_ns.min(to_ns), to_ns, STALL_MIN_NS);
    }

    /// A turn from `from_ns` to `to_ns` had nothing to do; `before` it the account was that. What was waited in it is
    /// counted already, and a stall in it is none of the idle time.
    fn idled(&mut self, before: &Account, from_ns: u64, to_ns: u64) {
        let stalled_ns = self.stalled_ns - before.stalled_ns;
        self.idle_ns = before.idle_ns + self.measured_ns(from_ns, to_ns).saturating_sub(stalled_ns);
    }

    /// How often and for how long it stood still.
    pub(super) fn stalls(&self) -> Stalls {
        let micros = |ns: u64| ns as f64 / 1e3;
        Stalls {
            count: self.stall_count,
            longest_us: micros(self.longest_ns),
            total_us: micros(self.stalled_ns),
        }
    }
}

impl HostClock {
    /// A step begins that is measured from `from_ns` to `to_ns`.
    pub(super) fn start(&self, from_ns: u64, to_ns: u64) {
        self.seen_ns.set(clock::monotonic_ns());
        self.account.set(Account::new(from_ns, to_ns));
    }

    /// The step ends now, if it would not have ended before.
    pub(super) fn stop(&self, now_ns: u64) {
        self.change(|account| account.to_ns = account.to_ns.min(now_ns));
    }

    /// What was seen since the step began.
    pub(super) const fn account(&self) -> Account {
        self.account.get()
    }

    /// The thread has woken that asked at `from_ns` to wake after `patience`.
    pub(super) fn woke(&self, from_ns: u64, patience: Duration) {
        let now_ns = clock::monotonic_ns();
        self.seen_ns.set(now_ns);
        self.change(|account| account.waited(from_ns, from_ns.saturating_add(nanos(patience)), now_ns));
    }

    /// A turn from `from_ns` to `to_ns` had nothing to do; `before` it the account was that.
    pub(super) fn idled(&self, before: &Account, from_ns: u64, to_ns: u64) {
        self.change(|account| account.idled(before, from_ns, to_ns));
    }

    /// What was done since the last look was a step of a key exchange.
    pub(super) fn exchanged_keys(&self) {
        self.look(KE_WORK_MAX_NS);
    }

    fn look(&self, work_max_ns: u64) -> u64 {
        let now_ns = clock::monotonic_ns();
        let seen_ns = self.seen_ns.replace(now_ns);
        if now_ns - seen_ns >= work_max_ns {
            self.change(|account| account.worked(seen_ns, now_ns, work_max_ns));
        }
        now_ns
    }

    fn change(&self, change: impl FnOnce(&mut Account)) {
        let mut account = self.account.get();
        change(&mut account);
        self.account.set(account);
    }
}

impl Clock for HostClock {
    #[inline]
    fn monotonic_ns(&self) -> u64 {
        self.look(STALL_MIN_NS)
    }

    #[inline]
    fn time_of_day(&self) -> NtpTime {
        clock::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn waiting_is_idle_and_waking_late_is_a_stall() {
        let mut account = Account::new(0, 1_000 * MS);
        account.waited(10 * MS, 30 * MS, 12 * MS);
        account.waited(100 * MS, 120 * MS, 120 * MS + 900_000);
        assert_eq!((account.idle_ns, account.stalls()), (22 * MS, Stalls::default()));
        account.waited(200 * MS, 220 * MS, 600 * MS);
        assert_eq!(account.idle_ns, 42 * MS);
        assert_eq!(account.stalls(), Stalls { count: 1, longest_us: 380_000.0, total_us: 380_000.0 });
    }

    #[test]
    fn work_that_takes_too_long_is_a_stall_and_no_idle_time() {
        let mut account = Account::new(0, 1_000 * MS);
        account.worked(0, MS - 1, STALL_MIN_NS);
        assert_eq!(account.stalls().count, 0);
        for (from_ms, to_ms) in [(10, 11), (20, 25)] {
            account.worked(from_ms * MS, to_ms * MS, STALL_MIN_NS);
        }
        account.worked(30 * MS, 33 * MS, KE_WORK_MAX_NS);
        assert_eq!(account.stalls(), Stalls { count: 2, longest_us: 5_000.0, total_us: 6_000.0 });
        assert_eq!(account.idle_ns, 0);
    }

    #[test]
    fn turn_without_anything_to_do_is_idle_but_for_its_stalls() {
        let mut account = Account::new(0, 1_000 * MS);
        let before = account;
        account.waited(100 * MS, 110 * MS, 110 * MS);
        account.idled(&before, 99 * MS, 111 * MS);
        assert_eq!(account.idle_ns, 12 * MS, "what was waited is counted once");
        let before = account;
        account.worked(200 * MS, 240 * MS, STALL_MIN_NS);
        account.idled(&before, 200 * MS, 241 * MS);
        assert_eq!(account.idle_ns, 13 * MS);
    }

    #[test]
    fn warm_up_and_what_follows_the_end_are_not_measured() {
        let mut account = Account::new(100 * MS, 200 * MS);
        account.idle(50 * MS, 110 * MS);
        account.idle(190 * MS, 300 * MS);
        account.worked(0, 90 * MS, STALL_MIN_NS);
        account.worked(201 * MS, 290 * MS, STALL_MIN_NS);
        assert_eq!((account.idle_ns, account.stalls().count), (20 * MS, 0));
        account.worked(198 * MS, 250 * MS, STALL_MIN_NS);
        assert_eq!(account.stalls().total_us, 2_000.0);
    }

    #[test]
    fn thread_that_sleeps_behind_the_clocks_back_has_stood_still() {
        let clock = HostClock::default();
        clock.start(0, u64::MAX);
        std::thread::sleep(Duration::from_millis(5));
        let before = clock.account().stalls().count;
        clock.monotonic_ns();
        let stalls = clock.account().stalls();
        assert!(stalls.count > before && stalls.longest_us >= 5_000.0, "{stalls:?}");
        clock.stop(0);
        std::thread::sleep(Duration::from_millis(5));
        clock.monotonic_ns();
        assert_eq!(clock.account().stalls(), stalls);
    }
}
