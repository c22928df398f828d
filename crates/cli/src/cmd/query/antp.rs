//! Time under ANTP: when each phase is due, what is kept of it, and what is said.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_net::clock::unix_seconds;
use authentick_proto::antp::client::{Association, Bounds, Check, HeldChain, Negotiated, Offer, Phase};
use authentick_wire::antp::{Suite, SuiteList};
use authentick_wire::time::{NtpSpan, NtpTime};
use serde::Serialize;

use super::{Answer, Bound, Report, TimeSpent, Vouched, date, nanos};
use crate::antp::ocsp::{Ask, Vouch, judge_now};
use crate::antp::phases::{Agreed, TimeAsk, ask_time, exchange_keys, negotiate};
use crate::antp::store::Store;
use crate::antp::tentative::{Ballot, SERVER_COUNT_MIN, Voter, agree};
use crate::antp::trust::{Anchor, Believed, Dates, SLACK_SECONDS, Times, judge};
use crate::args::Query;
use crate::exit::{Exit, Failure};
use crate::measure::Unanswered;
use crate::server::{NTP_PORT, ServerArgument, resolve};
use crate::{output, trust};

/// What a key exchange of ANTP brought.
#[derive(Debug, Serialize)]
pub(super) struct Session {
    suite: u16,
    suite_name: String,
    /// `inline` or `separate`.
    tag: &'static str,
    chain_size: usize,
    /// Whether the chain was held from an earlier run, and not sent again.
    chain_held: bool,
    negotiation_round_count: u32,
    trusted_by: &'static str,
    subject: Option<String>,
    issuer: Option<String>,
    valid_until: Option<String>,
    /// What responders vouched for, one for each certificate of the path; absent without `--ocsp`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ocsp: Vec<Vouch>,
}

impl Session {
    /// Lines for people: a name and a value.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("authenticated", format!("ANTP, {}, {} tag", self.suite_name, self.tag))];
        if let (Some(subject), Some(issuer)) = (&self.subject, &self.issuer) {
            lines.push(("vouched for by", format!("{subject} (issuer: {issuer})")));
        }
        if let Some(date) = &self.valid_until {
            lines.push(("valid until", date.clone()));
        }
        lines.push(("trusted by", self.trusted_by.to_owned()));
        lines.extend(self.ocsp.iter().map(|vouch| ("OCSP", vouch.line())));
        let held = if self.chain_held { ", held from before" } else { "" };
        let rounds = match self.negotiation_round_count {
            1 => "1 round".to_owned(),
            count => format!("{count} rounds"),
        };
        lines.push(("chain", format!("{} octets{held}, {rounds}", self.chain_size)));
        lines
    }
}

/// A server and what there is with it.
pub(super) struct Source<'a> {
    arguments: &'a Query,
    /// The name under which the store knows the server.
    name: String,
    server: SocketAddr,
    anchor: Anchor,
    store: Store,
    suites: SuiteList,
    held: Option<HeldChain>,
    bounds: Bounds,
    association: Association,
    /// From when the association counts.
    started: Instant,
    /// Until when the leaf is good, in Unix seconds.
    valid_until: Option<i64>,
    /// Whom tentative trust asks, this server included; nobody without it.
    voters: Vec<Voter>,
    /// The time at which certificates are judged, where somebody has said so, in Unix seconds.
    judged_at: Option<u64>,
    /// What time it was, in Unix seconds, by a responder of OCSP; `None` if none was asked.
    vouched_at: Option<u64>,
}

/// Trust in authorities for a server of this name.
fn authorities(arguments: &Query, name: &str) -> Result<Anchor, Failure> {
    Anchor::authorities(&trust::roots(arguments.ca.as_deref())?, name)
}

/// The servers of `--tentative`, and the one that is asked anyway.
fn voters(arguments: &Query, argument: &ServerArgument, server: SocketAddr) -> Result<Vec<Voter>, Failure> {
    let others = &arguments.antp.tentative;
    if others.is_empty() {
        return Ok(Vec::new());
    }
    if others.len() + 1 < SERVER_COUNT_MIN {
        return Err(Failure::new(
            Exit::Usage,
            "--tentative needs two servers beside HOST: give it twice or more",
        ));
    }
    let name = arguments.server_name.as_deref().unwrap_or(&argument.host);
    let first =
        Voter { name: arguments.server.clone(), address: server, anchor: authorities(arguments, name)? };
    let mut voters = vec![first];
    for text in others {
        let other = ServerArgument::parse(text)?;
        let address = resolve(&other.host, other.port.unwrap_or(NTP_PORT))?[0];
        voters.push(Voter { name: text.clone(), address, anchor: authorities(arguments, &other.host)? });
    }
    Ok(voters)
}

