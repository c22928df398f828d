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

/// What the kernel counts for a small datagram that waits, in octets: 768 for it, and some room.
const DATAGRAM_MEMORY: u64 = 832;

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

/// When the unit last changed its state so, by systemd's clock.
pub(crate) fn instant(machine: &Machine, property: &str) -> Result<Duration, String> {
    let text = machine.show(UNIT, property)?;
    let microseconds = text.parse().map_err(|_| format!("{property} of {UNIT} is `{text}`"))?;
    Ok(Duration::from_micros(microseconds))
}

/// How many datagrams wait in its sockets for time, at most, while no process reads them: those of one worker times the
/// workers.
pub(crate) fn waiting_count_max(machine: &Machine) -> Result<u64, String> {
    let said = machine.succeed("ss --no-header --udp --listening --numeric --memory 'sport = :123'")?;
    let smallest = said.split_whitespace().filter_map(receive_buffer).min();
    let smallest = smallest.ok_or_else(|| format!("ss shows no socket for time: {}", said.trim()))?;
    Ok(smallest / DATAGRAM_MEMORY * WORKER_COUNT)
}

/// What `skmem:(r0,rb212992,...)` of ss has for the size of the receive buffer, in octets.
fn receive_buffer(word: &str) -> Option<u64> {
    word.strip_prefix("skmem:(")?.split(',').find_map(|field| field.strip_prefix("rb")?.parse().ok())
}

/// A problem, and what the server has logged last.
pub(crate) fn with_log(machine: &Machine, problem: &str) -> String {
    let log = machine.journal(UNIT).unwrap_or_default();
    let last: Vec<&str> = log.lines().rev().take(8).collect();
    format!("{problem}; its log ends:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_buffer_is_that_of_the_kernel() {
        assert_eq!(receive_buffer("skmem:(r0,rb8388608,t0,tb212992,f0,w0,o0,bl0,d0)"), Some(8_388_608));
        assert_eq!(receive_buffer("UNCONN"), None);
    }
}
