//! The batch responder: datagrams in, responses out, one counted outcome each.
//!
//! A datagram is parsed once, and claimed by the scheme by which it asks. A batch goes through the steps in groups, so
//! that each scheme can work on many packets side by side. Each keeps what it knows of a request in slots of its own
//! and takes the same five steps; policy stands between the first two, and headers are built between the last two:
//!
//! ```text
//!            plain    nts                       mac                 antp
//! claim      -        where its fields lie      where its MAC lies  what it asks for
//!                              admit: who may ask, by source; plain and ANTP: how often, by source
//! open       -        cookies                   the key             C1 and C2
//! verify     -        AEAD of the requests      MACs                suite and expiry out of C2
//!                     how often, by key         by key and prefix   -
//! lay_out    -        fields, fresh cookies     fields, nonces      m2, m6 but for its tag
//!                              build: headers with time, kisses
//! seal       -        AEAD of the responses     MACs                tags; m3 is handed over
//! ```
//!
//! Transmit timestamps are read after everything that can be done before them (RFC 8915 section 5.7 advises so): only
//! the last step stands between the stamp and the engine's flush.
//!
//! The pipeline is carried by types. Policy makes `Permitted` of who may ask, and `Admitted` of a request within the
//! rate limits; under NTS and with a MAC, verification makes `Authenticated` in between, and the limits are those of
//! the client. A request that may be given time is `Entitled`: with a right tag, or by policy's word alone where no
//! proof is asked for, under plain NTP and ANTP. Only with that can a header with time be built;
//! a kiss has one timestamp, a `KissStamp`.

mod admit;
pub mod antp;
mod build;
mod claim;
mod entitled;
pub mod interleave;
pub mod limit;
mod mac;
mod nts;
pub mod outcome;
pub mod probe;
pub mod snapshot;
pub mod uses;

use std::sync::Arc;

use authentick_crypto::Entropy;
use authentick_wire::datagram::{Datagram, Early};
use authentick_wire::header::{Mode, ReferenceId};
use authentick_wire::nts::Span;
use authentick_wire::time::NtpTime;

pub use self::admit::Policy;
use self::admit::{Admitted, Meter, Permitted, Refused};
use self::antp::{Antp, AntpMoment};
use self::build::{Echo, Stamper};
use self::entitled::{Entitled, Rejected};
use self::interleave::Interleave;
use self::mac::Mac;
use self::nts::Nts;
use self::outcome::{Outcome, Outcomes};
use self::probe::{Probe, Stage};
use self::snapshot::Snapshot;
use self::uses::KeyUses;
use crate::delays::{Step, pause};
use crate::keyset::KeySet;
use crate::limits::{BATCH_SIZE, GROUP_SIZE};
use crate::symmetric::SymmetricKeys;

/// Where the responder's time comes from. A fixed instant is a clock that stands still.
pub trait Clock {
    /// The time of day.
    fn now(&mut self) -> NtpTime;
    /// Microseconds on a clock that is never set; only differences matter.
    fn monotonic_us(&mut self) -> u64;
}

impl Clock for NtpTime {
    fn now(&mut self) -> NtpTime {
        *self
    }

    fn monotonic_us(&mut self) -> u64 {
        u64::try_from(self.since(NtpTime::ZERO).as_nanos() / 1000).unwrap_or(0)
    }
}

/// What the responder needs to know of the moment: read once per batch.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The state of the server's clock.
    pub snapshot: Snapshot,
    /// The cookie keys; absent where NTS is not served: NTS requests are then answered with NTSN.
    pub keys: Option<&'a KeySet>,
    /// The symmetric keys; absent where none are served: requests with a MAC then name an unknown key.
    pub symmetric: Option<&'a SymmetricKeys>,
    /// ANTP; absent where it is not served: its fields are then ignored, as any unknown ones.
    pub antp: Option<AntpMoment<'a>>,
}

/// Answers batches of datagrams. Each worker owns one; nothing is allocated after it was made.
pub struct Responder {
    policy: Arc<Policy>,
    entropy: Entropy,
    slots: Box<[Slot]>,
    nts: Nts,
    mac: Mac,
    antp: Antp,
    stamper: Stamper,
    outcomes: Outcomes,
    refused_count: u64,
}

