//! `authentick doctor --host`.

use std::os::unix::fs::PermissionsExt;

use crate::lab::{Lab, authentick, is_root, text};
use crate::operator::as_nobody;

#[test]
fn host_is_described_in_words_and_as_json() {
    let output = authentick(["doctor", "--host"]);
    assert!(output.status.success(), "{}", text(&output));
    let words = String::from_utf8(output.stdout).unwrap();
    let output = authentick(["doctor", "--host", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // What the program says of itself is what its parts choose.
    assert_eq!(json["aead_path"], authentick_crypto::path().to_string());
    assert!(words.contains(&format!("NTS authentication  {}\n", authentick_crypto::path())), "{words}");
    assert_eq!(json["hash_path"], authentick_crypto::hash_path().to_string());
    assert!(words.contains(&format!("hashes in batches   {}\n", authentick_crypto::hash_path())), "{words}");
    assert_eq!(
        json["usable_cpus"].as_array().unwrap().len(),
        authentick_net::affinity::allowed().unwrap().len()
    );
    assert_eq!(json["receive_stamps"], true);
    let offer = authentick_daemon::containment::offer();
    assert!(words.contains(&format!("containment         {offer}\n")), "{words}");
    assert_eq!(json["system_call_filters"], offer.filters);
    assert_eq!(json["landlock"].as_u64(), offer.landlock.ok().map(u64::from));
    assert!(json["open_files_max"].as_u64().unwrap() >= 1024);
}

#[test]
fn nobody_may_not_have_low_ports_where_root_may() {
    if !is_root("to become a user without rights") {
        return;
    }
    let lab = Lab::new();
    std::fs::set_permissions(lab.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = as_nobody(lab.path(), &["doctor", "--host", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let limit = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
    assert_eq!(json["low_ports"], limit.trim().parse::<u16>().unwrap() < 1024, "{}", text(&output));
}
