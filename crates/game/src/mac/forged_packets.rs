//! What is won from tags, made into whole packets: forged answers before our own client, forged requests before our own
//! server.
//!
//! The nonce stands in a field that the tag covers, so a forged packet has the header that the adversary likes and the
//! field of a packet that it has seen. Where the key has a salt, the adversary does without: GMAC's mask is that of the
//! whole IV, known octets or not.

use authentick_crypto::Entropy;
use authentick_crypto::mac::MacAlgorithm;
use authentick_proto::client::Exchange;
use authentick_proto::symmetric::Allowed;
use authentick_wire::limits::HEADER_SIZE;

use super::digest::Digest;
use super::pair::{Judged, OnTheWire, Pair};
use super::tagged::{NONCE_SIZE, Tagged};
use super::victim::{KEY_ID, Victim, request, request_of_version_3, shifted};
use super::{gmac_nonce, length_extension, poly1305_nonce};
use crate::verdict::{Attempt, Verdict};

/// Forged answers, and forged requests, in each attempt.
const FORGERY_COUNT: usize = 8;

/// Exchanges that the adversary sees beside those under the repeated nonce.
const ORDINARY_COUNT: usize = 4;

/// How far the clock of a deceived client would be off.
const SHIFT_SECONDS: u32 = 3600;

/// The octets of the nonce field before the nonce. See `wire::mac`.
const NONCE_FIELD_HEADER: [u8; 4] = [0xfb, 0x01, 0x00, 0x10];

/// What the adversary has seen of a pair whose server was restored once.
struct Scene {
    pair: Pair,
    /// Two answers under one nonce.
    repeated: [Tagged; 2],
    /// Answers whose nonces were seen once.
    answers: Vec<Tagged>,
    /// Requests whose nonces were seen once.
    requests: Vec<Tagged>,
}

impl Scene {
    fn new(algorithm: MacAlgorithm, is_salted: bool, entropy: &mut Entropy) -> Self {
        let mut pair = Pair::random(algorithm, is_salted, entropy);
        let repeated = [(); 2].map(|()| {
            pair.restore_server();
            let request = pair.ask().1;
            said(&pair.answer(&request).1)
        });
        let (mut answers, mut requests) = (Vec::new(), Vec::new());
        for _ in 0..ORDINARY_COUNT {
            let request = pair.ask().1;
            answers.push(said(&pair.answer(&request).1));
            requests.push(said(&request));
        }
        Scene { pair, repeated, answers, requests }
    }

    /// Everything that was seen.
    fn captured(&self) -> Vec<Tagged> {
        self.repeated.iter().chain(&self.answers).chain(&self.requests).cloned().collect()
    }

    /// The client asks, and the adversary has the answer: what it would rather have the client believe.
    fn wanted(&mut self) -> (Exchange, [u8; HEADER_SIZE]) {
        let (exchange, request) = self.pair.ask();
        (exchange, shifted(&header(&said(&self.pair.answer(&request).1)), SHIFT_SECONDS))
    }
}

/// A packet of our client or server, as the adversary takes it apart.
fn said(packet: &[u8]) -> Tagged {
    Tagged::from_packet(packet).expect("client and server put a MAC behind what they say").1
}

fn header(seen: &Tagged) -> [u8; HEADER_SIZE] {
    *seen.message.first_chunk().expect("a packet has a header")
}

/// What stands between header and MAC of `seen`: its nonce field, if it has one.
fn with_field_of(seen: &Tagged, header: &[u8; HEADER_SIZE]) -> Vec<u8> {
    [header, &seen.message[HEADER_SIZE..]].concat()
}

/// The nonce under which a packet is forged.
#[derive(Clone, Copy)]
enum Under {
    Repeated,
    AnAnswer,
    ARequest,
    Unseen,
}

impl Under {
    const ALL: [Under; 4] = [Under::Repeated, Under::AnAnswer, Under::ARequest, Under::Unseen];

