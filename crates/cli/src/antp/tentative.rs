//! Tentative trust, for a host that has no idea of the time: several servers are asked whose certificates pass every
//! check but that of their dates, and the dates are judged at the time on which most of them agree.
//!
//! An attacker needs keys whose certificates are long over, of most of the servers, where one would do if the dates of
//! one server were not looked at. That the servers are run independently is the user's word; that they have different
//! keys is checked.

use std::net::SocketAddr;
use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_ke::tls::public_key_info;
use authentick_net::clock;
use authentick_proto::antp::client::{Bounds, Offer};
use authentick_wire::antp::{Chain, Suite, SuiteList};
use authentick_wire::time::NtpSpan;

use super::phases::{TimeAsk, ask_time, exchange_keys, negotiate};
use super::store::instant;
use super::trust::{Anchor, Dates, Times, judge};
use crate::exit::{Exit, Failure};

/// Fewer servers than this are no majority worth the name.
pub(crate) const SERVER_COUNT_MIN: usize = 3;

/// How far the clocks of two servers that agree may be apart. For the dates of certificates days would do.
const AGREEMENT: Duration = Duration::from_secs(60);

/// A server that has a say.
#[derive(Debug)]
pub(crate) struct Voter {
    /// As the user calls it.
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) anchor: Anchor,
}

/// What the servers are asked with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ballot {
    pub(crate) suites: SuiteList,
    pub(crate) bounds: Bounds,
    /// For each phase.
    pub(crate) timeout: Duration,
}

/// What one server said.
struct Vote<'a> {
    voter: &'a Voter,
    chain: Vec<u8>,
    suite: Suite,
    offset: NtpSpan,
}

/// The time on which most of `voters` agree, in Unix seconds, and what is to be said of it. `times` has the lower bound
/// on it; its clock does not count.
pub(crate) fn agree(
    voters: &[Voter],
    ballot: &Ballot,
    times: &Times,
    entropy: &mut Entropy,
) -> Result<(u64, String), Failure> {
    let votes: Vec<Vote<'_>> =
        voters.iter().map(|voter| vote(voter, ballot, entropy)).collect::<Result<_, _>>()?;
    check_independence(&votes)?;
    let offsets: Vec<NtpSpan> = votes.iter().map(|vote| vote.offset).collect();
    let said = || votes.iter().map(|vote| format!("{}: {}", vote.voter.name, vote.offset));
    let rejected =
        |problem: String| Failure::new(Exit::Authentication, format!("tentative trust: {problem}"));
    let offset = majority(&offsets).ok_or_else(|| {
        let said: Vec<String> = said().collect();
        rejected(format!("the servers do not agree on the time ({})", said.join(", ")))
    })?;
    let floor = times.floor();
    let pivot = i64::try_from(floor.max(times.clock)).unwrap_or(i64::MAX);
    let (seconds, _) = (clock::now() + offset).to_unix(pivot);
    let seconds = u64::try_from(seconds).unwrap_or(0);
    let shown = humantime::format_rfc3339_seconds(instant(seconds));
    if seconds < floor {
        return Err(rejected(format!("the servers agree on {shown}, which is before what is known here")));
    }
    let at = Dates::At(Times { by_hand: Some(seconds), ..*times });
    for vote in &votes {
        let chain = Chain::parse(&vote.chain).expect("it was parsed when it came");
        judge(&vote.voter.anchor, &at, &chain, vote.suite)
            .map_err(|problem| rejected(format!("{} at {shown}: {problem}", vote.voter.name)))?;
    }
    let names: Vec<&str> = voters.iter().map(|voter| voter.name.as_str()).collect();
    let remark = format!(
        "tentative: {} were believed without the dates of their certificates, agree on {shown}, and are good then",
        names.join(", ")
    );
    Ok((seconds, remark))
}

/// Goes through all phases with one server; of its certificates all is checked but their dates.
fn vote<'a>(voter: &'a Voter, ballot: &Ballot, entropy: &mut Entropy) -> Result<Vote<'a>, Failure> {
    let failure = |exit, phase: &str, problem: &dyn std::fmt::Display| {
        Failure::new(exit, format!("tentative trust: {}: {phase}: {problem}", voter.name))
    };
    let offer = Offer { suites: ballot.suites, ..Offer::p256() };
    let agreed = negotiate(voter.address, offer, entropy, ballot.timeout)
        .map_err(|unanswered| failure(unanswered.exit(), "negotiation", &unanswered))?;
    let negotiated = &agreed.negotiated;
    let (chain, suite) = (negotiated.chain(), negotiated.suite());
    let believed = judge(&voter.anchor, &Dates::Ignored, &chain, suite)
        .map_err(|problem| failure(Exit::Authentication, "certificate check", &problem))?;
    let mut session = exchange_keys(voter.address, negotiated, &believed.key, entropy, ballot.timeout)
        .map_err(|wrong| failure(Exit::Authentication, "key exchange", &wrong))?
        .map_err(|unanswered| failure(unanswered.exit(), "key exchange", &unanswered))?
        .session;
    let ask = TimeAsk { is_separate: false, is_fresh: false, bounds: ballot.bounds };
    let timed = ask_time(voter.address, &mut session, ask, entropy, ballot.timeout)
        .map_err(|unanswered| failure(unanswered.exit(), "time sync", &unanswered))?;
    let chain = chain.octets().to_vec();
    Ok(Vote { voter, chain, suite, offset: timed.accepted.sample.offset })
}

/// Two servers with one key are one server.
fn check_independence(votes: &[Vote<'_>]) -> Result<(), Failure> {
    let key = |vote: &Vote<'_>| {
        let chain = Chain::parse(&vote.chain).expect("it was parsed when it came");
        chain.certificates().next().and_then(public_key_info).map(<[u8]>::to_vec)
    };
    for (index, vote) in votes.iter().enumerate() {
        if let Some(other) = votes[..index].iter().find(|other| key(other) == key(vote)) {
            let message = format!(
                "tentative trust: {} and {} have one key, and so one say; name servers that are run independently",
                other.voter.name, vote.voter.name
            );
            return Err(Failure::new(Exit::Authentication, message));
        }
    }
    Ok(())
}

/// The middle of the offsets, if more than half are near it.
fn majority(offsets: &[NtpSpan]) -> Option<NtpSpan> {
    let mut sorted = offsets.to_vec();
    sorted.sort_unstable_by_key(|offset| offset.as_nanos());
    let middle = *sorted.get(sorted.len() / 2)?;
    let is_near =
        |offset: &&NtpSpan| u128::from(offset.as_nanos().abs_diff(middle.as_nanos())) <= AGREEMENT.as_nanos();
    (2 * sorted.iter().filter(is_near).count() > sorted.len()).then_some(middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(seconds: i64) -> NtpSpan {
        NtpSpan::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn more_than_half_of_the_servers_must_agree_and_the_others_have_no_say() {
        for (offsets, agreed) in [
            (&[0, 1, 2][..], Some(1)),
            (&[1_000_000, 1_000_010, -5], Some(1_000_000)),
            (&[-9_000_000, 50, 0], Some(0)),
            (&[0, 1_000, 2_000], None),
            (&[0, 0, 1_000, 1_000], None),
            (&[0, 10, 20, 5_000], Some(20)),
            (&[], None),
        ] {
            let offsets: Vec<NtpSpan> = offsets.iter().map(|&offset| span(offset)).collect();
            assert_eq!(majority(&offsets), agreed.map(span), "{offsets:?}");
        }
    }
}
