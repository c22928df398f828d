//! certbot renews the certificates of two names with pebble, an authority for tests, and the server shows the new ones
//! without a further command, while keys are exchanged. lego does so once for a third name.

use std::time::{Duration, Instant};

use super::limited;
use super::load::Load;
use super::machine::Machine;
use super::package::Package;
use super::{Report, certificates, server};

/// Names that resolve in the machine alone: those of certbot, and that of lego.
const NAMES: [&str; 2] = ["a.test", "b.test"];
const LEGO_NAME: &str = "c.test";
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
/// What the manual has lego do after a renewal.
const LEGO_HOOK: &str = "systemctl start authentick-certificates.service";
/// Of lego: the same.
const LEGO: &str = "LEGO_CA_CERTIFICATES=/etc/ssl/authority.pem lego --server https://localhost:14000/dir --accept-tos \
                    --email root@c.test --path /etc/lego --http --domains c.test";

pub(crate) fn prove(machine: &Machine, package: &Package, report: &mut Report) -> Result<(), String> {
    package.install(machine)?;
    start_authority(machine)?;
    for name in NAMES {
        machine.succeed(&format!(
            "{CERTBOT} certonly --quiet --non-interactive --standalone --agree-tos --register-unsafely-without-email \
             --server https://localhost:14000/dir --domain {name}"
        ))?;
    }
    machine.succeed(&format!("{LEGO} run"))?;
    server::configure(machine, &tables())?;
    for name in NAMES.into_iter().chain([LEGO_NAME]) {
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
    slowest = slowest.max(renew_by_lego(machine, report)?);
    report.count("renewals", (RENEWAL_COUNT * NAMES.len() + 1) as u64, "certificates");
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
    let of_lego = format!(
        "[[nts.certificate]]\ncertificate-chain = \"{}\"\nprivate-key = \"/etc/lego/certificates/{LEGO_NAME}.key\"\n",
        certificate(LEGO_NAME)
    );
    format!("[nts]\nhand-over = \"/run/authentick\"\n{}{of_lego}", NAMES.map(table).concat())
}

/// Starts pebble, and has its root where clients find it.
fn start_authority(machine: &Machine) -> Result<(), String> {
    certificates::make_for(machine, "localhost", &[NAMES[0], NAMES[1], LEGO_NAME])?;
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

/// Renews lego's certificate, with the hook that the manual has, and waits until it is shown: how long that took.
fn renew_by_lego(machine: &Machine, report: &Report) -> Result<Duration, String> {
    let before = newest(machine, LEGO_NAME)?;
    machine.succeed(&format!("{LEGO} renew --days 9999 --no-random-sleep --renew-hook '{LEGO_HOOK}'"))?;
    let start = Instant::now();
    let serial = newest(machine, LEGO_NAME)?;
    if serial == before {
        return Err(format!("lego has not renewed the certificate of {LEGO_NAME}"));
    }
    is_shown(machine, LEGO_NAME)?;
    report.say(&format!("renewal by lego: {LEGO_NAME} has {serial}, shown after {:.1?}", start.elapsed()));
    Ok(start.elapsed())
}

/// Where the certificate of a name is, with those that sign it.
fn certificate(name: &str) -> String {
    match name {
        LEGO_NAME => format!("/etc/lego/certificates/{name}.crt"),
        _ => format!("/etc/letsencrypt/live/{name}/fullchain.pem"),
    }
}

/// The serial number of the certificate that certbot or lego has for a name.
fn newest(machine: &Machine, name: &str) -> Result<String, String> {
    let said = machine.succeed(&format!("openssl x509 -noout -serial -in {}", certificate(name)))?;
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
        assert_eq!(chains, [NAMES[0], NAMES[1], LEGO_NAME].map(certificate));
        let page = include_str!("../../../docs/manual/certificates.md");
        assert!(page.contains(LEGO_HOOK), "it is the manual's");
    }
}
