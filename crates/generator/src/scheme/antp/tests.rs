//! What simulated clients keep, and what their figures say.

use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_crypto::kem::SessionKey;
use authentick_proto::antp::client::{SeparateTag, Session, TimeExchange, Wanted};
use authentick_report::load::AntpHistograms;
use authentick_wire::antp::Suite;
use authentick_wire::time::NtpTime;

use super::conversation::{Conversation, Goal, Talk};
use super::figures::Figures;
use super::guide::BOUNDS;
use super::state::State;

mod renewal;

fn session() -> Session {
    Session::new(Suite::P256, SessionKey::new([1; 16]), [2; 60], 1000)
}

/// An m5 with its tag inline.
fn exchange(entropy: &mut Entropy) -> TimeExchange {
    session().ask(Wanted::default(), BOUNDS, NtpTime::ZERO, entropy, &mut [0; 400]).0
}

#[test]
fn session_is_forgotten_once_and_a_newer_one_stays() {
    let mut state = State::default();
    state.keyed(session(), 100);
    assert!(!state.forget(99), "it was sent under an earlier one");
    assert!(state.session.is_some());
    assert!(state.forget(100) && state.session.is_none());
}

#[test]
fn static_m5_differs_in_its_timestamp_alone() {
    let mut entropy = Entropy::from_seed(4);
    let wanted = Wanted { fresh: false, separate: Some(SeparateTag::Ipv4) };
    let (mut first, mut second) = ([0; 400], [0; 400]);
    let (exchange, size) = session().ask(wanted, BOUNDS, NtpTime::ZERO, &mut entropy, &mut first);
    let (again, same_size) = exchange.again(NtpTime::ZERO, &mut entropy, &mut second);
    assert_eq!((size, same_size), (224, 224));
    assert!(again.token() != exchange.token());
    assert_eq!(second[40..48], again.token().to_bits().to_be_bytes());
    assert_eq!((&first[..40], &first[48..]), (&second[..40], &second[48..]));
}

#[test]
fn operation_in_the_room_of_another_keeps_nothing_of_it() {
    let mut entropy = Entropy::from_seed(6);
    let exchange = exchange(&mut entropy);
    let (old, new) = (Arc::new(session()), Arc::new(session()));
    let ended = Conversation {
        crypto_ns: 500,
        phases_ns: [1, 2, 3],
        is_early: true,
        ..Conversation::new(Goal::Run, Talk::Time(exchange.clone(), Arc::clone(&old)))
    };
    let mut conversation = Conversation::for_time(Some(Box::new(ended)), &new);
    assert_eq!(Arc::strong_count(&old), 1);
    assert_eq!((conversation.goal, conversation.phase(), conversation.is_early), (Goal::Time, 2, false));
    assert_eq!((conversation.crypto_ns, conversation.phases_ns), (0, [0; 3]));
    let Talk::Time(room, _) = &mut conversation.talk else { panic!() };
    session().ask_in(room, Wanted::default(), BOUNDS, NtpTime::ZERO, &mut entropy, &mut [0; 400]);
    assert!(conversation.token() != exchange.token());
}

#[test]
fn figures_have_phases_of_whole_runs_alone() {
    let mut figures = Figures::default();
    let mut entropy = Entropy::from_seed(5);
    let exchange = exchange(&mut entropy);
    let talk = || Talk::Time(exchange.clone(), Arc::new(session()));
    figures.answered(&Conversation {
        crypto_ns: 500,
        is_early: true,
        ..Conversation::new(Goal::Time, talk())
    });
    figures.answered(&Conversation {
        crypto_ns: 1500,
        phases_ns: [1000, 2000, 3000],
        ..Conversation::new(Goal::Run, talk())
    });
    let stored = figures.stored(1.0);
    assert_eq!((stored.early, stored.histograms.client_crypto_ns.count()), (1, 2));
    assert!((stored.client_crypto_seconds - 2e-6).abs() < 1e-12);
    let AntpHistograms { negotiation_ns, phases_ns, .. } = &stored.histograms;
    assert_eq!((negotiation_ns.pairs(), phases_ns.count()), (&[(1000, 1)][..], 1));
    figures.clear();
    assert_eq!(figures.stored(1.0).histograms, AntpHistograms::default());
}
