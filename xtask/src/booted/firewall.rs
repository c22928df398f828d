//! The commands of the manual's page on firewalls, where firewalld and ufw run.

use super::Report;
use super::machine::Machine;
use super::package::Package;

const PAGE: &str = include_str!("../../../docs/manual/operating.md");
const HEADING: &str = "\n## Firewall\n";

/// A firewall, what starts and stops it, and how it says what it lets in.
struct Firewall {
    program: &'static str,
    start: &'static str,
    shown_by: &'static str,
    lets_in: [&'static str; 2],
    stop: &'static str,
}

const FIREWALLS: [Firewall; 2] = [
    Firewall {
        program: "firewall-cmd",
        start: "systemctl unmask --quiet firewalld && systemctl start firewalld",
        shown_by: "firewall-cmd --list-all",
        lets_in: ["ntp", "4460/tcp"],
        stop: "systemctl stop firewalld",
    },
    Firewall {
        program: "ufw",
        start: "ufw --force enable",
        shown_by: "ufw status",
        lets_in: ["123/udp", "4460/tcp"],
        stop: "ufw disable",
    },
];

pub(crate) fn prove(machine: &Machine, _: &Package, report: &mut Report) -> Result<(), String> {
    for Firewall { program, start, shown_by, lets_in, stop } in &FIREWALLS {
        machine.succeed(start)?;
        let shown = || machine.succeed(shown_by);
        let before = shown()?;
        let commands = commands(program);
        for command in &commands {
            machine.succeed(command)?;
        }
        let after = shown()?;
        if commands.is_empty() || lets_in.iter().any(|what| before.contains(what) || !after.contains(what)) {
            return Err(format!(
                "{program}: the page lets {lets_in:?} in; before:\n{before}\nafter:\n{after}"
            ));
        }
        report.say(&format!(
            "{program}: {} commands, after which it lets {} in",
            commands.len(),
            lets_in.join(", ")
        ));
        machine.succeed(stop)?;
    }
    Ok(())
}

/// The page's commands of a program.
fn commands(program: &str) -> Vec<&'static str> {
    let section = PAGE.split_once(HEADING).map_or("", |(_, rest)| rest.split("\n## ").next().unwrap_or(rest));
    let lines = section.lines().filter_map(|line| line.strip_prefix("    "));
    lines.filter(|line| line.split(' ').next() == Some(program)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_commands_of_each_firewall() {
        for firewall in &FIREWALLS {
            assert!(!commands(firewall.program).is_empty(), "{}", firewall.program);
        }
        assert_eq!(commands("no-firewall"), [""; 0]);
    }
}
