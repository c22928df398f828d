//! The certificates of the key exchange: which of them are in force, and what becomes of those that are renewed.
//!
//! Each table of the configuration stands alone: its pair is put in force as a whole or not at all, and one that cannot
//! be read holds up no other. A pair that was refused is looked at again, as it may be the time that was wrong with it.
//! Where the configuration has other tables, certificates of those that are gone serve until all of these have one: a
//! mistake in a path takes no certificate away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use authentick_ke::tls::{ByName, CertificateInfo, Identity, server_config_by_name};
use rustls::ServerConfig;

use crate::config::{CertificatePair, Config, ConfigError, KeyExchange};
use crate::containment::Containment;
use crate::identity::Contents;
use crate::renewal::{Digest, LOOK_INTERVAL, Reloads};
use crate::shared::ExchangeState;
use crate::validity;

/// From one line on a pair that is refused to the next, at least; and if it would be the same line.
const LINE_INTERVAL: Duration = Duration::from_secs(60);
const SAME_LINE_INTERVAL: Duration = Duration::from_secs(3600);

/// A table of the configuration, and what is in force of it.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) pair: CertificatePair,
    /// Absent while nothing was good that its files held.
    pub(crate) identity: Option<Arc<Identity>>,
    pub(crate) reloads: Arc<Reloads>,
    /// Whether the files hold something that was refused.
    pub(crate) is_refused: bool,
    /// What the files held when the identity was read.
    digest: Option<Digest>,
}

impl Served {
    /// A table of which nothing is in force.
    fn nothing(pair: &CertificatePair) -> Self {
        let pair = pair.clone();
        Served { pair, identity: None, reloads: Arc::default(), is_refused: false, digest: None }
    }

    /// The certificate in force.
    pub(crate) fn certificate(&self) -> Option<&CertificateInfo> {
        Some(&self.identity.as_ref()?.certificate)
    }

    /// Logs what clients dislike about what is in force.
    pub(crate) fn warn(&self) {
        if let Some(identity) = &self.identity {
            validity::warn_of(self.pair.read_from(), identity);
        }
    }

    /// The names for which clients get it: those of its table, or of the certificate.
    pub(crate) fn names(&self) -> Vec<&str> {
        match (&self.pair.names, self.certificate()) {
            (_, None) => Vec::new(),
            (Some(names), Some(_)) => names.iter().map(String::as_str).collect(),
            (None, Some(certificate)) => certificate.dns_names().collect(),
        }
    }
}

/// Reads the certificates of all tables at a start, or for a check.
///
/// # Errors
/// The first that cannot be read, or does not fit its key.
pub(crate) fn load(config: &Config, exchange: &KeyExchange) -> Result<InForce, ConfigError> {
    let one = |pair: &CertificatePair| {
        let contents = Contents::read(config, pair);
        let (identity, digest) = (contents.identity(config, pair)?, contents.digest());
        Ok(Served { identity: Some(Arc::new(identity)), digest: Some(digest), ..Served::nothing(pair) })
    };
    let served: Vec<Served> = exchange.certificates.iter().map(one).collect::<Result<_, ConfigError>>()?;
    let first = served[0].identity.clone().expect("it was read");
    Ok(InForce { served, first })
}

/// The certificates in force.
#[derive(Clone, Debug)]
pub(crate) struct InForce {
    /// In the order of the tables; what is left of others comes last.
    served: Vec<Served>,
    /// For clients that name no server, or one that no certificate has.
    first: Arc<Identity>,
}

impl InForce {
    pub(crate) fn served(&self) -> &[Served] {
        &self.served
    }

    /// What they say.
    pub(crate) fn certificates(&self) -> impl Iterator<Item = &CertificateInfo> {
        self.served.iter().filter_map(Served::certificate)
    }

    /// What the key exchange needs of them.
    pub(crate) fn tls(&self) -> Arc<ServerConfig> {
        server_config_by_name(self.by_name())
    }

    fn by_name(&self) -> ByName<Arc<Identity>> {
        let mut by_name = ByName::new(Arc::clone(&self.first));
        for served in &self.served {
            if let Some(identity) = &served.identity {
                for name in served.names() {
                    by_name.add(name, Arc::clone(identity));
                }
            }
        }
        by_name
    }

