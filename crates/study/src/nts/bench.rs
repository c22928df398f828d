//! What a cell is measured on: a client and a server in namespaces of their own, or on loopback where there are none,
//! a relay of packets between them, a resolver, a memcached.
//!
//! The server has the first processor, the client the last; the relay's threads run where there is room.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use authentick_load::single::{self, Rounds, Timings};
use authentick_net::privilege::is_root;
use authentick_report::study::Task;
use authentick_report::study::nts::{Cell, Plan, Relayed, Store, UnloadedRecord, Way};
use authentick_rig::certificates::write_private;
use authentick_rig::hosts::{Host, Hosts};
use authentick_rig::link::Link;
use authentick_rig::path::Path;
use authentick_rig::peers::{Memcached, Memory, Place};
use authentick_rig::process::{Process, is_installed, run};
use authentick_rig::processors::{Processor, pinned};
use authentick_rig::resolver::{PORT, Resolver};
use authentick_rig::rounds::{RoundTrips, Transport};
use authentick_rig::{Error as RigError, echo};
use tempfile::TempDir;

use crate::identities::Identities;
use crate::places::Places;
use crate::program::{Launch, Listening};
use crate::{Caller, Error};

/// What a look-up takes there and back: as much as theirs, by the medians of their capture.
const RESOLVER_ROUND_TRIP: Duration = Duration::from_micros(360);
/// Echoes of which the cost of a path is the median, and the pause before each.
const ECHO_COUNT: usize = 100;
const ECHO_PAUSE: Duration = Duration::from_millis(1);
/// What the server's certificate is for.
const NAME: &str = "localhost";
/// How much memory memcached has, in MiB: the least that is no trouble to it.
const MEMCACHED_MEGABYTES: u32 = 64;
const SEAL_KEY: &str = "authentick-fleet-seal 1\nkey 0 ";

/// What cells need.
pub struct Bench<'a> {
    pub(super) caller: Caller<'a>,
    memcached: Result<Memcached, String>,
    /// A server's host and a client's, or why there are none.
    hosts: Result<Hosts, String>,
    /// What a path adds to its delays.
    cost: Duration,
    identities: Identities,
    folder: TempDir,
    /// Servers that have been started.
    server_count: u32,
}

/// What a cell brought.
pub(super) struct Cellful {
    pub(super) timings: Timings,
    isolated: bool,
    memcached: Option<String>,
    relayed: Option<Relayed>,
}

/// A host for the server and one for the client.
///
/// # Errors
/// Why there are none, in half a sentence.
pub(super) fn hosts() -> Result<Hosts, String> {
    let without = "client and server share loopback, without a path between them and without look-ups";
    if !is_root() {
        return Err(format!("{without}: only root may make network namespaces"));
    }
    if !is_installed("ip") {
        return Err(format!("{without}: there is no program \"ip\" (iproute2)"));
    }
    Hosts::new(1).map_err(|error| format!("{without}: {error}"))
}

/// memcached, where programs of others are.
///
/// # Errors
/// Why there is none, in half a sentence.
pub(super) fn memcached(places: &Places) -> Result<Memcached, String> {
    Memcached::find(&places.search()).map_err(|error| format!("servers keep keys in files alone: {error}"))
}

impl<'a> Bench<'a> {
    pub(super) fn new(places: &Places, caller: Caller<'a>) -> Result<Self, Error> {
        let folder = tempfile::tempdir()?;
        let identities = Identities::new(folder.path()).map_err(Error::rig("cannot make certificates"))?;
        let hosts = hosts();
        let (hosts, cost) = match hosts {
            Err(why) => (Err(why), Duration::ZERO),
            // Without TUN devices there is no path, and the near cells are measured all the same.
            Ok(hosts) => match echo::cost(&hosts, 0, ECHO_COUNT, ECHO_PAUSE) {
                Ok(cost) => (Ok(hosts), cost),
                Err(error) => (Err(format!("there is no path between namespaces: {error}")), Duration::ZERO),
            },
        };
        Ok(Bench { caller, memcached: memcached(places), hosts, cost, identities, folder, server_count: 0 })
    }

    /// What is to be said of all cells.
    pub(super) fn remarks(&self) -> Vec<String> {
        let place = match &self.hosts {
            Ok(_) => {
                "Client and server are on one machine, in network namespaces of their own, with a cable between them, \
                 or a relay of packets whose own cost is taken off its delays."
            }
            Err(_) => "Client and server are on one machine, and share its loopback.",
        };
        vec![format!(
            "{place} authentick serve has one worker for time and one for key exchanges, on the first processor; the \
             client is on the last. Key exchange has the lowest priority: where other work goes on, d_CKE waits for it."
        )]
    }

