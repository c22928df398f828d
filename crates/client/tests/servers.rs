//! Clients of every scheme against a node in this process, and against servers that misbehave: what is learnt of the
//! one, and by whose fault there is no time from the others.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use authentick_client::antp::phases::TimeAsk;
use authentick_client::antp::store::{Store, StoreError};
use authentick_client::antp::tentative::Voter;
use authentick_client::antp::{Antp, Phase, Settings};
use authentick_client::mac::Mac;
use authentick_client::nts::{KeyServer, Nts};
use authentick_client::plain::Plain;
use authentick_client::trust::{Anchor, TrustedBy, rfc3339};
use authentick_client::{Answer, Client, Error, Fault, Place, Remark, Voucher, Why, resolve, spaced};
use authentick_crypto::Entropy;
use authentick_crypto::mac::MacAlgorithm;
use authentick_daemon::symmetric::KeyFile;
use authentick_daemon::{Config, Running, node};
use authentick_ke::client::Ask;
use authentick_ke::tls::{Roots, client_config};
use authentick_lab::certificates::{Lab, write_private};
use authentick_lab::exchanges::{Behaviour, KeServer};
use authentick_lab::servers::{Fault as Misbehaviour, NtpServer, Policy};
use authentick_net::clock::unix_seconds;
use authentick_proto::antp::client::Bounds;
use authentick_wire::antp::{Suite, SuiteList};
use authentick_wire::header::{Header, Mode, ReferenceId};
use authentick_wire::ke::{AeadId, ErrorCode};
use authentick_wire::time::NtpTime;
use rustls::pki_types::ServerName;

/// For what succeeds.
const PATIENCE: Duration = Duration::from_secs(20);
/// For what does not.
const BRIEF: Duration = Duration::from_millis(100);

/// A node that serves every scheme.
fn node(lab: &Lab) -> Running {
    let keys = lab.path().join("keys");
    write_private(&keys, "7 AES128 HEX:000102030405060708090A0B0C0D0E0F\n");
    lab.antp_identity("ecdh", |_| {});
    let file = lab.antp_config(&["ecdh"], "", &format!("[symmetric]\nkeys = {keys:?}"));
    let text = std::fs::read_to_string(&file).unwrap();
    node::start(&Config::parse(&file, &text).unwrap()).unwrap()
}

fn roots(lab: &Lab) -> Roots {
    Roots::from_pem(&std::fs::read(lab.ca()).unwrap()).unwrap()
}

fn server_name() -> ServerName<'static> {
    ServerName::try_from("ntp.test").unwrap()
}

/// NTS with the server at `ke`, whose authority is that of `lab`.
fn nts(lab: &Lab, ke: SocketAddr, timeout: Duration) -> Nts {
    let aeads = vec![AeadId::AES_128_GCM_SIV, AeadId::SIV_CMAC_256];
    let ask = Ask { tls: client_config(roots(lab)), server_name: server_name(), aeads };
    let (host, port) = ("ntp.test".to_owned(), ke.port());
    Nts::new(KeyServer { host, port, addresses: ke.into(), ask, ntp_port: None }, timeout)
}

/// ANTP with the server at this address, whose authority is that of `lab`; what is kept goes below `state`.
fn antp(lab: &Lab, state: &Path, server: SocketAddr, timeout: Duration) -> Settings {
    Settings {
        addresses: server.into(),
        name: "ntp.test".to_owned(),
        timeout,
        anchor: Anchor::authorities(&roots(lab), server_name()).unwrap(),
        suites: SuiteList::new(&[Suite::P256]).unwrap(),
        ask: TimeAsk { is_separate: false, is_fresh: true, bounds: Bounds::WAN },
        store: Store::at(state.to_owned()),
        voters: Vec::new(),
        ocsp: None,
        judged_at: None,
        built: 0,
    }
}

/// Asks three times.
fn thrice(client: &mut dyn Client) -> Vec<Answer> {
    let mut answers = Vec::new();
    let mut entropy = Entropy::from_system().unwrap();
    spaced(client, 3, |_| Duration::from_millis(1), &mut entropy, |_, result| answers.push(result.unwrap()));
    assert_eq!(answers.len(), 3);
    for Answer { measurement, .. } in &answers {
        assert_eq!(measurement.response.header.stratum, 1);
        assert!(measurement.sample.offset.as_nanos().abs() < 1_000_000_000, "it is the same clock");
    }
    answers
}

fn once(client: &mut dyn Client) -> Error {
    client.ask(&mut Entropy::from_system().unwrap()).unwrap_err()
}

/// An address where nobody answers; it holds for as long as the socket.
fn silent() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

