//! Debian's NTPsec: its daemon, as server and as client, and ntpdig. It knows port 123 alone, so it runs on hosts of
//! its own, and it steers clocks, so it runs where it cannot.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use authentick_rig::peers::Place;
use authentick_rig::sandbox;

use super::{folder, libraries, program, start_sandboxed};
use crate::certificates::Lab;
use crate::hosts::{Host, Hosts};
use crate::process::Process;
use crate::skip::is_root;

/// NTPsec on a host.
#[derive(Debug)]
pub struct NtpSec {
    folder: PathBuf,
    place: Place,
}

impl NtpSec {
    /// Debian's NTPsec on this host, if it is here and may run.
    #[must_use]
    pub fn find(hosts: &Hosts, host: Host) -> Option<Self> {
        program("ntpsec", "usr/sbin/ntpd")?;
        is_root("ntpd binds port 123")
            .then(|| NtpSec { folder: folder().join("ntpsec"), place: Place::on(hosts, host) })
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = self.place.command(program.as_ref());
        command
            .env("LD_LIBRARY_PATH", libraries(&self.folder))
            .env("PYTHONPATH", self.folder.join("usr/lib/python3/dist-packages"));
        command
    }

    /// The daemon with these configuration lines; its files are in the folder of `lab`, under `name`. It answers as
    /// often as it is asked.
    fn daemon(&self, lab: &Lab, name: &str, lines: &str) -> Process {
        let (config, drift) =
            (lab.path().join(format!("{name}.conf")), lab.path().join(format!("{name}.drift")));
        std::fs::write(
            &config,
            format!("driftfile {}\nunrestrict default noquery limited\n{lines}\n", drift.display()),
        )
        .unwrap();
        let mut command = self.command(self.folder.join("usr/sbin/ntpd"));
        // In the foreground, not minding how far off the clock is.
        command.args(["-n", "-g", "-c"]).arg(config);
        start_sandboxed(command)
    }

    /// A server under NTS that takes itself for stratum 1, with further configuration lines.
    #[must_use]
    pub fn server(&self, lab: &Lab, lines: &str) -> Process {
        let (key, chain, cookies) = (lab.key(), lab.chain(), lab.path().join("ntpsec-cookies"));
        let all = format!(
            "nts enable\nnts cert {}\nnts key {}\nnts cookie {}\ntos orphan 1 orphanwait 0\n{lines}",
            chain.display(),
            key.display(),
            cookies.display()
        );
        let mut process = self.daemon(lab, "ntpsec-server", &all);
        process.wait_for_line("Private Key OK");
        process
    }

    /// A client of one server under NTS, named as in `198.18.0.1:4460`.
    #[must_use]
    pub fn client(&self, lab: &Lab, server: &str) -> Process {
        let source = format!(
            "server {server} nts ca {} iburst minpoll 3 maxpoll 3\ntos minsane 1",
            lab.ca().display()
        );
        self.daemon(lab, "ntpsec-client", &source)
    }

    /// ntpdig: one question, with further arguments; what it found, as JSON.
    #[must_use]
    pub fn ask_once(&self, arguments: &[&str]) -> Output {
        let mut command = self.command("python3");
        command.arg(self.folder.join("usr/bin/ntpdig")).arg("-j").args(arguments);
        sandbox::within(|| command.output().unwrap()).unwrap_or_else(|error| panic!("{error}"))
    }
}
