//! Values that were replaced while others hold them still.
//!
//! **Invariant:** a packet worker frees nothing. It lets a value go when it sees the next one; whoever replaces a value
//! keeps it until then, and frees it: a set of symmetric keys can be tens of thousands of blocks.

use std::sync::Arc;

use arc_swap::ArcSwap;

/// What was replaced and is not freed yet: no more than there are threads that hold such values.
#[derive(Debug)]
pub(crate) struct Retired<T>(Vec<Arc<T>>);

impl<T> Default for Retired<T> {
    fn default() -> Self {
        Retired(Vec::new())
    }
}

impl<T> Retired<T> {
    /// Puts `new` in force.
    pub(crate) fn replace(&mut self, in_force: &ArcSwap<T>, new: Arc<T>) {
        self.put_away(Some(in_force.swap(new)));
    }

    /// Takes what was in force until now, if there was anything.
    pub(crate) fn put_away(&mut self, old: Option<Arc<T>>) {
        self.0.extend(old);
        self.free();
    }

    /// Frees what nobody holds any more. To be called now and then, as keys are erased when they are freed.
    pub(crate) fn free(&mut self) {
        self.0.retain(|old| Arc::strong_count(old) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_value_stays_until_its_last_holder_has_let_it_go() {
        let (in_force, mut retired) = (ArcSwap::from_pointee(1), Retired::default());
        let held = in_force.load_full();
        let seen = Arc::downgrade(&held);
        for number in 2..10 {
            retired.replace(&in_force, Arc::new(number));
            assert_eq!(retired.0.len(), 1, "those that nobody holds are gone");
        }
        drop(held);
        assert!(seen.upgrade().is_some(), "who held it has not freed it");
        retired.free();
        assert!(seen.upgrade().is_none() && retired.0.is_empty());
        assert_eq!(**in_force.load(), 9);
    }
}
