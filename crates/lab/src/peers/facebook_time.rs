//! facebook/time: the key exchange, the responder and the test client.

use std::net::SocketAddr;

use authentick_rig::peers::{Kind, Peer, Place, Program, Search, Server};

use super::{LOOPBACK, files, folder, program, setup};
use crate::certificates::Lab;

/// facebook/time: the key exchange, the responder and the test client are programs of their own.
#[derive(Debug)]
pub struct FacebookTime {
    client: Program,
}

impl FacebookTime {
    /// facebook/time, if it is here.
    #[must_use]
    pub fn find() -> Option<Self> {
        Some(FacebookTime { client: program("facebook/time", "ntsketest")? })
    }

    /// The client: one key exchange and one authenticated exchange.
    #[must_use]
    pub fn ask_once(&self, lab: &Lab, ke: SocketAddr, ntp: SocketAddr) -> std::process::Output {
        self.client
            .command(&Place::here())
            .args(["-addr", &ke.to_string(), "-ntp-addr", &ntp.to_string(), "-ca"])
            .arg(lab.ca())
            .output()
            .unwrap()
    }

    /// The server: two processes that share a key.
    ///
    /// # Panics
    /// If it does not answer.
    #[must_use]
    pub fn server(&self, lab: &Lab, ntp: u16, ke: u16) -> Server {
        let (files, folder) = (files(lab), folder());
        let search = Search { folder: Some(&folder), path: None };
        let peer = Peer::find(Kind::FacebookTime, &search).unwrap_or_else(|error| panic!("{error}"));
        let setup = setup(&Place::here(), LOOPBACK, &files, lab, [ntp, ke]);
        peer.start(&setup).unwrap_or_else(|error| panic!("{error}"))
    }
}