#[test]
fn every_scheme_tells_the_time_and_who_vouches_for_it() {
    let lab = Lab::new();
    let node = node(&lab);
    let ntp = node.ntp_addresses()[0];

    let mut plain = Plain::new(ntp, PATIENCE);
    assert!(thrice(&mut plain).iter().all(|answer| answer.bound.is_none()));
    assert!(plain.learnt().voucher.is_none() && plain.learnt().address == Some(ntp));

    let mut keys = KeyFile::new(&lab.path().join("keys"), None).load().unwrap();
    let mut mac = Mac::new(ntp, keys.take(7).unwrap().key, PATIENCE);
    thrice(&mut mac);
    let voucher = mac.learnt().voucher.take();
    assert!(
        matches!(voucher, Some(Voucher::Mac { algorithm: MacAlgorithm::Cmac128, key_id: 7 })),
        "{voucher:?}"
    );

    let state = lab.path().join("known");
    let mut first = Antp::new(antp(&lab, &state, ntp, PATIENCE)).unwrap();
    for Answer { measurement, bound } in thrice(&mut first) {
        assert!(bound.unwrap().error_max.as_nanos() * 2 >= measurement.sample.delay.as_nanos());
    }
    let (times, remarks) = (first.learnt().times, &first.learnt().remarks);
    assert!(times.negotiation.is_some() && times.encapsulation.is_some() && times.connect.is_none());
    assert!(remarks.is_empty(), "{remarks:?}");
    // The chain is kept, and so is the word that the server speaks ANTP.
    let mut second = Antp::new(antp(&lab, &state, ntp, PATIENCE)).unwrap();
    thrice(&mut second);
    for (client, is_held) in [(&mut first, false), (&mut second, true)] {
        let voucher = client.learnt().voucher.take();
        let Some(Voucher::Antp { suite: Suite::P256, by, is_chain_held, .. }) = voucher else {
            panic!("{voucher:?}");
        };
        assert_eq!((by, is_chain_held), (TrustedBy::Authorities, is_held));
    }
    let downgrade = Store::at(state).admit_plain("ntp.test").unwrap_err();
    assert!(matches!(downgrade, StoreError::Downgrade(..)), "{downgrade}");
    assert_eq!(downgrade.fault(), Fault::Rejected);
    assert!(node.stop());
}

#[test]
fn nts_client_exchanges_keys_when_it_has_no_cookie_left_and_not_before() {
    let lab = Lab::new();
    let file = lab.config("", "");
    let text = std::fs::read_to_string(&file).unwrap();
    let node = node::start(&Config::parse(&file, &text).unwrap()).unwrap();
    let ke = node.ke_addresses()[0];
    let mut client = nts(&lab, ke, PATIENCE);
    assert!(client.learnt().voucher.is_none() && client.learnt().address.is_none());
    assert!(thrice(&mut client).iter().all(|answer| answer.measurement.response.cookie_count == 1));
    let Some(Voucher::Nts { aead, cookie_count: 8, certificate, key_exchange_source, .. }) =
        client.learnt().voucher.take()
    else {
        panic!("no session");
    };
    assert_eq!((aead, certificate.unwrap().subject.contains("ntp.test")), (AeadId::AES_128_GCM_SIV, true));
    assert_eq!(key_exchange_source.ip(), ke.ip());
    // Another exchange of keys would bring a voucher again.
    thrice(&mut client);
    assert!(client.learnt().voucher.is_none());
    assert!(node.stop());
}

//= rfc8915#5.7-6
#[test]
fn client_whose_cookies_are_spent_exchanges_keys_anew() {
    let (_socket, nobody) = silent();
    let lab = Lab::new();
    let file = lab.config("", &format!("advertise = {{ port = {} }}", nobody.port()));
    let text = std::fs::read_to_string(&file).unwrap();
    let node = node::start(&Config::parse(&file, &text).unwrap()).unwrap();
    let mut client = nts(&lab, node.ke_addresses()[0], BRIEF);
    // A busy host may need another attempt at an exchange of keys; what counts are requests for time.
    let mut exchanged = Vec::new();
    for _ in 0..200 {
        if exchanged.len() < 9 && once(&mut client).place == Place::Server(nobody) {
            exchanged.push(client.learnt().voucher.take().is_some());
        }
    }
    assert_eq!(exchanged, [&[true][..], &[false; 7], &[true]].concat(), "eight cookies, then new keys");
    assert!(node.stop());
}

/// The refusal NTSN of `request`, as anyone who sees it can make it.
fn ntsn(request: &[u8]) -> Vec<u8> {
    const UNIQUE_IDENTIFIER: std::ops::Range<usize> = 48..84;
    let transmit = request[40..48].try_into().map(NtpTime::from_be_bytes).unwrap();
    let now = NtpTime::from_unix(unix_seconds().cast_signed(), 0);
    let mut refusal = vec![0; 48];
    Header {
        stratum: 0,
        reference_id: ReferenceId::NTSN,
        mode: Mode::Server,
        origin: transmit,
        receive: now,
        transmit: now,
        ..Header::minimal_request(transmit)
    }
    .emit(refusal.first_chunk_mut().unwrap());
    [refusal, request[UNIQUE_IDENTIFIER].to_vec()].concat()
}

