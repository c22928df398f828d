//! Who is to be loaded: its address, whether that is allowed, and whom clients trust; then a first exchange.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use authentick_client::nts::KeyServer;
use authentick_client::{NTP_PORT, resolve};
use authentick_crypto::Entropy;
use authentick_ke::client::Ask;
use authentick_ke::tls::{Roots, client_config};
use authentick_load::target::Target;
use authentick_load::{Allow, Plan, Scheme};
use authentick_report::load::AntpParameters;

use crate::args::{AntpLoad, Permit, Trust, name_of};
use crate::exit::{Exit, Failure};
use crate::server::{ServerArgument, aeads, server_name};
use crate::symmetric::KeyName;
use crate::trust;

/// What the user allows.
#[derive(Debug)]
struct Permission {
    allow: Allow,
    host: Option<String>,
}

impl Permission {
    /// A host whose name the user repeated, and a list of prefixes.
    fn new(arguments: &Permit) -> Result<Self, Failure> {
        let host = arguments.permit.clone();
        let Some(file) = &arguments.allow_list else {
            return Ok(Permission { allow: Allow::default(), host });
        };
        let problem =
            |text: String| Exit::Configuration.because(format!("--allow-list {}: {text}", file.display()));
        let text = fs::read_to_string(file).map_err(|error| problem(format!("cannot read: {error}")))?;
        let allow = Allow::from_list(&text)
            .map_err(|error| problem(format!("{error}; write prefixes such as 192.0.2.0/24")))?;
        Ok(Permission { allow, host })
    }

    /// Refuses to load `address`, known as `host`, unless it is nobody else's or the user said so.
    fn check(&self, host: &str, address: IpAddr) -> Result<(), Failure> {
        if self.allow.contains(address) || self.host.as_deref() == Some(host) {
            return Ok(());
        }
        let message = match &self.host {
            Some(permitted) => format!(
                "--permit names {permitted:?}, and {host:?} ({address}) is another host; repeat its name if it is \
                 yours to load"
            ),
            None => format!(
                "{host} ({address}) is a public address; if it is yours to load, say so with --permit {host}, or put \
                 it on a list (--allow-list)"
            ),
        };
        Err(Exit::Usage.because(message))
    }
}

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
    Nts(&'a Trust),
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
    let permission = Permission::new(permit)?;
    let ServerArgument { host, port: named_port } = ServerArgument::parse(text)?;
    let entropy = &mut Entropy::from_system()?;
    // For key exchanges alone, the port that is named is theirs.
    let ntp_port = named_port.filter(|_| scheme != Scheme::Ke);
    let port = match proof {
        Proof::Nts(trust) if scheme == Scheme::Ke => named_port.unwrap_or(trust.ke_port),
        Proof::Nts(trust) => trust.ke_port,
        Proof::None | Proof::Presence | Proof::Key(_) | Proof::Antp(_) => named_port.unwrap_or(NTP_PORT),
    };
    let address = resolve(&host, port)?[0];
    permission.check(&host, address.ip())?;
    let plan = Plan { scheme, server_name: host.clone(), timeout, ..Plan::plain(address) };
    let keys = |mut failure: Failure| {
        if force && failure.exit != Exit::Usage {
            failure.message += "; --force-first cannot go on without keys of this server";
        }
        failure
    };
    match proof {
        Proof::None => Ok(Target::plain(plan, force, entropy)?),
        Proof::Presence => Ok(Target::reached(plan, entropy)?),
        Proof::Key(name) => Ok(Target::with_key(plan, &name.find(address.ip())?, force, entropy)?),
        Proof::Antp(AntpLoad { kem, ca, server_name }) => {
            let (plan, roots) = trusting(plan, server_name.as_deref(), ca.as_deref())?;
            let anchor = trust::authorities(&roots, &plan.server_name)?;
            let mut target = Target::under_antp(plan, kem.suite(), roots, &anchor, force, entropy)
                .map_err(|error| keys(error.into()))?;
            target.antp = target.antp.map(|found| AntpParameters { kem: name_of(kem), ..found });
            Ok(target)
        }
        Proof::Nts(Trust { ca, server_name: name, aead, ke_timeout, .. }) => {
            let (plan, roots) = trusting(plan, name.as_deref(), ca.as_deref())?;
            let server_name = server_name(&plan.server_name)?;
            let plan = Plan { ke_timeout: *ke_timeout, ..plan };
            let ask = Ask { tls: client_config(roots.clone()), server_name, aeads: aeads(aead) };
            let key_server = KeyServer { host, port, addresses: vec![address], ask, ntp_port };
            let allow = |host: &str, address| permission.check(host, address);
            Target::under_nts(plan, &key_server, roots, allow, force, entropy).map_err(keys)
        }
    }
}

/// A plan by which clients trust the authorities in a file, or the system's, and the same for who asks before.
fn trusting(plan: Plan, name: Option<&str>, file: Option<&Path>) -> Result<(Plan, Roots), Failure> {
    let roots = trust::roots(file)?;
    let authorities_pem = file.and_then(|file| fs::read_to_string(file).ok());
    let server_name = name.map_or(plan.server_name, str::to_owned);
    Ok((Plan { server_name, authorities_pem, ..plan }, roots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_need_a_word_that_names_the_host() {
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let permission = |host: Option<&str>| {
            Permission::new(&Permit { permit: host.map(str::to_owned), allow_list: None }).unwrap()
        };
        let silent = permission(None);
        let failure = silent.check("time.example", address).unwrap_err();
        assert!(failure.exit == Exit::Usage && failure.message.contains("--permit time.example"));
        assert!(silent.check("lab", "10.0.0.1".parse().unwrap()).is_ok());
        let permission = permission(Some("time.example"));
        assert!(permission.check("time.example", address).is_ok());
        assert!(permission.check("other.example", address).is_err());
    }
}
