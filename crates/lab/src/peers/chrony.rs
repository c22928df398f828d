//! Debian's chrony, as client and server; `-x` keeps it from any clock.

use std::path::PathBuf;
use std::process::Command;

use super::{Place, folder, libraries, program};
use crate::certificates::Lab;
use crate::hosts::{Host, Hosts};
use crate::process::{Process, wait_for};
use crate::skip::is_root;

/// Debian's chrony; it wants to be root even where it touches nothing.
#[derive(Debug)]
pub struct Chrony {
    folder: PathBuf,
    place: Place,
}

impl Chrony {
    /// Debian's chrony, if it is here and may run.
    #[must_use]
    pub fn find() -> Option<Self> {
        program("chrony/usr/sbin/chronyd")?;
        is_root("chronyd starts as root only")
            .then(|| Chrony { folder: folder().join("chrony"), place: Place::default() })
    }

    /// The same on a host.
    #[must_use]
    pub fn on(self, hosts: &Hosts, host: Host) -> Self {
        Chrony { place: Place::on(hosts, host), ..self }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.place.command(&self.folder.join(program));
        command.env("LD_LIBRARY_PATH", libraries(&self.folder));
        command
    }

    /// A client with these configuration lines that asks once and prints what it found, without setting any clock
    /// (`-x -Q`).
    #[must_use]
    pub fn ask_once(&self, lab: &Lab, lines: &str) -> std::process::Output {
        self.command("usr/sbin/chronyd")
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
        let process = Process::start(self.command("usr/sbin/chronyd").args(["-x", "-d", "-f"]).arg(config));
        ChronyDaemon { process, socket, folder: self.folder.clone() }
    }

    /// A server under NTS on these ports, asserting stratum 1.
    #[must_use]
    pub fn server(&self, lab: &Lab, ntp: u16, ke: u16) -> ChronyDaemon {
        let (key, chain) = (lab.key(), lab.chain());
        let mut daemon = self.daemon(
            lab,
            &format!(
                "local stratum 1\nallow\nport {ntp}\nntsport {ke}\nntsserverkey {}\nntsservercert {}",
                key.display(),
                chain.display()
            ),
        );
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
    folder: PathBuf,
}

impl ChronyDaemon {
    /// What `chronyc` prints, with values separated by commas.
    pub fn ask(&mut self, what: &str) -> String {
        // Through a socket file, so from anywhere.
        let output = Command::new(self.folder.join("usr/bin/chronyc"))
            .env("LD_LIBRARY_PATH", libraries(&self.folder))
            .arg("-h")
            .arg(&self.socket)
            .args(["-n", "-c", what])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}
