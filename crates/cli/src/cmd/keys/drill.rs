//! `keys drill`: hosts that share keys, tried from outside.

use authentick_client::nts::KeyServer;
use authentick_client::{HostPort, NTP_PORT, resolve};
use authentick_crypto::Entropy;
use authentick_ke::PORT;
use authentick_load::Plan;
use authentick_load::drill::{self, DrillError};
use authentick_load::target::Target;

use crate::args::Drill;
use crate::cmd::load::UNKNOWN;
use crate::exit::{Exit, Failure};
use crate::server::ask;
use crate::{interrupt, output, trust};

pub(super) fn run(arguments: &Drill, is_json: bool) -> Result<Exit, Failure> {
    let permission = arguments.permission.permission()?;
    let roots = trust::roots(arguments.client.trust.ca.as_deref())?;
    let mut entropy = Entropy::from_system()?;
    let (mut key_servers, mut servers) = (Vec::new(), Vec::new());
    for text in &arguments.key_exchanges {
        let HostPort { host, port } = text.parse::<HostPort>()?;
        let port = port.unwrap_or(PORT);
        let addresses = resolve(&host, port, arguments.timeout)?;
        addresses.all().try_for_each(|address| permission.check(&host, address.ip()))?;
        let ask = ask(&arguments.client, roots.clone(), &host)?;
        key_servers.push(KeyServer { host, port, addresses, ask, ntp_port: None });
    }
    for text in &arguments.servers {
        let HostPort { host, port } = text.parse::<HostPort>()?;
        let addresses = resolve(&host, port.unwrap_or(NTP_PORT), arguments.timeout)?;
        addresses.all().try_for_each(|address| permission.check(&host, address.ip()))?;
        let plan = Plan { timeout: arguments.timeout, ..Plan::plain(UNKNOWN) };
        // A server that is silent now is part of what is drilled.
        servers.push((text.clone(), Target::plain(plan, &addresses, true, &mut entropy)?.plan.ntp));
    }
    let stop = interrupt::flag();
    let drill = drill::Drill {
        key_servers,
        servers,
        rate_rps: arguments.rate.into(),
        keep: arguments.keep,
        rotations: arguments.rotations,
        patience: arguments.patience,
        timeout: arguments.timeout,
    };
    let outcome = drill.run(&stop, &mut entropy).map_err(|error| match error {
        DrillError::KeyExchange(error) => error.into(),
        error @ DrillError::Socket(..) => Exit::Silence.because(error.to_string()),
    })?;
    output::json_or_text(is_json, &outcome, || outcome.to_string())?;
    Ok(if outcome.is_good() { Exit::Done } else { Exit::GATE_FAILED })
}
