//! Memory that the kernel is pointed to for good: one value for each slot of a batch.
//!
//! Message headers keep addresses of buffers over many system calls, between which the same buffers are read and
//! written here. By the rules for references (Stacked Borrows, Tree Borrows) a reference to a whole vector, which
//! indexing one makes, ends every address into it that was taken before. So all addresses, the kept ones and those
//! behind references, come from one raw pointer, and no reference to more than one slot is ever made.

use std::ops::{Index, IndexMut};
use std::ptr::{self, NonNull};

use crate::engine::BATCH_SIZE;

/// [`BATCH_SIZE`] values that never move.
pub(super) struct Slots<T> {
    /// From `Box::into_raw`, and the only way to the values.
    values: NonNull<[T; BATCH_SIZE]>,
}

// SAFETY: it owns its values, as a box does.
unsafe impl<T: Send> Send for Slots<T> {}

impl<T: Copy> Slots<T> {
    /// The same value in each slot.
    pub(super) fn new(value: T) -> Self {
        let values: Box<[T]> = vec![value; BATCH_SIZE].into();
        let values = NonNull::from(Box::leak(values)).cast();
        Slots { values }
    }
}

impl<T> Slots<T> {
    /// Where a slot is. The address is good as long as this lives, whatever is done with it meanwhile; what is behind
    /// it may be read and written by others only while no reference to that slot is in use.
    ///
    /// # Panics
    /// If there is no such slot.
    pub(super) fn address(&self, slot: usize) -> *mut T {
        assert!(slot < BATCH_SIZE, "a batch has {BATCH_SIZE} slots");
        self.values.as_ptr().cast::<T>().wrapping_add(slot)
    }

    /// All slots, one after the other.
    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut T> {
        // SAFETY: `self` is borrowed mutably for as long as the references live, and each slot comes once.
        (0..BATCH_SIZE).map(|slot| unsafe { &mut *self.address(slot) })
    }
}

impl<T> Index<usize> for Slots<T> {
    type Output = T;

    fn index(&self, slot: usize) -> &T {
        // SAFETY: the address is that of a value which lives as long as `self`. Whoever holds the reference holds
        // `self`, and the kernel is only called by who holds it mutably.
        unsafe { &*self.address(slot) }
    }
}

impl<T> IndexMut<usize> for Slots<T> {
    fn index_mut(&mut self, slot: usize) -> &mut T {
        // SAFETY: likewise; `self` is borrowed mutably, so this is the only reference.
        unsafe { &mut *self.address(slot) }
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        let values = ptr::slice_from_raw_parts_mut(self.values.as_ptr().cast::<T>(), BATCH_SIZE);
        // SAFETY: `new` got this from a box of so many values, and nothing uses it any more.
        drop(unsafe { Box::from_raw(values) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stay_good_while_other_slots_and_the_same_are_used() {
        let mut slots = Slots::new([0u8; 4]);
        let kept: Vec<*mut [u8; 4]> = (0..BATCH_SIZE).map(|slot| slots.address(slot)).collect();
        for slot in 0..BATCH_SIZE {
            slots[slot] = [slot as u8; 4];
        }
        let mut moved = slots;
        for (slot, &address) in kept.iter().enumerate() {
            moved[slot][1] = 77;
            // SAFETY: the value lives, and no reference to it does.
            let value = unsafe { address.read() };
            assert_eq!(value, [slot as u8, 77, slot as u8, slot as u8]);
            // SAFETY: likewise.
            unsafe { address.write([1; 4]) };
            assert_eq!(moved[slot], [1; 4]);
        }
    }

    #[test]
    #[should_panic(expected = "slots")]
    fn there_is_no_slot_after_the_last() {
        let _ = Slots::new(0u8).address(BATCH_SIZE);
    }
}
