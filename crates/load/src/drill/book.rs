//! The cookies of a drill: of each key exchange one under each key that was seen to seal, as far back as keys are kept.

use std::collections::BTreeSet;
use std::sync::Mutex;

use authentick_proto::client::NtsSession;

use crate::lock;

/// The most rotations between two keys whose identifiers count them. Identifiers that lie further apart are
/// random numbers, as those of other servers may be.
const ROTATIONS_MAX: u32 = 0xffff;

/// What all threads know.
#[derive(Debug)]
pub(super) struct Book {
    keep: usize,
    pages: Mutex<Pages>,
}

/// What is known of all key exchanges.
#[derive(Debug)]
struct Pages {
    all: Vec<Page>,
    /// How often a cookie was taken in.
    changes: u64,
}

/// What is known of one key exchange.
#[derive(Clone, Debug)]
struct Page {
    /// With one cookie each, the one of the youngest key last.
    sessions: Vec<(u32, NtsSession)>,
    /// All keys that were ever seen to seal.
    seen: BTreeSet<u32>,
}

/// A session with one cookie, and under which key of which key exchange that is.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) exchange: usize,
    pub(super) key: u32,
    pub(super) session: NtsSession,
}

/// The key that sealed a cookie.
pub(super) fn key_of(cookie: &[u8]) -> u32 {
    cookie.first_chunk().map_or(0, |id| u32::from_be_bytes(*id))
}

impl Book {
    /// A book with a session of each key exchange, each with a cookie; keys are used as long as fewer than `keep`
    /// others have sealed since.
    pub(super) fn new(sessions: Vec<NtsSession>, keep: usize) -> Self {
        let page = |mut session: NtsSession| {
            session.jar.keep_oldest();
            let key = session.jar.oldest().map_or(0, key_of);
            Page { sessions: vec![(key, session)], seen: BTreeSet::from([key]) }
        };
        let all: Vec<Page> = sessions.into_iter().map(page).collect();
        Book { keep: keep.max(1), pages: Mutex::new(Pages { all, changes: 1 }) }
    }

    /// A fresh cookie came; it is kept if its key was not seen before.
    pub(super) fn learn(&self, exchange: usize, session: &NtsSession, cookie: &[u8]) {
        let key = key_of(cookie);
        let mut pages = lock(&self.pages);
        let Pages { all, changes } = &mut *pages;
        let page = &mut all[exchange];
        if !page.seen.insert(key) {
            return;
        }
        let mut session = session.clone();
        drop(std::mem::take(&mut session.jar));
        if session.jar.add(cookie) {
            page.sessions.push((key, session));
            *changes += 1;
            let excess = page.sessions.len().saturating_sub(self.keep);
            page.sessions.drain(..excess);
            // A key that sealed for a moment only may never be seen, but it counts: its identifier is missing.
            page.sessions.retain(|(older, _)| {
                let rotations = key.wrapping_sub(*older);
                rotations > ROTATIONS_MAX || (rotations as usize) < self.keep
            });
        }
    }

    /// The cookies that are to be used, if there are others than after `seen` changes, of which none is 0; after how
    /// many these are it is then.
    pub(super) fn entries(&self, seen: &mut u64) -> Option<Vec<Entry>> {
        let pages = lock(&self.pages);
        if std::mem::replace(seen, pages.changes) == pages.changes {
            return None;
        }
        let of_page = |(exchange, page): (usize, &Page)| {
            let entry =
                |(key, session): &(u32, NtsSession)| Entry { exchange, key: *key, session: session.clone() };
            page.sessions.iter().map(entry).collect::<Vec<_>>()
        };
        Some(pages.all.iter().enumerate().flat_map(of_page).collect())
    }

    /// How often the key that seals has changed, by the key exchange whose clients saw the fewest.
    pub(super) fn rotations(&self) -> usize {
        lock(&self.pages).all.iter().map(|page| page.seen.len() - 1).min().unwrap_or(0)
    }
}
