//! `authentick query`: what time is it, who says so, and how long did that take.

mod antp;
mod report;

use std::time::Instant;

use authentick_client::mac::Mac;
use authentick_client::nts::{KeyServer, Nts};
use authentick_client::plain::Plain;
use authentick_client::{Client, HostPort, NTP_PORT, Remark, resolve, spaced};
use authentick_crypto::Entropy;
use authentick_proto::symmetric::Allowed;

use self::report::{Report, nanos, one_line};
use crate::args::{Authentication, Query};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::server;
use crate::symmetric::KeyName;
use crate::trust;

pub(crate) fn run(arguments: &Query) -> Result<Exit, Failure> {
    let server = arguments.server.parse::<HostPort>()?;
    let mut report = Report::new(&server.host, arguments.auth);
    let result = ask(arguments, &server, &mut report);
    match &result {
        Ok(exit) => report.exit = *exit as u8,
        Err(failure) => {
            report.exit = failure.exit as u8;
            report.error = Some(failure.message.clone());
        }
    }
    match arguments.json {
        true => {
            output::json(&report)?;
            // The error is in the result; once is enough.
            Ok(result.unwrap_or_else(|failure| failure.exit))
        }
        false => {
            if arguments.count > 1 {
                output::result(&report.summary());
            }
            result
        }
    }
}

/// Asks, and fills `report` with what is known as it becomes known.
fn ask(arguments: &Query, server: &HostPort, report: &mut Report) -> Result<Exit, Failure> {
    let mut entropy = Entropy::from_system()?;
    check_antp_options(arguments)?;
    forget(arguments, server)?;
    let mut client = client(arguments, server, report)?;
    let count = arguments.count;
    let mut done_count = 0;
    let mut failures = Vec::new();
    spaced(client.as_mut(), count, arguments.interval, &mut entropy, |learnt, result| {
        learnt.remarks.drain(..).for_each(print_remark);
        report.learn(arguments, learnt);
        let result = result.map_err(Failure::from);
        if !arguments.json {
            output::result(&match &result {
                Ok(answer) if count == 1 => report.single(answer),
                Ok(answer) => one_line(answer),
                Err(_) if count == 1 => String::new(),
                Err(failure) => format!("{}\n", failure.message),
            });
        }
        match result {
            Ok(answer) => {
                report.add(&answer);
                done_count += 1;
            }
            Err(failure) => {
                report.failures.push(failure.message.clone());
                failures.push(failure);
            }
        }
    });
    if done_count > 0 {
        return Ok(Exit::Done);
    }
    let exit = failures.iter().map(|failure| failure.exit).find(|&exit| exit != Exit::Silence);
    match failures.pop() {
        Some(failure) if count == 1 => Err(failure),
        _ => Err(exit.unwrap_or(Exit::Silence).because(format!("none of {count} exchanges succeeded"))),
    }
}

fn print_remark(remark: Remark) {
    output::error(&match remark {
        Remark::NoNewKey(error) => format!("there is no new key: {}", Failure::from(*error).message),
        remark => format!("trust: {remark}"),
    });
}

/// Does what `--forget-antp` says, before anything else looks at what is remembered.
fn forget(arguments: &Query, server: &HostPort) -> Result<(), Failure> {
    if !arguments.antp.forget_antp {
        return Ok(());
    }
    let name = antp::stored_name(server);
    let was_there = antp::store(arguments).map_or(Ok(false), |store| store.forget(&name))?;
    output::error(&match was_there {
        true => format!("{name} is forgotten to have spoken ANTP"),
        false => format!("{name} was not known to have spoken ANTP"),
    });
    Ok(())
}

/// A client of the server under the scheme that the arguments name.
fn client(arguments: &Query, server: &HostPort, report: &mut Report) -> Result<Box<dyn Client>, Failure> {
    let key_name = key_name(arguments)?;
    if arguments.auth == Authentication::Plain
        && let Some(store) = antp::store(arguments)
    {
        store.admit_plain(&antp::stored_name(server))?;
    }
    let timeout = arguments.timeout;
    if arguments.auth == Authentication::Nts {
        let roots = trust::roots(arguments.client.trust.ca.as_deref())?;
        let ask = server::ask(&arguments.client, roots, &server.host)?;
        let (host, port, ntp_port) = (server.host.clone(), arguments.ke_port, server.port);
        let start = Instant::now();
        let addresses = resolve(&host, port, timeout)?;
        report.timing.resolve_ns = nanos(start.elapsed());
        return Ok(Box::new(Nts::new(KeyServer { host, port, addresses, ask, ntp_port }, timeout)));
    }
    let start = Instant::now();
    let addresses = resolve(&server.host, server.port.unwrap_or(NTP_PORT), timeout)?;
    report.timing.resolve_ns = nanos(start.elapsed());
    Ok(match key_name {
        Some(name) => {
            let (key, addresses) = name.find(&addresses)?;
            Box::new(Mac::new(addresses, key, timeout))
        }
        None if arguments.auth == Authentication::Antp => {
            Box::new(antp::client(arguments, server, addresses)?)
        }
        None => Box::new(Plain::new(addresses, timeout)),
    })
}

/// The key that the arguments name. An option that would do nothing is refused.
fn key_name(arguments: &Query) -> Result<Option<KeyName<'_>>, Failure> {
    match (arguments.auth, &arguments.keys, arguments.key_id) {
        (Authentication::Mac, Some(file), Some(id)) => {
            let allowed = arguments.allowed.into();
            Ok(Some(KeyName { file, id, format: arguments.keys_format, allowed }))
        }
        (Authentication::Mac, ..) => {
            Err(Exit::Usage.because("--auth mac needs a key: --keys FILE --key-id N"))
        }
        (Authentication::Nts | Authentication::Antp | Authentication::Plain, None, None) => {
            match Allowed::from(arguments.allowed) == Allowed::default() {
                true => Ok(None),
                false => {
                    Err(Exit::Usage.because("--allow-legacy and --allow-experimental are for --auth mac"))
                }
            }
        }
        (Authentication::Nts | Authentication::Antp | Authentication::Plain, ..) => {
            Err(Exit::Usage.because("--keys and --key-id are for --auth mac"))
        }
    }
}

/// Refuses options of ANTP with another scheme.
fn check_antp_options(arguments: &Query) -> Result<(), Failure> {
    match arguments.antp.given() {
        Some(option) if arguments.auth != Authentication::Antp => {
            Err(Exit::Usage.because(format!("{option} is for --auth antp")))
        }
        _ => Ok(()),
    }
}
