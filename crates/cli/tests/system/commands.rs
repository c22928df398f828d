//! What commands have in common: help, names of options, percentiles, negative delays, the host's processors.

use std::process::{Command, Stdio};

use authentick_lab::quota::Quota;
use authentick_lab::skip::skip;
use serde_json::Value;

use crate::lab::{Changed, Lab, Relay, Server, authentick, free_port, program, serve, text};

/// What a command prints that ends well.
#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let output = authentick(arguments.iter().copied());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// What a relay makes of a response.
type Change = fn(Vec<u8>) -> Vec<Vec<u8>>;

/// A server that claims a second more for itself than it took, and where it is asked.
fn slow_by_its_own_account(lab: &Lab) -> (Server, Relay<Changed<Change>>, String) {
    let (server, port) = (serve(lab), free_port());
    let earlier: Change = |mut response: Vec<u8>| {
        let received = u32::from_be_bytes(response[32..36].try_into().unwrap());
        response[32..36].copy_from_slice(&received.wrapping_sub(1).to_be_bytes());
        vec![response]
    };
    let relay = Relay::on_loopback(port, server.ntp, Changed(earlier));
    (server, relay, format!("127.0.0.1:{port}"))
}

#[test]
fn negative_delay_of_a_query_is_stated_and_in_no_median() {
    let lab = Lab::new();
    let (_server, _relay, address) = slow_by_its_own_account(&lab);
    let single = printed(&["query", &address, "--auth", "plain"]);
    assert!(single.contains("(negative: the server claims more time"), "{single}");
    let several = printed(&["query", &address, "--auth", "plain", "--count", "2", "--interval", "0.01"]);
    assert!(several.contains("2 with a negative delay") && !several.contains("median delay"), "{several}");
}

#[test]
fn negative_delays_of_a_load_are_counted() {
    let lab = Lab::new();
    let (_server, _relay, address) = slow_by_its_own_account(&lab);
    let output = authentick(["load", "plain", &address, "--rate", "50", "--step-seconds", "0.5", "--json"]);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let step = &record["steps"][0];
    assert!(step["answered"].as_u64().unwrap() > 0, "{}", text(&output));
    assert_eq!(step["negative_delays"], step["answered"]);
    assert_eq!(step["offset_us"], Value::Null);
    assert!(step["latency_us"]["p95"].is_f64() && step["latency_us"]["p9999"].is_f64(), "{step}");
}

#[test]
fn percentiles_of_a_load_are_shown_and_gated() {
    let lab = Lab::new();
    let server = serve(&lab);
    let target = server.ntp.to_string();
    let output = authentick([
        "load",
        "plain",
        &target,
        "--rate",
        "20",
        "--step-seconds",
        "0.5",
        "--fail-if",
        "p95>10s",
        "--fail-if",
        "p99.99>10s",
    ]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", text(&output));
    let shown = text(&output);
    assert!(shown.contains(" p95 ") && shown.contains(" p99.99 "), "{shown}");
}

#[test]
fn doctor_states_both_counts_of_processors() {
    let found: Value = serde_json::from_str(&printed(&["doctor", "--host", "--json"])).unwrap();
    assert_eq!(found["cpu_count"], found["usable_cpus"].as_array().unwrap().len());
    assert!(found["online_cpu_count"].as_u64() >= found["cpu_count"].as_u64(), "{found}");
}

#[test]
fn quota_of_a_control_group_is_in_doctor() {
    let quota = match Quota::new(0.2) {
        Ok(quota) => quota,
        Err(reason) => return skip(&reason.to_string()),
    };
    let mut shell = Command::new("sh")
        .args(["-c", "read go; exec \"$0\" doctor --host"])
        .arg(program().path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    quota.add(shell.id());
    // The end of its input lets it go on.
    drop(shell.stdin.take());
    let output = shell.wait_with_output().unwrap();
    assert!(text(&output).contains("processor quota     0.2 processors"), "{}", text(&output));
}

#[test]
fn help_is_a_command_and_manual_is_listed() {
    let help = printed(&["help"]);
    assert!(help.contains("Write man pages and shell completions"), "{help}");
    assert_eq!(help, printed(&["--help"]));
    let unknown = authentick(["status"]);
    assert_eq!(unknown.status.code(), Some(64));
    assert!(text(&unknown).contains("similar"), "{}", text(&unknown));
}

#[test]
fn help_shows_only_options_that_apply() {
    for (command, absent) in [
        (["keys", "symmetric"], &["--antp"][..]),
        (["keys", "seal"], &["--antp", "--state-directory"]),
        (["keys", "drill"], &["--antp", "--state-directory"]),
    ] {
        let help = printed(&[command[0], command[1], "--help"]);
        for option in absent {
            assert!(!help.contains(&format!("{option} ")), "{command:?}: {option}: {help}");
        }
    }
    let serve = printed(&["serve", "--help"]);
    for part in ["SIGHUP", "Exit codes", "authentick-serve(1)"] {
        assert!(serve.contains(part), "{part}: {serve}");
    }
}

#[test]
fn former_names_of_options_are_understood() {
    for arguments in [
        ["load", "plain", "::1", "--out", "run.json", "--help"],
        ["load", "plain", "::1", "--force", "--json", "--help"],
        ["load", "agent", "--rate-max", "5", "--until-eof", "--help"],
    ] {
        printed(&arguments);
    }
    let help = printed(&["load", "agent", "--help"]);
    assert!(help.contains("--rate-limit") && !help.contains("--rate-max"), "{help}");
}

#[test]
fn plain_query_needs_no_home() {
    let lab = Lab::new();
    let server = serve(&lab);
    let address = server.ntp.to_string();
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(program().path());
        command.args(["query", &address, "--auth", "plain"]).args(arguments);
        command.env("HOME", "/dev/null").env_remove("XDG_STATE_HOME").output().unwrap()
    };
    let output = ask(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("not checked whether the server has used ANTP"), "{}", text(&output));
    let named = ask(&["--state-directory", "/dev/null/state"]);
    assert_ne!(named.status.code(), Some(0), "a folder that was named has to be there: {}", text(&named));
}
