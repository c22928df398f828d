//! All strategies against all protocols, and that the game would notice.

use authentick_wire::time::NtpSpan;

use super::*;
use crate::model::{Call, Entry, Model, SERVER, START};
use crate::protocol;
use crate::referee::worst;

fn verdict(strategy: &str, protocol: &str) -> Verdict {
    played(strategy, protocol, Setting::Step, None)
}

fn played(strategy: &str, protocol: &str, setting: Setting, without: Option<Clause>) -> Verdict {
    let (strategy, protocol) = (named(strategy).unwrap(), protocol::named(protocol).unwrap());
    strategy.play_with(protocol.as_ref(), 1, setting, without).verdict
}

#[test]
fn every_strategy_comes_out_as_expected_against_every_protocol() {
    let protocols = protocol::all();
    for seed in 1..=3 {
        let table = Table::play(&all(), &protocols, seed, || {});
        assert!(table.as_expected, "seed {seed}\n{table}");
        assert!(table.rows.len() > 30 && table.rows.iter().flatten().count() > 250, "{table}");
    }
}

#[test]
fn plain_and_group_keys_lose_where_they_must() {
    for strategy in ["rewrite-times", "replay", "forge-early", "reflect", "cross-client", "random"] {
        assert_eq!(verdict(strategy, "plain-e"), Verdict::WinAuthentication, "{strategy}");
    }
    assert_eq!(verdict("others-key", "mac-group-e"), Verdict::WinAuthentication);
    assert_eq!(verdict("delay-beyond-e", "nts"), Verdict::WinAccuracy);
}

#[test]
fn each_clause_of_freshness_prevents_an_attack() {
    let shown = [
        (Clause::Reveal, "reveal-first", "nts-e"),
        (Clause::Corrupt, "corrupt-first", "antp"),
        (Clause::Corrupt, "impersonate", "nts-e"),
        (Clause::State, "state-leak", "nts-e"),
        (Clause::State, "state-leak", "antp-separate"),
        (Clause::Symmetric, "unequal-clocks", "antp"),
    ];
    for (clause, strategy, protocol) in shown {
        let with = verdict(strategy, protocol);
        assert!(matches!(with, Verdict::Unfresh | Verdict::Void), "{strategy} against {protocol}: {with}");
        let without = played(strategy, protocol, Setting::Step, Some(clause));
        assert!(without.is_win(), "{strategy} against {protocol} without {clause:?}: {without}");
    }
    let shown: Vec<Clause> = shown.iter().map(|(clause, ..)| *clause).collect();
    assert!(Clause::ALL.iter().all(|clause| shown.contains(clause)));
}

#[test]
fn clock_that_is_set_to_when_the_answer_came_is_an_hour_late() {
    for protocol in protocol::all() {
        let verdict = played("late-setting", protocol.name(), Setting::Absolute, None);
        assert_eq!(verdict, Verdict::WinAccuracy, "{}", protocol.name());
    }
}

#[test]
fn no_fresh_session_of_a_protocol_with_bound_and_key_exceeds_the_bound() {
    for protocol in protocol::all().iter().filter(|protocol| protocol.bound().is_some()) {
        for strategy in all().iter().filter(|strategy| strategy.is_for(protocol.as_ref())) {
            let played = strategy.play(protocol.as_ref(), 5);
            for acceptance in played.believed.iter().filter(|one| one.broken.is_empty()) {
                let Some(error) = acceptance.error else { continue };
                // Rounding adds a unit.
                let bound = acceptance.round_trip.to_bits() / 2 + 1;
                assert!(error.to_bits() <= bound, "{} against {}", played.strategy, played.protocol);
            }
        }
    }
}

#[test]
fn log_is_the_same_for_the_same_seed_and_plays_again() {
    for protocol in protocol::all() {
        for strategy in all().iter().filter(|strategy| strategy.is_for(protocol.as_ref())) {
            let (once, again) = (strategy.play(protocol.as_ref(), 7), strategy.play(protocol.as_ref(), 7));
            assert_eq!(once.log, again.log, "{} against {}", once.strategy, once.protocol);
            let model = once.log.replay(protocol.as_ref()).unwrap();
            assert_eq!(model.log().to_string(), once.log.to_string());
        }
    }
    let other = |seed| named("faithful").unwrap().play(&protocol::Nts { bound: None }, seed).log.to_string();
    assert_ne!(other(1), other(2));
}

/// A server that was asked for hours answers as one that was just made, if both draw the same: nothing is kept but
/// keys. What may differ elsewhere (the last receive timestamp of a burst, rate limits, interleaved mode) is off here.
#[test]
fn server_that_was_used_answers_like_a_fresh_one() {
    for protocol in protocol::all() {
        let played = named("random").unwrap().play(protocol.as_ref(), 3);
        let entries = played.log.entries();
        let server = |entry: &&Entry| matches!(entry.call, Call::Send { session: 0, .. });
        let asked: Vec<&Entry> = entries.iter().filter(server).collect();
        assert!(asked.len() > 20, "{}", protocol.name());
        for entry in asked.iter().step_by(5) {
            let Call::Send { message, advances, .. } = &entry.call else { continue };
            let mut fresh = Model::new(protocol.as_ref(), 3);
            let id = fresh.create_server(SERVER, START);
            fresh.tick(NtpSpan::from_bits(entry.now));
            let advances: Vec<NtpSpan> = advances.iter().map(|&bits| NtpSpan::from_bits(bits)).collect();
            let reply = fresh.send(id, message, &advances);
            assert_eq!((&reply.messages, &reply.said), (&entry.messages, &entry.said), "{}", protocol.name());
        }
    }
}

#[test]
fn winning_game_is_shortened_to_what_it_takes() {
    let protocol = protocol::Plain { bound: None };
    let played = named("random").unwrap().play(&protocol, 1);
    let wins = |model: &Model<'_>| {
        let victims = model.acceptances().iter().map(|acceptance| acceptance.session);
        victims.into_iter().any(|victim| worst(model, victim, 0, None) == Some(Verdict::WinAuthentication))
    };
    let short = played.log.shortened(&protocol, wins);
    assert!(wins(&short.replay(&protocol).unwrap()));
    let (before, after) = (played.log.entries().len(), short.entries().len());
    // Two sessions or three, and at most a request, an answer, and its delivery.
    assert!(before > 300 && after <= 8, "{before} queries, then {after}:\n{short}");
}

#[test]
fn names_are_found_and_each_stands_for_one() {
    let mut ids: Vec<&str> = all().iter().map(|strategy| strategy.id).collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!((ids.len(), named("no-such").is_none()), (count, true));
    assert!(protocol::named("no-such").is_none());
    let listing = Listing::new().to_string();
    assert!(listing.contains("antp-separate") && listing.contains("state-leak-healed"), "{listing}");
}
