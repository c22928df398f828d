//! The server in a machine, as its package starts it.

use std::time::Duration;

use super::limited;
use super::machine::Machine;

pub(crate) const UNIT: &str = "authentick.service";
pub(crate) const CONFIG: &str = "/etc/authentick/authentick.toml";

const WORKER_COUNT: u64 = 2;
const BATCH_SIZE: u64 = 64;

/// As many datagrams as a process can have read and not answered.
pub(crate) const READ_COUNT_MAX: u64 = WORKER_COUNT * BATCH_SIZE;

/// Certificates: one, which an administrator has put into the folder of the configuration.
pub(crate) const ONE_PAIR: &str = r#"
[nts]
certificate-chain = "/etc/authentick/chain.pem"
private-key = "/etc/authentick/key.pem"
"#;

/// Replaces the configuration and restarts the server. The clock of a machine is nobody's, so an operator vouches.
pub(crate) fn configure(machine: &Machine, certificates: &str) -> Result<(), String> {
    let text = format!(
        "[server]\nreference = {{ stratum = 1, id = \"GPS\" }}\nworkers = {WORKER_COUNT}\n\
         batch-size = {BATCH_SIZE}\n{certificates}"
    );
    machine.write(CONFIG, &text)?;
    machine.succeed(&format!("systemctl restart {UNIT}")).map_err(|problem| with_log(machine, &problem))?;
    is_active(machine)
}

/// Waits until it serves.
pub(crate) fn is_active(machine: &Machine) -> Result<(), String> {
    let active = limited::until("the server is active", Duration::from_secs(10), || {
        match machine.show(UNIT, "ActiveState")?.as_str() {
            "active" => Ok(()),
            state => Err(format!("it is {state}")),
        }
    });
    active.map_err(|problem| with_log(machine, &problem))
}

/// A problem, and what the server has logged last.
pub(crate) fn with_log(machine: &Machine, problem: &str) -> String {
    let log = machine.journal(UNIT).unwrap_or_default();
    let last: Vec<&str> = log.lines().rev().take(8).collect();
    format!("{problem}; its log ends:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"))
}
