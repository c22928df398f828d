//! Forged packets before our own client and server: what is accepted, and why the rest is not.

use authentick_proto::server::outcome::Outcome;

use super::*;

/// How the client says that a tag is wrong.
const TAG_CHECK: &str = "tag: wrong authentication tag";

fn wins(attempts: &[Attempt<Judged>]) -> Vec<(u64, u64)> {
    attempts.iter().map(|attempt| (attempt.wins, attempt.tries)).collect()
}

/// What each attempt that failed was last told.
fn said(attempts: &[Attempt<Judged>]) -> Vec<&str> {
    let failed = attempts.iter().filter(|attempt| attempt.wins == 0);
    failed.map(|attempt| attempt.forged.as_ref().unwrap().said.as_str()).collect()
}

#[test]
fn client_and_server_accept_gmac_under_every_nonce_that_was_seen_and_no_other() {
    for (seed, is_salted) in [(1, false), (2, true)] {
        let wire = gmac(is_salted, &mut Entropy::from_seed(seed));
        assert!(wire.is_as_expected(), "{wire}");
        assert_eq!(wins(&wire.client)[0].0, 1);
        assert_eq!(wins(&wire.client)[1..], [(8, 8), (8, 8), (8, 8), (0, 8)]);
        assert_eq!(wins(&wire.server), [(8, 8), (8, 8), (8, 8), (0, 8)]);
        assert_eq!(said(&wire.client), [TAG_CHECK]);
        assert_eq!(said(&wire.server), [Outcome::MacNakTag.label()]);
    }
}

#[test]
fn client_and_server_accept_poly1305_under_the_repeated_nonce_only() {
    for seed in 1..=2 {
        let wire = poly1305(&mut Entropy::from_seed(seed));
        assert!(wire.is_as_expected(), "{wire}");
        assert_eq!(wins(&wire.client), [(8, 8), (0, 8), (0, 8), (0, 8)]);
        assert_eq!(wins(&wire.server), [(8, 8), (0, 8), (0, 8), (0, 8)]);
        assert_eq!(said(&wire.client), [TAG_CHECK; 3]);
        assert_eq!(said(&wire.server), [Outcome::MacNakTag.label(); 3]);
    }
}

#[test]
fn forged_answer_is_an_hour_off_and_a_tag_alone_makes_it() {
    let mut entropy = Entropy::from_seed(4);
    let mut scene = Scene::new(MacAlgorithm::Gmac128, true, &mut entropy);
    let keys = gmac_nonce::recover(&scene.repeated, &mut entropy);
    let (exchange, asked) = scene.pair.ask();
    let honest = super::said(&scene.pair.answer(&asked).1);
    let late = with_field_of(&scene.repeated[0], &shifted(&header(&honest), SHIFT_SECONDS));
    let mut attempt = Attempt::new(MacAlgorithm::Gmac128, "late", Verdict::WinAuthentication);
    let mut any = |forged: &Tagged| {
        scene.pair.try_client(&mut exchange.clone(), &forged.to_packet(KEY_ID), &mut attempt)
    };
    assert_eq!(
        keys.iter().filter_map(|key| key.forge(&scene.repeated[0], &late)).filter(&mut any).count(),
        1
    );
    assert!(!any(&Tagged { message: late.clone(), ..scene.repeated[0].clone() }), "the old tag");
    assert!(!any(&Tagged { message: late, ..honest.clone() }), "the tag of the honest answer");
    assert!(any(&honest));
    let read = |message: &[u8]| u32::from_be_bytes(*message[40..].first_chunk().unwrap());
    assert_eq!(read(&shifted(&header(&honest), SHIFT_SECONDS)) - read(&honest.message), 3600);
}

#[test]
fn server_answers_extended_requests_under_odd_keys_of_md5_alone() {
    for seed in 1..=2 {
        let wire = extended(&mut Entropy::from_seed(seed));
        assert!(wire.is_as_expected(), "{wire}");
        for attempts in [&wire.client, &wire.server] {
            let won: Vec<bool> = attempts.iter().map(|attempt| attempt.wins == 1).collect();
            assert_eq!(won[..4], [true; 4], "{wire}");
            assert!(!won[4..].contains(&true), "{wire}");
        }
        assert_eq!((wire.client.len(), wire.server.len()), (12, 14));
    }
}

/// Requests under a type that is not allowed get as far as the key; the same request under a server that allows it is
/// answered.
#[test]
fn switch_for_keyed_digests_is_all_that_keeps_an_extended_request_out() {
    let wire = extended(&mut Entropy::from_seed(3));
    let seven: Vec<_> = wire.server.iter().filter(|attempt| attempt.tried.contains("key of 7 ")).collect();
    assert!(seven.iter().any(|attempt| attempt.wins == 1));
    let mut pair =
        Pair::new(MacAlgorithm::Md5, b"hyacint", None, Allowed::default(), &mut Entropy::from_seed(4));
    let request = pair.ask().1;
    let field = &length_extension::ADDED_FIELD;
    let forged = length_extension::extend_packet(Digest::Md5, &request, 7, field).unwrap();
    assert_eq!(pair.answer(&forged).0, Outcome::MacNakNotAllowed);
    let allowed = Allowed { keyed_digests: true, nonces: false };
    let mut pair = Pair::new(MacAlgorithm::Md5, b"hyacint", None, allowed, &mut Entropy::from_seed(4));
    let (outcome, answer) = pair.answer(&forged);
    assert_eq!((outcome, answer.len()), (Outcome::Mac, 68), "time, and a MAC");
}

#[test]
fn hmac_cmac_and_gmac_siv_give_the_same_adversary_nothing() {
    let mut entropy = Entropy::from_seed(5);
    for algorithm in crate::mac::others::ALGORITHMS {
        let wire = withstood(Pair::random(algorithm, false, &mut entropy), &mut entropy);
        assert!(wire.is_as_expected(), "{wire}");
        assert!(wire.attempts().all(|attempt| attempt.wins == 0 && attempt.tries >= 6), "{wire}");
        // Those behind the first are well-formed, and fail for their tag alone.
        assert_eq!(said(&wire.client[1..]), [TAG_CHECK; 4], "{wire}");
        assert_eq!(said(&wire.server[1..]), [Outcome::MacNakTag.label(); 4], "{wire}");
    }
}

/// The same program breaks what it is made to break, so its silence about the others means something.
#[test]
fn same_adversary_wins_against_gmac_poly1305_and_md5() {
    let mut entropy = Entropy::from_seed(6);
    let mut won = |pair: Pair| {
        let wire = withstood(pair, &mut entropy);
        [wire.client, wire.server]
            .map(|attempts| attempts.iter().map(|attempt| attempt.wins > 0).collect::<Vec<_>>())
    };
    let mut source = Entropy::from_seed(7);
    let mut random = |algorithm, is_salted| Pair::random(algorithm, is_salted, &mut source);
    let gmac = [[false, true, false, true, false], [false, true, false, false, false]];
    assert_eq!(won(random(MacAlgorithm::Gmac128, false)), gmac);
    assert_eq!(won(random(MacAlgorithm::Gmac128, true)), gmac);
    let poly1305 = won(random(MacAlgorithm::Poly1305, false));
    assert_eq!(poly1305, [[false, false, true, false, false]; 2]);
    let allowed = Allowed::ALL;
    let md5 = won(Pair::new(MacAlgorithm::Md5, b"hyacint", None, allowed, &mut source));
    assert_eq!(md5, [[true, false, false, false, false]; 2]);
}
