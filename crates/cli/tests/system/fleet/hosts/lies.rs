//! A server that lies, beside one of Debian's memcached that does not, and alone.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use authentick_lab::caches::{Behaviour, CacheServer};
use authentick_lab::hosts::Host;
use authentick_lab::peers::Memory;
use serde_json::Value;

use super::{Fleet, NAMES, OFTEN, PERIOD, laboratory};
use crate::lab::wait_for;

/// What a node counts that sees through a lie, and what its log has of it, if anything: what is told of old documents,
/// and of none, is what an honest server says that has started anew.
type Seen = (Behaviour, &'static str, Option<&'static str>);

/// Kinds of lies. What is as strange as before is not counted again, so others stand between those. A node may put
/// sixty values into a server before it has to save them up, and does so with each read while that forgets or repeats:
/// such ones come first.
const LIES: [Seen; 9] = [
    (Behaviour::Full, "refused_writes_total", Some(" does not take authentick/fleet/")),
    (Behaviour::Swap, "strange_values_total", Some("is ignored: no seal key of ours has sealed it")),
    (Behaviour::Forget, "writes_total", None),
    (Behaviour::Flip, "strange_values_total", Some("is ignored: no seal key of ours has sealed it")),
    (Behaviour::Replay, "writes_total", None),
    (Behaviour::Length(300_000), "failures_total", Some("the server has a value of more than")),
    (Behaviour::Endless, "failures_total", Some("the server sent a line of more than")),
    (Behaviour::Drip(Duration::from_secs(1)), "failures_total", Some("no whole answer within")),
    (Behaviour::Silent, "failures_total", Some("no whole answer within")),
];

impl Fleet<'_> {
    /// Waits until all nodes have counted the lie that `server` begins to tell, and have said it.
    #[track_caller]
    fn sees_through(&mut self, server: SocketAddr, (behaviour, counter, line): Seen, liar: &CacheServer) {
        let before = [0, 1, 2, 3].map(|index| self.of_server(index, counter, server));
        liar.behave(behaviour);
        for (index, before) in before.into_iter().enumerate() {
            wait_for(&format!("{behaviour:?} to be counted"), || {
                (self.of_server(index, counter, server) > before).then_some(())
            });
            let Some(line) = line else { continue };
            wait_for(&format!("{behaviour:?} to be said"), || {
                let lines = self.lines(index, line);
                lines.iter().any(|said| said.contains(&format!("memcached {server}"))).then_some(())
            });
        }
    }

    /// The document that lies in the second server, as an operator sees it.
    fn shown(&self) -> Value {
        let output = self.on(0, &["keys", "status", "--json"]);
        let mut status: Value = serde_json::from_slice(&output.stdout).unwrap();
        status["cookie-keys"]["servers"][1]["document"].take()
    }
}

#[test]
fn server_that_lies_hides_nothing_beside_another_one_and_harms_nobody_alone() {
    let Some((hosts, memcached)) = laboratory() else { return };
    let address = SocketAddr::new(hosts.address(Host::Server), 0);
    let mut honest = memcached.start(address, Memory::megabytes(64));
    let liar = hosts
        .within(Host::Server, || CacheServer::start(TcpListener::bind(address).unwrap(), Behaviour::Honest));
    let servers = [honest.address(), liar.address()];
    let mut fleet = Fleet::running(&hosts, &servers, OFTEN);
    fleet.under_load("a lying server beside an honest one", |fleet| {
        for lie in LIES {
            fleet.sees_through(servers[1], lie, &liar);
            let said = fleet.shown();
            match lie.0 {
                Behaviour::Forget => assert_eq!(said, Value::Null),
                // It repeats the first that it was given.
                Behaviour::Replay => assert_eq!(said, "version 1 of term 1 by a"),
                Behaviour::Honest
                | Behaviour::Swap
                | Behaviour::Flip
                | Behaviour::Length(_)
                | Behaviour::Endless
                | Behaviour::Drip(_)
                | Behaviour::Silent
                | Behaviour::Unanswered
                | Behaviour::Refuse
                | Behaviour::Full => {}
            }
            fleet.rotate(1);
        }
    });
    fleet.under_load("a lying server alone", |fleet| {
        honest.kill();
        // What the liar says of the writer's own keys may be new to others, and never older than what they have.
        let mut versions = [0, 1, 2, 3].map(|index| fleet.version(index));
        for (behaviour, ..) in LIES {
            liar.behave(behaviour);
            std::thread::sleep(PERIOD);
            for (index, version) in versions.iter_mut().enumerate() {
                let now = fleet.version(index);
                assert!(now >= *version, "{behaviour:?}: {} fell from {version} to {now}", NAMES[index]);
                *version = now;
            }
        }
        liar.behave(Behaviour::Honest);
        honest.restart();
        fleet.rotate(1);
    });
}