    /// Why a cell cannot be measured here, if so.
    pub(super) fn why_not(&self, cell: Cell) -> Option<String> {
        let path = match cell.way() {
            Way::Near => None,
            Way::Study | Way::Long => self.hosts.as_ref().err(),
        };
        let store = match cell.store() {
            Store::Memcached => self.memcached.as_ref().err(),
            Store::File => None,
        };
        path.or(store).cloned()
    }

    /// Measures a cell; the inner error says why it brought nothing.
    pub(super) fn measure(
        &mut self,
        cell: Cell,
        warm_ups: u32,
        count: u32,
        interval: f64,
    ) -> Result<Result<Cellful, String>, Error> {
        self.server_count += 1;
        let place = Ground::lay(self, cell).map_err(Error::rig("the path of a cell"))?;
        let memcached = match cell.store() {
            Store::Memcached => Some(self.start_memcached(&place)?),
            Store::File => None,
        };
        let mut server = self.serve(&place, memcached.as_ref().map(|(_, address)| *address))?;
        let asked = single::Server {
            key_exchange: server.also("exchanging keys on ")?,
            ntp: server.address,
            metrics: server.also("showing metrics on http://")?,
            authorities: fs::read_to_string(self.identities.authority())?,
            name: NAME.to_owned(),
            resolver: place.resolver.as_ref().map(|(_, resolver)| resolver.address()),
        };
        let echoed = place.echo().map_err(Error::rig("measuring a path"))?;
        place.path.iter().for_each(Path::count_round_trips);
        let rounds = Rounds { warm_ups, count, interval: Duration::from_secs_f64(interval) };
        let stop = self.caller.stop;
        let measured = pinned(Processor::Last, || place.at_client(|| single::measure(&asked, rounds, stop)));
        let timings = match measured.map_err(Error::from)? {
            Ok(timings) => timings,
            Err(why) => return Ok(Err(why)),
        };
        let relayed = place.path.as_ref().map(|path| {
            let trips = path.round_trips();
            Relayed {
                delay_us: us(place.delay),
                echo_us: us(echoed),
                late_mean_us: us(path.there().late_mean().unwrap_or_default()),
                exchange_round_trips: range(&trips, Transport::Tcp, asked.key_exchange.port()),
                transfer_round_trips: range(&trips, Transport::Udp, asked.ntp.port()),
            }
        });
        let version = self.memcached.as_ref().ok().filter(|_| memcached.is_some());
        let memcached = version.map(|memcached| memcached.version().to_owned());
        Ok(Ok(Cellful { timings, isolated: self.hosts.is_ok(), memcached, relayed }))
    }

    fn start_memcached(&self, place: &Ground<'_>) -> Result<(Process, SocketAddr), Error> {
        let found = self.memcached.as_ref().map_err(|why| Error::Bug(why.clone()))?;
        let (at, address) = match place.hosts {
            Some(hosts) => (Place::on(hosts, Host::Server), hosts.address(Host::Server)),
            None => (Place::here(), Ipv4Addr::LOCALHOST.into()),
        };
        let memory = Memory::megabytes(MEMCACHED_MEGABYTES);
        let folder = self.folder.path();
        let start = || found.start(&at, SocketAddr::new(address, 0), memory, folder);
        pinned(Processor::Last, start).map_err(Error::rig("memcached did not start"))
    }

    /// A server on this ground, with keys in the memcached at this address or else in a file.
    fn serve(&self, place: &Ground<'_>, memcached: Option<SocketAddr>) -> Result<Listening, Error> {
        let file = |name: &str| self.folder.path().join(format!("{name}-{}", self.server_count));
        let (config, seal, address) = (file("authentick.toml"), file("seal"), place.server);
        let (store, fleet) = match memcached {
            None => ("file", String::new()),
            Some(memcached) => (
                "memcached",
                format!(
                    "[fleet]\nid = \"study\"\nnode = \"a\"\nmembers = [\"a\"]\nservers = [\"{memcached}\"]\n\
                     seal-key = {seal:?}\nwriter = true\n"
                ),
            ),
        };
        let near = place.near;
        let text = format!(
            "[server]\nlisten = [\"{address}:0\"]\nworkers = 1\nuser = \"root\"\n\
             reference = {{ stratum = 1, id = \"TEST\" }}\nstate-directory = {:?}\n\
             [nts]\nke-listen = [\"{address}:0\"]\nke-workers = 1\ncertificate-chain = {:?}\nprivate-key = {:?}\n\
             cookie-keys = {{ store = {store:?} }}\n\
             [nts.ke-limits]\nper-prefix-rate = 0\nper-network-rate = 0\n\
             [metrics]\nlisten = \"{near}:0\"\nspan-clients = [\"0.0.0.0/0\"]\n{fleet}",
            file("state"),
            self.identities.chain("server"),
            self.identities.key("server"),
        );
        fs::write(&config, text)?;
        let program = self.caller.program;
        if memcached.is_some() {
            // Nobody but the servers of this study ever sees it.
            write_private(&seal, &format!("{SEAL_KEY}{}\n", "5a".repeat(32)))?;
            let mut command = program.command(Launch::Here);
            run(command.args(["keys", "generate", "--config"]).arg(&config), "")
                .map_err(Error::rig("the keys of a server"))?;
        }
        let launch = place.hosts.map_or(Launch::Here, |hosts| Launch::On(hosts, Host::Server));
        pinned(Processor::First, || program.serve(launch, &config))
    }
}

