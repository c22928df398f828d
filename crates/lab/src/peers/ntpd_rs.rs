//! ntpd-rs, as client and server, where it cannot set clocks.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use authentick_rig::peers::{self, Place, Program};

use super::{LOOPBACK, files, program, setup, start_sandboxed};
use crate::certificates::Lab;
use crate::hosts::{Host, Hosts};
use crate::process::{Process, text};

/// ntpd-rs. As a client it would steer the clock: it runs behind a filter that answers every attempt with success and
/// does nothing, and without the right to do it anyway.
#[derive(Debug)]
pub struct NtpdRs {
    daemon: Program,
    control: Program,
    place: Place,
    address: IpAddr,
}

impl NtpdRs {
    /// ntpd-rs, if it is here.
    #[must_use]
    pub fn find() -> Option<Self> {
        Some(NtpdRs {
            daemon: program("ntpd-rs", "bin/ntp-daemon")?,
            control: program("ntpd-rs", "bin/ntp-ctl")?,
            place: Place::here(),
            address: LOOPBACK,
        })
    }

    /// The same on a host, where a server listens on the host's IPv4 address.
    #[must_use]
    pub fn on(self, hosts: &Hosts, host: Host) -> Self {
        NtpdRs { place: Place::on(hosts, host), address: hosts.address(host), ..self }
    }

    /// A client of one NTS source.
    #[must_use]
    pub fn client(&self, lab: &Lab, ke: SocketAddr) -> NtpdRsClient {
        self.client_called(lab, "ntpd-rs", ke)
    }

    /// The same, for a lab that has several: its files have this name.
    #[must_use]
    pub fn client_called(&self, lab: &Lab, name: &str, ke: SocketAddr) -> NtpdRsClient {
        self.client_of(lab, name, &nts(lab, ke), "info", 4)
    }

    /// A client of one NTS source that asks every two seconds and logs what becomes of each answer.
    #[must_use]
    pub fn talkative_client(&self, lab: &Lab, ke: SocketAddr) -> NtpdRsClient {
        self.client_of(lab, "ntpd-rs", &nts(lab, ke), "trace", 1)
    }

    /// The same without authentication, of the server at `ntp`.
    #[must_use]
    pub fn talkative_plain_client(&self, lab: &Lab, ntp: SocketAddr) -> NtpdRsClient {
        self.client_of(lab, "ntpd-rs", &format!("mode = \"server\"\naddress = \"{ntp}\"\n"), "trace", 1)
    }

    /// A client that asks `source` every 2^`poll` seconds.
    fn client_of(&self, lab: &Lab, name: &str, source: &str, log_level: &str, poll: u8) -> NtpdRsClient {
        let config = lab.path().join(format!("{name}.toml"));
        let socket = lab.path().join(format!("{name}.sock"));
        let text = format!(
            "[observability]\nlog-level = \"{log_level}\"\nobservation-path = {socket:?}\n[[source]]\n{source}\
             [source-defaults]\npoll-interval-limits = {{ min = {poll}, max = {poll} }}\n\
             initial-poll-interval = {poll}\n\
             [synchronization]\nminimum-agreeing-sources = 1\nsingle-step-panic-threshold = \"inf\"\n\
             startup-step-panic-threshold = \"inf\"\n"
        );
        NtpdRsClient { process: self.start(&config, &text), control: self.control.clone(), config }
    }

    /// A server under NTS; without sources it only reads the clock.
    #[must_use]
    pub fn server(&self, lab: &Lab, ntp: u16, ke: u16) -> Process {
        let files = files(lab);
        let setup = setup(&self.place, self.address, &files, lab, [ntp, ke]);
        self.start(&lab.path().join("ntpd-rs-server.toml"), &peers::NtpdRs::configuration(&setup))
    }

    fn start(&self, config: &Path, text: &str) -> Process {
        std::fs::write(config, text).unwrap();
        let mut command = self.daemon.command(&self.place);
        command.arg("-c").arg(config);
        start_sandboxed(command)
    }
}

/// The lines of an NTS source.
fn nts(lab: &Lab, ke: SocketAddr) -> String {
    let (port, ca) = (ke.port(), lab.ca());
    format!("mode = \"nts\"\naddress = \"localhost:{port}\"\ncertificate-authority = {ca:?}\n")
}

/// ntpd-rs as a client.
#[derive(Debug)]
pub struct NtpdRsClient {
    /// The process.
    pub process: Process,
    control: Program,
    config: PathBuf,
}

impl NtpdRsClient {
    /// What `ntp-ctl status` prints.
    #[must_use]
    pub fn status(&self) -> String {
        let mut command = self.control.command(&Place::here());
        let output = command.arg("-c").arg(&self.config).arg("status").output().unwrap();
        text(&output)
    }
}
