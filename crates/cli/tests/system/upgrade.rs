//! State that an earlier version has written, and a client's request under it: what is in `upgrade`, by version.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use authentick_lab::certificates::write_private;
use authentick_lab::process::PATIENCE;
use authentick_wire::header::Header;
use authentick_wire::limits::HEADER_SIZE;

use crate::lab::{Lab, authentick, start, text};

/// The files that a server of the commit a857abc left when it was stopped: after a rotation of its cookie keys, and six
/// uses of a symmetric key. The request's cookie was sealed before that rotation.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/upgrade/a857abc").join(name)
}

/// A lab whose server finds that state.
fn upgraded() -> Lab {
    let lab = Lab::new();
    std::fs::create_dir(lab.state()).unwrap();
    std::fs::set_permissions(lab.state(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    for (name, to) in [
        ("cookie-keys", lab.state()),
        ("antp-state-keys", lab.state()),
        ("symmetric-uses", lab.state()),
        ("keys", lab.path().to_owned()),
    ] {
        write_private(&to.join(name), &std::fs::read_to_string(file(name)).unwrap());
    }
    lab
}

#[test]
fn cookies_keys_and_uses_of_an_earlier_version_are_taken_over() {
    let lab = upgraded();
    let keys = lab.path().join("keys");
    let config = lab.config("", &format!("[symmetric]\nkeys = {keys:?}"));
    let mut server = start(&config);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut response = [0; 2048];
    client.send_to(&std::fs::read(file("request.bin")).unwrap(), server.ntp).unwrap();
    let size = client.recv(&mut response).unwrap();
    let header = Header::parse(response.first_chunk::<HEADER_SIZE>().unwrap());
    assert!(header.stratum == 1 && size > HEADER_SIZE, "its cookie is opened: {header:?}, {size} octets");

    let ntp = server.ntp.to_string();
    let arguments = ["query", &ntp, "--auth", "mac", "--key-id", "1", "--keys", keys.to_str().unwrap()];
    let output = authentick(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    server.process.signal("-TERM");
    assert_eq!(server.process.wait(), 0);
    let log = server.process.log();
    assert!(!log.contains("uses") && !log.contains("ERROR"), "nothing is lost: {log}");
    let list = |more: &[&str]| {
        let mut all = vec!["keys"];
        all.extend(more);
        let state = lab.state();
        all.extend(["list", "--state-directory", state.to_str().unwrap()]);
        text(&authentick(all))
    };
    let cookie_keys = list(&[]);
    for id in ["c3e549a9", "c3e549aa", "c3e549ab"] {
        assert!(cookie_keys.contains(id), "{id}: {cookie_keys}");
    }
    assert!(list(&["--antp"]).contains("5759cb3b"));
    let symmetric = list(&["symmetric", "--keys", keys.to_str().unwrap()]);
    assert!(symmetric.contains("used 8 times"), "six, and a request with its answer: {symmetric}");
}