/// An adversary on the path: every request of a client is refused in the server's name many times, and the real answer
/// of the server at the address in `server` follows, if there is one.
fn flood_of_refusals(server: Arc<OnceLock<SocketAddr>>) -> SocketAddr {
    const FLOOD: usize = 50;
    let (path, address) = silent();
    let beyond = UdpSocket::bind("127.0.0.1:0").unwrap();
    beyond.set_read_timeout(Some(PATIENCE)).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((size, client)) = path.recv_from(&mut buffer) {
            let refusal = ntsn(&buffer[..size]);
            for _ in 0..FLOOD {
                path.send_to(&refusal, client).unwrap();
            }
            if let Some(server) = server.get() {
                beyond.send_to(&buffer[..size], server).unwrap();
                let size = beyond.recv(&mut buffer).unwrap();
                path.send_to(&buffer[..size], client).unwrap();
            }
        }
    });
    address
}

/// Nothing vouches for a refusal: however many there are of a request, they cost one exchange of keys, before the next
/// request, and none if the answer comes too.
//= rfc8915#5.7-25
#[test]
fn flood_of_refusals_costs_one_exchange_of_keys_a_request_and_none_beside_an_answer() {
    let server = Arc::new(OnceLock::new());
    let path = flood_of_refusals(Arc::clone(&server));
    let lab = Lab::new();
    let file = lab.config("", &format!("advertise = {{ port = {} }}", path.port()));
    let text = std::fs::read_to_string(&file).unwrap();
    let node = node::start(&Config::parse(&file, &text).unwrap()).unwrap();
    let mut client = nts(&lab, node.ke_addresses()[0], BRIEF);
    // A busy host may be too late with a key exchange, or with a refusal.
    let (mut refused, mut is_due) = (0, true);
    while refused < 5 {
        let error = once(&mut client);
        if error.place == Place::Server(path) {
            assert_eq!(client.learnt().voucher.take().is_some(), is_due, "one after a refusal, and no other");
            is_due = error.to_string().contains("NTSN");
            refused += u32::from(is_due);
        }
    }
    server.set(node.ntp_addresses()[0]).unwrap();
    let mut client = nts(&lab, node.ke_addresses()[0], PATIENCE);
    thrice(&mut client);
    assert!(client.learnt().voucher.take().is_some());
    thrice(&mut client);
    assert!(client.learnt().voucher.is_none(), "refusals beside an answer cost no exchange of keys");
    assert!(node.stop());
}

//= rfc8915#8.7-1
#[test]
fn key_exchange_that_fails_is_not_followed_by_plain_ntp() {
    let lab = Lab::new();
    let plain = NtpServer::on_loopback(Policy::good());
    for behaviour in [Behaviour::Close, Behaviour::NoProtocol, Behaviour::Error(ErrorCode(2))] {
        let server = KeServer::on_loopback(behaviour, &lab);
        let key_server = KeyServer {
            host: "ntp.test".to_owned(),
            port: server.address().port(),
            addresses: server.address().into(),
            ask: Ask {
                tls: client_config(roots(&lab)),
                server_name: server_name(),
                aeads: vec![AeadId::SIV_CMAC_256],
            },
            ntp_port: Some(plain.address().port()),
        };
        once(&mut Nts::new(key_server, PATIENCE));
    }
    assert_eq!(plain.counts().received, 0);
}

#[test]
fn silence_and_answers_that_fail_a_check_are_told_apart() {
    let (_socket, nobody) = silent();
    assert_eq!(once(&mut Plain::new(nobody, BRIEF)).fault(), Fault::Silent);
    let kiss = Misbehaviour::Kiss { code: ReferenceId(*b"RATE"), identifier: false };
    for (misbehaviour, fault) in [
        (Misbehaviour::Drop, Fault::Silent),
        (Misbehaviour::Garbage(40), Fault::Malformed),
        (Misbehaviour::Stratum(16), Fault::Rejected),
        (Misbehaviour::WrongOrigin, Fault::Rejected),
        (kiss, Fault::Rejected),
    ] {
        let server = NtpServer::on_loopback(Policy::good().every(1, misbehaviour));
        let error = once(&mut Plain::new(server.address(), BRIEF));
        assert_eq!(error.fault(), fault, "{misbehaviour:?}: {error}");
        assert_eq!(error.place, Place::Server(server.address()));
    }
    let error = resolve("no-such-host.invalid", 123, PATIENCE).unwrap_err();
    assert!(error.fault() == Fault::Silent && error.to_string().starts_with("no-such-host.invalid: "));
}

