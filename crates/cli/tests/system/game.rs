//! `authentick game`.

use std::fs;

use serde_json::Value;

use crate::lab::{authentick, text};

const MANUAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/manual/game.md");

fn words(arguments: &[&str]) -> String {
    let output = authentick([&["game"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The manual shows what the commands print. `AUTHENTICK_UPDATE_GOLDEN=1` writes it there.
#[test]
fn tables_of_the_manual_are_what_the_commands_print() {
    for arguments in [
        &["table"][..],
        &["search", "--depth", "3", "--protocol", "plain,plain-e,mac,mac-e,nts,nts-e"],
        &["search", "--random", "2000"],
        &["trace", "replay", "--protocol", "plain"],
    ] {
        let printed = words(arguments);
        let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
        let mark = format!("<!-- authentick game {} -->\n\n```text\n", arguments.join(" "));
        let page = fs::read_to_string(MANUAL).unwrap();
        let (before, rest) = page.split_once(&mark).unwrap_or_else(|| panic!("the manual has no {mark}"));
        let (shown, after) = rest.split_once("```\n").unwrap();
        let expected = printed.join("\n") + "\n";
        if std::env::var_os("AUTHENTICK_UPDATE_GOLDEN").is_some() {
            fs::write(MANUAL, format!("{before}{mark}{expected}```\n{after}")).unwrap();
        } else {
            assert_eq!(
                shown,
                expected,
                "docs/manual/game.md is not what `game {}` prints",
                arguments.join(" ")
            );
        }
    }
}

#[test]
fn strategy_is_played_listed_and_shown_in_every_form() {
    let json: Value =
        serde_json::from_str(&words(&["play", "replay", "--protocol", "plain,nts", "--json"])).unwrap();
    let row = json["rows"][0].as_array().unwrap();
    let verdicts: Vec<_> = row.iter().map(|played| played["verdict"].as_str().unwrap()).collect();
    assert_eq!((verdicts, json["as_expected"].as_bool()), (vec!["WIN-AUTH", "REJECT"], Some(true)));
    let list = words(&["list"]);
    assert!(list.contains("mac-group-e") && list.contains("delay-beyond-e"), "{list}");
    let trace = ["trace", "state-lost", "--protocol", "nts", "--seed", "3"];
    let told = words(&trace);
    assert!(told.contains("server: keys of cookies lost") && told.contains("verdict: STALL"), "{told}");
    let log = words(&[&trace[..], &["--log"]].concat());
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{log}");
    assert_eq!(log, words(&[&trace[..], &["--log"]].concat()), "the same seed");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.svg");
    words(&[&trace[..], &["--svg", file.to_str().unwrap()]].concat());
    assert!(fs::read_to_string(&file).unwrap().contains("keys of cookies lost"));
}

#[test]
fn report_is_one_page_of_all_that_is_played() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("game.html");
    let small = ["report", "--depth", "1", "--random", "20"];
    let printed = words(&[&small[..], &["--html", file.to_str().unwrap()]].concat());
    assert!(
        printed.contains("each ended as the theory says") && printed.contains("nobody wins"),
        "{printed}"
    );
    assert!(printed.contains("Three ways of replacing a GMAC key"), "{printed}");
    let page = fs::read_to_string(&file).unwrap();
    assert!(page.contains("rewrite-times against plain: WIN-AUTH") && page.contains("class=\"sequence\""));
    // Before anything is played.
    let output = authentick(["game", "report", "--depth", "16", "--html", "/no/such/a.html"]);
    assert!(
        text(&output).contains("/no/such/a.html") && text(&output).contains("--html"),
        "{}",
        text(&output)
    );
    assert_ne!(output.status.code(), Some(0));
}

#[test]
fn what_there_is_not_is_named() {
    for (arguments, said) in [
        (&["play", "no-such"][..], "possible values"),
        (&["trace", "faithful", "--protocol", "no-such"], "possible values"),
        (&["trace", "others-c1", "--protocol", "plain"], "nothing to attack"),
        (&["search", "--depth", "0"], "1..=16"),
    ] {
        let output = authentick([&["game"], arguments].concat());
        assert_eq!(output.status.code(), Some(64), "{}", text(&output));
        assert!(text(&output).contains(said), "{said}: {}", text(&output));
    }
    let output =
        authentick(["game", "trace", "replay", "--protocol", "nts", "--svg", "/no/such/folder/a.svg"]);
    assert!(output.status.code() != Some(0) && text(&output).contains("/no/such/folder/a.svg"));
}

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
