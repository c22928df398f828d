//! What adversaries without a plan find, and what they do not.

use super::*;
use crate::protocol::{self, E, Protocol};
use crate::verdict::Verdict;

const ROOM: usize = 6;

fn classes(protocol: &dyn Protocol, depth: usize) -> Vec<(Verdict, String)> {
    let found = search(protocol, 1, Start::Keyed, Limits::new(depth, ROOM));
    found.attacks.into_iter().map(|attack| (attack.verdict, attack.class)).collect()
}

#[test]
fn search_finds_by_itself_what_plain_clients_lose_by() {
    let found = classes(&protocol::Plain { bound: None }, 3);
    let has = |verdict, class: &str| found.iter().any(|(one, other)| *one == verdict && other == class);
    assert!(has(Verdict::WinAccuracy, "response, unchanged"), "delayed: {found:?}");
    assert!(has(Verdict::WinAuthentication, "response, receive changed"), "rewritten: {found:?}");
    assert!(has(Verdict::WinAuthentication, "response, origin of another request"), "replayed: {found:?}");
    assert!(has(Verdict::WinAuthentication, "request, reflected"), "reflected: {found:?}");
}

#[test]
fn search_finds_only_lateness_where_nothing_bounds_the_round_trip() {
    for protocol in [
        &protocol::Nts { bound: None } as &dyn Protocol,
        &protocol::Mac { keys: protocol::Keys::Pair, bound: None },
    ] {
        let found = classes(protocol, 4);
        assert!(
            !found.is_empty() && found.iter().all(|(verdict, _)| *verdict == Verdict::WinAccuracy),
            "{found:?}"
        );
    }
}

#[test]
fn search_finds_nothing_where_there_are_keys_and_a_bound() {
    let mut searches = Searches::new(1, 2, ROOM, None);
    for protocol in protocol::all() {
        searches.search(protocol.as_ref());
    }
    assert!(searches.is_as_expected(), "{searches}");
    let bounded = searches.searches.iter().filter(|search| search.is_safe());
    assert!(bounded.clone().count() >= 7, "{searches}");
    for search in bounded.filter(|search| search.start == Start::Keyed) {
        assert!(search.bound > 0 && search.worlds > 10, "it gets as far as time: {searches}");
    }
}

#[test]
fn worlds_that_differ_only_in_the_order_of_events_are_one() {
    let (board, model) = Board::new(&protocol::Nts { bound: Some(E) }, 1, Start::Keyed, ROOM);
    let after = |moves: [Move; 2]| {
        let (mut board, mut model) = (board.clone(), model.fork());
        moves.into_iter().for_each(|one| assert_eq!(board.make(&mut model, one), Effect::Changed));
        board.fingerprint(&model)
    };
    assert_eq!(after([Move::Ask(0), Move::Ask(1)]), after([Move::Ask(1), Move::Ask(0)]));
    assert_ne!(after([Move::Ask(0), Move::Wait(false)]), after([Move::Wait(false), Move::Ask(0)]));
}

/// A late answer uses its request up though it is refused: the world is another then, and is gone on from.
#[test]
fn refusal_that_uses_a_request_up_has_an_effect() {
    for protocol in
        [&protocol::Nts { bound: Some(E) } as &dyn Protocol, &protocol::Antp { is_separate: false }]
    {
        let (mut board, mut model) = Board::new(protocol, 1, Start::Keyed, ROOM);
        for one in [Move::Wait(true), Move::Serve(0, Change::Nothing), Move::Deliver(2, Change::Nothing, 0)] {
            assert_eq!(board.make(&mut model, one), Effect::Changed, "{}: {one:?}", protocol.name());
        }
        let again = board.make(&mut model, Move::Deliver(2, Change::Nothing, 0));
        assert_eq!(again, Effect::Nothing, "{}", protocol.name());
    }
}

#[test]
fn random_schedules_stay_within_half_their_round_trip() {
    for protocol in protocol::all() {
        let wandered = wander(protocol.as_ref(), 1, 2_000, 12);
        assert!(wandered.believed > 100, "{wandered:?}");
        assert!(wandered.share_max <= 500, "{wandered:?}");
        if protocol.bound().is_some() && !wandered.protocol.starts_with("plain") {
            assert_eq!(wandered.wins, 0, "{wandered:?}");
            assert!(wandered.error_max <= E.to_bits() / 2 + 1, "{wandered:?}");
        } else {
            assert!(wandered.wins > 0, "{wandered:?}");
        }
    }
}