    const fn words(self) -> &'static str {
        match self {
            Under::Repeated => "the nonce that repeated",
            Under::AnAnswer => "an answer's nonce, seen once",
            Under::ARequest => "a request's nonce, seen once",
            Under::Unseen => "a fresh nonce",
        }
    }

    /// The packet whose tag is known, and the message under that tag's nonce, or what is said to be.
    fn message<'a>(
        self,
        scene: &'a Scene,
        turn: usize,
        header: &[u8; HEADER_SIZE],
        entropy: &mut Entropy,
    ) -> (&'a Tagged, Vec<u8>) {
        let seen = match self {
            Under::Repeated | Under::Unseen => &scene.repeated[0],
            Under::AnAnswer => &scene.answers[turn % ORDINARY_COUNT],
            Under::ARequest => &scene.requests[turn % ORDINARY_COUNT],
        };
        let mut message = with_field_of(seen, header);
        if let Under::Unseen = self {
            // What is drawn for each packet; behind it, if there is a salt, are zeros.
            let drawn = HEADER_SIZE + NONCE_FIELD_HEADER.len();
            entropy.fill(&mut message[drawn..drawn + 8]);
        }
        (seen, message)
    }
}

/// GMAC after one repeated nonce, with a salt or with twelve random octets.
#[must_use]
pub fn gmac(is_salted: bool, entropy: &mut Entropy) -> OnTheWire {
    let mut scene = Scene::new(MacAlgorithm::Gmac128, is_salted, entropy);
    let keys = gmac_nonce::recover(&scene.captured(), entropy);
    let mut decided = Attempt::new(
        MacAlgorithm::Gmac128,
        "an answer for each root, until one is believed",
        Verdict::WinAuthentication,
    );
    let (mut exchange, wanted) = scene.wanted();
    let key = keys.into_iter().find(|key| {
        let message = with_field_of(&scene.repeated[0], &wanted);
        let forged = key.forge(&scene.repeated[0], &message);
        forged.is_some_and(|f| scene.pair.try_client(&mut exchange, &f.to_packet(KEY_ID), &mut decided))
    });
    let expected = |under| match under {
        Under::Repeated | Under::AnAnswer | Under::ARequest => Verdict::WinAuthentication,
        Under::Unseen => Verdict::Reject,
    };
    let forge =
        |seen: &Tagged, message: &[u8]| key.and_then(|key| key.forge(seen, message)).into_iter().collect();
    let mut wire = under_each_nonce(&mut scene, expected, &forge, entropy);
    wire.client.insert(0, decided);
    wire
}

/// Poly1305 after one repeated nonce.
#[must_use]
pub fn poly1305(entropy: &mut Entropy) -> OnTheWire {
    let mut scene = Scene::new(MacAlgorithm::Poly1305, false, entropy);
    let keys = poly1305_nonce::recover(&scene.captured(), entropy);
    let expected = |under| match under {
        Under::Repeated => Verdict::WinAuthentication,
        Under::AnAnswer | Under::ARequest | Under::Unseen => Verdict::Reject,
    };
    let forge = |_: &Tagged, message: &[u8]| keys.iter().map(|key| key.forge(message)).collect();
    under_each_nonce(&mut scene, expected, &forge, entropy)
}

/// What `forge` makes of a packet that was seen and of a message, under each nonce, before both victims.
fn under_each_nonce(
    scene: &mut Scene,
    expected: impl Fn(Under) -> Verdict,
    forge: &dyn Fn(&Tagged, &[u8]) -> Vec<Tagged>,
    entropy: &mut Entropy,
) -> OnTheWire {
    let algorithm = scene.pair.algorithm();
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for under in Under::ALL {
        let new =
            |what: &str| Attempt::new(algorithm, format!("{what} under {}", under.words()), expected(under));
        let (mut answers, mut requests) = (new("answers, an hour off,"), new("requests"));
        for turn in 0..FORGERY_COUNT {
            let (mut exchange, wanted) = scene.wanted();
            let (seen, message) = under.message(scene, turn, &wanted, entropy);
            for forged in forge(seen, &message) {
                scene.pair.try_client(&mut exchange, &forged.to_packet(KEY_ID), &mut answers);
            }
            let wanted = request(entropy);
            let (seen, message) = under.message(scene, turn, &wanted, entropy);
            for forged in forge(seen, &message) {
                scene.pair.try_server(&forged.to_packet(KEY_ID), &mut requests);
            }
        }
        client.push(answers);
        server.push(requests);
    }
    OnTheWire { client, server }
}