/// The name under which the store knows a server: as the user calls it, with the port if it is an unusual one.
pub(super) fn stored_name(server: &ServerArgument) -> String {
    match server.port {
        None | Some(NTP_PORT) => server.host.clone(),
        Some(port) if server.host.contains(':') => format!("[{}]:{port}", server.host),
        Some(port) => format!("{}:{port}", server.host),
    }
}

impl<'a> Source<'a> {
    pub(super) fn new(
        arguments: &'a Query,
        argument: &ServerArgument,
        server: SocketAddr,
    ) -> Result<Self, Failure> {
        let options = &arguments.antp;
        let anchor = match &options.pin {
            Some(file) => Anchor::pinned(file)?,
            None => authorities(arguments, arguments.server_name.as_deref().unwrap_or(&argument.host))?,
        };
        let suites: Vec<Suite> = options.kem.iter().map(|kem| kem.suite()).collect();
        let suites = if suites.is_empty() { vec![Suite::P256] } else { suites };
        let suites = SuiteList::new(&suites)
            .ok_or_else(|| Failure::new(Exit::Usage, "--kem is given more than eight times"))?;
        let bounds = options.round_trip_max.map_or(Bounds::WAN, |longest| Bounds {
            round_trip_max: NtpSpan::from(longest),
            residence_max: NtpSpan::from(longest * 2),
        });
        let voters = voters(arguments, argument, server)?;
        let store = Store::prepare(options.state_directory.as_deref())?;
        let name = stored_name(argument);
        let held = store.chain(&name)?;
        let association = Association::new();
        let started = Instant::now();
        Ok(Source {
            arguments,
            name,
            server,
            anchor,
            store,
            suites,
            held,
            bounds,
            association,
            started,
            valid_until: None,
            voters,
            judged_at: options.validate_at,
            vouched_at: None,
        })
    }

