//! `authentick query`: what time is it, who says so, and how long did that take.

mod antp;
mod report;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use authentick_client::mac::Mac;
use authentick_client::nts::{KeyServer, Nts};
use authentick_client::plain::Plain;
use authentick_client::{Client, HostPort, INTERVAL_MIN, Learnt, NTP_PORT, Remark, resolve, spaced};
use authentick_crypto::Entropy;
use authentick_load::{NotAllowed, Permission};
use authentick_net::addresses::Addresses;
use authentick_wire::header::ReferenceId;

use self::report::{Report, nanos, one_line};
use crate::args::{Authentication, Query};
use crate::exit::{Exit, Failure};
use crate::server;
use crate::symmetric::KeyName;
use crate::trust;
use crate::{interrupt, output};

pub(crate) fn run(arguments: &Query) -> Result<Exit, Failure> {
    let series = Series::new(arguments);
    series.end_on_signals();
    let result = ask(arguments, &series);
    series.end(result)
}

/// A series of exchanges, whose report is taken by what ends it first: the last exchange, or a signal.
#[derive(Clone)]
struct Series {
    report: Arc<Mutex<Option<Report>>>,
    count: u32,
    is_json: bool,
}

impl Series {
    fn new(arguments: &Query) -> Self {
        let report = Report::new(&arguments.server, arguments.auth, arguments.count);
        let report = Arc::new(Mutex::new(Some(report)));
        Series { report, count: arguments.count, is_json: arguments.json }
    }

    /// Changes the report, unless it was printed.
    fn note(&self, change: impl FnOnce(&mut Report)) {
        if let Some(report) = self.report.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            change(report);
        }
    }

    /// Ends the command at SIGINT and SIGTERM with what it has by then; a request that waits for its response is left.
    fn end_on_signals(&self) {
        let series = self.clone();
        interrupt::on_signal(move |_| {
            // Nothing is left to print: the command is about to end.
            let mut report = series.take()?;
            report.interrupt();
            let ended = match report.has_exchanges() {
                true => Ok(Exit::Done),
                false => Err(Exit::Silence.because("interrupted before a response came")),
            };
            Some(series.print(report, ended))
        });
    }

    fn take(&self) -> Option<Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Prints the report, unless a signal has.
    fn end(&self, result: Result<Exit, Failure>) -> Result<Exit, Failure> {
        match self.take() {
            Some(report) => self.print(report, result),
            // The thread of signals prints it, and ends the process.
            None => loop {
                std::thread::park();
            },
        }
    }

    fn print(&self, mut report: Report, result: Result<Exit, Failure>) -> Result<Exit, Failure> {
        match &result {
            Ok(exit) => report.exit = *exit as u8,
            Err(failure) => {
                report.exit = failure.exit as u8;
                report.error = Some(failure.message.clone());
            }
        }
        match self.is_json {
            true => {
                output::json(&report)?;
                // The error is in the result; once is enough.
                Ok(result.unwrap_or_else(|failure| failure.exit))
            }
            false => {
                if self.count > 1 {
                    output::result(&report.summary());
                }
                result
            }
        }
    }
}

/// Asks, and notes what is known as it becomes known.
fn ask(arguments: &Query, series: &Series) -> Result<Exit, Failure> {
    let server = &arguments.server.parse::<HostPort>()?;
    series.note(|report| report.server.clone_from(&server.host));
    let permission = arguments.permission.permission()?;
    let mut entropy = Entropy::from_system()?;
    forget(arguments, server)?;
    let (mut client, addresses) = client(arguments, server, series)?;
    let is_slowed = is_slowed(arguments, server, &addresses, &permission)?;
    let interval = |learnt: &Learnt| match is_slowed(learnt.address) {
        true => arguments.interval.max(INTERVAL_MIN),
        false => arguments.interval,
    };
    let count = arguments.count;
    let mut done_count = 0;
    let mut failures = Vec::new();
    let refusal = spaced(client.as_mut(), count, interval, &mut entropy, |learnt, result| {
        learnt.remarks.drain(..).for_each(print_remark);
        if count > 1 && result.as_ref().is_err_and(|error| error.kiss() == Some(ReferenceId::RATE)) {
            output::error("kiss code RATE: the interval is doubled");
        }
        let result = result.map_err(Failure::from);
        series.note(|report| {
            report.learn(arguments, learnt);
            if !arguments.json {
                output::result(&match &result {
                    Ok(answer) if count == 1 => report.single(answer),
                    Ok(answer) => one_line(answer),
                    Err(_) if count == 1 => String::new(),
                    Err(failure) => format!("{}\n", failure.message),
                });
            }
            match &result {
                Ok(answer) => report.add(answer),
                Err(failure) => report.failures.push(failure.message.clone()),
            }
        });
        match result {
            Ok(_) => done_count += 1,
            Err(failure) => failures.push(failure),
        }
    });
    if let Some(code) = refusal.filter(|_| count > 1) {
        let made = done_count + failures.len();
        return Err(Exit::Unavailable.because(format!(
            "kiss code {code:?}: the server does not serve this client; series ended after {made} of {count} \
             exchanges"
        )));
    }
    if done_count > 0 {
        return Ok(Exit::Done);
    }
    let exit = failures.iter().map(|failure| failure.exit).find(|&exit| exit != Exit::Silence);
    match failures.pop() {
        Some(failure) if count == 1 => Err(failure),
        _ => Err(exit.unwrap_or(Exit::Silence).because(format!("none of {count} exchanges succeeded"))),
    }
}

