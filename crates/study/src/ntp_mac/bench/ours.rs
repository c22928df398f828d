//! Our own MACs: one at a time and in batches, with a kept key and with one that is set up for each packet.

use std::hint::black_box;

use authentick_crypto::mac::{MAC_TAG_SIZE_MAX, MacAlgorithm, MacKey, Tag};
use authentick_crypto::run_batch;
use authentick_game::mac::factors::named;
use authentick_report::mac::{Implementation, KeyUse};

use super::SIZE;
use super::subject::{NONCE_SIZE, Subject, key_of, nonce, packet, packet_work, stamp, tag_size, work};

/// Packets that are handed over together.
pub(super) const BATCHES: [u32; 4] = [1, 4, 16, 64];

/// Everything of ours for one algorithm.
pub(super) fn subjects(algorithm: MacAlgorithm) -> Vec<Subject> {
    BATCHES.into_iter().map(|batch| kept(algorithm, batch)).chain([set_up(algorithm)]).collect()
}

/// A tag for comparison, of any message.
pub(super) fn single(algorithm: MacAlgorithm, nonce: &[u8; NONCE_SIZE], message: &[u8]) -> Vec<u8> {
    let mut tag = vec![0; tag_size(algorithm)];
    let key = key(algorithm);
    let nonce = algorithm.nonce_size().map(|_| &nonce[..]);
    run_batch(std::iter::once(Tag { key: &key, nonce, message, tag: &mut tag }));
    tag
}

fn key(algorithm: MacAlgorithm) -> MacKey {
    MacKey::new(algorithm, key_of(algorithm)).expect("the size is the algorithm's")
}

/// A packet of a batch, and what belongs to it.
struct Slot {
    packet: [u8; SIZE],
    nonce: [u8; NONCE_SIZE],
    tag: [u8; MAC_TAG_SIZE_MAX],
}

fn kept(algorithm: MacAlgorithm, batch: u32) -> Subject {
    let (key, size) = (key(algorithm), tag_size(algorithm));
    let has_nonce = algorithm.nonce_size().is_some();
    let slot = || Slot { packet: packet(), nonce: nonce(0), tag: [0; MAC_TAG_SIZE_MAX] };
    let mut slots: Vec<Slot> = std::iter::repeat_with(slot).take(batch as usize).collect();
    let work = work(move |number| {
        let first = number * u64::from(batch);
        for (number, slot) in (first..).zip(&mut slots) {
            stamp(&mut slot.packet, number);
            if has_nonce {
                slot.nonce = nonce(number);
            }
        }
        run_batch(slots.iter_mut().map(|slot| Tag {
            key: &key,
            nonce: has_nonce.then_some(&slot.nonce[..]),
            message: &slot.packet,
            tag: &mut slot.tag[..size],
        }));
        black_box(&slots);
    });
    let mut subject = Subject::single(named(algorithm), Implementation::Authentick, KeyUse::Kept, work);
    subject.timing.batch = batch;
    subject
}

fn set_up(algorithm: MacAlgorithm) -> Subject {
    let size = tag_size(algorithm);
    let has_nonce = algorithm.nonce_size().is_some();
    let mut tag = [0; MAC_TAG_SIZE_MAX];
    let work = packet_work(move |number, message| {
        let (key, nonce) = (key(black_box(algorithm)), nonce(number));
        let nonce = has_nonce.then_some(&nonce[..]);
        run_batch(std::iter::once(Tag { key: &key, nonce, message, tag: &mut tag[..size] }));
        black_box(&tag);
    });
    Subject::single(named(algorithm), Implementation::Authentick, KeyUse::SetUp, work)
}
