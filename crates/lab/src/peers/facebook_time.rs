//! facebook/time: the key exchange, the responder and the test client.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use super::{folder, program};
use crate::certificates::Lab;
use crate::process::{Process, free_port};

/// facebook/time: the key exchange, the responder and the test client are programs of their own.
#[derive(Debug)]
pub struct FacebookTime {
    folder: PathBuf,
}

impl FacebookTime {
    /// facebook/time, if it is here.
    #[must_use]
    pub fn find() -> Option<Self> {
        program("facebook-time/ntsketest")?;
        Some(FacebookTime { folder: folder().join("facebook-time") })
    }

    /// The client: one key exchange and one authenticated exchange.
    #[must_use]
    pub fn ask_once(&self, lab: &Lab, ke: SocketAddr, ntp: SocketAddr) -> std::process::Output {
        Command::new(self.folder.join("ntsketest"))
            .args(["-addr", &ke.to_string(), "-ntp-addr", &ntp.to_string(), "-ca"])
            .arg(lab.ca())
            .output()
            .unwrap()
    }

    /// The server: two processes that share a key.
    #[must_use]
    pub fn server(&self, lab: &Lab, ntp: u16, ke: u16) -> [Process; 2] {
        let exchange = Process::start(
            Command::new(self.folder.join("ntske"))
                .args(["-addr", &format!("127.0.0.1:{ke}"), "-cert"])
                .arg(lab.chain())
                .arg("-key")
                .arg(lab.key()),
        );
        let responder = Process::start(
            Command::new(self.folder.join("ntpresponder"))
                .args(["-enable-nts", "-manage-loopback=false", "-ip", "127.0.0.1", "-workers", "2"])
                .args(["-port", &ntp.to_string(), "-monitoringport", &free_port().to_string()]),
        );
        [exchange, responder]
    }
}
