//! What studies take for granted of their rig: round trips of our own clients, names from its resolver, and what
//! servers of others are said to serve.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path as FilePath;
use std::process::{Command, Output};
use std::time::Duration;

use authentick_crypto::mac::MacAlgorithm;
use authentick_lab::certificates::write_private;
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers::folder;
use authentick_lab::relay::{Link, Path};
use authentick_lab::skip::skip;
use authentick_rig::Error;
use authentick_rig::peers::{Identity, Key, Kind, Peer, Place, Ports, Scheme, Search, Setup};
use authentick_rig::resolver::{PORT, Resolver};
use authentick_rig::rounds::{Flow, RoundTrips, Transport, Trips};

use crate::lab::{Lab, authentick, free_port, has_measured, program, text};

const NTP: u16 = 1123;
const KE: u16 = 14_460;

/// Our server at one end of a path of 70 ms, whose other end is a client's.
struct Far {
    _server: crate::lab::Server,
    lab: Lab,
    // Before the hosts between which it lies.
    path: Path,
    hosts: Hosts,
}

impl Far {
    fn new() -> Option<Self> {
        let link = || Link::delayed(Duration::from_millis(35));
        let way = Hosts::new(1).and_then(|hosts| Ok((Path::new(&hosts, 0, link(), link(), 1)?, hosts)));
        let (path, hosts) = way.map_err(|skip| skip.tell()).ok()?;
        let lab = Lab::new();
        let config =
            lab.config(&format!("listen = [\"0.0.0.0:{NTP}\"]"), &format!("ke-listen = [\"0.0.0.0:{KE}\"]"));
        let server = program().serve_on(&hosts, Host::Server, &config);
        Some(Far { _server: server, lab, path, hosts })
    }

    /// Our binary on the client's host, with what a client of NTS needs.
    fn client(&self, words: &[&str]) -> Command {
        let mut command = self.hosts.on(Host::Client(0), program().path());
        command.args(words).args(["--ke-port", &KE.to_string(), "--server-name", "ntp.test", "--ca"]);
        command.arg(self.lab.ca());
        command
    }
}

#[track_caller]
fn only(mut flows: impl Iterator<Item = (Flow, Trips)>) -> Trips {
    let (_, trips) = flows.next().expect("a flow");
    assert_eq!(flows.count(), 0);
    trips
}

#[track_caller]
fn good(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", text(output));
}

/// As "Experimental Analysis of the Performance and Scalability of Network Time Security for the Network Time Protocol"
/// has it, section IV: TCP, TLS 1.3, and a request with its response; then one for each transfer.
#[test]
fn key_exchange_takes_three_round_trips_and_a_transfer_one() {
    let Some(far) = Far::new() else { return };
    let address = far.path.server_address().to_string();
    let counted = |command: &mut Command| -> (Output, RoundTrips) {
        far.path.count_round_trips();
        let output = command.output().unwrap();
        (output, far.path.round_trips())
    };
    let (output, trips) = counted(far.client(&["query", &address, "--count", "1"]).arg("--json"));
    good(&output);
    assert_eq!(only(trips.towards(Transport::Tcp, KE)).round_trips, 3, "{trips:?}");
    assert_eq!(only(trips.towards(Transport::Udp, NTP)).round_trips, 1, "{trips:?}");
    let (output, trips) = counted(&mut far.client(&["query", &address, "--count", "3", "--interval", "0.2"]));
    good(&output);
    assert_eq!(only(trips.towards(Transport::Tcp, KE)).round_trips, 3, "{trips:?}");
    let transfers: u64 = trips.towards(Transport::Udp, NTP).map(|(_, trips)| trips.round_trips).sum();
    assert_eq!(transfers, 3, "{trips:?}");
    // The load generator's key exchanges are no others.
    let load = ["load", "ke", &address, "--rate", "5", "--step-seconds", "1", "--timeout", "5"];
    let (output, trips) = counted(&mut far.client(&load));
    assert!(has_measured(&output), "{}", text(&output));
    let exchanges: Vec<u64> = trips.towards(Transport::Tcp, KE).map(|(_, trips)| trips.round_trips).collect();
    assert!(exchanges.len() >= 5 && exchanges.iter().all(|count| *count == 3), "{exchanges:?}");
}

