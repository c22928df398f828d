//! Debian's chronyd in a machine, as an NTS client that leaves the clock alone (`-x`).

use std::time::Duration;

use super::limited;
use super::machine::Machine;

const SOCKET: &str = "/run/chrony/chronyd.sock";

/// What chronyd says of its keys: chronyc(1), `authdata`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthData {
    /// Goes up by one with each key exchange.
    pub(crate) key_id: u64,
    /// How many NTSN kisses came since the last key exchange.
    pub(crate) nak_count: u64,
    pub(crate) cookie_count: u64,
}

impl AuthData {
    /// From a line of `chronyc -c authdata`: name, mode, key, type, length, last, attempts, NAKs, cookies, their size.
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.trim().split(',').collect();
        let number = |index: usize| fields.get(index)?.parse().ok();
        let is_nts = fields.get(1) == Some(&"NTS");
        Some(AuthData { key_id: number(2)?, nak_count: number(7)?, cookie_count: number(8)? })
            .filter(|_| is_nts)
    }
}

/// Starts it, and waits until it has keys and answers.
pub(crate) fn start(machine: &Machine, server: &str, authority: &str) -> Result<AuthData, String> {
    let config = format!(
        "server {server} nts iburst minpoll -2 maxpoll -2\nntstrustedcerts {authority}\nbindcmdaddress {SOCKET}\n\
         cmdport 0\nport 0\ndriftfile /run/chrony/drift\n"
    );
    machine.write("/root/chrony.conf", &config)?;
    machine.succeed(
        "install -d -m 750 -o _chrony -g _chrony /run/chrony && \
         systemd-run --quiet --unit chrony-client chronyd -x -d -f /root/chrony.conf",
    )?;
    limited::until("chronyd has its keys", Duration::from_secs(30), || {
        let answered = source_reach(machine)?;
        match authdata(machine)? {
            // All eight answered, and as many cookies as a client keeps.
            data if answered == 0o377 && data.cookie_count == 8 => Ok(data),
            data => Err(format!("{data:?}, reach {answered:o}")),
        }
    })
}

/// What it says of its keys now.
pub(crate) fn authdata(machine: &Machine) -> Result<AuthData, String> {
    let said = machine.succeed(&format!("chronyc -h {SOCKET} -c authdata"))?;
    said.lines().find_map(AuthData::parse).ok_or_else(|| format!("chronyc says of its keys: {}", said.trim()))
}

/// Which of its last eight requests were answered, a bit each.
fn source_reach(machine: &Machine) -> Result<u32, String> {
    let said = machine.succeed(&format!("chronyc -h {SOCKET} -c sources"))?;
    reach(&said).ok_or_else(|| format!("chronyc says of its source: {}", said.trim()))
}

/// From `chronyc -c sources`: mode, state, name, stratum, poll, reach in octal.
fn reach(said: &str) -> Option<u32> {
    u32::from_str_radix(said.lines().next()?.split(',').nth(5)?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_nts_are_read_and_others_are_none() {
        let line = "ntp.test,NTS,3,15,256,12,0,1,8,100";
        assert_eq!(AuthData::parse(line), Some(AuthData { key_id: 3, nak_count: 1, cookie_count: 8 }));
        assert_eq!(AuthData::parse("ntp.test,-,0,0,0,-1,0,0,0,0"), None);
        assert_eq!(AuthData::parse(""), None);
    }

    #[test]
    fn reach_is_octal() {
        assert_eq!(reach("^,*,ntp.test,1,-2,377,0,0.000000001,0.000000001,0.000000001\n"), Some(0o377));
        assert_eq!(reach(""), None);
    }
}
