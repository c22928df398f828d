//! With a secret: what the adversary may not have, and what becomes of a session when it does.

use authentick_wire::time::NtpTime;

use super::{BOUND, REJECT, STALL, UNFRESH, WIN};
use crate::model::{Certificate, OTHER_CLIENT, SERVER, START, TWENTY_YEARS};
use crate::strategy::{Expected, Play, SHORT, Strategy, WRONG};

pub(super) const ROWS: [Strategy; 11] = [
    Strategy {
        id: "others-key",
        title: "learn another client's key, and forge with it",
        says: "A key that all clients have is everybody's. It breaks no rule to learn it: freshness is about the \
               victim's session, not about another client's.",
        play: |play| {
            let request = play.request();
            let (other, first) = play.client(OTHER_CLIENT, START);
            play.up_to_time(other, first);
            let secret = play.model_mut().reveal(other);
            let forged = play.forge(secret.as_ref(), &request);
            play.deliver_all(&[forged]);
        },
        expected: Expected::of([None, REJECT, WIN, REJECT, REJECT, REJECT]),
    },
    Strategy {
        id: "reveal-first",
        title: "learn the victim's key, and forge with it",
        says: "No scheme survives this, so it does not count as a win. It shows that the referee would see one.",
        play: |play| {
            let request = play.request();
            let victim = play.victim();
            let secret = play.model_mut().reveal(victim);
            let forged = play.forge(secret.as_ref(), &request);
            play.deliver_all(&[forged]);
        },
        expected: Expected::of([None, UNFRESH, UNFRESH, UNFRESH, UNFRESH, UNFRESH]),
    },
    Strategy {
        id: "corrupt-first",
        title: "learn the server's long-term secret, and forge with what it says of the victim's key",
        says: "A symmetric key is the long-term secret. ANTP's private key opens every m3 that was ever sent. Under \
               NTS the certificate's key says nothing of keys that TLS 1.3 has made: it has forward secrecy.",
        play: |play| {
            let request = play.request();
            let seen = play.seen().to_vec();
            let secret = play.model_mut().corrupt(SERVER, &seen);
            let forged = play.forge(secret.as_ref(), &request);
            play.deliver_all(&[forged]);
        },
        expected: Expected::of([None, UNFRESH, UNFRESH, REJECT, UNFRESH, UNFRESH]),
    },
    Strategy {
        id: "impersonate",
        title: "learn the key of the server's certificate, exchange keys in its name, and forge",
        says: "Forward secrecy is about sessions that were. With the certificate's key the adversary is the server to \
               whoever exchanges keys from then on, so that no session with a corrupted server is fresh.",
        play: |play| {
            forge_in_its_name(play, Certificate::Current, START + WRONG);
        },
        expected: Expected::of([None, None, None, UNFRESH, None, None]),
    },
    Strategy {
        id: "expired-certificate",
        title: "learn the key of a certificate that has expired, and exchange keys in the server's name",
        says: "A client whose clock is roughly right refuses it, and turns to the server itself.",
        play: |play| {
            if !forge_in_its_name(play, Certificate::Expired, START + WRONG) {
                play.victim_at(START + WRONG);
            }
        },
        expected: Expected::of([None, None, None, REJECT, None, None]),
    },
    Strategy {
        id: "clock-set-back",
        title: "learn the key of a certificate that has expired, and meet a client by whose clock it is valid",
        says: "Dates help only whose clock is roughly right: who can set it back revives every key that was ever lost. \
               With the key of any certificate that the client takes, no session is fresh.",
        play: |play| {
            forge_in_its_name(play, Certificate::Expired, START - TWENTY_YEARS);
        },
        expected: Expected::of([None, None, None, UNFRESH, None, None]),
    },
    Strategy {
        id: "reveal-after",
        title: "learn the victim's key after it has believed an answer",
        says: "What was believed before stays as good as it was.",
        play: |play| {
            play.exchange(SHORT, SHORT);
            let victim = play.victim();
            play.model_mut().reveal(victim);
        },
        expected: Expected::of([None, BOUND, BOUND, BOUND, BOUND, BOUND]),
    },
    Strategy {
        id: "reveal-between",
        title: "learn the victim's key after one exchange, and forge in the next",
        says: "The next one is not fresh any more.",
        play: |play| {
            play.exchange(SHORT, SHORT);
            play.begin();
            let victim = play.victim();
            let secret = play.model_mut().reveal(victim);
            let request = play.request();
            let forged = play.forge(secret.as_ref(), &request);
            play.deliver_all(&[forged]);
        },
        expected: Expected::of([None, UNFRESH, UNFRESH, UNFRESH, UNFRESH, UNFRESH]),
    },
    Strategy {
        id: "state-leak",
        title: "learn the keys of cookies, open the victim's, and forge with what is in it",
        says: "The keys that seal cookies are as good as all session keys under them: the current one, the next one \
               and those that are kept.",
        play: |play| state_leak(play, 0),
        expected: Expected::of([None, None, None, UNFRESH, UNFRESH, UNFRESH]),
    },
    Strategy {
        id: "state-leak-healed",
        title: "learn the keys of cookies, let the server rotate them away, and try the same",
        says: "Each rotation draws a key anew. When those that are known have gone, a client that exchanges keys from \
               then on is safe.",
        play: |play| state_leak(play, 3),
        expected: Expected::of([None, None, None, REJECT, REJECT, REJECT]),
    },
    Strategy {
        id: "state-lost",
        title: "make the server forget the keys of its cookies",
        says: "A refusal has no tag, so nothing is believed. A client of NTS needs a new key exchange, which is for \
               its retry policy to make; one of ANTP exchanges keys again by itself, once in ten minutes at most.",
        play: |play| {
            let request = play.request();
            play.model_mut().lose_state(SERVER);
            let answers = play.serve(&request);
            play.deliver_all(&answers);
        },
        expected: Expected::of([None, None, None, STALL, REJECT, REJECT]),
    },
];

/// Exchanges keys with the victim, whose clock shows `time` at first, in the server's name and with the key of
/// `certificate`, and forges an answer. Whether the victim took the certificate.
fn forge_in_its_name(play: &mut Play<'_>, certificate: Certificate, time: NtpTime) -> bool {
    let secret = play.impersonated(certificate, time);
    if secret.is_some() {
        let request = play.first_request();
        let forged = play.forge(secret.as_ref(), &request);
        play.deliver_all(&[forged]);
    }
    secret.is_some()
}

fn state_leak(play: &mut Play<'_>, rotations: usize) {
    play.model_mut().corrupt_state(SERVER);
    for _ in 0..rotations {
        play.model_mut().rotate(SERVER);
    }
    let request = play.request();
    let secret = play.model().open_state(SERVER, &request);
    let forged = play.forge(secret.as_ref(), &request);
    play.deliver_all(&[forged]);
}
