//! Finds problems before the start that would occur then or later, with the rights that the server will have.
//!
//! A server that is started as root reads some files as root and some as the user that it becomes, and SIGHUP reads all
//! of them as that user. So `serve --check` goes through both: it becomes that user on the way.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Instant;

use authentick_crypto::Entropy;
use authentick_fleet::seal::SealKeys;
use authentick_ke::tls::CertificateInfo;
use authentick_net::privilege;
use authentick_net::udp::{SendBuffer, is_broadcast};
use authentick_proto::antp::state_key::StateKeys;
use authentick_proto::keyset::KeySet;

use crate::addresses;
use crate::antp;
use crate::background;
use crate::certificates::{self, Served};
use crate::config::{
    Config, ConfigError, Endpoint, ListenAddress, NextKey, Reference, RotatingKeys, Symmetric,
};
use crate::fleet::seal_file::SealFile;
use crate::guarded;
use crate::hand_over;
use crate::identity::{self, PemFile, let_read, server_user};
use crate::keystore::{KeyKind, Master, StoreError, Stores};
use crate::layout::Layout;
use crate::leap::LeapKeeper;
use crate::names::ServerAddresses;
use crate::reference;
use crate::rotator::first_of_derived;
use crate::send_buffer;
use crate::symmetric::{Keys, keeper};
use crate::validity;
use crate::warnings::{self, Warning};

/// Checks what can be checked without opening a port or changing a file. If the process is root, it is afterwards the
/// user that the server would become, for good.
///
/// # Errors
/// The first mistake.
pub fn check(config: &Config) -> Result<(), ConfigError> {
    let user = server_user(config)?;
    check_listen(config)?;
    low_ports(config).iter().for_each(|warning| log::warn!("{warning}"));
    // With the rights that the server binds its ports with.
    if !config.listen.is_empty()
        && let Some(shortage) = SendBuffer::probe().ok().and_then(send_buffer::shortage)
    {
        log::warn!("{shortage}");
    }
    check_clock(config)?;
    check_names(config);
    addresses::remarks_on_missing(config).iter().for_each(|remark| log::warn!("{remark}"));
    LeapKeeper::start(config, Instant::now())?;
    if let Some(exchange) = config.exchange() {
        let in_force = certificates::load(config, exchange)?;
        for (pair, certificate) in exchange.certificates.iter().zip(in_force.certificates()) {
            must_be_good(&identity::chain_file(config, pair), certificate)?;
        }
        in_force.served().iter().for_each(Served::warn);
        in_force.remarks().iter().for_each(|remark| log::warn!("{remark}"));
        hand_over::warn_of_old(config, exchange);
        if let Ok(layout) = Layout::of(config) {
            background::raise_descriptor_limit();
            let limits = background::bounded_by_memory(exchange.limits);
            background::bounded_by_descriptors(limits, layout.ke_worker_count);
        }
    }
    if let Some(antp) = &config.antp {
        for (served, certificate) in antp::load(config, antp)?.certificates {
            let suite = antp.suites.iter().find(|suite| suite.suite == served).expect("it is one of these");
            let [chain, _] = antp::files(config, suite);
            must_be_good(&chain, &certificate)?;
            validity::warn(&certificate);
        }
    }
    if let Some(symmetric) = &config.symmetric {
        let keys = load_symmetric(config, symmetric)?;
        keeper::warn(&symmetric.keys, &keys, symmetric.allowed);
    }
    load_seal(config)?;
    let stores = Stores::of(config);
    stores.know(load_master(config)?);
    let is_root = privilege::is_root();
    if let Some(user) = &user {
        user.become_user().map_err(|error| {
            let remedy = "run this as the user that starts the server";
            let problem = format!("cannot become this user: {error}");
            config.wrong("server.user", &config.user, problem, remedy)
        })?;
        warn_of_rights(config);
    }
    let wrong = |error: StoreError| state_error(config, &error);
    if needs_directory(config) {
        config.state.tell();
        config.state.check().map_err(wrong)?;
        config.state.check_access(is_root).map_err(wrong)?;
    }
    check_keys::<KeySet>(config, &stores)?;
    check_keys::<StateKeys>(config, &stores)
}

