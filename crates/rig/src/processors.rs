//! On which processors processes run: a server on the first that this process may use, or on several, its load on the
//! last.

use authentick_net::affinity;

use crate::threads::on_own_thread;

/// Which of the processors that this process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// The one with the lowest number.
    First,
    /// The one with the highest number.
    Last,
    /// All others than that.
    AllButLast,
}

/// Does `work` on a thread that may run there only, as may the processes that it starts. Where there is one processor
/// alone, there is nothing to choose.
pub fn pinned<T: Send>(processor: Processor, work: impl FnOnce() -> T + Send) -> T {
    on_own_thread(|| {
        let allowed = affinity::allowed().unwrap_or_default();
        if let [first, .., last] = allowed[..] {
            // Where it is refused, figures are less steady.
            let _ = match processor {
                Processor::First => affinity::pin(first),
                Processor::Last => affinity::pin(last),
                Processor::AllButLast => affinity::confine(&allowed[..allowed.len() - 1]),
            };
        }
        work()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_on_one_processor_and_the_caller_is_as_free_as_before() {
        let before = affinity::allowed().expect("the kernel tells");
        for (processor, expected) in [(Processor::First, before.first()), (Processor::Last, before.last())] {
            let on = pinned(processor, || affinity::allowed().expect("the kernel tells"));
            assert_eq!(on.first(), expected, "{processor:?}");
            assert_eq!(on.len(), 1);
        }
        let others = pinned(Processor::AllButLast, || affinity::allowed().expect("the kernel tells"));
        assert_eq!(others, before[..(before.len() - 1).max(1)]);
        assert_eq!(affinity::allowed().expect("the kernel tells"), before);
    }
}
