//! `--json` prints an object whatever happens.

use authentick_lab::process::closed_port;

use crate::lab::{authentick, text};

#[test]
fn failure_with_json_prints_an_object() {
    let port = closed_port();
    let closed = port.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing").display().to_string();
    for words in [
        "query --json".to_owned(),
        "query --json --count 0 127.0.0.1".to_owned(),
        "query --json --nonsense 127.0.0.1".to_owned(),
        "query --json 127.0.0.1:99999".to_owned(),
        "query --json --auth mac 127.0.0.1".to_owned(),
        format!("query --json --auth mac --keys {missing} --key-id 1 127.0.0.1"),
        format!("query --json --ca {missing} 127.0.0.1"),
        format!("query --json --allow-list {missing} 127.0.0.1"),
        format!("query --json --auth plain {closed}"),
        format!("query --json --ke-port {} 127.0.0.1", closed.port()),
        format!("query --json --auth antp --timeout 0.2 {closed}"),
        "load --json".to_owned(),
        "load plain --json".to_owned(),
        format!("load plain --json --rate x {closed}"),
        "load plain --json 192.0.2.1".to_owned(),
        format!("load plain --json {closed}"),
        format!("load ke --json {closed}"),
        format!("load plain --json --record {missing}/run.json {closed}"),
        "doctor --json".to_owned(),
        "demo --json --exchanges 1".to_owned(),
        "demo --json --out /dev/null/demo".to_owned(),
        "bench mac --json --rounds 0".to_owned(),
        "game table --json --nonsense".to_owned(),
        "game mac limits --json --queries x".to_owned(),
        "plan antp --json".to_owned(),
        format!("keys list --json --config {missing}"),
        format!("keys list --json --state-directory {missing}"),
        format!("keys status --json --config {missing}"),
        format!("keys symmetric list --json --keys {missing}"),
        format!("keys seal list --json --file {missing}"),
        "keys drill --json".to_owned(),
        format!("keys drill --json --key-exchange {closed} --server {closed} --timeout 0.2"),
        "stress --json".to_owned(),
        "--json".to_owned(),
    ] {
        let output = authentick(words.split(' '));
        let object: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{words}: {error}: {}", text(&output)));
        let code = object["exit"].as_i64().and_then(|code| i32::try_from(code).ok());
        assert!(code.is_some_and(|code| code != 0) && code == output.status.code(), "{words}: {object}");
        assert!(object["error"].as_str().is_some_and(|error| !error.is_empty()), "{words}: {object}");
    }
}
