//! `authentick load agent`, and the coordinator's side of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use authentick_daemon::guarded::{self, PEM_SIZE_MAX, Secrecy, Unreadable};
use authentick_ke::tls::Roots;
use authentick_load::agent::{self, About, Coordinator, CrewError, Fault, Identity, IdentityError, Limits};
use authentick_load::{Allow, Crew, Generator, Plan, Watch};
use authentick_report::Host;

use crate::args::{Agent, Coordination};
use crate::exit::{Exit, Failure};
use crate::host::VERSION;
use crate::{input, interrupt, output, trust};

/// Takes part in runs until a signal ends it, or the end of its input if that is asked for.
pub(super) fn run(arguments: &Agent) -> Result<Exit, Failure> {
    let files = [
        ("--certificate-chain", arguments.certificate_chain.as_path()),
        ("--private-key", &arguments.private_key),
        ("--coordinators-ca", &arguments.coordinators_ca),
    ];
    let identity = identity(files)?;
    let limits = Limits {
        rate_rps_max: arguments.rate_limit,
        client_count_max: arguments.clients_max,
        duration_max: Duration::from_secs(arguments.seconds_max),
        in_flight_max: arguments.in_flight_max,
        worker_count_max: arguments.workers_max,
        ..Limits::default()
    };
    let host = authentick_load::machine();
    let Host { cpu, cpu_count, online_cpu_count, cpu_quota_millicpus, memory_octets: _, kernel } = host;
    let about =
        About { version: VERSION.to_owned(), cpu, cpu_count, online_cpu_count, cpu_quota_millicpus, kernel };
    let allow = Allow::with(arguments.allow.clone());
    let unpinned = arguments.unpinned;
    let make =
        move |plan: Plan, watch: &Watch| generator(&Plan { pinned: plan.pinned && !unpinned, ..plan }, watch);
    let bound = agent::Agent::bind(arguments.listen, &identity, allow, limits, about, make);
    let agent = bound.map_err(|error| {
        let exit = Exit::of_access(&error);
        exit.because(format!("--listen {}: {error}", arguments.listen))
    })?;
    let _ = authentick_net::descriptors::raise_limit();
    let stop = interrupt::flag();
    if arguments.until_eof {
        let stop = Arc::clone(&stop);
        input::at_end(|| (), move || stop.store(true, Ordering::Relaxed))?;
    }
    log::info!("taking orders on {}", agent.address()?);
    agent.run(&stop)?;
    debug_assert!(stop.load(Ordering::Relaxed), "only a signal or the end of its input ends an agent");
    Ok(Exit::Done)
}

/// The generator for a plan that the agent has accepted.
fn generator(plan: &Plan, watch: &Watch) -> Result<Box<dyn Crew>, String> {
    // Asked for only if the plan brings no authorities of its own.
    let needs_roots = plan.scheme.needs_roots() && plan.authorities_pem.is_none();
    let roots: Option<Roots> =
        needs_roots.then(|| trust::roots(None)).transpose().map_err(|failure| failure.message)?;
    Ok(Box::new(Generator::prepare(plan, roots, watch)?))
}

/// A crew of agents.
pub(super) fn coordinate(
    arguments: &Coordination,
    plan: &Plan,
    watch: &Watch,
) -> Result<Box<dyn Crew>, Failure> {
    let Some([chain, key, authorities]) = arguments.files() else {
        let message = "--agents needs --agent-ca, --certificate-chain and --private-key";
        return Err(Exit::Usage.because(message));
    };
    let files = [
        ("--certificate-chain", chain.as_path()),
        ("--private-key", key.as_path()),
        ("--agent-ca", authorities.as_path()),
    ];
    let identity = identity(files)?;
    let spinner = output::spinner("agents get ready");
    let coordinator = Coordinator::connect(&arguments.agents, &identity, plan, watch);
    spinner.finish_and_clear();
    match coordinator {
        Ok(coordinator) => Ok(Box::new(coordinator)),
        Err(error) => Err(exit(&error).because(error.to_string())),
    }
}

/// How a command ends that could not use its agents.
const fn exit(error: &CrewError) -> Exit {
    match error.fault {
        Fault::Usage => Exit::Usage,
        Fault::Unreachable => Exit::Silence,
        Fault::Authentication => Exit::Authentication,
        _ => Exit::Unavailable,
    }
}

/// Certificate chain, private key and the authorities of the other side, in this order, each with its option.
fn identity(files: [(&str, &Path); 3]) -> Result<Identity, Failure> {
    let mut texts = Vec::with_capacity(files.len());
    for (index, (option, file)) in files.into_iter().enumerate() {
        let secrecy = if index == 1 { Secrecy::GroupReads } else { Secrecy::Public };
        let text = guarded::read_named(file, secrecy, PEM_SIZE_MAX).map_err(|error| {
            let shown = file.display();
            let (exit, remedy) = match &error {
                Unreadable::Io(error) => (Exit::of_access(error), String::new()),
                Unreadable::Mode(_) => (Exit::Configuration, format!("; run: chmod 600 {shown}")),
                Unreadable::NotAFile | Unreadable::Foreign(_) | Unreadable::Size(_) => {
                    (Exit::Configuration, "; name a PEM file".to_owned())
                }
            };
            exit.because(format!("{option} {shown}: cannot read: {error}{remedy}"))
        })?;
        texts.push(text);
    }
    Identity::from_pem(&texts[0], &texts[1], &texts[2]).map_err(|error| {
        let (option, file) = match &error {
            IdentityError::Chain(_) => files[0],
            IdentityError::Key(_) => files[1],
            IdentityError::Authorities(_) => files[2],
        };
        Exit::Configuration.because(format!("{option} {}: {error}", file.display()))
    })
}
