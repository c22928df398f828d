//! Agents on this machine that stand for hosts of unequal strength.
//!
//! The note's three hosts serviced 25, 35 and 40 of a hundred requests. Ours get processor time in that relation: as
//! root by quotas of control groups (version 1), otherwise by priorities on one processor that they share.

use std::net::{SocketAddr, TcpListener};

use authentick_rig::process::is_installed;
use authentick_rig::processors::{Processor, pinned};
use authentick_rig::quota::Quota;

use crate::Error;
use crate::identities::Identities;
use crate::program::{Launch, Listening, Program};

/// Shares of a processor, as 2,452 : 3,502 : 3,929 of the note's Table 2.
const SHARES: [f64; 3] = [0.22, 0.31, 0.35];
/// Priorities whose weights in the kernel, 526 : 820 : 1024, come close to that.
const NICE: [&str; 3] = ["3", "1", "0"];

/// How hosts are made unequal here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inequality {
    /// By quotas.
    Quotas,
    /// By priorities on one processor.
    Priorities,
    /// Not at all.
    None,
}

impl Inequality {
    /// The best that this machine lets us have.
    pub(super) fn find() -> Self {
        if Quota::new(0.5).is_ok() {
            Inequality::Quotas
        } else if is_installed("nice") {
            Inequality::Priorities
        } else {
            Inequality::None
        }
    }

    /// What is to be said of it.
    pub(super) fn remark(self) -> String {
        match self {
            Inequality::Quotas => format!(
                "Our hosts are processes of one machine, on its last processor, with quotas of {}, {} and {} of it.",
                SHARES[0], SHARES[1], SHARES[2]
            ),
            Inequality::Priorities => format!(
                "Our hosts are processes of one machine that share its last processor, with priorities (nice) {}, {} \
                 and {}; root would have given them quotas.",
                NICE[0], NICE[1], NICE[2]
            ),
            Inequality::None => {
                "Our hosts are processes of one machine, and equal: it grants neither quotas nor priorities."
                    .to_owned()
            }
        }
    }
}

/// Three agents.
#[derive(Debug)]
pub(super) struct Agents(Vec<Listening>);

impl Agents {
    /// Starts them; where `before` names addresses, each is to listen on its own if that is still free, so that a
    /// study that goes on knows its hosts by the same names.
    pub(super) fn start(
        program: &Program,
        identities: &Identities,
        inequality: Inequality,
        before: &[String],
    ) -> Result<Self, Error> {
        let mut agents = Vec::new();
        for index in 0..SHARES.len() {
            let listen = before.get(index).filter(|address| is_free(address));
            let mut command = program.command(match inequality {
                Inequality::Priorities => Launch::Nice(NICE[index]),
                Inequality::Quotas | Inequality::None => Launch::Here,
            });
            command.args(["load", "agent", "--until-eof", "--unpinned", "--rate-limit", "1e8", "--listen"]);
            command.arg(listen.map_or("127.0.0.1:0", String::as_str));
            command.arg("--certificate-chain").arg(identities.chain("agent"));
            command.arg("--private-key").arg(identities.key("agent"));
            command.arg("--coordinators-ca").arg(identities.authority());
            let mut agent = pinned(Processor::Last, || Listening::start(command, "taking orders on "))?;
            if inequality == Inequality::Quotas {
                agent.limit(SHARES[index], "a quota for a host")?;
            }
            agents.push(agent);
        }
        Ok(Agents(agents))
    }

    /// Their names, as `load --agents` takes them.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().map(|agent| agent.address.to_string()).collect()
    }
}

fn is_free(address: &str) -> bool {
    address.parse::<SocketAddr>().is_ok_and(|address| TcpListener::bind(address).is_ok())
}
