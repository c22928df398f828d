//! Threads that end with the value that they work for, and what they wait for meanwhile.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::set_current_timer_slack;

/// How often a thread without work looks whether it is to end.
const IDLE: Duration = Duration::from_millis(20);

/// Threads that are told to stop, and waited for, when this goes away.
#[derive(Debug, Default)]
pub struct Threads {
    stop: Arc<AtomicBool>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts a thread; `work` is to end soon after the flag has become true.
    ///
    /// # Errors
    /// If there can be no further thread.
    pub fn spawn(&mut self, name: &str, work: impl FnOnce(&AtomicBool) + Send + 'static) -> io::Result<()> {
        let stop = Arc::clone(&self.stop);
        self.handles.push(Builder::new().name(name.to_owned()).spawn(move || work(&stop))?);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.handles.drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Does `work` on a thread of its own, whose attributes it and the processes that it starts may change for themselves
/// alone; a panic goes on here.
pub fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let joined = std::thread::scope(|scope| scope.spawn(work).join());
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Waits until there is something to read, `due` has come, or it is time to look around.
pub fn await_readable(source: impl AsFd, due: Option<Instant>) {
    let timeout = due.map_or(IDLE, |due| due.saturating_duration_since(Instant::now()).min(IDLE));
    let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.as_nanos() as _ };
    // Interrupted or not: all is looked at anyway.
    let _ = poll(&mut [PollFd::from_borrowed_fd(source.as_fd(), PollFlags::IN)], Some(&timeout));
}

/// Has the kernel wake the calling thread when its timers are up. Otherwise it may wait for another timer, 50 us as a
/// rule, to wake both at once. prctl(2), PR_SET_TIMERSLACK.
pub fn wake_on_time() {
    // Where it is refused, the thread wakes up later.
    let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
}

/// What a mutex guards, even if somebody panicked who held it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