    /// Logs which certificates are not valid or end soon, and which names will not do what they should.
    pub(crate) fn warn(&self) {
        for served in &self.served {
            served.warn();
        }
        self.remarks().iter().for_each(|remark| log::warn!("{remark}"));
    }

    /// What is odd about names.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let (mut taken, mut remarks) = (ByName::new(()), Vec::new());
        for (index, served) in self.served.iter().enumerate() {
            let (Some(certificate), names) = (served.certificate(), served.names()) else { continue };
            let chain = served.pair.certificate_chain.display();
            if index > 0 && names.is_empty() {
                remarks.push(format!(
                    "{chain}: no client gets this certificate, as it has no name of the DNS; write names into its \
                     table, or put the table first"
                ));
            }
            for name in names {
                if !covers(certificate, name) {
                    remarks.push(format!(
                        "{chain}: clients that ask for {name} will refuse this certificate, which has another name; \
                         have one made for it, or take the name out of its table"
                    ));
                }
                if !taken.add(name, ()) {
                    remarks.push(format!(
                        "{chain}: clients that ask for {name} get the certificate of a table before this one, which \
                         has that name too; write into one of them the names that it is for"
                    ));
                }
            }
        }
        remarks
    }
}

/// Whether a client that asks for a name of the DNS, or for any under a wildcard, takes this certificate.
fn covers(certificate: &CertificateInfo, name: &str) -> bool {
    let mut names = ByName::new(false);
    for name in certificate.dns_names() {
        names.add(name, true);
    }
    *names.choose(Some(name))
}

/// What is to be logged: that something was put in force, or why not.
pub(crate) type Line = Result<String, String>;

/// Why files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// Whether they have changed.
    Look,
    /// Somebody has asked for it.
    Signal,
}

/// Looks after the certificates of a key exchange.
#[derive(Debug)]
pub(crate) struct Certificates {
    tables: Vec<Table>,
    /// Of tables that are gone.
    left: Vec<Served>,
    first: Arc<Identity>,
    next: Instant,
}

/// A table, and what was last found of it.
#[derive(Debug)]
struct Table {
    served: Served,
    /// What the files held when they were last tried.
    tried: Option<Digest>,
    told: Told,
}

impl Table {
    fn of(served: Served) -> Self {
        Table { served, tried: None, told: Told::default() }
    }

    /// Reads the files, and puts in force what is good of them; what is to be logged.
    fn read(
        &mut self,
        occasion: Occasion,
        config: &Config,
        containment: &Containment,
        now: Instant,
    ) -> Option<Line> {
        let Table { served, tried, told } = self;
        let contents = Contents::read(config, &served.pair);
        let digest = Some(contents.digest());
        let is_new = std::mem::replace(tried, digest) != digest;
        if occasion == Occasion::Look && !is_new && !served.is_refused {
            return None;
        }
        match judge(served, &contents, config, containment) {
            Ok(identity) => {
                validity::warn_of(served.pair.read_from(), &identity);
                if served.digest != digest {
                    served.reloads.count(true);
                }
                (served.digest, served.is_refused, *told) = (digest, false, Told::default());
                let title = identity.certificate.title().to_owned();
                served.identity = Some(Arc::new(identity));
                Some(Ok(format!("certificate read again: {title}")))
            }
            Err(problem) => {
                if is_new || occasion == Occasion::Signal {
                    served.reloads.count(false);
                }
                served.is_refused = true;
                let is_told = told.is_due(&problem, now) || occasion == Occasion::Signal;
                is_told.then(|| Err(format!("certificate not changed: {problem}")))
            }
        }
    }
}

/// The identity in files; or why it is not put in force.
fn judge(
    served: &Served,
    contents: &Contents,
    config: &Config,
    containment: &Containment,
) -> Result<Identity, String> {
    let files = served.pair.files().into_iter().map(|(_, path)| path);
    let identity = contents
        .identity(config, &served.pair)
        .map_err(|error| containment.explain(error, files).to_string())?;
    let fresh = &identity.certificate;
    match served.certificate().and_then(|in_force| validity::objection(in_force, fresh)) {
        Some(problem) => Err(format!("{}: {problem}; renew it", served.pair.read_from().display())),
        None => Ok(identity),
    }
}

