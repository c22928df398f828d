//! certbot renews the certificates of two names with pebble, an authority for tests, and the server shows the new ones
//! without a further command, while keys are exchanged.

use std::time::{Duration, Instant};

use super::limited;
use super::load::Load;
use super::machine::Machine;
use super::package::Package;
use super::{Report, certificates, server};

/// Names that resolve in the machine alone.
const NAMES: [&str; 2] = ["a.test", "b.test"];
const RENEWAL_COUNT: usize = 2;
/// How soon a renewed certificate is to be shown.
const SHOWN_WITHIN: Duration = Duration::from_secs(60);
/// Key exchanges a second for each name; a prefix may make twenty.
const RATE_RPS: u64 = 8;
/// The longest load; it ends when the renewals are done.
const LOAD_SECONDS: u64 = 200;
/// What the clients trust: pebble's root, which it makes when it starts.
const ROOT: &str = "/etc/ssl/pebble-root.pem";

/// Of certbot: an authority that is not Let's Encrypt's, port 80 of this host, and no questions.
const CERTBOT: &str = "REQUESTS_CA_BUNDLE=/etc/ssl/authority.pem certbot";

pub(crate) fn prove(machine: &Machine, package: &Package, report: &mut Report) -> Result<(), String> {
    package.install(machine)?;
    start_authority(machine)?;
    for name in NAMES {
        machine.succeed(&format!(
            "{CERTBOT} certonly --quiet --non-interactive --standalone --agree-tos --register-unsafely-without-email \
             --server https://localhost:14000/dir --domain {name}"
        ))?;
    }
    server::configure(machine, &tables())?;
    for name in NAMES {
        is_shown(machine, name)?;
    }
    let loads = NAMES.map(|name| {
        let target = format!("{name}:4460 --ca {ROOT} --clients 64");
        Load::start(machine, "ke", &target, RATE_RPS, LOAD_SECONDS).map(|load| (name, load))
    });
    let mut slowest = Duration::ZERO;
    for turn in 1..=RENEWAL_COUNT {
        slowest = slowest.max(renew(machine, turn, report)?);
    }
    report.count("renewals", (RENEWAL_COUNT * NAMES.len()) as u64, "certificates");
    for load in loads {
        let (name, load) = load?;
        let counts = load.stop(machine)?;
        report.say(&format!("key exchanges with {name}: {counts}"));
        if counts.lost + counts.invalid > 0 {
            return Err(format!("{name}: key exchanges failed: {counts}"));
        }
        report.count("renewal-key-exchanges", counts.sent, "key exchanges");
    }
    report.say(&format!("the slowest was shown {slowest:.1?} after certbot had ended"));
    Ok(())
}

fn tables() -> String {
    let table = |name| {
        format!(
            "[[nts.certificate]]\ncertificate-chain = \"/etc/letsencrypt/live/{name}/fullchain.pem\"\n\
             private-key = \"/etc/letsencrypt/live/{name}/privkey.pem\"\n"
        )
    };
    format!("[nts]\nhand-over = \"/run/authentick\"\n{}", NAMES.map(table).concat())
}

/// Starts pebble, and has its root where clients find it.
fn start_authority(machine: &Machine) -> Result<(), String> {
    certificates::make_for(machine, "localhost", &NAMES)?;
    machine.write(
        "/root/pebble.json",
        r#"{"pebble": {"listenAddress": "127.0.0.1:14000", "managementListenAddress": "127.0.0.1:15000",
            "certificate": "/root/chain.pem", "privateKey": "/root/key.pem", "httpPort": 80, "tlsPort": 443}}"#,
    )?;
    machine.succeed(
        "systemd-run --quiet --unit pebble --setenv PEBBLE_VA_NOSLEEP=1 --setenv PEBBLE_WFE_NONCEREJECT=0 \
         pebble -config /root/pebble.json",
    )?;
    let fetch = format!(
        "python3 -c 'import ssl, urllib.request as r; print(r.urlopen(\"https://localhost:15000/roots/0\", \
         context=ssl.create_default_context(cafile=\"{}\")).read().decode())' > {ROOT}",
        certificates::AUTHORITY
    );
    limited::until("pebble answers", Duration::from_secs(20), || machine.succeed(&fetch).map(drop))
}

/// Renews both certificates, and waits until both new ones are shown: how long that took.
fn renew(machine: &Machine, turn: usize, report: &Report) -> Result<Duration, String> {
    let before = NAMES.map(|name| newest(machine, name));
    machine.succeed(&format!("{CERTBOT} renew --quiet --force-renewal --no-random-sleep-on-renew"))?;
    let start = Instant::now();
    for (name, before) in NAMES.into_iter().zip(before) {
        let serial = newest(machine, name)?;
        if serial == before? {
            return Err(format!("certbot has not renewed the certificate of {name}"));
        }
        is_shown(machine, name)?;
        report.say(&format!("renewal {turn}: {name} has {serial}, shown after {:.1?}", start.elapsed()));
    }
    Ok(start.elapsed())
}

/// The serial number of the certificate that certbot has for a name.
fn newest(machine: &Machine, name: &str) -> Result<String, String> {
    let said =
        machine.succeed(&format!("openssl x509 -noout -serial -in /etc/letsencrypt/live/{name}/cert.pem"))?;
    Ok(said.trim().to_owned())
}

/// Waits until who asks for a name is shown its newest certificate.
fn is_shown(machine: &Machine, name: &str) -> Result<(), String> {
    let wanted = newest(machine, name)?;
    let shown = limited::until(&format!("{name} is shown {wanted}"), SHOWN_WITHIN, || {
        let said = machine.succeed(&format!(
            "openssl s_client -connect 127.0.0.1:4460 -servername {name} -alpn ntske/1 < /dev/null 2> /dev/null | \
             openssl x509 -noout -serial"
        ))?;
        if said.trim() == wanted { Ok(()) } else { Err(format!("it is shown {}", said.trim())) }
    });
    shown.map_err(|problem| server::with_log(machine, &problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_a_table_after_the_folder_of_the_hand_over() {
        let text: toml::Table = toml::from_str(&tables()).unwrap();
        let nts = text["nts"].as_table().unwrap();
        assert_eq!(nts["hand-over"].as_str(), Some("/run/authentick"));
        let chains: Vec<&str> = nts["certificate"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|table| table["certificate-chain"].as_str())
            .collect();
        assert_eq!(chains, NAMES.map(|name| format!("/etc/letsencrypt/live/{name}/fullchain.pem")));
    }
}