impl Cellful {
    /// The record of the task that it was measured for.
    pub(super) fn record(self, plan: &Plan, task: &Task) -> UnloadedRecord {
        let Cellful { timings, isolated, memcached, relayed } = self;
        let Timings { clock_ns, exchanges, transfers, plain, failed, failure: _ } = timings;
        UnloadedRecord {
            version: plan.version.clone(),
            commit: plan.commit.clone(),
            command: plan.command.clone(),
            started_unix_s: plan.started_unix_s,
            host: plan.machine.clone(),
            task: task.id.clone(),
            isolated,
            memcached,
            relayed,
            clock_ns,
            failed,
            exchanges,
            transfers,
            plain,
        }
    }
}

/// Where client and server of a cell are, and what lies between them.
struct Ground<'a> {
    /// Ends before the path that leads to it.
    resolver: Option<(Path, Resolver)>,
    path: Option<Path>,
    hosts: Option<&'a Hosts>,
    /// Where the server listens, and where it does so without a relay.
    server: IpAddr,
    near: IpAddr,
    /// What the relay holds a packet for.
    delay: Duration,
}

impl<'a> Ground<'a> {
    fn lay(bench: &'a Bench<'_>, cell: Cell) -> Result<Self, RigError> {
        let Ok(hosts) = &bench.hosts else {
            let here = Ipv4Addr::LOCALHOST.into();
            let (server, near, delay) = (here, here, Duration::ZERO);
            return Ok(Ground { resolver: None, path: None, hosts: None, server, near, delay });
        };
        let near = hosts.address(Host::Server);
        let lay = |round_trip: Duration, seed| {
            let delay = round_trip.saturating_sub(bench.cost) / 2;
            Path::new(hosts, 0, Link::delayed(delay), Link::delayed(delay), seed).map(|path| (path, delay))
        };
        let laid = match cell.way() {
            Way::Near => None,
            way @ (Way::Study | Way::Long) => {
                Some(lay(Duration::from_micros(u64::from(way.round_trip_us())), 1)?)
            }
        };
        let server = laid.as_ref().map_or(near, |(path, _)| path.server_address());
        let resolver = match cell.has_look_up() {
            false => None,
            true => {
                let (path, _) = lay(RESOLVER_ROUND_TRIP, 2)?;
                let bind = || UdpSocket::bind((path.server_address(), PORT));
                let system = |error| RigError::System { what: "a resolver's socket".to_owned(), error };
                let socket = hosts.within(Host::Server, bind).flatten().map_err(system)?;
                let IpAddr::V4(address) = server else {
                    return Err(RigError::Misuse("paths have IPv4 addresses"));
                };
                let resolver = Resolver::start(socket, NAME, address, bench.folder.path())?;
                Some((path, resolver))
            }
        };
        let (path, delay) = laid.map_or((None, Duration::ZERO), |(path, delay)| (Some(path), delay));
        Ok(Ground { resolver, path, hosts: Some(hosts), server, near, delay })
    }

    /// What a datagram takes there and back with nothing at either end; no time where there is no relay.
    fn echo(&self) -> Result<Duration, RigError> {
        let (Some(path), Some(hosts)) = (&self.path, self.hosts) else { return Ok(Duration::ZERO) };
        let ends = [path.client_address(), path.server_address()];
        let times = echo::exchanges(hosts, 0, ends, ECHO_COUNT, ECHO_PAUSE)?;
        Ok(times.get(times.len() / 2).copied().unwrap_or_default())
    }

    /// Does `work` where the client is.
    fn at_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
        match self.hosts {
            Some(hosts) => hosts.within(Host::Client(0), work),
            None => Ok(work()),
        }
    }
}

/// The fewest and the most round trips of an exchange with a port. What several from one port of the client took is
/// shared between them.
fn range(trips: &RoundTrips, transport: Transport, port: u16) -> Option<[u64; 2]> {
    let flows = || trips.towards(transport, port).map(|(_, trips)| trips).filter(|trips| trips.exchanges > 0);
    let fewest = flows().map(|trips| trips.round_trips / trips.exchanges).min()?;
    let most = flows().map(|trips| trips.round_trips.div_ceil(trips.exchanges)).max()?;
    Some([fewest, most])
}

fn us(duration: Duration) -> f64 {
    // To hundredths: what is stored is read as the same number.
    (duration.as_secs_f64() * 1e8).round() / 100.0
}
