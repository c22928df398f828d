//! How models run: loom's atomics, fences and threads in place of those of the standard library, and faults in them.
//!
//! A fault is what a mistake in the code above would come to, so each model can be run with the mistake that it exists
//! to find, on the code as it is shipped.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use loom::sync::atomic as weak;
pub(crate) use loom::sync::atomic::AtomicBool;
pub(crate) use loom::thread::{Thread, current};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An update is a load and a store.
    SplitUpdates,
    /// All accesses to words are relaxed.
    NoOrder,
    /// Fences do nothing.
    NoFences,
}

thread_local! {
    // All threads of a model run on the thread that runs the model.
    static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
}

fn has(fault: Fault) -> bool {
    FAULT.get() == Some(fault)
}

fn order(order: Ordering) -> Ordering {
    if has(Fault::NoOrder) { Ordering::Relaxed } else { order }
}

/// As the standard library's.
#[derive(Debug)]
pub(crate) struct AtomicU64(weak::AtomicU64);

impl AtomicU64 {
    pub(crate) fn new(value: u64) -> Self {
        AtomicU64(weak::AtomicU64::new(value))
    }

    pub(crate) fn load(&self, ordering: Ordering) -> u64 {
        self.0.load(order(ordering))
    }

    pub(crate) fn store(&self, value: u64, ordering: Ordering) {
        self.0.store(value, order(ordering));
    }

    pub(crate) fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        if !has(Fault::SplitUpdates) {
            return self.0.compare_exchange(current, new, order(success), order(failure));
        }
        let before = self.0.load(Ordering::Acquire);
        if before != current {
            return Err(before);
        }
        self.0.store(new, Ordering::Release);
        Ok(before)
    }

    pub(crate) fn fetch_or(&self, bits: u64, ordering: Ordering) -> u64 {
        if has(Fault::SplitUpdates) {
            return self.split(|before| before | bits);
        }
        self.0.fetch_or(bits, order(ordering))
    }

    pub(crate) fn fetch_and(&self, bits: u64, ordering: Ordering) -> u64 {
        if has(Fault::SplitUpdates) {
            return self.split(|before| before & bits);
        }
        self.0.fetch_and(bits, order(ordering))
    }

    fn split(&self, update: impl Fn(u64) -> u64) -> u64 {
        let before = self.0.load(Ordering::Acquire);
        self.0.store(update(before), Ordering::Release);
        before
    }
}

pub(crate) fn fence(ordering: Ordering) {
    if !has(Fault::NoFences) {
        weak::fence(ordering);
    }
}

/// As the standard library's, which loom does not see into.
#[derive(Debug)]
pub(crate) struct OnceLock<T> {
    is_set: AtomicBool,
    value: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> Self {
        OnceLock { is_set: AtomicBool::new(false), value: std::sync::OnceLock::new() }
    }

    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        self.is_set.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) fn get(&self) -> Option<&T> {
        if self.is_set.load(Ordering::Acquire) { self.value.get() } else { None }
    }
}

/// Without the time limit: a wake-up that is lost leaves a thread asleep, and loom reports a deadlock.
pub(crate) fn park_timeout(_: Duration) {
    loom::thread::park();
}

/// Runs a model in all interleavings of its threads, with all values that loads can return, and prints how many those
/// were.
pub(crate) fn explore(name: &str, model: impl Fn() + Send + Sync + 'static) {
    explore_within(None, name, model);
}

/// The same with at most `preemption_count_max` switches away from a thread that could go on, for models that have too
/// many interleavings otherwise.
pub(crate) fn explore_within(
    preemption_count_max: Option<usize>,
    name: &str,
    model: impl Fn() + Send + Sync + 'static,
) {
    let count = run(preemption_count_max, model);
    let bound =
        preemption_count_max.map_or_else(String::new, |bound| format!(", {bound} preemptions at most"));
    println!("loom: {name}: {count} interleavings{bound}");
    println!("assurance: interleavings = {count} interleavings");
}

/// The same with a fault that must not matter.
pub(crate) fn explore_with(
    fault: Fault,
    preemption_count_max: Option<usize>,
    name: &str,
    model: impl Fn() + Send + Sync + 'static,
) {
    FAULT.set(Some(fault));
    explore_within(preemption_count_max, &format!("{name}, {fault:?}"), model);
    FAULT.set(None);
}

fn run(preemption_count_max: Option<usize>, model: impl Fn() + Send + Sync + 'static) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemption_count_max;
    builder.max_branches = 10_000;
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    count.load(Ordering::Relaxed)
}

/// Switches that are enough for each fault.
const PREEMPTION_COUNT_MAX: usize = 3;

/// Runs a model that is wrong, by a fault or in itself.
///
/// # Panics
/// If loom does not find it, or finds something else than a panic that says `what`.
pub(crate) fn must_fail(
    fault: Option<Fault>,
    what: &str,
    name: &str,
    model: impl Fn() + Send + Sync + 'static,
) {
    FAULT.set(fault);
    let end = catch_unwind(AssertUnwindSafe(|| run(Some(PREEMPTION_COUNT_MAX), model)));
    FAULT.set(None);
    let payload = match end {
        Ok(count) => panic!("{name} with {fault:?} passes all {count} interleavings"),
        Err(payload) => payload,
    };
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no text");
    assert!(text.contains(what), "{name} with {fault:?}: {text}");
    let fault = fault.map_or_else(String::new, |fault| format!(", {fault:?}"));
    println!("loom: {name}{fault}: found: {text}");
}

/// The greatest number that came up in any interleaving.
#[derive(Clone, Debug, Default)]
pub(crate) struct Greatest(Arc<AtomicUsize>);

impl Greatest {
    pub(crate) fn note(&self, number: usize) {
        self.0.fetch_max(number, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
