//! Histories of several requests: against a model of a server, and against whatever a server says.

use proptest::prelude::*;

use super::super::{Connection, Name, REQUEST_COUNT_MAX, Request, fuzzing};
use super::model::{Server, Store};
use super::name;

/// What is asked in a history: kind, name, value, and whether a `cas` has the token that is right by then.
type Step = (u8, u8, Vec<u8>, bool);

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![
        4 => prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), any::<u8>()], 0..40),
        1 => (0_usize..5000).prop_map(|size| vec![b'\n'; size]),
    ];
    (0..5_u8, 0..4_u8, value, any::<bool>())
}

/// Twenty names, which take three lines.
fn all_names() -> Vec<Name> {
    (0..20).map(|index| name(&format!("{index:0>250}"))).collect()
}

proptest! {
    /// Against a server with the same store, in pieces of any size, and with several requests on the way.
    #[test]
    fn histories_are_those_of_a_store_without_a_protocol(
        steps in prop::collection::vec(step(), 1..40),
        together in 1..REQUEST_COUNT_MAX,
        out_size in 1..600_usize,
        in_size in 1..600_usize,
    ) {
        let names = all_names();
        let (mut store, mut server, mut connection) = (Store::default(), Server::default(), Connection::new());
        for batch in steps.chunks(together) {
            let mut expected = Vec::new();
            for (kind, at, value, is_right) in batch {
                let (name, value) = (names[usize::from(*at)].clone(), value.clone());
                let request = match kind {
                    0 => Request::Gets { names: names.clone() },
                    1 => Request::Gets { names: names[usize::from(*at)..5].to_vec() },
                    2 => Request::Add { name, value },
                    _ => {
                        let token = store.token(&name).wrapping_add(u64::from(!is_right));
                        Request::Cas { name, value, token }
                    }
                };
                expected.push(store.answer(&request));
                connection.ask(&request).unwrap();
            }
            let mut said = Vec::new();
            while !connection.unsent().is_empty() {
                let size = out_size.min(connection.unsent().len());
                said.extend(server.received(&connection.unsent()[..size]));
                connection.sent(size);
            }
            let mut responses = Vec::new();
            for piece in said.chunks(in_size) {
                connection.received(piece).unwrap();
                while let Some(response) = connection.response().unwrap() {
                    responses.push(response);
                }
            }
            prop_assert_eq!(responses, expected);
            prop_assert_eq!(connection.waiting(), 0);
            // As when a server needs the memory.
            store.remove(&names[0]);
            server.store.remove(&names[0]);
        }
    }

    /// Also of what breaks the protocol.
    #[test]
    fn pieces_make_no_difference(
        octets in prop::collection::vec(prop_oneof![3 => 0..20_u8, 1 => any::<u8>()], 0..60),
        form in any::<[u8; 3]>(),
    ) {
        fuzzing::memcached_response(&[&form[..], &octets].concat());
    }
}