    /// Seconds of a clock that is never set.
    fn now(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// How much longer the server seems to want the client to wait between exchanges.
    pub(super) fn slowdown(&self) -> u32 {
        1 << self.association.backoff()
    }

    pub(super) fn measure(&mut self, entropy: &mut Entropy, report: &mut Report) -> Result<Answer, Failure> {
        if self.association.phase(self.now()) == Phase::Negotiate
            && let Err(failure) = self.establish(entropy, report)
        {
            // The old key serves until there is a new one.
            if self.association.session().is_none() {
                return Err(failure);
            }
            output::error(&format!("there is no new key: {}", failure.message));
        }
        let ask = TimeAsk {
            is_separate: self.arguments.antp.separate_tag,
            is_fresh: self.arguments.count > 1,
            bounds: self.bounds,
        };
        let now = self.now();
        let session = self.association.session().expect("just established, or from before");
        match ask_time(self.server, session, ask, entropy, self.arguments.timeout) {
            Ok(timed) => {
                self.association.accepted();
                self.save_time(timed.accepted.header.transmit)?;
                let bound = Bound {
                    error_max: timed.error_max,
                    round_trip_max: self.bounds.round_trip_max,
                    is_early: timed.accepted.is_early,
                };
                Ok(Answer { measurement: timed.measurement, bound: Some(bound) })
            }
            Err(unanswered) => {
                if let Unanswered::Rejected(checks) = &unanswered {
                    for check in checks {
                        self.association.failed(check, now);
                    }
                }
                Err(self.failure("time sync", &unanswered))
            }
        }
    }

    /// Goes through the first two phases, with the check of the certificates between them.
    fn establish(&mut self, entropy: &mut Entropy, report: &mut Report) -> Result<(), Failure> {
        let timeout = self.arguments.timeout;
        self.ask_voters(entropy)?;
        let offer = Offer { suites: self.suites, held: self.held.clone(), ..Offer::p256() };
        let agreed = negotiate(self.server, offer, entropy, timeout)
            .map_err(|unanswered| self.failure("negotiation", &unanswered))?;
        report.timing.negotiation_ns = Some(nanos(agreed.took));
        let negotiated = &agreed.negotiated;
        let start = Instant::now();
        let (believed, vouches) = self.judge(negotiated, entropy)?;
        report.timing.certificate_check_ns = Some(nanos(start.elapsed()));
        report.authentication = Some(Vouched::Antp(self.session(&agreed, &believed, vouches)));
        let exchanged = exchange_keys(self.server, negotiated, &believed.key, entropy, timeout)
            .map_err(|wrong| self.rejected("key exchange", &wrong.to_string()))?
            .map_err(|unanswered| self.failure("key exchange", &unanswered))?;
        report.timing.set_key_exchange(exchanged.encapsulation, exchanged.took);
        self.valid_until = believed.certificate.map(|certificate| certificate.not_after);
        // Now it is sure that the server speaks ANTP, and not who stands before it.
        self.store.keep(&self.name, &negotiated.chain())?;
        self.held = Some(HeldChain::new(&negotiated.chain()));
        let now = self.now();
        self.association.establish(exchanged.session, now);
        Ok(())
    }

    /// Asks the servers of tentative trust, once.
    fn ask_voters(&mut self, entropy: &mut Entropy) -> Result<(), Failure> {
        if self.voters.is_empty() {
            return Ok(());
        }
        let ballot = Ballot { suites: self.suites, bounds: self.bounds, timeout: self.arguments.timeout };
        let times = Times::now(&self.store, None)?;
        let (seconds, remark) = agree(&self.voters, &ballot, &times, entropy)?;
        output::error(&format!("trust: {remark}"));
        self.judged_at = Some(seconds);
        self.voters.clear();
        Ok(())
    }

    fn judge(
        &mut self,
        negotiated: &Negotiated,
        entropy: &mut Entropy,
    ) -> Result<(Believed, Vec<Vouch>), Failure> {
        let times = Times::now(&self.store, self.judged_at)?;
        let (chain, suite) = (negotiated.chain(), negotiated.suite());
        let phase = "certificate check";
        let (believed, vouches) = match &self.arguments.antp.ocsp {
            None => {
                let believed = judge(&self.anchor, &Dates::At(times), &chain, suite)
                    .map_err(|problem| self.rejected(phase, &problem))?;
                (believed, Vec::new())
            }
            Some(url) => {
                let ask = Ask { url: url.as_deref(), timeout: self.arguments.timeout };
                let present =
                    judge_now(&self.anchor, &times, ask, &chain, suite, entropy).map_err(|bad| {
                        Failure::new(bad.exit, format!("{}: {phase}: {}", self.server, bad.message))
                    })?;
                self.vouched_at = Some(present.time);
                (present.believed, present.vouches)
            }
        };
        for remark in &believed.remarks {
            output::error(&format!("trust: {remark}"));
        }
        Ok((believed, vouches))
    }

    fn session(&self, agreed: &Agreed, believed: &Believed, ocsp: Vec<Vouch>) -> Session {
        let negotiated = &agreed.negotiated;
        let octets = negotiated.chain().octets();
        let certificate = believed.certificate.as_ref();
        Session {
            suite: negotiated.suite().0,
            suite_name: negotiated.suite().to_string(),
            tag: if self.arguments.antp.separate_tag { "separate" } else { "inline" },
            chain_size: octets.len(),
            chain_held: self.held.as_ref().is_some_and(|held| held.octets() == octets),
            negotiation_round_count: agreed.round_count,
            trusted_by: believed.by,
            subject: certificate.map(|certificate| certificate.subject.clone()),
            issuer: certificate.map(|certificate| certificate.issuer.clone()),
            valid_until: certificate.and_then(|certificate| date(certificate.not_after)),
            ocsp,
        }
    }

    /// Saves what time it is by the server, so that no certificate is ever judged by an earlier one. A time at which
    /// the server's own certificate is long over is not saved: it would shut out every other server. The era of the
    /// timestamp is that of the clock, or of a responder's answer, as the clock may be decades off.
    fn save_time(&self, time: NtpTime) -> Result<(), Failure> {
        let pivot = i64::try_from(self.vouched_at.unwrap_or_else(unix_seconds)).unwrap_or(0);
        let (seconds, _) = time.to_unix(pivot);
        let slack = i64::try_from(SLACK_SECONDS).expect("two days");
        if self.valid_until.is_some_and(|until| seconds > until.saturating_add(slack)) {
            output::error(
                "trust: the server's time is after its own certificate's end, and is not remembered",
            );
            return Ok(());
        }
        self.store.save_time(u64::try_from(seconds).unwrap_or(0))
    }

    fn failure(&self, phase: &str, unanswered: &Unanswered<Check>) -> Failure {
        Failure::new(unanswered.exit(), format!("{}: {phase}: {unanswered}", self.server))
    }

    fn rejected(&self, phase: &str, problem: &str) -> Failure {
        Failure::new(Exit::Authentication, format!("{}: {phase}: {problem}", self.server))
    }
}

impl TimeSpent {
    fn set_key_exchange(&mut self, encapsulation: Duration, rest: Duration) {
        self.encapsulation_ns = Some(nanos(encapsulation));
        self.key_exchange_ns = Some(nanos(rest));
    }
}