#[test]
fn key_exchange_that_fails_says_by_whose_fault() {
    let lab = Lab::new();
    for (behaviour, fault) in [
        (Behaviour::Gone, Fault::Silent),
        (Behaviour::Mute, Fault::Silent),
        (Behaviour::Close, Fault::Silent),
        (Behaviour::Error(ErrorCode(1)), Fault::Refused),
        (Behaviour::NoProtocol, Fault::Rejected),
        (Behaviour::Nonsense, Fault::Malformed),
    ] {
        let server = KeServer::on_loopback(behaviour, &lab);
        let timeout = if behaviour == Behaviour::Mute { BRIEF } else { PATIENCE };
        let error = once(&mut nts(&lab, server.address(), timeout));
        assert_eq!(error.fault(), fault, "{behaviour:?}: {error}");
        let place = Place::KeyExchange { host: "ntp.test".to_owned(), port: server.address().port() };
        assert_eq!(error.place, place);
    }
    let server = KeServer::on_loopback(Behaviour::NoEarlyClose, &lab);
    let error = once(&mut nts(&Lab::new(), server.address(), PATIENCE));
    assert_eq!(error.fault(), Fault::Rejected, "an authority that is not trusted: {error}");
}

//= antp#paper-2, antp#paper-1
#[test]
fn antp_says_which_phase_failed_and_never_takes_a_plain_answer() {
    let (lab, folder) = (Lab::new(), tempfile::tempdir().unwrap());
    let error = |settings: Settings| once(&mut Antp::new(settings).unwrap());

    let (_socket, nobody) = silent();
    let silence = error(antp(&lab, folder.path(), nobody, BRIEF));
    assert_eq!((silence.fault(), silence.place), (Fault::Silent, Place::Antp(nobody, Phase::Negotiation)));
    let plain = NtpServer::on_loopback(Policy::good());
    let stripped = error(antp(&lab, folder.path(), plain.address(), BRIEF));
    assert_eq!(stripped.fault(), Fault::Rejected, "{stripped}");
    assert!(plain.counts().good > 0);

    let node = node(&lab);
    let ntp = node.ntp_addresses()[0];
    let stranger = error(antp(&Lab::new(), folder.path(), ntp, PATIENCE));
    assert_eq!(stranger.fault(), Fault::Rejected);
    assert_eq!(stranger.place, Place::Antp(ntp, Phase::CertificateCheck));
    assert!(matches!(stranger.why, Why::Untrusted(_)), "{stranger}");
    // Three names for one server are no majority.
    let voter = |name: &str| {
        let anchor = Anchor::authorities(&roots(&lab), server_name()).unwrap();
        Voter { name: name.to_owned(), addresses: ntp.into(), anchor }
    };
    let voters = ["one", "two", "three"].map(voter).into();
    let alone = error(Settings { voters, ..antp(&lab, folder.path(), ntp, PATIENCE) });
    assert_eq!(
        alone.to_string().split(';').next(),
        Some("tentative trust: one and two have one key, and so one say")
    );
    assert_eq!((alone.fault(), alone.place), (Fault::Rejected, Place::Tentative));
    // No server was believed, and so none is remembered.
    assert!(Store::at(folder.path().to_owned()).admit_plain("ntp.test").is_ok());
    // Files of the client's own that are not as they should be are the user's affair.
    std::fs::write(folder.path().join("antp-time"), "yesterday").unwrap();
    let input = error(antp(&lab, folder.path(), ntp, PATIENCE));
    assert_eq!((input.fault(), input.place), (Fault::Input, Place::Store));
    assert!(node.stop());
}

#[test]
fn what_is_not_checked_is_remarked() {
    let (lab, folder) = (Lab::new(), tempfile::tempdir().unwrap());
    let node = node(&lab);
    let ntp = node.ntp_addresses()[0];
    let remarks = |settings: Settings| {
        let mut client = Antp::new(settings).unwrap();
        thrice(&mut client);
        std::mem::take(&mut client.learnt().remarks)
    };
    let settings = || antp(&lab, folder.path(), ntp, PATIENCE);
    let anchor = Anchor::pinned(&std::fs::read(lab.antp_chain("ecdh")).unwrap()).unwrap();
    let pinned = remarks(Settings { anchor, ..settings() });
    assert!(matches!(pinned[..], [Remark::Unchecked(TrustedBy::PinnedCertificate)]), "{pinned:?}");
    let by_hand = unix_seconds();
    let judged = remarks(Settings { judged_at: Some(by_hand), ..settings() });
    assert!(matches!(judged[..], [Remark::JudgedAt(at)] if at == by_hand), "{judged:?}");
    assert!(judged[0].to_string().contains(&rfc3339(by_hand)), "{judged:?}");
    assert!(node.stop());
}
