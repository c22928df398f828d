//! `authentick game`.

use serde_json::Value;

use crate::lab::{authentick, text};

fn json(arguments: &[&str]) -> Value {
    let output = authentick([&["game", "mac"], arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Verdicts of the attempts at `pointer` of the first program.
fn verdicts<'a>(played: &'a Value, pointer: &str) -> Vec<&'a str> {
    let attempts = played["programs"][0].pointer(pointer).unwrap().as_array().unwrap();
    attempts.iter().map(|attempt| attempt["verdict"].as_str().unwrap()).collect()
}

#[test]
fn all_programs_end_as_the_theory_says() {
    let played = json(&[]);
    assert_eq!((&played["seed"], &played["as_expected"]), (&1.into(), &true.into()));
    let names: Vec<_> =
        played["programs"].as_array().unwrap().iter().map(|one| one["program"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["length-extension", "gmac-nonce", "poly1305-nonce", "others", "refresh", "salt", "limits"]
    );
}

#[test]
fn attacks_win_and_lose_where_they_should() {
    let win = "WIN-AUTH";
    let played = json(&["gmac-nonce", "--seed", "7"]);
    assert_eq!(verdicts(&played, "/attempts"), [win, win, win, win, "REJECT", "REJECT"]);
    let played = json(&["poly1305-nonce", "--seed", "7"]);
    assert_eq!(verdicts(&played, "/attempts"), [win, win, "REJECT", "REJECT", "REJECT"]);
    let played = json(&["length-extension", "--seed", "7"]);
    assert_eq!(verdicts(&played, "/packets")[..3], [win; 3], "keys of 5 and 7 octets");
    assert!(verdicts(&played, "/packets")[3..].iter().all(|verdict| *verdict == "REJECT"));
    assert_eq!(played["programs"][0]["framing"][0]["behind_a_header"], serde_json::json!([5, 7, 69, 71]));
    assert_eq!(json(&["length-extension", "--seed", "7"]), played, "the same seed");
}

/// Verdicts at the client, then at the server, of one algorithm's attempts on whole packets.
fn on_the_wire(played: &Value, pointer: &str) -> [Vec<String>; 2] {
    ["client", "server"].map(|victim| {
        let verdicts = verdicts(played, &format!("{pointer}/{victim}"));
        verdicts.into_iter().map(str::to_owned).collect()
    })
}

#[test]
fn whole_packets_win_against_our_client_and_server_where_they_should() {
    let (win, lose) = ("WIN-AUTH", "REJECT");
    let played = json(&["gmac-nonce", "--seed", "7"]);
    for pointer in ["/on_the_wire", "/on_the_wire_with_salt"] {
        let [client, server] = on_the_wire(&played, pointer);
        assert_eq!(client, [win, win, win, win, lose]);
        assert_eq!(server, [win, win, win, lose]);
    }
    let played = json(&["poly1305-nonce", "--seed", "7"]);
    assert_eq!(on_the_wire(&played, "/on_the_wire"), [[win, lose, lose, lose]; 2]);
    let played = json(&["length-extension", "--seed", "7"]);
    for verdicts in on_the_wire(&played, "/on_the_wire") {
        assert_eq!(verdicts[..4], [win; 4], "keys of 5, 7, 69 and 71 octets");
        assert!(verdicts[4..].iter().all(|verdict| verdict == lose) && verdicts.len() >= 12);
    }
    let played = json(&["others", "--seed", "7"]);
    for index in 0..5 {
        let verdicts = on_the_wire(&played, &format!("/withstood/{index}/on_the_wire"));
        assert_eq!(verdicts, [[lose; 5]; 2]);
    }
}

#[test]
fn words_have_the_figures_of_the_draft() {
    let output = authentick(["game", "mac", "refresh"]);
    let words = String::from_utf8(output.stdout).unwrap();
    for figure in ["8166 years", "42.6 h", "0.39"] {
        assert!(words.contains(figure), "{figure}: {words}");
    }
    let output = authentick(["game", "mac", "limits", "--queries", "2^48,1000"]);
    let words = String::from_utf8(output.stdout).unwrap();
    assert!(words.contains("\n  2^48 ") && words.contains("\n  2^9.97 "), "{words}");
}

#[test]
fn queries_are_for_the_table_alone_and_must_be_numbers() {
    let output = authentick(["game", "mac", "salt", "--queries", "2^40"]);
    assert_eq!(output.status.code(), Some(64), "{}", text(&output));
    assert!(text(&output).contains("game mac limits"), "{}", text(&output));
    for arguments in [["limits", "--queries", "2^200"], ["limits", "--seed", "x"]] {
        let output = authentick(["game", "mac"].into_iter().chain(arguments));
        assert_eq!(output.status.code(), Some(64), "{}", text(&output));
    }
    assert_eq!(authentick(["game", "mac", "everything"]).status.code(), Some(64));
}
