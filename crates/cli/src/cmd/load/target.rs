//! Who is to be loaded: its address, whether that is allowed, and whom clients trust; then a first exchange.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use authentick_client::nts::KeyServer;
use authentick_client::{HostPort, NTP_PORT, resolve};
use authentick_crypto::Entropy;
use authentick_ke::tls::Roots;
use authentick_load::target::Target;
use authentick_load::{Plan, Scheme};
use authentick_report::load::AntpParameters;

use crate::args::{AntpLoad, NtsLoad, Permit, Trust, name_of};
use crate::exit::{Exit, Failure};
use crate::server::ask;
use crate::symmetric::KeyName;
use crate::trust;

/// The least time for a look-up: a plan's time-out may be short, as what comes later is to count as lost.
const LOOK_UP_MIN: Duration = Duration::from_secs(1);
/// The address of a plan until a server has responded.
pub(crate) const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// How the server proves who it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Proof<'a> {
    /// Not at all.
    None,
    /// Not at all, and any answer will do to show that it is there.
    Presence,
    /// By a key that clients share with it.
    Key(KeyName<'a>),
    /// By a certificate, in key exchanges over TLS.
    Nts(&'a NtsLoad),
    /// By a certificate, under ANTP.
    Antp(&'a AntpLoad),
}

/// Finds the server that is called `text`, and asks it once; each answer has `timeout`. With `force` it goes on without
/// a good answer to the first request for time, as far as clients need no keys from the server.
pub(crate) fn find(
    scheme: Scheme,
    text: &str,
    proof: Proof<'_>,
    permit: &Permit,
    timeout: Duration,
    force: bool,
) -> Result<Target, Failure> {
    let permission = permit.permission()?;
    let HostPort { host, port: named_port } = text.parse::<HostPort>()?;
    let entropy = &mut Entropy::from_system()?;
    // For key exchanges alone, the port that is named is theirs.
    let ntp_port = named_port.filter(|_| scheme != Scheme::Ke);
    let port = match proof {
        Proof::Nts(trust) if scheme == Scheme::Ke => named_port.unwrap_or(trust.ke_port),
        Proof::Nts(trust) => trust.ke_port,
        Proof::None | Proof::Presence | Proof::Key(_) | Proof::Antp(_) => named_port.unwrap_or(NTP_PORT),
    };
    let addresses = &resolve(&host, port, timeout.max(LOOK_UP_MIN))?;
    addresses.all().try_for_each(|address| permission.check(&host, address.ip()))?;
    let server_name = HostPort::without_zone(&host).to_owned();
    let plan = Plan { scheme, server_name, timeout, ..Plan::plain(UNKNOWN) };
    let keys = |mut failure: Failure| {
        if force && failure.exit != Exit::Usage {
            failure.message += "; --force-first cannot go on without keys of this server";
        }
        failure
    };
    match proof {
        Proof::None => Ok(Target::plain(plan, addresses, force, entropy)?),
        Proof::Presence => Ok(Target::reached(plan, addresses, entropy)?),
        Proof::Key(name) => {
            let (key, addresses) = name.find(addresses)?;
            Ok(Target::with_key(plan, &addresses, &key, force, entropy)?)
        }
        Proof::Antp(AntpLoad { kem, trust: trusted }) => {
            let (plan, roots) = trusting(plan, trusted)?;
            let anchor = trust::authorities(&roots, &plan.server_name)?;
            let mut target = Target::under_antp(plan, addresses, kem.suite(), roots, &anchor, force, entropy)
                .map_err(|error| keys(error.into()))?;
            target.antp = target.antp.map(|found| AntpParameters { kem: name_of(kem), ..found });
            Ok(target)
        }
        Proof::Nts(NtsLoad { client, ke_timeout, .. }) => {
            let (plan, roots) = trusting(plan, &client.trust)?;
            let plan = Plan { ke_timeout: *ke_timeout, ..plan };
            let ask = ask(client, roots.clone(), &plan.server_name)?;
            let key_server = KeyServer { host, port, addresses: addresses.clone(), ask, ntp_port };
            let allow = |host: &str, address| permission.check(host, address).map_err(Failure::from);
            Target::under_nts(plan, &key_server, roots, allow, force, entropy).map_err(keys)
        }
    }
}

/// A plan by which clients trust the authorities in a file, or the system's, and the same for who asks before.
fn trusting(plan: Plan, trust: &Trust) -> Result<(Plan, Roots), Failure> {
    let (roots, authorities_pem) = trust::roots_and_pem(trust.ca.as_deref())?;
    let server_name = trust.name(&plan.server_name).to_owned();
    Ok((Plan { server_name, authorities_pem, ..plan }, roots))
}