#[test]
fn name_is_looked_up_in_the_rigs_resolver_and_costs_round_trips_of_its_own() {
    let Some(far) = Far::new() else { return };
    let IpAddr::V4(address) = far.path.server_address() else { panic!("it is of IPv4") };
    let socket = far.hosts.within(Host::Server, || UdpSocket::bind((address, PORT))).unwrap();
    let resolver = Resolver::start(socket, "time.rig.test", address, far.lab.path()).unwrap();
    let mut command = match resolver.asked_by(&far.client(&["query", "time.rig.test"])) {
        Ok(command) => command,
        Err(error @ Error::Unavailable { .. }) => return skip(&error.to_string()),
        Err(error) => panic!("{error}"),
    };
    far.path.count_round_trips();
    good(&command.output().unwrap());
    let (trips, counts) = (far.path.round_trips(), resolver.counts());
    assert!(counts.addresses >= 1 && counts.malformed == 0, "{counts:?}");
    let look_ups: u64 = trips.towards(Transport::Udp, PORT).map(|(_, trips)| trips.round_trips).sum();
    assert!((1..=counts.queries).contains(&look_ups), "{look_ups} of {counts:?}");
    assert_eq!(only(trips.towards(Transport::Tcp, KE)).round_trips, 3, "{trips:?}");
}

/// A key of every type, under the number of its place.
fn keys() -> Vec<Key> {
    let key = |(algorithm, id): (MacAlgorithm, u32)| {
        let sizes = algorithm.key_sizes();
        let size = if sizes.contains(&16) { 16 } else { *sizes.start() };
        Key { id, algorithm, octets: (0..size).map(|octet| octet as u8 ^ id as u8).collect() }
    };
    MacAlgorithm::ALL.into_iter().zip(1..).map(key).collect()
}

/// Asks a server on loopback under a scheme.
fn ask(scheme: Scheme, ntp: SocketAddr, ke: SocketAddr, lab: &Lab, keys: &FilePath) -> Output {
    let (target, ke, ca) = (ntp.to_string(), ke.port().to_string(), lab.ca());
    let mut words = vec!["query", &target, "--timeout", "2"];
    let number;
    match scheme {
        Scheme::Plain => words.extend(["--auth", "plain"]),
        Scheme::Mac(algorithm) => {
            let place = MacAlgorithm::ALL.iter().position(|other| *other == algorithm).unwrap();
            number = (place + 1).to_string();
            words.extend(["--auth", "mac", "--keys", keys.to_str().unwrap(), "--key-id", &number]);
            words.extend(["--allow-legacy", "--allow-experimental"]);
        }
        Scheme::Nts(aead) => {
            number = aead.to_string();
            words.extend(["--ke-port", &ke, "--ca", ca.to_str().unwrap(), "--aead", &number]);
        }
        Scheme::Antp => words.extend(["--auth", "antp", "--ca", ca.to_str().unwrap()]),
    }
    authentick(words)
}

/// What is said of versions is said of these too: whoever is said to serve a scheme answers under it, and nobody else.
#[test]
fn servers_of_others_answer_under_the_schemes_that_they_are_said_to_have() {
    let (lab, all) = (Lab::new(), keys());
    let (chain, key, file) = (lab.chain(), lab.key(), lab.path().join("client-keys"));
    write_private(&file, &all.iter().map(Key::line).collect::<String>());
    let folder = folder();
    let search = Search { folder: Some(&folder), path: None };
    for kind in Kind::ALL {
        let peer = match Peer::find(kind, &search) {
            Ok(peer) => peer,
            Err(error) => {
                skip(&error.to_string());
                continue;
            }
        };
        let setup = Setup {
            place: Place::here(),
            address: "127.0.0.1".parse().unwrap(),
            ports: Ports { ntp: free_port(), ke: free_port(), spare: free_port() },
            folder: lab.path(),
            identity: Some(Identity { chain: &chain, key: &key }),
            keys: &all,
        };
        let server = peer.start(&setup).unwrap_or_else(|error| panic!("{error}"));
        // Of the types of keys that it has none of, one will do: each is waited for.
        let macs = MacAlgorithm::ALL.into_iter().filter(|algorithm| {
            *algorithm == MacAlgorithm::Gmac128 || peer.serves(Scheme::Mac(*algorithm)).is_ok()
        });
        let schemes = [15, 16, 17, 30].map(Scheme::Nts).into_iter().chain(macs.map(Scheme::Mac));
        for scheme in schemes.chain([Scheme::Plain, Scheme::Antp]) {
            let (said, output) = (peer.serves(scheme), ask(scheme, server.ntp(), setup.ke(), &lab, &file));
            let found = output.status.success();
            assert_eq!(found, said.is_ok(), "{}: {scheme}: {said:?}: {}", peer.title(), text(&output));
            if let Err(why) = said {
                assert!(why.starts_with(&peer.title()), "{why}");
            }
        }
    }
}
