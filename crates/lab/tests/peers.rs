//! Real servers on hosts, asked by real clients from other hosts, as the wire shows it.

use std::net::{SocketAddr, TcpStream, UdpSocket};

use authentick_lab::certificates::Lab;
use authentick_lab::corrupt::{Corrupt, Damage, Record, Relay, Tap};
use authentick_lab::filter::{Action, Filter, Traffic, Way};
use authentick_lab::hosts::{Host, Hosts};
use authentick_lab::peers::{Chrony, NtpdRs};
use authentick_lab::process::{text, wait_for};

const NTP: u16 = 1123;
const KE: u16 = 14_460;

fn source(hosts: &Hosts, options: &str) -> String {
    format!("server {} port {NTP} minpoll 0 {options}", hosts.address(Host::Server))
}

#[test]
fn chrony_exchanges_keys_once_with_ntpd_rs_on_another_host() {
    let (Some(chrony), Some(ntpd_rs)) = (Chrony::find(), NtpdRs::find()) else { return };
    let hosts = match Hosts::new(1) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let mut filter = match Filter::new(&hosts, Host::Server) {
        Ok(filter) => filter,
        Err(skip) => return skip.tell(),
    };
    let exchanges = filter.add(Way::In, Traffic::TcpOpenTo(KE), Action::Count);
    let requests = filter.add(Way::In, Traffic::UdpTo(NTP), Action::Count);
    let responses = filter.add(Way::Out, Traffic::UdpFrom(NTP), Action::Count);
    let lab = Lab::new();
    let _server = ntpd_rs.on(&hosts, Host::Server).server(&lab, NTP, KE);
    let address = SocketAddr::new(hosts.address(Host::Server), KE);
    wait_for("the server", || hosts.within(Host::Client(0), || TcpStream::connect(address).ok()));
    let before = filter.packets(exchanges);
    let chrony = chrony.on(&hosts, Host::Client(0));
    let output = chrony.ask_once(&lab, &source(&hosts, &format!("iburst minpoll 0 nts ntsport {KE}")));
    assert!(output.status.success(), "{}", text(&output));
    let count = |counter| filter.packets(counter);
    assert_eq!(count(exchanges) - before, 1);
    // chrony is content with three answers.
    assert!(count(requests) >= 3 && count(responses) == count(requests), "{}", count(requests));
}

/// The server sends clients of its key exchange to the relay, which stands on a host of its own.
#[test]
fn tap_sees_a_real_client_ask_for_cookies_after_loss_and_never_reuse_one() {
    let (Some(one), Some(other)) = (Chrony::find(), Chrony::find()) else { return };
    let hosts = match Hosts::new(2) {
        Ok(hosts) => hosts,
        Err(skip) => return skip.tell(),
    };
    let (server_lab, client_lab) = (Lab::new(), Lab::new());
    std::fs::copy(server_lab.ca(), client_lab.ca()).unwrap();
    let (key, chain) = (server_lab.key(), server_lab.chain());
    let middle = hosts.address(Host::Client(1));
    let lines = format!(
        "local stratum 1\nallow\nport {NTP}\nntsport {KE}\nntsntpserver {middle}\nntsserverkey {}\nntsservercert {}",
        key.display(),
        chain.display()
    );
    let mut server = one.on(&hosts, Host::Server).daemon(&server_lab, &lines);
    server.process.wait_for_line("chronyd version");
    let relay = hosts.within(Host::Client(1), || {
        let front = UdpSocket::bind((middle, NTP)).unwrap();
        let server = SocketAddr::new(hosts.address(Host::Server), NTP);
        Relay::start(front, server, (Tap::default(), Corrupt::new(Damage::Tag, 3)))
    });
    let source = source(&hosts, &format!("iburst maxpoll 0 nts ntsport {KE}"));
    let mut client = other.on(&hosts, Host::Client(0)).daemon(&client_lab, &source);
    wait_for("three damaged responses", || relay.with(|(_, corrupt)| corrupt.damaged() >= 3).then_some(()));
    wait_for("a full jar", || (client.ask("authdata").split(',').nth(8) == Some("8")).then_some(()));
    relay.with(|(tap, corrupt)| {
        assert!(tap.cookie_uses().iter().all(|uses| *uses == 1), "{:?}", tap.cookie_uses());
        assert_eq!(tap.responses().len() as u64, corrupt.seen());
        // Each damaged response costs a cookie, which the next request asks for beside its own.
        let counts: Vec<usize> = tap.requests().iter().map(Record::placeholder_count).collect();
        assert_eq!(counts[..3], [0, 0, 0]);
        assert!(counts[3..].contains(&1), "{counts:?}");
    });
    assert_eq!(relay.counts().lost, 0);
}