/// Answers to one request, all under one nonce if there are nonces; and requests.
const CAPTURED_COUNT: usize = 8;

/// All that breaks other algorithms, before a client and a server that use `algorithm`: nothing, if it is one of
/// [`others`](super::others).
///
/// The client asks; the adversary holds its request back, has it answered again and again by a server that is restored
/// each time, and keeps the answers, which all have the nonce and the origin that one needs.
#[must_use]
pub fn withstood(mut pair: Pair, entropy: &mut Entropy) -> OnTheWire {
    let (waiting, asked) = pair.ask();
    let answers = [(); CAPTURED_COUNT].map(|()| {
        pair.restore_server();
        pair.answer(&asked).1
    });
    let requests = [(); CAPTURED_COUNT].map(|()| pair.ask().1);
    let lose = |tried: &str| Attempt::new(pair.algorithm(), tried, Verdict::Reject);
    let new = || {
        [
            lose("longer packets, the tag taken for a state of MD5"),
            lose("the hash key of GMAC, from two answers under one nonce"),
            lose("the one-time key of Poly1305, from two answers under one nonce"),
            lose("the sum of three packets, with the sum of their tags"),
            lose("another packet with a tag that was seen"),
        ]
    };
    let (mut client, mut server) = (new(), new());
    // Each try has the client before it that still waits.
    let mut to_client = |pair: &Pair, index: usize, packet: &[u8]| {
        pair.try_client(&mut waiting.clone(), packet, &mut client[index]);
    };
    let mut to_server = |pair: &mut Pair, index: usize, packet: &[u8]| {
        pair.try_server(packet, &mut server[index]);
    };
    for key_size in 1..=length_extension::KEY_SIZE_MAX {
        let extended = |packet: &[u8]| {
            // The nonce field has to be the last one.
            let field = said(packet).nonce.map(nonce_field);
            let field = field.as_ref().map_or(&length_extension::ADDED_FIELD[..], |field| field);
            length_extension::extend_packet(Digest::Md5, packet, key_size, field)
        };
        extended(&answers[0]).iter().for_each(|packet| to_client(&pair, 0, packet));
        extended(&requests[0]).iter().for_each(|packet| to_server(&mut pair, 0, packet));
    }
    let (answers, requests) = (answers.map(|packet| said(&packet)), requests.map(|packet| said(&packet)));
    for (answers, requests) in answers.windows(3).zip(requests.windows(3)) {
        let ([a, b, c], [d, e, f]) = (answers, requests) else { continue };
        let answer = with_field_of(a, &shifted(&header(a), SHIFT_SECONDS));
        let asked = with_field_of(a, &request(entropy));
        for key in gmac_nonce::guesses(a, b, entropy) {
            key.forge(a, &answer).iter().for_each(|forged| to_client(&pair, 1, &forged.to_packet(KEY_ID)));
            key.forge(a, &asked).iter().for_each(|forged| to_server(&mut pair, 1, &forged.to_packet(KEY_ID)));
        }
        for key in poly1305_nonce::solutions(a, b, entropy) {
            to_client(&pair, 2, &key.forge(&answer).to_packet(KEY_ID));
            to_server(&mut pair, 2, &key.forge(&asked).to_packet(KEY_ID));
        }
        to_client(&pair, 3, &sum(a, b, c).to_packet(KEY_ID));
        to_server(&mut pair, 3, &sum(d, e, f).to_packet(KEY_ID));
        to_client(&pair, 4, &Tagged { message: answer, ..a.clone() }.to_packet(KEY_ID));
        let message = with_field_of(d, &request(entropy));
        to_server(&mut pair, 4, &Tagged { message, ..d.clone() }.to_packet(KEY_ID));
    }
    OnTheWire { client: client.into(), server: server.into() }
}

fn nonce_field(nonce: [u8; NONCE_SIZE]) -> Vec<u8> {
    [&NONCE_FIELD_HEADER[..], &nonce].concat()
}

/// Messages and tags added up octet by octet, as those of a linear function can be.
#[must_use]
pub fn sum(a: &Tagged, b: &Tagged, c: &Tagged) -> Tagged {
    let added = |a: &[u8], b: &[u8], c: &[u8]| a.iter().zip(b).zip(c).map(|((a, b), c)| a ^ b ^ c).collect();
    Tagged {
        nonce: a.nonce,
        message: added(&a.message, &b.message, &c.message),
        tag: added(&a.tag, &b.tag, &c.tag),
    }
}