/// Checks that the keys of one kind can be read, if there are any or have to be.
fn check_keys<K: KeyKind>(config: &Config, stores: &Stores) -> Result<(), ConfigError> {
    let Some(settings) = K::settings(config) else { return Ok(()) };
    let store = K::store(stores);
    let loaded = match settings.next {
        NextKey::Random | NextKey::Hourly => store.load().map(drop),
        NextKey::Derived => first_of_derived(&*store).map(drop),
    };
    loaded.map_err(|error| keys_error(config, settings, &error))
}

/// Refuses a certificate with which a server would start and serve nobody.
fn must_be_good(chain: &PemFile<'_>, certificate: &CertificateInfo) -> Result<(), ConfigError> {
    match validity::problem(certificate) {
        Some(problem) => Err(chain.wrong(problem, "renew it, or set this host's clock if that is wrong")),
        None => Ok(()),
    }
}

/// Reads the symmetric keys.
///
/// # Errors
/// If the file cannot be read, or has a mistake in it.
pub(crate) fn load_symmetric(config: &Config, symmetric: &Symmetric) -> Result<Keys, ConfigError> {
    keeper::load(symmetric).map_err(|error| {
        let path = symmetric.keys.display();
        config
            .wrong("symmetric.keys", path, &error, error.remedy())
            .of_rights(error.is_permission())
            .of_passing(error.may_pass())
    })
}

/// Reads the fleet's seal keys; `None` if there is no fleet.
///
/// # Errors
/// If the file cannot be read, is open to others, or has a mistake in it.
pub(crate) fn load_seal(config: &Config) -> Result<Option<SealKeys>, ConfigError> {
    let Some(fleet) = &config.fleet else { return Ok(None) };
    let file = SealFile::read(&fleet.seal_keys).map_err(|error| {
        let path = fleet.seal_keys.display();
        config
            .wrong("fleet.seal-key", path, &error, error.remedy())
            .of_rights(error.is_permission())
            .of_passing(error.may_pass())
    })?;
    Ok(Some(file.keys(fleet.id.clone())))
}

/// Reads the master key of CFNTS's layout; `None` if cookie keys have another one.
///
/// # Errors
/// If the file cannot be read, is open to others, or has a size that none has.
pub(crate) fn load_master(config: &Config) -> Result<Option<Master>, ConfigError> {
    let Some(cfnts) = config.cfnts() else { return Ok(None) };
    let path = &cfnts.master_key;
    let master = Master::read(path).map_err(|error| {
        let shown = path.display();
        config
            .wrong("nts.cookie-keys.master-key", shown, &error, error.remedy())
            .of_rights(error.is_permission())
            .of_passing(error.may_pass())
    })?;
    Ok(Some(master))
}

/// What is wrong with the state directory or a store of keys, as a mistake of the configuration.
pub(crate) fn state_error(config: &Config, error: &StoreError) -> ConfigError {
    let directory = config.state_directory.display();
    config
        .wrong("server.state-directory", directory, error, error.remedy())
        .of_rights(error.is_permission())
        .of_passing(error.may_pass())
}

/// What is wrong with keys of one kind: of the state directory, or of the file in which they are followed.
pub(crate) fn keys_error(config: &Config, settings: &RotatingKeys, error: &StoreError) -> ConfigError {
    let Some(path) = settings.followed() else { return state_error(config, error) };
    config
        .wrong(&settings.key("file"), path.display(), error, error.remedy())
        .of_rights(error.is_permission())
        .of_passing(error.may_pass())
}

/// Whether there is something to keep in a state directory.
pub(crate) const fn needs_directory(config: &Config) -> bool {
    config.nts.is_some() || config.symmetric.is_some() || config.antp.is_some()
}

