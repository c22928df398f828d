//! What cells and ladders are measured on: a client and a server in namespaces of their own, or on loopback where there
//! are none, a relay of packets between them, a resolver, a memcached.
//!
//! The server has the first processor, the client the last; the relay's threads run where there is room.

use std::cell::Cell as Count;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use authentick_load::single::{self, Rounds, Timings};
use authentick_net::affinity;
use authentick_net::privilege::is_root;
use authentick_net::report_file;
use authentick_report::study::Task;
use authentick_report::study::nts::{Cell, Ladder, Plan, Relayed, Store, UnloadedRecord, Way, Workers};
use authentick_rig::certificates::write_private;
use authentick_rig::hosts::{Host, Hosts};
use authentick_rig::link::Link;
use authentick_rig::path::Path;
use authentick_rig::peers::{Memcached, Memory, Place};
use authentick_rig::process::{Process, is_installed, run};
use authentick_rig::processors::{Processor, pinned};
use authentick_rig::quota::Quota;
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
/// What the threads of a server are called that exchange keys.
const KE_THREADS: &str = "ke-";
/// What the server's certificate is for.
pub(super) const NAME: &str = "localhost";
/// How much memory memcached has, in MiB: the least that is no trouble to it.
const MEMCACHED_MEGABYTES: u32 = 64;
const SEAL_KEY: &str = "authentick-fleet-seal 1\nkey 0 ";
/// Connections that a server has at most, and how long it has each: clients give up before.
const CONNECTION_COUNT_MAX: u32 = 65_536;
const CONNECTION_SECONDS_MAX: u32 = 10;
/// Addresses that are the client's host's beside its own, for clients that are not measured; and what they use without
/// namespaces.
const BACKGROUND_RANGE: &str = "198.19.0.0/30";
const BACKGROUND: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);
const BACKGROUND_HERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Ports of the client's host: connections that are given up keep theirs for a minute.
const PORTS: &str = "1024 65535";

/// What cells need.
pub struct Bench<'a> {
    pub(super) caller: Caller<'a>,
    memcached: Result<Memcached, String>,
    /// Whether quotas take single threads, or why there are none.
    quotas: Result<bool, String>,
    /// A server's host and a client's, or why there are none.
    hosts: Result<Hosts, String>,
    /// What a path adds to its delays.
    cost: Duration,
    pub(super) identities: Identities,
    pub(super) folder: TempDir,
    /// Servers that have been started.
    server_count: Count<u32>,
}

/// A memcached, which ends with this value, and when this process ends.
struct Stored {
    _process: Process,
    address: SocketAddr,
}

/// A server of a ladder, and what it stands on: what ends first stands first.
pub(super) struct Loaded<'a> {
    pub(super) server: Listening,
    memcached: Option<Stored>,
    ground: Ground<'a>,
    /// Where it is asked.
    pub(super) addresses: single::Server,
    /// Where clients stand that are not measured.
    pub(super) background: IpAddr,
}

/// What a cell brought.
pub(super) struct Cellful {
    pub(super) timings: Timings,
    isolated: bool,
    memcached: Option<String>,
    relayed: Option<Relayed>,
}

/// A host for the server and one for the client, and what a path between them adds to its delays.
///
/// # Errors
/// Why there are none, in half a sentence.
pub(super) fn hosts() -> Result<(Hosts, Duration), String> {
    let without = "client and server share loopback, without a path between them and without look-ups";
    if !is_root() {
        return Err(format!("{without}: only root may make network namespaces"));
    }
    if !is_installed("ip") {
        return Err(format!("{without}: there is no program \"ip\" on PATH; install iproute2"));
    }
    let hosts = Hosts::new(1).and_then(|hosts| {
        hosts.add_sources(0, BACKGROUND_RANGE)?;
        hosts.set(Host::Client(0), "ipv4/ip_local_port_range", PORTS)?;
        echo::cost(&hosts, 0, ECHO_COUNT, ECHO_PAUSE).map(|cost| (hosts, cost))
    });
    hosts.map_err(|error| format!("{without}: {error}"))
}

/// Whether a server with so many workers has to share the generator's processor, as there are no others.
pub(super) fn shares_processor(workers: Workers) -> bool {
    affinity::allowed().map_or(1, |allowed| allowed.len()) <= workers.count() as usize
}

