//! Cookies and tags: what the server's batches compute for requests, by themselves and in groups.
//!
//! Texts and associated data have the lengths that they have in packets of our client and our server with one cookie in
//! each direction. RFC 8915 sections 5.2 to 5.7.

use std::cell::RefCell;
use std::hint::black_box;

use authentick_crypto::{Algorithm, Entropy, Key, Open, Seal, TAG_SIZE, Text, run_batch};
use authentick_proto::cookie::{self, SessionKeys};
use authentick_proto::keyset::KeySet;
use authentick_proto::limits::GROUP_SIZE;
use authentick_report::study::nts::Operation;
use authentick_wire::limits::COOKIE_COUNT;

use super::Subject;
use crate::Error;

/// Octets of an NTP header, of the head of an extension field, and of a unique identifier in its field.
const HEADER_SIZE: usize = 48;
const FIELD_HEAD_SIZE: usize = 4;
const IDENTIFIER_SIZE: usize = 32;
/// What stands before the cookie's field in a request, and before the authenticator in a response.
const RESPONSE_HEAD_SIZE: usize = HEADER_SIZE + FIELD_HEAD_SIZE + IDENTIFIER_SIZE;

/// A client, and what its packets hold.
struct Client {
    session: SessionKeys,
    cookie: Vec<u8>,
    nonce: Vec<u8>,
    /// What stands before the authenticator of a request.
    request: Vec<u8>,
    /// The tag over that.
    tag: [u8; TAG_SIZE],
    /// What stands before the authenticator of a response.
    response: Vec<u8>,
    /// A field with a fresh cookie, to be encrypted in it.
    fresh: Vec<u8>,
}

impl Client {
    fn new(algorithm: Algorithm, keys: &KeySet, entropy: &mut Entropy) -> Option<Self> {
        let octets = |size: usize, entropy: &mut Entropy| {
            let mut octets = vec![0; size];
            entropy.fill(&mut octets);
            octets
        };
        let mut key = || Key::new(algorithm, &octets(algorithm.key_size(), entropy));
        let session = SessionKeys::new(&key()?, &key()?)?;
        let mut sealed = vec![0; cookie::size(algorithm)];
        cookie::seal_all(keys, entropy, std::iter::once((&session, &mut sealed[..])));
        let field = FIELD_HEAD_SIZE + sealed.len();
        let mut client = Client {
            nonce: octets(algorithm.nonce_size(), entropy),
            request: octets(RESPONSE_HEAD_SIZE + field, entropy),
            tag: [0; TAG_SIZE],
            response: octets(RESPONSE_HEAD_SIZE, entropy),
            fresh: octets(field, entropy),
            cookie: sealed,
            session,
        };
        let text = Text::new(&[], &mut []).ok()?;
        let Client { session, nonce, request, tag, .. } = &mut client;
        let key = session.c2s();
        run_batch(std::iter::once(Seal { key, nonce, associated: Some(request), text, tag }));
        Some(client)
    }

    fn verify<'a>(&'a self, genuine: &'a mut bool) -> Option<Open<'a>> {
        let text = Text::new(&[], &mut []).ok()?;
        let Client { session, nonce, request, tag, .. } = self;
        Some(Open { key: session.c2s(), nonce, associated: Some(request), text, tag, genuine })
    }

    fn sign<'a>(&'a self, out: &'a mut Vec<u8>, tag: &'a mut [u8; TAG_SIZE]) -> Option<Seal<'a>> {
        let Client { session, nonce, response, fresh, .. } = self;
        out.resize(fresh.len(), 0);
        let text = Text::new(fresh, out).ok()?;
        Some(Seal { key: session.s2c(), nonce, associated: Some(response), text, tag })
    }
}

/// Where one request of a group has its results.
struct Place {
    session: SessionKeys,
    genuine: bool,
    out: Vec<u8>,
    tag: [u8; TAG_SIZE],
}

/// What is sealed and opened.
pub(super) struct Sealing {
    keys: KeySet,
    /// Clients under each AEAD.
    siv: Vec<Client>,
    gcm_siv: Vec<Client>,
    entropy: RefCell<Entropy>,
}

impl Sealing {
    pub(super) fn new() -> Result<Self, Error> {
        let mut entropy = Entropy::from_system()?;
        let keys = KeySet::generate(0, &mut entropy);
        let mut clients = |algorithm| -> Option<Vec<Client>> {
            (0..GROUP_SIZE).map(|_| Client::new(algorithm, &keys, &mut entropy)).collect()
        };
        let made = clients(Algorithm::SivCmac256).zip(clients(Algorithm::Aes128GcmSiv));
        let (siv, gcm_siv) =
            made.ok_or_else(|| Error::Bug("cannot make the packets of operations alone".to_owned()))?;
        let sealing = Sealing { keys, siv, gcm_siv, entropy: RefCell::new(entropy) };
        match sealing.works() {
            true => Ok(sealing),
            false => Err(Error::Bug("what was sealed alone does not open".to_owned())),
        }
    }