/// Looks at the clock as the start does, and logs the warnings of the configuration.
///
/// # Errors
/// If the upstream is the server itself.
fn check_clock(config: &Config) -> Result<(), ConfigError> {
    let upstream = match &config.reference {
        Reference::Upstream(server) => look_up(config, "server.reference.upstream", server),
        Reference::Asserted { .. } | Reference::Kernel { .. } => None,
    };
    let known = upstream.as_ref().map_or(&[][..], ServerAddresses::known);
    check_reference(config, known)?;
    warnings::log(config, &warnings::of(config, known));
    match Entropy::from_system() {
        Ok(entropy) => reference::check(&config.reference, upstream, entropy),
        Err(error) => log::warn!(
            "server.reference: the clock was not checked: no random octets: {error}; allow getrandom(2)"
        ),
    }
    Ok(())
}

/// Warns of names of memcached servers that have no address now.
fn check_names(config: &Config) {
    let of_cfnts = config.cfnts().map(|cfnts| &cfnts.server);
    for server in config.memcached_servers() {
        let key = if of_cfnts == Some(server) { "nts.cookie-keys.server" } else { "fleet.servers" };
        look_up(config, key, server);
    }
}

/// The addresses of a server of `key`. That there are none now is warned of: a host has no resolver before it has a
/// network.
fn look_up(config: &Config, key: &str, server: &Endpoint) -> Option<ServerAddresses> {
    let warn = |error| {
        let consequence = format!("name lookup failed: {error}");
        let remedy = "check the name, and that this host's resolver works, or write an address";
        warnings::log(config, &[Warning::new(key, server, consequence, remedy)]);
    };
    ServerAddresses::look_up(server).map_err(warn).ok()
}

/// The warnings of ports that this process may not bind: a start with the same rights fails.
fn low_ports(config: &Config) -> Vec<Warning> {
    let exchange = config.exchange().map_or(&[][..], |exchange| &exchange.listen);
    let all = [("server.listen", &config.listen[..]), ("nts.ke-listen", exchange)];
    let denied = |(key, addresses): (&'static str, &[ListenAddress])| {
        let address = addresses.iter().find(|address| !privilege::may_bind(address.port()))?;
        let consequence =
            format!("the user {} may not bind its port: a start fails", privilege::acting_user());
        let remedy = "start as root, or give the program CAP_NET_BIND_SERVICE, or choose a port above 1023";
        Some(Warning::new(key, address, consequence, remedy))
    };
    all.into_iter().filter_map(denied).collect()
}

/// Refuses addresses to listen on that no request is answered at.
///
/// # Errors
/// The first broadcast or multicast address.
pub(crate) fn check_listen(config: &Config) -> Result<(), ConfigError> {
    let exchange = config.exchange().map_or(&[][..], |exchange| &exchange.listen);
    for (key, addresses) in [("server.listen", &config.listen[..]), ("nts.ke-listen", exchange)] {
        for address in addresses {
            let kind = match address.ip().to_canonical() {
                ip if ip.is_multicast() => "multicast",
                IpAddr::V4(ip) if is_broadcast(ip) => "broadcast",
                IpAddr::V4(_) | IpAddr::V6(_) => continue,
            };
            let problem =
                format!("invalid address: expected a unicast or wildcard address, found a {kind} one");
            let remedy = "name an address of this host, or 0.0.0.0 or [::]";
            return Err(config.wrong(key, address, problem, remedy));
        }
    }
    Ok(())
}

/// Refuses a reference that is the server itself: it would believe its own earlier answers. `addresses` are those of
/// the upstream.
///
/// # Errors
/// If it is.
pub(crate) fn check_reference(config: &Config, addresses: &[SocketAddr]) -> Result<(), ConfigError> {
    let itself = addresses.iter().find_map(|upstream| {
        Some((upstream, config.listen.iter().find(|listen| is_same(listen, *upstream))?))
    });
    let Some((upstream, listen)) = itself else { return Ok(()) };
    let problem = format!("this is the server itself, which listens on {listen}");
    let remedy =
        "name the daemon that keeps this host's clock, on a port of its own (chrony: \"port 11123\")";
    Err(config.wrong("server.reference", upstream, problem, remedy))
}

