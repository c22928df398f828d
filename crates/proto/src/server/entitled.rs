//! Who was authenticated, and who may be given time: the only place that says so, of either.
//!
//! Both are values that nothing else can make, and they are not the same. NTS and MACs prove that a request is its
//! client's, and are then charged to that client. Plain NTP asks for no proof, and ANTP has none to ask for; they get
//! time because policy let them through.

use authentick_wire::header::{Leap, ReferenceId};
use authentick_wire::time::NtpTime;

use super::admit::{Admitted, Permitted};
use super::outcome::Outcome;
use super::snapshot::Snapshot;

/// A request whose sender is who it must be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Authenticated(());

impl Authenticated {
    /// Judges a request by whether its tag is right.
    pub(super) const fn verified(_: Permitted, genuine: bool) -> Option<Self> {
        match genuine {
            true => Some(Authenticated(())),
            false => None,
        }
    }
}

/// A request that may be given time: without this there is no header with time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entitled(());

impl Entitled {
    /// A request with a right tag, within its client's rate.
    pub(super) const fn authenticated(_: Authenticated, _: Admitted) -> Self {
        Entitled(())
    }

    /// A request without any proof: policy let it through, which is all that plain NTP asks for.
    pub(super) const fn plain(_: Admitted) -> Self {
        Entitled(())
    }

    /// A request of ANTP, which nothing vouches for: m1, m3 and m5 have no tag, as who asks need not be known.
    ///
    /// It may be given time for the same reason as one of plain NTP. What its answer is worth is for its client to
    /// judge. m6 proves itself with a tag under the key out of C2. The times of m2, m4 and errors have nothing that
    /// proves them, and clients of ANTP never use them.
    pub(super) const fn antp(_: Admitted) -> Self {
        Entitled(())
    }
}

/// The timestamp of a kiss: what the request has, or the time for a request that has none.
///
/// Small devices send zero and take whatever comes back, without a look at the stratum: zero sets them to 2036. A kiss
/// of policy gives them the time, if the server is synchronised. The response to a wrong proof never does.
#[derive(Clone, Copy, Debug)]
pub(super) struct KissStamp(NtpTime);

impl KissStamp {
    /// That of a kiss of policy; `None` if there is no time to give.
    pub(super) fn of_policy(origin: NtpTime, snapshot: &Snapshot, now: NtpTime) -> Option<Self> {
        let is_synchronised = snapshot.leap != Leap::Unsynchronised;
        KissStamp::repeated(origin).or_else(|| is_synchronised.then_some(KissStamp(now)))
    }

    /// That of a response to a wrong proof; `None` if the request has no timestamp.
    pub(super) fn repeated(origin: NtpTime) -> Option<Self> {
        (origin != NtpTime::ZERO).then_some(KissStamp(origin))
    }

    pub(super) const fn time(self) -> NtpTime {
        self.0
    }
}

/// A request whose proof does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejected {
    /// Without a word: the request breaks a rule.
    Silently(Outcome),
    /// With an NTSN kiss. RFC 8915 section 5.7.
    Nak(Outcome),
    /// With a crypto-NAK that carries a kiss code. RFC 5905 section 9.2.
    CryptoNak(ReferenceId, Outcome),
}