/// Whether single threads of servers can be left a share of a processor.
///
/// # Errors
/// Why not even servers can, in half a sentence.
pub(super) fn quotas() -> Result<bool, String> {
    let without = "there is no ladder to scale, whose server has a share of a processor";
    match Quota::new(1.0) {
        Ok(quota) => Ok(quota.takes_threads()),
        Err(error) if is_root() => Err(format!("{without}: {error}")),
        Err(error) => Err(format!("{without}: {error}; only root may make them")),
    }
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
        let (hosts, cost) = match hosts() {
            Ok((hosts, cost)) => (Ok(hosts), cost),
            // The near cells are measured all the same.
            Err(why) => (Err(why), Duration::ZERO),
        };
        let (memcached, quotas) = (memcached(places), quotas());
        Ok(Bench { caller, memcached, quotas, hosts, cost, identities, folder, server_count: Count::new(0) })
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
        let about = format!(
            "{place} authentick serve has one worker for time and one for key exchanges, on the first processor; the \
             client is on the last. Key exchange yields to packet workers; beside other work, d_CKE waits for that too."
        );
        let of_quota = match self.quotas {
            Ok(true) => Some(
                "On the ladder to scale the thread that exchanges keys has a share of a core, and requests for time \
                 have the rest.",
            ),
            Ok(false) => Some(
                "On the ladder to scale the whole server has a share of a core, as control groups of version 2 take no \
                 single threads: requests for time wait for its quota, too.",
            ),
            Err(_) => None,
        };
        [about].into_iter().chain(of_quota.map(str::to_owned)).collect()
    }

    /// Why a cell cannot be measured here, if so.
    pub(super) fn why_not(&self, cell: Cell) -> Option<String> {
        let path = match cell.way() {
            Way::Near => None,
            Way::Study | Way::Long => self.hosts.as_ref().err(),
        };
        path.or(self.lacks(cell.store())).cloned()
    }

    /// Why a ladder cannot be measured here, if so.
    pub(super) fn why_no_ladder(&self, ladder: Ladder) -> Option<String> {
        let quotas = match ladder {
            Ladder::ToScale => self.quotas.as_ref().err(),
            Ladder::WholeCore(_) => None,
        };
        quotas.or(self.lacks(ladder.store())).cloned()
    }

    fn lacks(&self, store: Store) -> Option<&String> {
        match store {
            Store::Memcached => self.memcached.as_ref().err(),
            Store::File => None,
        }
    }

    /// A server with its store, for a ladder, under this share of a processor; the inner error says why it has none.
    pub(super) fn begin(
        &self,
        ladder: Ladder,
        quota_share: Option<f64>,
    ) -> Result<Result<Loaded<'_>, String>, Error> {
        self.server_count.set(self.server_count.get() + 1);
        let ground = Ground::near(&self.hosts);
        let memcached = match ladder.store() {
            Store::Memcached => Some(self.start_memcached(&ground)?),
            Store::File => None,
        };
        let [client, background] = match ground.hosts {
            Some(hosts) => [hosts.address(Host::Client(0)), BACKGROUND.into()],
            None => [ground.near, BACKGROUND_HERE.into()],
        };
        let timed = format!("{client}/32");
        let store = memcached.as_ref().map(|stored| stored.address);
        let mut server = self.serve(&ground, store, Some(&timed), Workers::One)?;
        if let Some(share) = quota_share {
            let limited = Quota::new(share).and_then(|quota| server.limit_by(quota, KE_THREADS));
            if let Err(error) = limited {
                return Ok(Err(format!("its server has no quota: {error}")));
            }
        }
        let addresses = self.asked(&ground, &mut server)?;
        Ok(Ok(Loaded { server, memcached, ground, addresses, background }))
    }

    /// A server with its keys in a file, which times nobody.
    pub(super) fn begin_untimed(&self, workers: Workers) -> Result<Loaded<'_>, Error> {
        self.server_count.set(self.server_count.get() + 1);
        let ground = Ground::near(&self.hosts);
        let background = ground.near;
        let mut server = self.serve(&ground, None, None, workers)?;
        let addresses = self.asked(&ground, &mut server)?;
        Ok(Loaded { server, memcached: None, ground, addresses, background })
    }

    /// What a client knows of a server.
    fn asked(&self, ground: &Ground<'_>, server: &mut Listening) -> Result<single::Server, Error> {
        Ok(single::Server {
            key_exchange: server.also("exchanging keys on ")?,
            ntp: server.address,
            metrics: server.also("showing metrics on http://")?,
            authorities: fs::read_to_string(self.identities.authority())?,
            name: NAME.to_owned(),
            resolver: ground.resolver.as_ref().map(|(_, resolver)| resolver.address()),
        })
    }

    /// Whether client and server are hosts of their own.
    pub(super) fn is_isolated(&self) -> bool {
        self.hosts.is_ok()
    }

    /// Which memcached there is, if a server with this store uses it.
    pub(super) fn memcached_of(&self, store: Store) -> Option<String> {
        let found = self.memcached.as_ref().ok().filter(|_| store == Store::Memcached);
        found.map(|memcached| memcached.version().to_owned())
    }

    /// Measures a cell; the inner error says why it brought nothing.
    pub(super) fn measure(
        &self,
        cell: Cell,
        warm_ups: u32,
        count: u32,
        interval: f64,
    ) -> Result<Result<Cellful, String>, Error> {
        self.server_count.set(self.server_count.get() + 1);
        let place = Ground::lay(self, cell).map_err(Error::rig("the path of a cell"))?;
        let memcached = match cell.store() {
            Store::Memcached => Some(self.start_memcached(&place)?),
            Store::File => None,
        };
        let store = memcached.as_ref().map(|stored| stored.address);
        let mut server = self.serve(&place, store, Some("0.0.0.0/0"), Workers::One)?;
        let asked = self.asked(&place, &mut server)?;
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
        let (isolated, memcached) = (self.is_isolated(), self.memcached_of(cell.store()));
        Ok(Ok(Cellful { timings, isolated, memcached, relayed }))
    }

    fn start_memcached(&self, place: &Ground<'_>) -> Result<Stored, Error> {
        let found = self.memcached.as_ref().map_err(|why| Error::Bug(why.clone()))?;
        let (at, address) = match place.hosts {
            Some(hosts) => (Place::on(hosts, Host::Server), hosts.address(Host::Server)),
            None => (Place::here(), Ipv4Addr::LOCALHOST.into()),
        };
        let memory = Memory::megabytes(MEMCACHED_MEGABYTES);
        let folder = self.folder.path();
        let start = || found.start(&at, SocketAddr::new(address, 0), memory, folder);
        let not_started = "memcached did not start";
        let (process, address) = pinned(Processor::Last, start).map_err(Error::rig(not_started))?;
        Ok(Stored { _process: process, address })
    }

    /// A server on this ground, with keys in the memcached at this address or else in a file, which times these clients
    /// and refuses nobody for coming too often. With one worker it has the first processor alone, with two all but the
    /// generator's, if these do.
    fn serve(
        &self,
        place: &Ground<'_>,
        memcached: Option<SocketAddr>,
        timed: Option<&str>,
        workers: Workers,
    ) -> Result<Listening, Error> {
        let file = |name: &str| self.folder.path().join(format!("{name}-{}", self.server_count.get()));
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
        let timed = timed.map_or_else(String::new, |clients| format!("{clients:?}"));
        let worker_count = workers.count();
        let text = format!(
            "[server]\nlisten = [\"{address}:0\"]\nworkers = {worker_count}\nuser = \"root\"\n\
             reference = {{ stratum = 1, id = \"TEST\" }}\nstate-directory = {:?}\n\
             [nts]\nke-listen = [\"{address}:0\"]\nke-workers = 1\ncertificate-chain = {:?}\nprivate-key = {:?}\n\
             cookie-keys = {{ store = {store:?} }}\n\
             [nts.ke-limits]\nconnections = {CONNECTION_COUNT_MAX}\nper-prefix = {CONNECTION_COUNT_MAX}\n\
             timeout = \"{CONNECTION_SECONDS_MAX} s\"\nper-prefix-rate = 0\nper-network-rate = 0\n\
             [metrics]\nlisten = \"{near}:0\"\nspan-clients = [{timed}]\n{fleet}",
            file("state"),
            self.identities.chain("server"),
            self.identities.key("server"),
        );
        report_file::write(&config, text.as_bytes())?;
        let program = self.caller.program;
        if memcached.is_some() {
            // Nobody but the servers of this study ever sees it.
            write_private(&seal, &format!("{SEAL_KEY}{}\n", "5a".repeat(32)))?;
            let mut command = program.command(Launch::Here);
            run(command.args(["keys", "generate", "--config"]).arg(&config), "")
                .map_err(Error::rig("the keys of a server"))?;
        }
        let launch = place.hosts.map_or(Launch::Here, |hosts| Launch::On(hosts, Host::Server));
        match workers {
            Workers::One => pinned(Processor::First, || program.serve(launch, &config)),
            Workers::Two if shares_processor(workers) => program.serve(launch, &config),
            Workers::Two => pinned(Processor::AllButLast, || program.serve(launch, &config)),
        }
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

impl Loaded<'_> {
    /// Where its clients are started.
    pub(super) fn launch(&self) -> Launch<'_> {
        self.ground.hosts.map_or(Launch::Here, |hosts| Launch::On(hosts, Host::Client(0)))
    }

    /// Where its memcached is, if it has one.
    pub(super) fn memcached(&self) -> Option<SocketAddr> {
        self.memcached.as_ref().map(|stored| stored.address)
    }

    /// Does `work` where the server is.
    pub(super) fn at_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
        match self.ground.hosts {
            Some(hosts) => hosts.within(Host::Server, work),
            None => Ok(work()),
        }
    }

    /// Has one client do these rounds.
    pub(super) fn ask(&self, rounds: Rounds, stop: &AtomicBool) -> Result<Result<Timings, String>, Error> {
        let measure = || single::measure(&self.addresses, rounds, stop);
        Ok(pinned(Processor::Last, || self.ground.at_client(measure))?)
    }
}

impl<'a> Ground<'a> {
    /// Nothing between client and server.
    fn near(hosts: &'a Result<Hosts, String>) -> Self {
        let hosts = hosts.as_ref().ok();
        let near = hosts.map_or(Ipv4Addr::LOCALHOST.into(), |hosts| hosts.address(Host::Server));
        Ground { resolver: None, path: None, hosts, server: near, near, delay: Duration::ZERO }
    }

    fn lay(bench: &'a Bench<'_>, cell: Cell) -> Result<Self, RigError> {
        let ground = Ground::near(&bench.hosts);
        let Some(hosts) = ground.hosts else { return Ok(ground) };
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
        let server = laid.as_ref().map_or(ground.near, |(path, _)| path.server_address());
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
        Ok(Ground { resolver, path, server, delay, ..ground })
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
