//! What vouches for a server's time, and what an operator hears of it.

use std::net::UdpSocket;
use std::path::Path;

use authentick_crypto::kdf::sha1;

use crate::lab::{Lab, authentick, start, text, wait_for};

/// What `--check` says of a configuration that has no mistake.
fn checked(config: &Path) -> String {
    let output = authentick(["serve", "--check", "--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    text(&output)
}

#[test]
fn check_warns_of_an_upstream_that_is_silent_and_of_what_others_score_down() {
    let lab = Lab::new();
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap().to_string();
    let said = checked(&lab.config(&format!("reference = {{ upstream = \"{address}\" }}"), ""));
    assert!(said.contains("does not answer") && said.contains("allow 127.0.0.1"), "{said}");
    let said = checked(&lab.config("reference = { upstream = \"no-such-name.invalid:123\" }", ""));
    let lookup = "server.reference.upstream = \"no-such-name.invalid:123\": name lookup failed: ";
    assert!(said.contains(lookup) && said.contains("has no address yet"), "{said}");
    let said = checked(&lab.config("reference = { kernel = true, stratum = 8 }\nrefusal = \"kiss\"", ""));
    assert!(said.contains("served as stratum 8") && said.contains("monitors count a kiss"), "{said}");
    let said = checked(&lab.config("reference = { kernel = true, stratum = 3 }", ""));
    assert!(!said.contains("scores it down"), "{said}");
}

/// A list of leap seconds that ends, and whose last second comes, so many seconds after 1900.
fn list(end: u64, last: u64) -> String {
    let update = "3960835200";
    let hash = sha1(&[format!("{update}{end}227206080010{last}11").as_bytes()]);
    let words: Vec<String> =
        hash.chunks(4).map(|word| format!("{:x}", u32::from_be_bytes(word.try_into().unwrap()))).collect();
    format!("#$ {update}\n#@ {end}\n2272060800 10 # 1 Jan 1972\n{last} 11\n#h {}\n", words.join(" "))
}

#[test]
fn asserted_clock_announces_the_leap_seconds_of_its_list_until_that_ends() {
    const DAY: u64 = 86_400;
    let lab = Lab::new();
    let file = lab.path().join("leap-seconds.list");
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() + 2_208_988_800;
    std::fs::write(&file, list(now + 40 * DAY, now + 3_600)).unwrap();
    let config = lab.config(&format!("leap-seconds = {file:?}"), "");
    assert!(!checked(&config).contains("leap second is announced"));
    let server = start(&config);
    let leap = |leap: f64| {
        wait_for("the leap indicator", || (server.metric("ntp_system_leap_indicator") == leap).then_some(()));
    };
    leap(1.0);
    assert_eq!(
        server.metric("ntp_leap_seconds_expiry_timestamp_seconds") as u64,
        now + 40 * DAY - 2_208_988_800
    );
    let log = |words: &str| wait_for(words, || server.process.log().contains(words).then_some(()));

    std::fs::write(&file, "#$ 1\n").unwrap();
    server.process.signal("-HUP");
    log("what it said before holds");
    leap(1.0);
    std::fs::write(&file, list(now + 20 * DAY, now + 3_600)).unwrap();
    server.process.signal("-HUP");
    log("no leap second is announced from then on");
    std::fs::write(&file, list(now - 1, now + 3_600)).unwrap();
    server.process.signal("-HUP");
    log("has ended, on ");
    leap(0.0);
    std::fs::write(&file, "#$ 1\n").unwrap();
    let output = authentick(["serve", "--check", "--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(78), "{}", text(&output));
    assert!(
        text(&output).contains("server.leap-seconds") && text(&output).contains("#@"),
        "{}",
        text(&output)
    );
}
