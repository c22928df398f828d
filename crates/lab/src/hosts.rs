//! The rig's hosts, whose methods panic where a test would.

use std::ops::Deref;

use authentick_rig::hosts;
pub use authentick_rig::hosts::{CLIENT_COUNT_MAX, Host};

use crate::Skip;

/// A star of hosts, which goes away with this value, processes in it or not.
#[derive(Debug)]
pub struct Hosts(hosts::Hosts);

impl Hosts {
    /// A server and `client_count` clients.
    ///
    /// # Errors
    /// A skip, with the reason, where namespaces cannot be made.
    ///
    /// # Panics
    /// If `client_count` is 0 or above [`CLIENT_COUNT_MAX`].
    pub fn new(client_count: usize) -> Result<Self, Skip> {
        hosts::Hosts::new(client_count).map(Hosts).map_err(Skip::of)
    }

    /// The name of the interface by which a client hangs on the star, at the client's end.
    #[must_use]
    pub const fn client_interface() -> &'static str {
        hosts::Hosts::client_interface()
    }

    /// The name of the interface by which a client hangs on the star, at the server's end.
    #[must_use]
    pub fn server_interface(client: usize) -> String {
        hosts::Hosts::server_interface(client)
    }

    /// Runs `work` on a thread of its own on `host`. Sockets that it opens stay on that host, wherever they are used
    /// later, and threads that it starts are on that host too.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn within<T: Send>(&self, host: Host, work: impl FnOnce() -> T + Send) -> T {
        self.0.within(host, work).unwrap_or_else(|error| panic!("{host:?}: {error}"))
    }

    /// Sets a kernel parameter of the host's network, such as `ipv4/tcp_tw_reuse`.
    ///
    /// # Panics
    /// If the kernel does not take it.
    pub fn set(&self, host: Host, parameter: &str, value: &str) {
        self.0.set(host, parameter, value).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Makes all addresses of `range` the client's own; see the rig's.
    ///
    /// # Panics
    /// If it is no range, or one that is in use.
    pub fn add_sources(&self, client: usize, range: &str) {
        self.0.add_sources(client, range).unwrap_or_else(|error| panic!("{range}: {error}"));
    }
}

impl Deref for Hosts {
    type Target = hosts::Hosts;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
