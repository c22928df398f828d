//! Errors on purpose: a build with AddressSanitizer has to report each of them, or it would find nothing elsewhere
//! either.

use std::hint::black_box;

#[test]
#[ignore = "a control: AddressSanitizer ends it"]
fn memory_is_read_after_it_was_freed() {
    let block = Box::into_raw(Box::new(7_u64));
    // SAFETY: the block is the box's, and is freed once.
    drop(unsafe { Box::from_raw(black_box(block)) });
    // SAFETY: none. This is the error.
    let read = unsafe { black_box(block).read_volatile() };
    black_box(read);
}

#[test]
#[ignore = "a control: LeakSanitizer reports it when the process ends"]
fn memory_is_never_freed() {
    // Out of the thread's stack, where an address that is left over would count as a use.
    let leak = || std::mem::forget(black_box(vec![7_u64; 1000]));
    std::thread::spawn(leak).join().unwrap();
}