    /// Whether cookies open and requests are genuine, and others are not.
    fn works(&self) -> bool {
        [&self.siv, &self.gcm_siv].into_iter().all(|clients| {
            let mut places = places(clients);
            self.open(clients, &mut places);
            let is_same = |(client, place): (&Client, &Place)| {
                place.genuine && place.session.expose() == client.session.expose()
            };
            let opens = clients.iter().zip(&places).all(is_same);
            verify(clients, &mut places);
            opens && places.iter().all(|place| place.genuine)
        })
    }

    fn open(&self, clients: &[Client], places: &mut [Place]) {
        let jobs = clients.iter().zip(places);
        run_batch(jobs.filter_map(|(client, place)| {
            cookie::open_job(&self.keys, &client.cookie, &mut place.session, &mut place.genuine)
        }));
    }

    /// Seals so many cookies at once.
    fn seal(&self, count: usize) -> impl FnMut() + '_ {
        let session = &self.siv[0].session;
        let mut places = vec![vec![0; cookie::size(session.algorithm())]; count];
        move || {
            let all = places.iter_mut().map(|place| (session, &mut place[..]));
            cookie::seal_all(&self.keys, &mut self.entropy.borrow_mut(), all);
            black_box(&places);
        }
    }

    /// Everything that is measured, each operation by itself and in groups.
    pub(super) fn subjects(&self) -> Vec<Subject<'_>> {
        let mut subjects = vec![
            Subject::of(Operation::SealCookie, 1, self.seal(1)),
            // All eight are told as one.
            Subject::of(Operation::SealEightCookies, 1, self.seal(COOKIE_COUNT)),
        ];
        for (operation, count) in [(Operation::OpenCookie, 1), (Operation::OpenCookieInGroup, GROUP_SIZE)] {
            let clients = &self.siv[..count];
            let mut places = places(clients);
            subjects.push(Subject::of(operation, count, move || {
                self.open(black_box(clients), &mut places);
                black_box(&places);
            }));
        }
        let verifying = [
            (Operation::VerifySivCmac, &self.siv[..1]),
            (Operation::VerifySivCmacInGroup, &self.siv[..]),
            (Operation::VerifyGcmSiv, &self.gcm_siv[..1]),
            (Operation::VerifyGcmSivInGroup, &self.gcm_siv[..]),
        ];
        for (operation, clients) in verifying {
            let mut places = places(clients);
            subjects.push(Subject::of(operation, clients.len(), move || {
                verify(black_box(clients), &mut places);
                black_box(&places);
            }));
        }
        let signing = [
            (Operation::SignSivCmac, &self.siv[..1]),
            (Operation::SignSivCmacInGroup, &self.siv[..]),
            (Operation::SignGcmSiv, &self.gcm_siv[..1]),
            (Operation::SignGcmSivInGroup, &self.gcm_siv[..]),
        ];
        for (operation, clients) in signing {
            let mut places = places(clients);
            subjects.push(Subject::of(operation, clients.len(), move || {
                sign(black_box(clients), &mut places);
                black_box(&places);
            }));
        }
        subjects
    }
}

fn verify(clients: &[Client], places: &mut [Place]) {
    let jobs = clients.iter().zip(places);
    run_batch(jobs.filter_map(|(client, place)| client.verify(&mut place.genuine)));
}

fn sign(clients: &[Client], places: &mut [Place]) {
    let jobs = clients.iter().zip(places);
    run_batch(jobs.filter_map(|(client, place)| client.sign(&mut place.out, &mut place.tag)));
}

fn places(clients: &[Client]) -> Vec<Place> {
    let place = |client: &Client| Place {
        session: client.session.clone(),
        genuine: false,
        out: Vec::new(),
        tag: [0; TAG_SIZE],
    };
    clients.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_lengths_that_they_have_in_packets() {
        let sealing = Sealing::new().unwrap();
        let sizes = |client: &Client| [client.request.len(), client.response.len(), client.fresh.len()];
        assert_eq!(sizes(&sealing.siv[0]), [184, 84, 100]);
        assert_eq!(sizes(&sealing.gcm_siv[0]), [152, 84, 68]);
    }

    #[test]
    fn cookie_of_other_keys_and_a_changed_request_are_seen_before_anything_is_timed() {
        let mut sealing = Sealing::new().unwrap();
        assert!(sealing.works());
        sealing.siv[GROUP_SIZE - 1].request[50] ^= 1;
        assert!(!sealing.works());
        let mut sealing = Sealing::new().unwrap();
        sealing.gcm_siv[3].cookie[40] ^= 1;
        assert!(!sealing.works());
    }

    #[test]
    fn each_operation_has_a_subject() {
        let sealing = Sealing::new().unwrap();
        let subjects = sealing.subjects();
        let of = |subject: &Subject<'_>| subject.operations.clone();
        let mut all: Vec<Operation> = subjects.iter().flat_map(of).collect();
        all.extend([Operation::HandshakeServer, Operation::HandshakeClient, Operation::Handshake]);
        all.extend([Operation::ReadFile, Operation::MemcachedGet]);
        assert!(Operation::ALL.iter().all(|operation| all.contains(operation)));
        assert_eq!(all.len(), Operation::ALL.len());
    }
}
