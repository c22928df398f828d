//! Debian's chrony, as client and server; `-x` keeps it from any clock.

use std::path::PathBuf;

use authentick_rig::peers::{self, Place, Program};

use super::{LOOPBACK, files, program, setup};
use crate::certificates::Lab;
use crate::hosts::{Host, Hosts};
use crate::process::{Process, wait_for};
use crate::skip::is_root;

/// Debian's chrony; it wants to be root even where it touches nothing.
#[derive(Debug)]
pub struct Chrony {
    daemon: Program,
    control: Program,
    place: Place,
}

impl Chrony {
    /// Debian's chrony, if it is here and may run.
    #[must_use]
    pub fn find() -> Option<Self> {
        let daemon = program("chrony", "usr/sbin/chronyd")?;
        let control = program("chrony", "usr/bin/chronyc")?;
        is_root("chronyd starts as root only").then(|| Chrony { daemon, control, place: Place::here() })
    }

    /// The same on a host.
    #[must_use]
    pub fn on(self, hosts: &Hosts, host: Host) -> Self {
        Chrony { place: Place::on(hosts, host), ..self }
    }

    /// A client with these configuration lines that prints what it found within ten seconds, without setting any clock
    /// (`-x -Q`). Four responses take eight of these; with `maxsamples 1` it ends with the first that it believes.
    #[must_use]
    pub fn ask_once(&self, lab: &Lab, lines: &str) -> std::process::Output {
        self.daemon
            .command(&self.place)
            .args(["-x", "-Q", "-t", "10", "-u", "root"])
            .args(lines.lines())
            .arg(format!("ntstrustedcerts {}", lab.ca().display()))
            .args(["cmdport 0", "bindcmdaddress /"])
            .arg(format!("pidfile {}", lab.path().join("chrony-once.pid").display()))
            .output()
            .unwrap()
    }

    /// A daemon with these configuration lines, without setting any clock (`-x`).
    #[must_use]
    pub fn daemon(&self, lab: &Lab, lines: &str) -> ChronyDaemon {
        self.daemon_called(lab, "chrony", lines)
    }

    /// The same, for a lab that has several: its files are in a folder of this name.
    #[must_use]
    pub fn daemon_called(&self, lab: &Lab, name: &str, lines: &str) -> ChronyDaemon {
        let folder = lab.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let (config, socket) = (folder.join("chrony.conf"), folder.join("chronyd.sock"));
        let folder_text = folder.display();
        std::fs::write(
            &config,
            format!(
                "{lines}\nntstrustedcerts {}\nntsdumpdir {folder_text}\ncmdport 0\nbindcmdaddress {}\n\
                 pidfile {folder_text}/pid\ndriftfile {folder_text}/drift\nuser root\n",
                lab.ca().display(),
                socket.display()
            ),
        )
        .unwrap();
        let process = Process::start(self.daemon.command(&self.place).args(["-x", "-d", "-f"]).arg(config));
        ChronyDaemon { process, socket, control: self.control.clone() }
    }

    /// A server under NTS on these ports, asserting stratum 1.
    #[must_use]
    pub fn server(&self, lab: &Lab, ntp: u16, ke: u16) -> ChronyDaemon {
        let files = files(lab);
        // It listens everywhere, so the address is none of its matters.
        let setup = setup(&self.place, LOOPBACK, &files, lab, [ntp, ke]);
        let mut daemon = self.daemon(lab, &peers::Chrony::server_lines(&setup, true));
        daemon.process.wait_for_line("chronyd version");
        // It opens its sockets after it has said so, and answers its own client after that.
        wait_for("chronyd to answer", || (!daemon.ask("tracking").is_empty()).then_some(()));
        daemon
    }
}

/// A running `chronyd`.
#[derive(Debug)]
pub struct ChronyDaemon {
    /// The process.
    pub process: Process,
    socket: PathBuf,
    control: Program,
}

impl ChronyDaemon {
    /// What `chronyc` prints, with values separated by commas.
    pub fn ask(&mut self, what: &str) -> String {
        // Through a socket file, so from anywhere.
        let output = self
            .control
            .command(&Place::here())
            .arg("-h")
            .arg(&self.socket)
            .args(["-n", "-c", what])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}