/// What was last logged of a pair that is refused.
#[derive(Debug, Default)]
struct Told(Option<(Instant, String)>);

impl Told {
    /// Whether a line is to be logged: not more than one a minute, and of the same, one an hour.
    fn is_due(&mut self, problem: &str, now: Instant) -> bool {
        let is_due = self.0.as_ref().is_none_or(|(last, before)| {
            let interval = if before == problem { SAME_LINE_INTERVAL } else { LINE_INTERVAL };
            now.saturating_duration_since(*last) >= interval
        });
        if is_due {
            self.0 = Some((now, problem.to_owned()));
        }
        is_due
    }
}

impl Certificates {
    /// Those that are in force. Files that cannot be read now were told of when rights were given up.
    pub(crate) fn new(in_force: &InForce, config: &Config, now: Instant) -> Self {
        let table = |served: &Served| {
            let contents = Contents::read(config, &served.pair);
            let tried = if contents.texts().is_ok() { served.digest } else { Some(contents.digest()) };
            Table { tried, ..Table::of(served.clone()) }
        };
        Certificates {
            tables: in_force.served.iter().map(table).collect(),
            left: Vec::new(),
            first: Arc::clone(&in_force.first),
            next: now + LOOK_INTERVAL,
        }
    }

    /// Whether it is time to look at the files.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Puts in force what has been renewed; what is to be logged.
    pub(crate) fn look(
        &mut self,
        config: &Config,
        containment: &Containment,
        state: &ExchangeState,
        now: Instant,
    ) -> Vec<Line> {
        self.read(Occasion::Look, config, containment, state, now)
    }

    /// Takes over the tables of a configuration, and reads all files; what is to be logged.
    pub(crate) fn reload(
        &mut self,
        config: &Config,
        exchange: &KeyExchange,
        containment: &Containment,
        state: &ExchangeState,
        now: Instant,
    ) -> Vec<Line> {
        self.follow(exchange);
        let lines = self.read(Occasion::Signal, config, containment, state, now);
        self.publish(state);
        lines
    }

    fn read(
        &mut self,
        occasion: Occasion,
        config: &Config,
        containment: &Containment,
        state: &ExchangeState,
        now: Instant,
    ) -> Vec<Line> {
        self.next = now + LOOK_INTERVAL;
        let mut lines = Vec::new();
        for index in 0..self.tables.len() {
            let table = &mut self.tables[index];
            let before = (table.served.digest, table.served.is_refused);
            lines.extend(table.read(occasion, config, containment, now));
            if before != (table.served.digest, table.served.is_refused) {
                self.publish(state);
            }
        }
        lines
    }

    /// Has the tables of a configuration. What is in force of files that it names too stays so.
    fn follow(&mut self, exchange: &KeyExchange) {
        let mut before: Vec<Table> = std::mem::take(&mut self.tables);
        before.extend(std::mem::take(&mut self.left).into_iter().map(Table::of));
        let table = |pair: &CertificatePair| {
            let known = before.iter().position(|table| table.served.pair.is_same(pair));
            let mut table =
                known.map_or_else(|| Table::of(Served::nothing(pair)), |index| before.remove(index));
            table.served.pair = pair.clone();
            table
        };
        self.tables = exchange.certificates.iter().map(table).collect();
        let left = before.into_iter().map(|table| table.served);
        self.left = left.filter(|served| served.identity.is_some()).collect();
    }

    /// Has key exchanges from now on use what is in force.
    fn publish(&mut self, state: &ExchangeState) {
        if let Some(first) = &self.tables[0].served.identity {
            self.first = Arc::clone(first);
        }
        if self.tables.iter().all(|table| table.served.identity.is_some()) {
            self.left.clear();
        }
        let tables = self.tables.iter().map(|table| &table.served);
        let served = tables.chain(&self.left).cloned().collect();
        state.set_certificates(InForce { served, first: Arc::clone(&self.first) });
    }
}

#[cfg(test)]
mod tests;