/// The victims of length extension on the wire: octets of the key, and what is to come of it.
struct Extended {
    algorithm: MacAlgorithm,
    digest: Digest,
    key_size: usize,
    /// Whether the request is one of NTPv3, which our client does not send.
    is_version_3: bool,
    keyed_digests: bool,
    expected: Verdict,
}

/// Length extension of a packet that our client or server has sent. The size of the key is guessed.
#[must_use]
pub fn extended(entropy: &mut Entropy) -> OnTheWire {
    let md5 = |key_size, expected| Extended {
        algorithm: MacAlgorithm::Md5,
        digest: Digest::Md5,
        key_size,
        is_version_3: false,
        keyed_digests: true,
        expected,
    };
    let lose = |algorithm, digest, key_size| Extended { algorithm, digest, ..md5(key_size, Verdict::Reject) };
    let cases = [
        md5(5, Verdict::WinAuthentication),
        md5(7, Verdict::WinAuthentication),
        md5(69, Verdict::WinAuthentication),
        md5(71, Verdict::WinAuthentication),
        md5(16, Verdict::Reject),
        md5(20, Verdict::Reject),
        lose(MacAlgorithm::Sha1, Digest::Sha1, 7),
        lose(MacAlgorithm::Sha256, Digest::Sha256, 7),
        lose(MacAlgorithm::HmacMd5, Digest::Md5, 16),
        lose(MacAlgorithm::HmacSha224, Digest::Sha256, 16),
        lose(MacAlgorithm::Cmac128, Digest::Md5, 16),
        lose(MacAlgorithm::Cmac256, Digest::Md5, 32),
    ];
    let only_at_the_server = [
        Extended { is_version_3: true, ..md5(7, Verdict::Reject) },
        Extended { keyed_digests: false, ..md5(7, Verdict::Reject) },
    ];
    let client = cases.iter().map(|case| case.before_client(entropy)).collect();
    let server = cases.iter().chain(&only_at_the_server).map(|case| case.before_server(entropy)).collect();
    OnTheWire { client, server }
}

impl Extended {
    fn pair(&self, entropy: &mut Entropy) -> (Pair, Vec<u8>) {
        let mut key = vec![0; self.key_size];
        entropy.fill(&mut key);
        let allowed = Allowed { keyed_digests: self.keyed_digests, nonces: false };
        (Pair::new(self.algorithm, &key, None, allowed, entropy), key)
    }

    fn attempt(&self, what: &str) -> Attempt<Judged> {
        let refused = if self.keyed_digests { "" } else { ", type not allowed" };
        let tried = format!("longer {what}, key of {} octets, size guessed{refused}", self.key_size);
        Attempt::new(self.algorithm, tried, self.expected)
    }

    /// Each size of key in turn, until `accepts`.
    fn guess(&self, packet: &[u8], mut accepts: impl FnMut(&[u8]) -> bool) {
        let field = &length_extension::ADDED_FIELD;
        let _ = (1..=length_extension::KEY_SIZE_MAX)
            .filter_map(|size| length_extension::extend_packet(self.digest, packet, size, field))
            .any(|forged| accepts(&forged));
    }

    fn before_client(&self, entropy: &mut Entropy) -> Attempt<Judged> {
        let (mut pair, _) = self.pair(entropy);
        let (mut exchange, request) = pair.ask();
        let answer = pair.answer(&request).1;
        let mut attempt = self.attempt("answer");
        self.guess(&answer, |forged| pair.try_client(&mut exchange, forged, &mut attempt));
        attempt
    }

    fn before_server(&self, entropy: &mut Entropy) -> Attempt<Judged> {
        let (mut pair, key) = self.pair(entropy);
        let (request, what) = if self.is_version_3 {
            let message = request_of_version_3(entropy);
            (Victim::with_key(self.algorithm, &key).says_in_packet(&message), "request of NTPv3")
        } else {
            (pair.ask().1, "request")
        };
        let mut attempt = self.attempt(what);
        self.guess(&request, |forged| pair.try_server(forged, &mut attempt));
        attempt
    }
}

#[cfg(test)]
mod tests;