/// What is known of one datagram between the steps, whatever its scheme is; that has slots of its own. It keeps places,
/// not references, so it outlives each step's borrows.
struct Slot {
    standing: Standing,
    scheme: Scheme,
    echo: Echo,
    /// The origin timestamp of the request: in interleaved mode, our receive timestamp of the exchange before.
    request_origin: NtpTime,
    /// The receive timestamp of the request.
    request_receive: NtpTime,
    identifier: Option<Span>,
}

/// How a request is to be authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Plain,
    Nts,
    Mac,
    Antp,
}

/// How far a datagram has come.
#[derive(Clone, Copy)]
enum Standing {
    /// The end of the way; nothing is sent.
    Silent(Outcome),
    /// A refusal of policy is sent.
    Kiss(ReferenceId, Outcome),
    /// The kiss NTSN is sent: the cookie or the tag is wrong.
    NtsNak(Outcome),
    /// A kiss with the four octets behind it that say: not with that key.
    CryptoNak(ReferenceId, Outcome),
    /// Well formed, and claimed by a scheme.
    Claimed,
    /// From an address that may ask; to be authenticated and charged by its scheme.
    Permitted(Permitted),
    /// Let through by policy; its scheme has the say.
    Admitted(Admitted),
    /// May be given time.
    Entitled(Entitled, Outcome),
}

impl Default for Slot {
    fn default() -> Self {
        Slot {
            standing: Standing::Silent(Outcome::Malformed),
            scheme: Scheme::Plain,
            echo: Echo { version: 0, mode: Mode::Server, poll: 0, origin: NtpTime::ZERO },
            request_origin: NtpTime::ZERO,
            request_receive: NtpTime::ZERO,
            identifier: None,
        }
    }
}

impl Slot {
    /// Whether its address may ask, if `scheme` is to authenticate it now.
    #[inline(always)]
    fn permitted(&self, scheme: Scheme) -> Option<Permitted> {
        match self.standing {
            Standing::Permitted(permitted) if self.scheme == scheme => Some(permitted),
            _ => None,
        }
    }

    /// What policy said, if `scheme` has the say now.
    #[inline(always)]
    fn admitted(&self, scheme: Scheme) -> Option<Admitted> {
        match self.standing {
            Standing::Admitted(admitted) if self.scheme == scheme => Some(admitted),
            _ => None,
        }
    }

    /// Whether it may be given time by `scheme`.
    #[inline(always)]
    fn is_entitled(&self, scheme: Scheme) -> bool {
        matches!(self.standing, Standing::Entitled(..)) && self.scheme == scheme
    }
}

impl From<Rejected> for Standing {
    fn from(rejected: Rejected) -> Self {
        match rejected {
            Rejected::Silently(outcome) => Standing::Silent(outcome),
            //= rfc8915#6-7
            Rejected::Nak(outcome) => Standing::NtsNak(outcome),
            Rejected::CryptoNak(code, outcome) => Standing::CryptoNak(code, outcome),
        }
    }
}

impl From<Refused> for Standing {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Silently(outcome) => Standing::Silent(outcome),
            Refused::Kiss(code, outcome) => Standing::Kiss(code, outcome),
        }
    }
}

/// Requests of a group that policy let through, by their scheme: whose requests are not there does not cost anything.
#[derive(Clone, Copy, Default)]
struct AdmittedCounts {
    nts: usize,
    mac: usize,
    antp: usize,
}

impl Responder {
    /// A responder under `policy`. Without `interleave`, every answer is in basic mode.
    #[must_use]
    pub fn new(policy: Arc<Policy>, interleave: Option<Arc<Interleave>>, entropy: Entropy) -> Self {
        Responder {
            policy,
            entropy,
            slots: (0..GROUP_SIZE).map(|_| Slot::default()).collect(),
            nts: Nts::new(),
            mac: Mac::new(),
            antp: Antp::new(),
            stamper: Stamper::new(interleave),
            outcomes: Outcomes::default(),
            refused_count: 0,
        }
    }

    /// The same as the worker with a number: what it does with symmetric keys is counted there. Two responders that run
    /// at the same time have different numbers.
    #[must_use]
    pub fn with_worker(mut self, worker: usize) -> Self {
        self.mac.worker = worker;
        self
    }

    /// Goes by another policy from the next batch on.
    pub fn follow(&mut self, policy: &Arc<Policy>) {
        if !Arc::ptr_eq(&self.policy, policy) {
            self.policy = Arc::clone(policy);
        }
    }

