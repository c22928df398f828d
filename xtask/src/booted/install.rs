//! The life of an installation: it starts soon and only with a good configuration, says how it does, reads its files
//! again, gives up what it does not need, keeps its keys when it is removed, and leaves nothing when it is purged.

use std::time::Duration;

use super::listing::Listing;
use super::machine::Machine;
use super::package::Package;
use super::server::{self, CONFIG, UNIT};
use super::{Report, certificates};

const NAME: &str = "authentick";
const KEYS: &str = "/var/lib/authentick/cookie-keys";
/// How long a start may take, until the server says that it is ready.
const READY_MAX: Duration = Duration::from_millis(500);
const START_COUNT: usize = 5;
/// In tenths, as `systemd-analyze security` has it.
const EXPOSURE_MAX: u32 = 20;

pub(crate) fn prove(machine: &Machine, package: &Package, report: &mut Report) -> Result<(), String> {
    let before = Listing::of(machine)?;
    package.install(machine)?;
    starts_with_a_good_configuration_only(machine, report)?;
    certificates::make(machine)?;
    server::configure(machine, server::ONE_PAIR)?;
    is_ready_soon(machine, report)?;
    says_how_it_does(machine, report)?;
    reloads(machine)?;
    exposure(machine, report)?;
    is_removed(machine, package, report)?;
    let after = Listing::of(machine)?;
    report.count("install-entries", after.count(), "entries");
    match after.since(&before).as_slice() {
        [] => {
            report.say(&format!("purged: nothing of it is left among {} entries", after.count()));
            Ok(())
        }
        left => Err(format!("purging changes what was there before the installation:\n{}", left.join("\n"))),
    }
}

fn starts_with_a_good_configuration_only(machine: &Machine, report: &Report) -> Result<(), String> {
    let enabled = machine.run(&format!("systemctl is-enabled {UNIT}"))?.text();
    if enabled.trim() != "enabled" {
        return Err(format!("after the installation {UNIT} is {}", enabled.trim()));
    }
    let is_good = machine.run("authentick serve --check")?.status.success();
    let state = machine.show(UNIT, "ActiveState")?;
    if is_good != (state == "active") {
        return Err(format!(
            "the configuration of the package is good: {is_good}; with it the server is {state}"
        ));
    }
    report.say(&format!("installed: enabled, {state}; its configuration is good: {is_good}"));
    machine.succeed(&format!("cp {CONFIG} /root/shipped.toml"))?;
    machine.write(CONFIG, "[server]\nlisten = 7\n")?;
    if is_good {
        // What runs goes on with the configuration that it has.
        if machine.run(&format!("systemctl reload {UNIT}"))?.status.success() {
            return Err("a reload with a bad configuration seems to succeed".to_owned());
        }
        server::is_active(machine)?;
    }
    let start = machine.run(&format!("systemctl restart {UNIT}"))?;
    let log = machine.journal(UNIT)?;
    if start.status.success() || machine.show(UNIT, "ActiveState")? == "active" {
        return Err("the server starts with a bad configuration".to_owned());
    }
    if !log.contains(CONFIG) || !log.contains("line 2") {
        return Err(server::with_log(machine, "the log does not name what is wrong in the configuration"));
    }
    machine.succeed(&format!(
        "cp /root/shipped.toml {CONFIG}; systemctl stop {UNIT}; systemctl reset-failed {UNIT}"
    ))?;
    report.say("a bad configuration: not started, and the log names it");
    Ok(())
}

fn is_ready_soon(machine: &Machine, report: &Report) -> Result<(), String> {
    let mut took = Vec::new();
    for _ in 0..START_COUNT {
        // A unit may start a few times in ten seconds.
        machine.succeed(&format!("systemctl reset-failed {UNIT}; systemctl restart {UNIT}"))?;
        let at = |property| server::instant(machine, property);
        let (start, ready) = (at("InactiveExitTimestampMonotonic")?, at("ActiveEnterTimestampMonotonic")?);
        took.push(ready.saturating_sub(start));
    }
    took.sort_unstable();
    report.say(&format!("ready after {took:.0?}, in order of length"));
    // A busy machine may hold up one of them.
    match took.get(START_COUNT / 2) {
        Some(median) if *median <= READY_MAX => Ok(()),
        _ => Err(format!("ready after {took:?}; {READY_MAX:?} are allowed")),
    }
}

fn says_how_it_does(machine: &Machine, report: &Report) -> Result<(), String> {
    let status = machine.show(UNIT, "StatusText")?;
    let shown = machine.succeed(&format!("systemctl status --no-pager {UNIT}"))?;
    if status.is_empty() || !shown.contains(&status) {
        return Err(format!("`systemctl status` does not show how the server does: `{status}`"));
    }
    report.say(&format!("status: {status}"));
    Ok(())
}

fn reloads(machine: &Machine) -> Result<(), String> {
    machine.succeed(&format!(
        "sed --in-place 's/^\\[server\\]/&\\ndeny = [\"192.0.2.0\\/24\"]/' {CONFIG} && systemctl reload {UNIT}"
    ))?;
    server::is_active(machine)?;
    match machine.journal(UNIT)?.contains("in force now: server.deny") {
        true => Ok(()),
        false => Err(server::with_log(machine, "a reload does not put the configuration in force")),
    }
}

fn exposure(machine: &Machine, report: &Report) -> Result<(), String> {
    let said =
        machine.run(&format!("systemd-analyze security --no-pager --threshold={EXPOSURE_MAX} {UNIT}"))?;
    let text = said.text();
    let last = text.lines().rev().find(|line| line.contains("Overall exposure level")).unwrap_or_default();
    report.say(last.trim());
    match said.status.success() && !last.is_empty() {
        true => Ok(()),
        false => {
            // Each finding has a mark, and those that are good another one.
            let bad: Vec<&str> = text.lines().filter(|line| line.starts_with('✗')).collect();
            Err(format!(
                "systemd-analyze finds too much exposure: {}\n{}",
                said.stderr.trim(),
                bad.join("\n")
            ))
        }
    }
}

/// Removal keeps configuration and keys, which serve when it is installed again; then it is purged.
fn is_removed(machine: &Machine, package: &Package, report: &Report) -> Result<(), String> {
    let kept = || machine.succeed(&format!("sha256sum {KEYS} {CONFIG}"));
    let before = kept()?;
    machine.succeed(&format!("dpkg --remove {NAME}"))?;
    if machine.run(&format!("systemctl is-active {UNIT}"))?.status.success() {
        return Err("the server runs although its package is removed".to_owned());
    }
    if kept()? != before {
        return Err("removing the package changes keys or configuration".to_owned());
    }
    package.install(machine)?;
    server::is_active(machine)?;
    if kept()? != before {
        return Err("installing the package again changes keys or configuration".to_owned());
    }
    report.say("removed: keys and configuration are kept, and serve again when it is installed");
    // What an administrator has put there is the administrator's.
    machine.succeed("rm -f /etc/authentick/chain.pem /etc/authentick/key.pem")?;
    machine.succeed(&format!("dpkg --purge {NAME}")).map(drop)
}
