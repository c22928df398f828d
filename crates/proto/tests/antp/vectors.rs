//! The published vectors, which another program computed.

use authentick_crypto::kdf::sha256;
use authentick_crypto::kem::{PrivateKey, SessionKey};
use authentick_proto::antp::server::{Request, classify};
use authentick_proto::antp::source::{PrefixSizes, SourcePrefix};
use authentick_proto::antp::state::{Established, Pending};
use authentick_proto::antp::state_key::{Seed, StateKey, StateKeys};
use authentick_proto::antp::{kem, transcript};
use authentick_sim::antp::{vector, vector_name};
use authentick_wire::antp::{
    Antp, C1_SIZE, C2_SIZE, KeyResponse, Message, NegotiationResponse, Suite, TAG_SIZE,
};
use authentick_wire::packet::Packet;

const ISSUED: u32 = 0xE900_0000;

fn keys() -> StateKeys {
    let id = u32::from_be_bytes(vector("state.id").try_into().unwrap());
    let key = StateKey::new(id, 0, &vector("state.key").try_into().unwrap());
    StateKeys::from_keys(Seed::new([0; 32]), key, [], 0, 0).unwrap()
}

fn of(suite: Suite, part: &str) -> Vec<u8> {
    vector(&format!("{}.{part}", vector_name(suite)))
}

fn array<const N: usize>(octets: &[u8]) -> [u8; N] {
    octets.try_into().unwrap()
}

//= antp#computations-1
#[test]
fn negotiation_and_key_exchange_of_the_vectors_come_out() {
    let keys = keys();
    for suite in [Suite::P256, Suite::RSA_PKCS1] {
        let m1 = of(suite, "m1");
        let m1 = Packet::parse(&m1).unwrap();
        let Ok(Request::Negotiation(asked, m1_field)) = classify(&m1) else { panic!() };
        assert_eq!((asked.nonce[..].to_vec(), asked.payload_size_max), (of(suite, "n1"), 1072));
        let m2 = of(suite, "m2");
        let found = Antp::locate(&Packet::parse(&m2).unwrap()).unwrap().unwrap();
        let Message::NegotiationResponse(response, Some(chunk)) = found.message else { panic!() };
        let chain = of(suite, "chain");
        assert_eq!(*response.chain_hash, sha256(&[&chain]));
        assert_eq!(chunk.octets, &chain[usize::from(asked.chain_offset)..]);
        assert_eq!(response.state[..], of(suite, "c1"));
        let h1 = transcript::negotiation(m1_field, &found.field(&m2)[4..][..NegotiationResponse::HEAD_SIZE]);
        assert_eq!(h1[..], of(suite, "h1"));
        let source = SourcePrefix::of(array::<4>(&vector("state.source")).into(), PrefixSizes::default());
        let pending = Pending { suite, issued: ISSUED, transcript: h1 };
        let c1: [u8; C1_SIZE] = array(&of(suite, "c1"));
        assert_eq!(pending.seal_with(keys.current(), &source, &array(&c1[4..16])), c1);
        assert_eq!(Pending::open(&keys, &c1, &source, ISSUED + 1), Some(pending));

        let m3 = of(suite, "m3");
        let m3 = Packet::parse(&m3).unwrap();
        let Ok(Request::KeyExchange(asked, m3_field)) = classify(&m3) else { panic!() };
        let private = PrivateKey::from_pkcs8(kem(suite).unwrap(), &of(suite, "private")).unwrap();
        let key = private.decapsulate(asked.ciphertext).unwrap();
        assert_eq!(key.expose()[..], of(suite, "key"));
        let m4 = of(suite, "m4");
        let found = Antp::locate(&Packet::parse(&m4).unwrap()).unwrap().unwrap();
        let Message::KeyResponse(response) = found.message else { panic!() };
        let h2 = transcript::key_exchange(&h1, m3_field, &found.field(&m4)[4..][..KeyResponse::HEAD_SIZE]);
        assert_eq!((&h2[..], response.lifetime_seconds), (&of(suite, "h2")[..], 7 * 86_400));
        assert_eq!(transcript::confirmation(&key, &h2)[..], of(suite, "tau1"));
        assert!(transcript::is_confirmed(&key, &h2, response.tag));
        let established = Established { suite, issued: ISSUED + 1, expires: ISSUED + 1 + 7 * 86_400, key };
        let c2: [u8; C2_SIZE] = array(&of(suite, "c2"));
        assert_eq!(established.seal_with(keys.current(), &array(&c2[4..16])), c2);
    }
}

//= antp#computations-1
#[test]
fn time_of_the_vectors_comes_out_in_all_modes() {
    let keys = keys();
    for suite in [Suite::P256, Suite::RSA_PKCS1] {
        let session = SessionKey::new(array(&of(suite, "key")));
        for (mode, fresh, early) in [("", false, false), ("fresh.", true, false), ("separate.", false, true)]
        {
            let m5 = of(suite, &format!("{mode}m5"));
            let request = Packet::parse(&m5).unwrap();
            let Ok(Request::Time(asked)) = classify(&request) else { panic!() };
            assert_eq!((asked.wants_fresh, asked.wants_early), (fresh, early));
            let opened = Established::open(&keys, asked.state, ISSUED + 2);
            assert_eq!(opened.unwrap().key, session);
            let m6 = of(suite, &format!("{mode}m6"));
            let (before, tag) = m6.split_last_chunk::<TAG_SIZE>().unwrap();
            assert_eq!(transcript::time(&session, &m5, before), *tag, "{mode}");
            let found = Antp::locate(&Packet::parse(&m6).unwrap()).unwrap().unwrap();
            let Message::TimeResponse { early: repeated, response } = found.message else { panic!() };
            assert_eq!((repeated.is_some(), response.fresh.is_some()), (early, fresh));
            if early {
                assert!(m6.starts_with(&of(suite, "separate.early")));
            }
            if let Some(fresh) = response.fresh {
                assert_eq!(fresh[..], of(suite, "fresh.c2"));
            }
        }
    }
}
