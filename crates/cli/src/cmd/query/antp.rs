//! What the command line says about ANTP, as a client takes it.

use std::path::PathBuf;

use authentick_client::antp::phases::TimeAsk;
use authentick_client::antp::store::Store;
use authentick_client::antp::tentative::{SERVER_COUNT_MIN, Voter};
use authentick_client::antp::{Antp, Settings};
use authentick_client::trust::Anchor;
use authentick_client::{HostPort, NTP_PORT, resolve};
use authentick_net::addresses::Addresses;
use authentick_proto::antp::client::Bounds;
use authentick_wire::antp::{Suite, SuiteList};
use authentick_wire::time::NtpSpan;

use crate::args::Query;
use crate::exit::{Exit, Failure};
use crate::trust;

/// Where a user keeps what is known of servers, whether it exists or not; `None` if nothing says where home is.
pub(super) fn store(arguments: &Query) -> Option<Store> {
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = || {
        let state = from("XDG_STATE_HOME").or_else(|| Some(from("HOME")?.join(".local/state")))?;
        Some(state.join("authentick"))
    };
    arguments.antp.state_directory.clone().or_else(usual).map(Store::at)
}

/// Whether the server may be asked without authentication.
///
/// A user's own folder that cannot be reached, as of a service without a home, does not end the query: a warning says
/// what was not looked up. One that was named with `--state-directory` does.
pub(super) fn admit_plain(arguments: &Query, store: &Store, server: &HostPort) -> Result<(), Failure> {
    match store.admit_plain(&stored_name(server)) {
        Err(error) if arguments.antp.state_directory.is_none() && error.is_out_of_reach() => {
            log::warn!("{error}: not checked whether the server has used ANTP before");
            Ok(())
        }
        admitted => Ok(admitted?),
    }
}

/// The name under which the store knows a server: as the user calls it, with the port if it is an unusual one.
pub(super) fn stored_name(server: &HostPort) -> String {
    match server.port {
        None | Some(NTP_PORT) => server.host.clone(),
        Some(port) if server.host.contains(':') => format!("[{}]:{port}", server.host),
        Some(port) => format!("{}:{port}", server.host),
    }
}

/// A client of `server`, which is at one of these addresses.
pub(super) fn client(arguments: &Query, server: &HostPort, addresses: Addresses) -> Result<Antp, Failure> {
    let options = &arguments.antp;
    let anchor = match &options.pin {
        Some(file) => trust::pinned(file)?,
        None => authorities(arguments, arguments.client.trust.name(&server.host))?,
    };
    let suites: Vec<Suite> = options.kem.iter().map(|kem| kem.suite()).collect();
    let suites = if suites.is_empty() { vec![Suite::P256] } else { suites };
    let suites =
        SuiteList::new(&suites).ok_or_else(|| Exit::Usage.because("--kem is given more than eight times"))?;
    let bounds = options.round_trip_max.map_or(Bounds::WAN, |longest| Bounds {
        round_trip_max: NtpSpan::from(longest),
        residence_max: NtpSpan::from(longest * 2),
    });
    let voters = voters(arguments, server, &addresses)?;
    let store = store(arguments).ok_or_else(|| {
        let message = "nothing says where to keep what is known of servers: set HOME, or name a directory with \
                       --state-directory";
        Exit::Configuration.because(message)
    })?;
    let is_fresh = arguments.count > 1;
    Ok(Antp::new(Settings {
        addresses,
        name: stored_name(server),
        timeout: arguments.timeout,
        anchor,
        suites,
        ask: TimeAsk { is_separate: options.separate_tag, is_fresh, bounds },
        store,
        voters,
        ocsp: options.ocsp.clone(),
        judged_at: options.validate_at,
        built: env!("AUTHENTICK_BUILD_SECONDS").parse().unwrap_or(0),
    })?)
}

/// Trust in authorities for a server of this name.
fn authorities(arguments: &Query, name: &str) -> Result<Anchor, Failure> {
    trust::authorities(&trust::roots(arguments.client.trust.ca.as_deref())?, name)
}

/// The servers of `--tentative`, and the one that is asked anyway.
fn voters(arguments: &Query, server: &HostPort, addresses: &Addresses) -> Result<Vec<Voter>, Failure> {
    let others = &arguments.antp.tentative;
    if others.is_empty() {
        return Ok(Vec::new());
    }
    if others.len() + 1 < SERVER_COUNT_MIN {
        return Err(Exit::Usage.because("--tentative needs two servers beside HOST: give it twice or more"));
    }
    let name = arguments.client.trust.name(&server.host);
    let anchor = authorities(arguments, name)?;
    let first = Voter { name: arguments.server.clone(), addresses: addresses.clone(), anchor };
    let mut voters = vec![first];
    for text in others {
        let other = text.parse::<HostPort>()?;
        let addresses = resolve(&other.host, other.port.unwrap_or(NTP_PORT), arguments.timeout)?;
        voters.push(Voter { name: text.clone(), addresses, anchor: authorities(arguments, &other.host)? });
    }
    Ok(voters)
}