/// Whether packets to `upstream` reach a listener on `listen`.
pub(crate) fn is_same(listen: &ListenAddress, upstream: SocketAddr) -> bool {
    let (here, there) = (listen.ip(), upstream.ip());
    // An address of this host is one that can be bound.
    let is_ours = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
    let is_one_family = here.is_ipv4() == there.is_ipv4();
    let is_reached = here == there
        || there.is_unspecified() && here.is_loopback()
        || here.is_unspecified() && is_ours(there);
    listen.port() == upstream.port() && listen.port() != 0 && is_one_family && is_reached
}

/// Says which files the server will not be able to read again, if it is now the user that it stays.
pub(crate) fn warn_of_rights(config: &Config) {
    for file in config.own_files() {
        let Err(error) = guarded::try_open(&file) else { continue };
        let (user, path) = (privilege::acting_user(), file.display());
        log::warn!(
            "{path}: the user {user}, whom the server becomes, cannot read it: {error}; its changes take a restart, \
             and SIGHUP reads other files alone; {}",
            let_read(&user, &path)
        );
    }
    for (key, path) in config.files() {
        if let Err(error) = guarded::try_open(path) {
            let (user, path) = (privilege::acting_user(), path.display());
            log::warn!(
                "{key} = \"{path}\": the user {user}, whom the server becomes, cannot read it: {error}; what is in \
                 force stays so at SIGHUP, and a new one takes a restart; {}",
                let_read(&user, &path)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn listen_addresses_of_many_hosts_are_refused() {
        for (address, kind) in [
            ("255.255.255.255:123", Some("broadcast")),
            ("127.255.255.255:123", Some("broadcast")),
            ("224.0.1.1:123", Some("multicast")),
            ("[ff02::101]:123", Some("multicast")),
            ("127.0.0.1:123", None),
            ("0.0.0.0:123", None),
            ("[::]:123", None),
        ] {
            let text = format!("[server]\nlisten = [\"{address}\"]");
            let result = check_listen(&Config::parse(Path::new("test.toml"), &text).unwrap());
            let message = result.err().map(|error| error.to_string());
            assert_eq!(message.is_some(), kind.is_some(), "{address}: {message:?}");
            for part in [address, "server.listen", kind.unwrap_or_default()] {
                assert!(message.as_ref().is_none_or(|message| message.contains(part)), "{message:?}");
            }
        }
    }

    #[test]
    fn server_knows_itself_by_each_of_its_addresses() {
        for (listen, upstream, is_itself) in [
            ("0.0.0.0:123", "127.0.0.1:123", true),
            ("0.0.0.0:123", "127.0.0.1:11123", false),
            ("0.0.0.0:123", "198.18.255.254:123", false),
            ("127.0.0.1:123", "127.0.0.1:123", true),
            ("127.0.0.1:123", "0.0.0.0:123", true),
            ("127.0.0.1:123", "127.0.0.2:123", false),
            ("0.0.0.0:0", "127.0.0.1:0", false),
            ("[::]:123", "127.0.0.1:123", false),
        ] {
            let text = format!(
                "[server]\nlisten = [\"192.0.2.1:1\", \"{listen}\"]\nreference = {{ upstream = \"{upstream}\" }}"
            );
            let config = Config::parse(Path::new("test.toml"), &text);
            let Ok(config) = config else { continue };
            let result = check_reference(&config, &[upstream.parse().unwrap()]);
            assert_eq!(result.is_err(), is_itself, "{listen} {upstream}");
            if let Err(error) = result {
                let message = error.to_string();
                assert!(message.contains("server.reference") && message.contains("itself"), "{message}");
            }
        }
    }
}
