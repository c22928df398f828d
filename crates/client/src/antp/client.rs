//! A client that knows when each phase is due, and keeps its results.

use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_net::addresses::Addresses;
use authentick_net::clock::unix_seconds;
use authentick_proto::antp::client::{Association, HeldChain, Negotiated, Offer, Phase as Due};
use authentick_wire::antp::SuiteList;
use authentick_wire::time::NtpTime;

use super::ocsp::{self, judge_now};
use super::phases::{TimeAsk, ask_time};
use super::store::Store;
use super::tentative::{Voter, agree};
use super::{Established, Phase, establish};
use crate::Client;
use crate::error::{Error, Place};
use crate::exchange::Unanswered;
use crate::measurement::{Answer, Learnt};
use crate::remark::Remark;
use crate::resolve::Servers;
use crate::trust::{Anchor, Dates, SLACK_SECONDS, Times, judge};

/// A server, and how to ask it.
#[derive(Debug)]
pub struct Settings {
    /// Its addresses.
    pub addresses: Addresses,
    /// The name under which the store knows it.
    pub name: String,
    /// For each phase.
    pub timeout: Duration,
    /// Whom to trust.
    pub anchor: Anchor,
    /// Suites, the best first.
    pub suites: SuiteList,
    /// What is asked for in phase 3, and when its answer is too late.
    pub ask: TimeAsk,
    /// What is kept between runs.
    pub store: Store,
    /// The servers that tentative trust asks, including this one; empty without it.
    pub voters: Vec<Voter>,
    /// With OCSP: the responder that the user names, if any.
    pub ocsp: Option<Option<String>>,
    /// The time at which certificates are judged, if the user gives one, in Unix seconds.
    pub judged_at: Option<u64>,
    /// When the program was built, in Unix seconds; 0 if it does not know.
    pub built: u64,
}

/// A client of one server.
#[derive(Debug)]
pub struct Antp {
    settings: Settings,
    servers: Servers,
    held: Option<HeldChain>,
    association: Association,
    /// The zero of the association's clock.
    started: Instant,
    /// When the leaf expires, in Unix seconds.
    valid_until: Option<i64>,
    /// The time, in Unix seconds, that an OCSP responder told; `None` if none was asked.
    vouched_at: Option<u64>,
    learnt: Learnt,
}

impl Antp {
    /// A client that saves what it learns in the store.
    ///
    /// # Errors
    /// If the store cannot be used.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        settings.store.prepare()?;
        let held = settings.store.chain(&settings.name)?;
        Ok(Antp {
            servers: settings.addresses.clone().into(),
            settings,
            held,
            association: Association::new(),
            started: Instant::now(),
            valid_until: None,
            vouched_at: None,
            learnt: Learnt::default(),
        })
    }

    /// Seconds of a clock that is never set.
    fn now(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// Goes through the first two phases, and keeps their results.
    fn establish(&mut self, entropy: &mut Entropy) -> Result<(), Error> {
        self.ask_voters(entropy)?;
        let Settings { suites, timeout, .. } = self.settings;
        let times = self.times()?;
        let settings = &self.settings;
        let judged = |negotiated: &Negotiated, entropy: &mut Entropy| {
            let (anchor, chain, suite) = (&settings.anchor, &negotiated.chain(), negotiated.suite());
            match &settings.ocsp {
                None => Ok(judge(anchor, &Dates::At(times), chain, suite)?),
                Some(url) => {
                    let ask = ocsp::Ask { url: url.as_deref(), timeout };
                    judge_now(anchor, &times, ask, chain, suite, entropy)
                }
            }
        };
        let established = self.servers.ask(&mut self.learnt, |learnt, server| {
            let offer = Offer { suites, held: self.held.clone(), ..Offer::p256() };
            establish(server, offer, entropy, timeout, learnt, judged)
                .map_err(|(phase, why)| Error::new(Place::Antp(server, phase), why))
        })?;
        let Established { negotiated, session, valid_until, vouched_at, .. } = established;
        (self.valid_until, self.vouched_at) = (valid_until, vouched_at);
        // Only now is it certain that the server itself speaks ANTP, and not an attacker on the path.
        self.settings.store.keep(&self.settings.name, &negotiated.chain())?;
        self.held = Some(HeldChain::new(&negotiated.chain()));
        self.association.establish(session, self.now());
        Ok(())
    }

    /// What is known about the time.
    fn times(&self) -> Result<Times, Error> {
        let Settings { store, judged_at, built, .. } = &self.settings;
        let saved = store.last_time()?.unwrap_or(0);
        Ok(Times { clock: unix_seconds(), built: *built, saved, by_hand: *judged_at })
    }

    /// Asks the servers of tentative trust, the first time only.
    fn ask_voters(&mut self, entropy: &mut Entropy) -> Result<(), Error> {
        if self.settings.voters.is_empty() {
            return Ok(());
        }
        let (at, remark) = agree(&self.settings, &self.times()?, entropy)?;
        self.learnt.remarks.push(remark);
        self.settings.judged_at = Some(at);
        self.settings.voters.clear();
        Ok(())
    }

    /// Saves the server's time, so that no certificate is ever judged at an earlier one. A time at which the server's
    /// own certificate has long expired is not saved: it would shut out every other server. The era of the timestamp is
    /// taken from a responder's answer if there is one, else from the clock, which may be decades off.
    fn save_time(&mut self, time: NtpTime) -> Result<(), Error> {
        let pivot = i64::try_from(self.vouched_at.unwrap_or_else(unix_seconds)).unwrap_or(0);
        let (seconds, _) = time.to_unix(pivot);
        let slack = i64::try_from(SLACK_SECONDS).expect("two days");
        if self.valid_until.is_some_and(|until| seconds > until.saturating_add(slack)) {
            self.learnt.remarks.push(Remark::AfterCertificate);
            return Ok(());
        }
        Ok(self.settings.store.save_time(u64::try_from(seconds).unwrap_or(0))?)
    }
}

impl Client for Antp {
    //= antp#paper-2
    fn ask(&mut self, entropy: &mut Entropy) -> Result<Answer, Error> {
        if self.association.phase(self.now()) == Due::Negotiate
            && let Err(error) = self.establish(entropy)
        {
            // The old key is used until there is a new one.
            if self.association.session().is_none() {
                return Err(error);
            }
            self.learnt.remarks.push(Remark::NoNewKey(Box::new(error)));
        }
        let now = self.now();
        let Settings { ask, timeout, .. } = self.settings;
        const ESTABLISHED: &str = "just established, or from before";
        let session = self.association.session().expect(ESTABLISHED);
        let server = self.servers.chosen().expect(ESTABLISHED);
        match ask_time(server, session, ask, entropy, timeout) {
            Ok(answer) => {
                self.association.accepted();
                self.save_time(answer.measurement.response.header.transmit)?;
                Ok(answer)
            }
            Err(unanswered) => {
                if let Unanswered::Rejected(checks) = &unanswered {
                    for check in checks {
                        self.association.failed(check, now);
                    }
                }
                Err(Error::new(Place::Antp(server, Phase::Time), unanswered))
            }
        }
    }

    fn learnt(&mut self) -> &mut Learnt {
        &mut self.learnt
    }

    fn slowdown(&self) -> u32 {
        1 << self.association.backoff()
    }
}
