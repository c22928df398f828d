//! What is checked, left out: the adversary has to notice.
//!
//! Every place at which clients and servers of `proto` decide has a proof here that it is needed: a strategy that comes
//! out differently without it; one that does so once the places that cover it are gone too; or, where no strategy
//! depends on it, a test of `proto` that is there for it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use authentick_game::schedule::{Limits, Start, search};
use authentick_game::verdict::Verdict;
use authentick_game::{protocol, strategy};
use authentick_proto::mutant::{Place, without};

/// What shows that a place is needed.
enum Proof {
    /// Without it, this strategy against this protocol comes out differently.
    Caught(&'static str, &'static str),
    /// The same, once these are gone too, each of which it covers.
    Covered(&'static [Place], &'static str, &'static str),
    /// No strategy depends on it: it names a mistake, keeps a server from work for nothing, or makes a proof simple.
    /// This file of `proto` has this test of it.
    Sound(&'static str, &'static str),
}
use Proof::{Caught, Covered, Sound};

/// A place without a proof does not compile.
const fn proof(place: Place) -> Proof {
    match place {
        Place::Mode => Sound("src/server/tests.rs", "client_refuses_what_does_not_answer_its_request"),
        Place::Origin | Place::DrawnOrigin => Caught("blind-guess", "plain"),
        Place::Duplicate => Caught("repeat-request", "nts"),
        Place::Identifier => Covered(&[Place::Origin], "replay", "nts"),
        Place::Authenticator => Covered(&[Place::Identifier], "strip", "nts"),
        Place::Tag => Caught("forge-early", "nts"),
        Place::Kiss => Covered(&[Place::Clock], "refusals", "plain"),
        Place::Clock => Covered(&[Place::Kiss], "refusals", "plain"),
        Place::Timestamps => Sound("src/client/tests.rs", "answer_whose_times_are_not_known_is_refused"),
        Place::MacMode => {
            Covered(&[Place::MacOrigin, Place::Kiss, Place::Clock, Place::Timestamps], "reflect", "mac")
        }
        Place::MacOrigin => Caught("replay", "mac"),
        Place::MacDuplicate => Caught("repeat-request", "mac"),
        Place::MacKeyId => Covered(&[Place::MacTag], "others-key", "mac"),
        Place::MacTag => Caught("rewrite-times", "mac"),
        Place::AntpMode => Sound("tests/antp/phases.rs", "server_never_answers_what_servers_send"),
        Place::AntpOrigin => Covered(&[Place::RequestUnderTag], "replay", "antp"),
        Place::Token => Covered(&[Place::Nonce], "replay", "antp"),
        Place::Nonce => Covered(&[Place::Token], "replay", "antp"),
        Place::Untagged => Covered(&[Place::TimeTag], "strip", "antp"),
        Place::AntpDuplicate => Covered(&[Place::RoundTrip, Place::Residence], "repeat-request", "antp"),
        Place::SuiteOffered => Sound("tests/antp/phases.rs", "client_prefers_and_the_server_follows"),
        Place::Choice => Covered(&[Place::Confirmation], "downgrade-offer", "antp"),
        Place::ChainHash => Covered(&[Place::Confirmation], "swap-chain", "antp"),
        Place::KeySuite => {
            Sound("tests/antp/phases.rs", "no_flipped_bit_of_the_four_messages_leads_to_a_session")
        }
        Place::Confirmation => Caught("others-c1", "antp"),
        Place::TimeSuite => {
            Sound("tests/antp/time.rs", "no_flipped_bit_of_a_request_or_its_answer_gives_time")
        }
        Place::TimeTag => Caught("rewrite-times", "antp"),
        Place::EarlyMatch => Caught("forge-early", "antp-separate"),
        Place::Order => Sound("tests/antp/time.rs", "server_whose_clock_runs_backwards_is_refused"),
        Place::RoundTrip => Caught("delay-beyond-e", "antp"),
        Place::Residence => Caught("slow-server", "antp"),
        Place::AntpTimestamps => Sound("tests/antp/time.rs", "server_whose_clock_runs_backwards_is_refused"),
        Place::Cookie => Sound("src/cookie.rs", "every_flipped_bit_keeps_a_cookie_shut"),
        Place::RequestTag => Caught("alter-request", "nts"),
        Place::MacRequestTag => Caught("alter-request", "mac"),
        Place::StateTag => Sound("src/antp/state.rs", "every_flipped_bit_of_state_is_seen"),
        Place::PendingAge => Caught("stale-negotiation", "antp"),
        Place::PendingSuite => Sound("tests/antp/phases.rs", "c1_of_one_suite_is_refused_for_another"),
        Place::Expiry => Sound("src/antp/state.rs", "state_opens_within_its_time_and_also_across_an_era"),
        Place::EstablishedSuite => {
            Sound("tests/antp/time.rs", "c2_under_the_name_of_another_suite_is_refused")
        }
        Place::TranscriptOfNegotiation => Caught("downgrade-both", "antp"),
        Place::Label => Sound("tests/antp/vectors.rs", "time_of_the_vectors_comes_out_in_all_modes"),
        Place::RequestUnderTag => Caught("alter-request", "antp"),
        Place::StateLabels => {
            Sound("src/antp/state.rs", "label_keeps_each_kind_of_state_from_opening_as_the_other")
        }
        Place::StateNonce => {
            Sound("tests/antp/responder.rs", "flood_of_m1_makes_no_nonce_twice_under_a_state_key")
        }
    }
}

/// What comes of a strategy with these places left out, and what is expected.
fn played(places: &[Place], strategy: &str, protocol: &str) -> (Verdict, Option<Verdict>) {
    let protocol = protocol::named(protocol).unwrap();
    let strategy = strategy::named(strategy).unwrap();
    let played = without(places, || strategy.play(protocol.as_ref(), 1));
    (played.verdict, played.expected)
}

#[test]
fn whatever_is_left_out_is_noticed() {
    for &place in Place::ALL {
        let unnoticed = |places: &[Place], strategy, protocol| {
            let (verdict, expected) = played(places, strategy, protocol);
            Some(verdict) == expected
        };
        match proof(place) {
            Caught(strategy, protocol) => {
                assert!(unnoticed(&[], strategy, protocol), "{strategy} against {protocol}");
                assert!(!unnoticed(&[place], strategy, protocol), "{place:?}: {strategy} against {protocol}");
            }
            Covered(by, strategy, protocol) => {
                let against = format!("{place:?}: {strategy} against {protocol}");
                assert!(unnoticed(&[place], strategy, protocol), "{against} needs no cover");
                assert!(unnoticed(by, strategy, protocol), "{against}: the cover alone is all of it");
                let all = [by, &[place]].concat();
                assert!(!unnoticed(&all, strategy, protocol), "{against}: not by {by:?} alone");
            }
            Sound(file, test) => {
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto").join(file);
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(
                    text.contains(&format!("fn {test}()")),
                    "{place:?}: {} has no {test}",
                    path.display()
                );
            }
        }
    }
}

/// What the exhaustive adversary, which knows no strategy, finds with these places left out.
fn found(places: &[Place], protocol: &str, start: Start, depth: usize) -> Vec<String> {
    let protocol = protocol::named(protocol).unwrap();
    // From m3 on it is five moves and three messages to the first time, too many for any number of changes.
    let limits = match start {
        Start::Keyed => Limits::new(depth, 6),
        Start::Fresh | Start::Negotiated => Limits::new(depth, 5).with_changes(1),
    };
    let found = without(places, || search(protocol.as_ref(), 1, start, limits));
    found.attacks.into_iter().map(|attack| attack.class).collect()
}

#[test]
fn search_finds_by_itself_what_is_not_checked() {
    use Start::{Keyed, Negotiated};
    for (places, protocol, start, depth, class) in [
        (&[Place::MacTag][..], "mac", Keyed, 2, "response, receive changed"),
        (&[Place::TimeTag], "antp", Keyed, 2, "m6, reference-id changed"),
        // Replays.
        (&[Place::MacOrigin], "mac-e", Keyed, 3, "response, unchanged"),
        (&[Place::Origin, Place::Identifier], "nts-e", Keyed, 3, "response, unchanged"),
        (&[Place::RequestUnderTag], "antp", Keyed, 2, "m6, unchanged"),
        // What authenticates is stripped.
        (&[Place::Authenticator], "nts-e", Keyed, 2, "response, field-0404 removed"),
        (&[Place::Untagged, Place::TimeTag], "antp", Keyed, 2, "m6, field-fa06 removed"),
        // C1 or C2 of another client. Its cookie leads to keys under which nothing opens that the victim could parse.
        (&[Place::Confirmation], "antp", Negotiated, 5, "m6, unchanged, after m3, c1 of another"),
        (&[Place::TimeTag], "antp", Keyed, 2, "m6, unchanged, of m5, c2 of another"),
        (&[Place::Tag], "nts-e", Keyed, 2, "response, field-0404 of another"),
        // Lateness.
        (&[Place::RoundTrip, Place::Residence], "antp", Keyed, 3, "m6, unchanged"),
    ] {
        assert_eq!(found(&[], protocol, start, depth), [""; 0], "{protocol}");
        let classes = found(places, protocol, start, depth);
        assert!(classes.iter().any(|one| one == class), "{places:?} {protocol}: {class}: {classes:?}");
    }
}

#[test]
fn what_is_left_out_is_back_afterwards() {
    let (verdict, expected) = played(&[Place::MacTag], "rewrite-times", "mac");
    assert_ne!(Some(verdict), expected);
    let (verdict, expected) = played(&[], "rewrite-times", "mac");
    assert_eq!(Some(verdict), expected);
    let panicked = std::panic::catch_unwind(|| without(&[Place::MacTag], || panic!("on purpose")));
    assert!(panicked.is_err());
    let (verdict, expected) = played(&[], "rewrite-times", "mac");
    assert_eq!(Some(verdict), expected);
}
