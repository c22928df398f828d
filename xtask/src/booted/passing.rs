//! States of the host that pass end no server for good: each is there at a start, lasts for some seconds, goes, and the
//! server serves soon after, without a command.

use std::time::{Duration, Instant};

use super::machine::Machine;
use super::package::Package;
use super::server::{self, UNIT};
use super::{Report, certificates};

/// How long after a state has passed the server may take to serve.
const SERVES_WITHIN: Duration = Duration::from_secs(15);
/// How long a state lasts: longer than the server's patience in it, so that the service manager starts it again.
const LASTS: Duration = Duration::from_secs(8);
/// Takes the configuration's place in part.
const FRAGMENT: &str = "/etc/authentick/conf.d/passing.toml";

/// A state of the host.
struct State {
    name: &'static str,
    /// What the configuration has for it.
    fragment: &'static str,
    /// Scripts that bring it about, and end it.
    begin: &'static str,
    end: &'static str,
    /// Succeeds once the server serves what the state kept it from.
    served: &'static str,
}

const STATES: [State; 5] = [
    State {
        name: "address late",
        fragment: "[server]\nlisten = [\"198.18.7.1:123\"]\n",
        begin: "true",
        end: "ip address add 198.18.7.1/24 dev lo",
        served: "authentick query 198.18.7.1 --auth plain --timeout 1",
    },
    State {
        name: "interface late",
        fragment: "[server]\nbind-patience = \"2s\"\nlisten = [\"127.0.0.1:123\", \"[fe80::1%late0]:123\"]\n",
        begin: "true",
        end: "ip link add late0 type veth peer name late1 && ip address add fe80::1/64 dev late0 nodad && \
              ip link set late0 up",
        served: "authentick query 127.0.0.1 --auth plain --timeout 1",
    },
    State {
        name: "port taken",
        fragment: "[server]\nbind-patience = \"2s\"\nlisten = [\"127.0.0.1:123\"]\n",
        begin: "printf '[server]\\nlisten = [\"127.0.0.1:123\"]\\nworkers = 1\\nuser = \"root\"\\nstate-directory = \
                \"/root/holder\"\\n' > /root/holder.toml && systemd-run --unit=holder authentick serve --config \
                /root/holder.toml && sleep 1",
        end: "systemctl stop holder",
        served: "systemctl is-active --quiet authentick && authentick query 127.0.0.1 --auth plain --timeout 1",
    },
    State {
        name: "metrics port taken",
        fragment: "[server]\nlisten = [\"127.0.0.1:123\"]\n[metrics]\nlisten = \"127.0.0.1:9975\"\n",
        begin: "systemd-run --unit=holder systemd-socket-activate -l 127.0.0.1:9975 /bin/true && sleep 1",
        end: "systemctl stop holder",
        served: "authentick query 127.0.0.1 --auth plain --timeout 1 && journalctl -u authentick | grep -q 'showing \
                 metrics'",
    },
    State {
        name: "disk full at the first start",
        fragment: "[server]\nlisten = [\"127.0.0.1:123\"]\n",
        begin: "mkdir -p /var/lib/authentick && mount -t tmpfs -o size=64k,mode=700,uid=authentick,gid=authentick \
                tmpfs /var/lib/authentick && (cat /dev/zero > /var/lib/authentick/filler || true)",
        end: "rm /var/lib/authentick/filler",
        served: "authentick query 127.0.0.1 --auth plain --timeout 1 && test -s /var/lib/authentick/cookie-keys",
    },
];

pub(crate) fn prove(machine: &Machine, package: &Package, report: &mut Report) -> Result<(), String> {
    package.install(machine)?;
    certificates::make(machine)?;
    server::configure(machine, server::ONE_PAIR)?;
    for state in &STATES {
        let State { name, fragment, begin, end, served } = state;
        let failed = |problem: String| server::with_log(machine, &format!("{name}: {problem}"));
        machine.succeed(&format!("systemctl stop {UNIT}"))?;
        machine.write(FRAGMENT, fragment)?;
        machine.succeed(begin).map_err(failed)?;
        machine.succeed(&format!("systemctl start --no-block {UNIT}"))?;
        std::thread::sleep(LASTS);
        machine.succeed(end).map_err(failed)?;
        let passed = Instant::now();
        while !machine.run(served)?.status.success() {
            if passed.elapsed() > SERVES_WITHIN {
                return Err(failed(format!("not served {SERVES_WITHIN:?} after it had passed")));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        let starts = machine.show(UNIT, "NRestarts")?;
        report.say(&format!("{name}: served {:.1?} after it passed, {starts} restarts", passed.elapsed()));
    }
    report.count("passing-states", STATES.len() as u64, "states");
    Ok(())
}
