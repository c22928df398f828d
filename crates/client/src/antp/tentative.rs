//! Tentative trust, for a host that has no idea of the time: several servers are asked, whose certificates must pass
//! every check except that of their dates. The dates are then judged at the time on which most of the servers agree.
//!
//! An attacker needs the keys of expired certificates of most of the servers, where one key would do if the dates of a
//! single server were ignored. The user vouches that the servers are run independently; that they have different keys
//! is checked.

use std::time::Duration;

use authentick_crypto::Entropy;
use authentick_ke::tls::public_key_info;
use authentick_net::addresses::Addresses;
use authentick_net::clock;
use authentick_proto::antp::client::{Negotiated, Offer};
use authentick_wire::time::NtpSpan;
use thiserror::Error as Describe;

use super::phases::{TimeAsk, ask_time};
use super::{Phase, Settings, establish};
use crate::error::{Error, Place, Why};
use crate::measurement::Learnt;
use crate::remark::Remark;
use crate::resolve::first_response;
use crate::trust::{Anchor, Dates, Times, Untrusted, judge, rfc3339};

/// With fewer servers a majority means nothing.
pub const SERVER_COUNT_MIN: usize = 3;

/// How far apart the clocks of two agreeing servers may be. For the dates of certificates days would do.
const AGREEMENT: Duration = Duration::from_secs(60);

/// A server that votes on the time.
#[derive(Debug)]
pub struct Voter {
    /// The name that the user gave.
    pub name: String,
    /// Where it is.
    pub addresses: Addresses,
    /// Whom its certificate must come from.
    pub anchor: Anchor,
}

/// Why the servers' answers do not give a time.
#[derive(Debug, Describe)]
pub enum Disagreement {
    /// Their clocks are too far apart: each server, and its offset.
    #[error("the servers do not agree on the time ({})", listed(.0))]
    Time(Vec<(String, NtpSpan)>),
    /// The time on which they agree, in Unix seconds, has certainly passed.
    #[error("the servers agree on {}, which is before what is known here", rfc3339(*.0))]
    Past(u64),
    /// These two have the same key.
    #[error("{0} and {1} have one key, and so one say; name servers that are run independently")]
    OneKey(String, String),
    /// The chain of this server was not good at the time on which they agree, in Unix seconds.
    #[error("{0} at {at}: {2}", at = rfc3339(*.1))]
    Untrusted(String, u64, Untrusted),
}

fn listed(said: &[(String, NtpSpan)]) -> String {
    said.iter().map(|(server, offset)| format!("{server}: {offset}")).collect::<Vec<_>>().join(", ")
}

/// The answer of one server.
struct Vote<'a> {
    voter: &'a Voter,
    negotiated: Negotiated,
    offset: NtpSpan,
}

/// The time on which most of the voters agree, in Unix seconds, and the remark about it. `times` gives the lower bound;
/// its clock only selects the era.
///
/// # Errors
/// If one of them cannot be asked, or they do not agree.
pub fn agree(settings: &Settings, times: &Times, entropy: &mut Entropy) -> Result<(u64, Remark), Error> {
    let voters = &settings.voters;
    let votes: Vec<Vote<'_>> =
        voters.iter().map(|voter| vote(voter, settings, entropy)).collect::<Result<_, _>>()?;
    let at = compare(&votes, times).map_err(|why| Error::new(Place::Tentative, why))?;
    let servers = voters.iter().map(|voter| voter.name.clone()).collect();
    Ok((at, Remark::Tentative { servers, at }))
}

/// Goes through all phases with one server; everything but the dates of its certificates is checked.
fn vote<'a>(voter: &'a Voter, settings: &Settings, entropy: &mut Entropy) -> Result<Vote<'a>, Error> {
    let failed = |(phase, why): (Phase, Why)| Error::new(Place::Vote(voter.name.clone(), phase), why);
    let Settings { suites, ask, timeout, .. } = *settings;
    let judged = |negotiated: &Negotiated, _: &mut Entropy| {
        Ok(judge(&voter.anchor, &Dates::Ignored, &negotiated.chain(), negotiated.suite())?)
    };
    let (server, mut established) = first_response(&voter.addresses, |server| {
        let offer = Offer { suites, ..Offer::p256() };
        establish(server, offer, entropy, timeout, &mut Learnt::default(), judged)
            .map(|established| (server, established))
            .map_err(failed)
    })?;
    let ask = TimeAsk { is_separate: false, is_fresh: false, bounds: ask.bounds };
    let answer = ask_time(server, &mut established.session, ask, entropy, timeout)
        .map_err(|unanswered| failed((Phase::Time, unanswered.into())))?;
    Ok(Vote { voter, negotiated: established.negotiated, offset: answer.measurement.sample.offset })
}

/// The time by all servers together, in Unix seconds.
fn compare(votes: &[Vote<'_>], times: &Times) -> Result<u64, Disagreement> {
    check_independence(votes)?;
    let offsets: Vec<NtpSpan> = votes.iter().map(|vote| vote.offset).collect();
    let offset = majority(&offsets).ok_or_else(|| {
        Disagreement::Time(votes.iter().map(|vote| (vote.voter.name.clone(), vote.offset)).collect())
    })?;
    let floor = times.floor().at;
    let pivot = i64::try_from(floor.max(times.clock)).unwrap_or(i64::MAX);
    let (seconds, _) = (clock::now() + offset).to_unix(pivot);
    let at = u64::try_from(seconds).unwrap_or(0);
    if at < floor {
        return Err(Disagreement::Past(at));
    }
    let dates = Dates::At(Times { by_hand: Some(at), ..*times });
    for Vote { voter, negotiated, .. } in votes {
        judge(&voter.anchor, &dates, &negotiated.chain(), negotiated.suite())
            .map_err(|why| Disagreement::Untrusted(voter.name.clone(), at, why))?;
    }
    Ok(at)
}

/// Two servers with one key count as one server.
fn check_independence(votes: &[Vote<'_>]) -> Result<(), Disagreement> {
    let key = |vote: &Vote<'_>| {
        vote.negotiated.chain().certificates().next().and_then(public_key_info).map(<[u8]>::to_vec)
    };
    for (index, vote) in votes.iter().enumerate() {
        if let Some(other) = votes[..index].iter().find(|other| key(other) == key(vote)) {
            return Err(Disagreement::OneKey(other.voter.name.clone(), vote.voter.name.clone()));
        }
    }
    Ok(())
}

/// The median of the offsets, if more than half are near it.
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