/// Whether requests are at least [`INTERVAL_MIN`] apart, given the address that was asked last: if that or one of the
/// host's, where keys are exchanged, may not be loaded. A permission by name is for the addresses of that name, not for
/// a server that its key exchange names.
fn is_slowed<'a>(
    arguments: &Query,
    server: &'a HostPort,
    addresses: &Addresses,
    permission: &'a Permission,
) -> Result<impl Fn(Option<SocketAddr>) -> bool + use<'a>, Failure> {
    let own: Vec<IpAddr> = addresses.all().map(|address| address.ip()).collect();
    let mut public = None;
    for &address in &own {
        match permission.check(&server.host, address) {
            Ok(()) => {}
            Err(error @ NotAllowed::Public(..)) => public = Some(error),
            Err(error @ (NotAllowed::Another(..) | NotAllowed::List { .. })) => return Err(error.into()),
        }
    }
    if let Some(error) = &public
        && arguments.count > 1
        && arguments.interval < INTERVAL_MIN
    {
        let (asked, least) = (arguments.interval.as_secs_f64(), INTERVAL_MIN.as_secs());
        output::error(&format!("--interval {asked} is raised to {least} s: {error}"));
    }
    let is_public = public.is_some();
    let is_other = move |address: SocketAddr| {
        let address = address.ip();
        !own.contains(&address) && permission.check(&address.to_string(), address).is_err()
    };
    Ok(move |asked: Option<SocketAddr>| is_public || asked.is_some_and(&is_other))
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

/// A client of the server under the scheme that the arguments name, and the addresses that it begins with.
fn client(
    arguments: &Query,
    server: &HostPort,
    series: &Series,
) -> Result<(Box<dyn Client>, Addresses), Failure> {
    let key_name = key_name(arguments)?;
    if arguments.auth == Authentication::Plain
        && let Some(store) = antp::store(arguments)
    {
        antp::admit_plain(arguments, &store, server)?;
    }
    let timeout = arguments.timeout;
    if arguments.auth == Authentication::Nts {
        let roots = trust::roots(arguments.client.trust.ca.as_deref())?;
        let ask = server::ask(&arguments.client, roots, &server.host)?;
        let (host, port, ntp_port) = (server.host.clone(), arguments.ke_port, server.port);
        let start = Instant::now();
        let addresses = resolve(&host, port, timeout)?;
        series.note(|report| report.timing.resolve_ns = nanos(start.elapsed()));
        let key_server = KeyServer { host, port, addresses: addresses.clone(), ask, ntp_port };
        return Ok((Box::new(Nts::new(key_server, timeout)), addresses));
    }
    let start = Instant::now();
    let addresses = resolve(&server.host, server.port.unwrap_or(NTP_PORT), timeout)?;
    series.note(|report| report.timing.resolve_ns = nanos(start.elapsed()));
    let client: Box<dyn Client> = match key_name {
        Some(name) => {
            let (key, addresses) = name.find(&addresses)?;
            Box::new(Mac::new(addresses, key, timeout))
        }
        None if arguments.auth == Authentication::Antp => {
            Box::new(antp::client(arguments, server, addresses.clone())?)
        }
        None => Box::new(Plain::new(addresses.clone(), timeout)),
    };
    Ok((client, addresses))
}

/// The key that the arguments name, under `--auth mac`.
fn key_name(arguments: &Query) -> Result<Option<KeyName<'_>>, Failure> {
    match (arguments.auth, &arguments.keys, arguments.key_id) {
        (Authentication::Mac, Some(file), Some(id)) => {
            let allowed = arguments.allowed.into();
            Ok(Some(KeyName { file, id, format: arguments.keys_format, allowed }))
        }
        (Authentication::Mac, ..) => Err(Exit::Usage.because("--auth mac needs --keys FILE and --key-id N")),
        (Authentication::Nts | Authentication::Antp | Authentication::Plain, ..) => Ok(None),
    }
}