    /// What became of all datagrams so far.
    #[must_use]
    pub const fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// Requests under each cookie key, since it was made; a key that opens no more may be left out.
    #[must_use]
    pub fn key_uses(&self) -> &[KeyUses] {
        self.nts.uses.all()
    }

    /// The same of requests for time with state of ANTP, by state key.
    #[must_use]
    pub fn state_key_uses(&self) -> &[KeyUses] {
        self.antp.uses.all()
    }

    /// Draws what follows from another source, so that a simulation can compare two histories.
    pub fn set_entropy(&mut self, entropy: Entropy) {
        self.entropy = entropy;
        self.antp.forget_nonces();
    }

    /// Writes a response for each datagram that deserves one, never larger than its request, and counts an outcome for
    /// every datagram. At most [`BATCH_SIZE`] datagrams, which go through the steps in groups: the first-level cache
    /// holds a group and what is known about it, and `probe` sees each group as a batch.
    ///
    /// What [`Responder::early`] names are packets of their own.
    ///
    /// # Panics
    /// If the batch is larger, or a response buffer smaller than its request.
    pub fn respond(
        &mut self,
        moment: Moment<'_>,
        clock: &mut impl Clock,
        probe: &mut impl Probe,
        batch: &mut [Datagram<'_>],
    ) {
        self.begin(moment, clock, probe, batch);
        self.finish(batch);
    }

    /// As [`Responder::respond`], but without the tags of responses whose early packets, [`Responder::early`], can
    /// leave before [`Responder::finish`] computes them.
    ///
    /// # Panics
    /// As [`Responder::respond`].
    pub fn begin(
        &mut self,
        moment: Moment<'_>,
        clock: &mut impl Clock,
        probe: &mut impl Probe,
        batch: &mut [Datagram<'_>],
    ) {
        assert!(batch.len() <= BATCH_SIZE, "an engine's batch is no larger than BATCH_SIZE");
        self.antp.begin();
        self.stamper.begin(batch.len());
        for (number, group) in batch.chunks_mut(GROUP_SIZE).enumerate() {
            self.respond_to_group(number * GROUP_SIZE, moment, clock, probe, group);
        }
    }

    /// Answers at most [`GROUP_SIZE`] datagrams, of which the first has the place `first` in its batch.
    fn respond_to_group(
        &mut self,
        first: usize,
        moment: Moment<'_>,
        clock: &mut impl Clock,
        probe: &mut impl Probe,
        batch: &mut [Datagram<'_>],
    ) {
        probe.start(batch);
        self.claim(moment.antp.is_some() || self.policy.awaits_state_keys, batch);
        probe.end_of(Stage::Parse, batch.len());
        let admitted = self.admit(clock, batch);
        let antp = moment.antp.filter(|_| admitted.antp > 0);
        probe.end_of(Stage::Admit, batch.len());
        let slots = &mut self.slots[..batch.len()];
        let (policy, refused_count) = (&*self.policy, &mut self.refused_count);
        if admitted.nts > 0 {
            let mut meter = Meter { policy, clock, refused_count };
            self.nts.open(moment.keys, &mut meter, slots, batch);
        }
        let antp_count = match &antp {
            Some(antp) => self.antp.open(antp, policy.awaits_state_keys, clock, slots, batch),
            None if admitted.antp > 0 => Antp::await_keys(slots),
            None => 0,
        };
        probe.end_of(Stage::Open, admitted.nts + antp_count);
        let nts_count = match moment.keys {
            Some(keys) if admitted.nts > 0 => {
                self.nts.verify(keys, &mut Meter { policy, clock, refused_count }, slots, batch)
            }
            Some(_) | None => 0,
        };
        let mut mac_count = 0;
        if admitted.mac > 0 {
            self.mac.open(moment.symmetric, &mut Meter { policy, clock, refused_count }, slots, batch);
        }
        if let (Some(keys), 1..) = (moment.symmetric, admitted.mac) {
            self.mac.verify(keys, &mut Meter { policy, clock, refused_count }, slots, batch);
            mac_count = self.mac.lay_out(keys, &mut self.entropy, slots, batch);
        }
        if antp.is_some() {
            self.antp.verify(slots, batch);
        }
        probe.end_of(Stage::Verify, nts_count + mac_count);
        if let (Some(keys), 1..) = (moment.keys, nts_count) {
            self.nts.lay_out(keys, &mut self.entropy, slots, batch);
        }
        if let Some(antp) = &antp {
            self.antp.lay_out(antp, &mut self.entropy, slots, batch);
        }
        probe.end_of(Stage::Fresh, nts_count + antp_count);
        let built_count = build::build(slots, &mut self.stamper, first, &moment.snapshot, clock, batch);
        probe.end_of(Stage::Build, built_count);
        if nts_count > 0 {
            self.nts.seal(slots, batch);
        }
        if let (Some(keys), 1..) = (moment.symmetric, mac_count) {
            self.mac.seal(keys, slots, batch);
        }
        if let Some(antp) = &antp {
            self.antp.seal(first, antp, slots, batch);
        }
        probe.end_of(Stage::Seal, nts_count + mac_count + antp_count);
        if admitted.nts > 0 {
            self.nts.wipe(slots);
        }
        self.settle(batch.len());
        probe.finish(batch);
    }

    /// Tells that the engine began to send the last batch's responses at `from` and was done at `to`, so that clients
    /// in interleaved mode can learn it. Responses are taken to have left at even intervals: an estimate, better than
    /// the stamp in the response and no stamp of the kernel's.
    pub fn sent(&mut self, from: NtpTime, to: NtpTime) {
        self.stamper.sent(from, to);
    }

    /// Packets of the last batch that leave before the responses behind which they lie: those of ANTP's separate-tag
    /// mode.
    #[must_use]
    pub fn early(&self) -> &[Early] {
        self.antp.early()
    }

    /// Computes the tags that [`Responder::begin`] left out, one for each of [`Responder::early`].
    pub fn finish(&mut self, batch: &mut [Datagram<'_>]) {
        self.antp.finish(batch);
    }

    /// Whether nothing is kept of any client whose request was answered: so it is whenever no batch is under way.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.antp.is_blank()
    }

    /// Parses each datagram, and finds the scheme that it is for.
    fn claim(&mut self, serves_antp: bool, batch: &[Datagram<'_>]) {
        pause(Step::Parse);
        let Responder { slots, nts, mac, antp, .. } = self;
        for (index, (slot, datagram)) in slots.iter_mut().zip(batch).enumerate() {
            let antp = serves_antp.then_some(&mut *antp);
            slot.standing = match claim::claim(index, slot, (nts, mac, antp), datagram) {
                Ok(scheme) => {
                    slot.scheme = scheme;
                    Standing::Claimed
                }
                Err(outcome) => Standing::Silent(outcome),
            };
        }
    }

    /// Applies the policy.
    fn admit(&mut self, clock: &mut impl Clock, batch: &[Datagram<'_>]) -> AdmittedCounts {
        pause(Step::Admit);
        let mut counts = AdmittedCounts::default();
        let Responder { slots, policy, refused_count, .. } = self;
        let mut meter = Meter { policy, clock, refused_count };
        for (slot, datagram) in slots.iter_mut().zip(batch) {
            let Standing::Claimed = slot.standing else { continue };
            let source = datagram.source.ip();
            let standing = policy.permit(source).and_then(|permitted| {
                Ok(match slot.scheme {
                    Scheme::Plain => {
                        let entitled = Entitled::plain(meter.admit(permitted, source)?);
                        Standing::Entitled(entitled, Outcome::Plain)
                    }
                    Scheme::Nts => {
                        counts.nts += 1;
                        Standing::Permitted(permitted)
                    }
                    Scheme::Mac => {
                        counts.mac += 1;
                        Standing::Permitted(permitted)
                    }
                    Scheme::Antp => {
                        let admitted = meter.admit(permitted, source)?;
                        counts.antp += 1;
                        Standing::Admitted(admitted)
                    }
                })
            });
            slot.standing = standing.unwrap_or_else(Standing::from);
        }
        counts
    }

    fn settle(&mut self, count: usize) {
        for slot in &self.slots[..count] {
            let outcome = match slot.standing {
                Standing::Silent(outcome)
                | Standing::Kiss(_, outcome)
                | Standing::NtsNak(outcome)
                | Standing::CryptoNak(_, outcome)
                | Standing::Entitled(_, outcome) => outcome,
                Standing::Claimed | Standing::Permitted(_) | Standing::Admitted(_) => {
                    debug_assert!(false, "a datagram left the steps undecided");
                    Outcome::Malformed
                }
            };
            self.outcomes.count(outcome);
        }
    }
}

impl std::fmt::Debug for Responder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Responder").field("policy", &self.policy).field("outcomes", &self.outcomes).finish()
    }
}

#[cfg(test)]
mod tests;
