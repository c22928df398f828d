//! What follows from the study, in the sentences that stand first.

use super::compare::Compared;
use super::figures::Which;
use super::tables::PATHS;
use super::verdicts::FULL;
use super::{AntpRecord, Level, Path, Phase, Subject, Suite};
use crate::published::antp::{
    EXCHANGE_ECDH_OVER_RSA, PLAIN_OVER_TIME, PRIMITIVE_ECDH_OVER_RSA, TIME_LATENCY_INCREASE,
};
use crate::units::{joined, microseconds, percent, rate, ratio, signed_share};

/// The sentences that stand first.
pub(super) fn findings(record: &AntpRecord) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(time_against_plain(record));
    sentences.extend(latency_against_plain(record));
    sentences.extend(exchanges(record));
    for suite in Suite::ALL {
        let Some((share, ceiling)) = record.link_share(Subject::new(Phase::Negotiation, suite)) else {
            continue;
        };
        let bound = if share >= FULL { "the link is the limit" } else { "something else is the limit" };
        let mut sentence = format!(
            "Negotiations with {} fill {} % of a link of 1 Gbit/s, which carries {} a second: {bound} (published: the \
             link).",
            suite.name(),
            percent(share),
            rate(ceiling)
        );
        if share > 1.0 {
            sentence.push_str(
                " Ours is a token bucket, which counts preamble, checksum and gap once for what is sent in one call, \
                 and so lets a little more pass.",
            );
        }
        sentences.push(sentence);
    }
    for suite in Suite::ALL {
        let Some(complete) = record.complete(Which::Valid, suite, Level::Half, Path::Short) else { continue };
        let (whole, phases) = (microseconds(complete.whole_us), microseconds(complete.phases_us()));
        sentences.push(format!(
            "A run of all phases with {} takes {whole} at 50 % load, its phases {phases} of them, and the client's own \
             cryptography {}.",
            suite.name(),
            microseconds(complete.client_crypto_us)
        ));
    }
    let unsure = cells(record).filter(|cell| *cell == Filled::Marked).count();
    if unsure > 0 {
        sentences.push(format!(
            "{unsure} cells of Table 1 have a mark (!): the generator did not keep up in any trial of theirs, so they \
             say little about the server, and are in no ratio and no figure."
        ));
    }
    let missing = cells(record).filter(|cell| *cell == Filled::Missing).count();
    if missing > 0 {
        sentences.push(format!("{missing} cells of Table 1 are not measured yet."));
    }
    sentences
}

/// What tags take of the plain rate.
fn time_against_plain(record: &AntpRecord) -> Option<String> {
    match record.throughput_ratio(Subject::PLAIN, Subject::TIME) {
        Compared::Missing => None,
        Compared::Withheld(why) => {
            Some(format!("No share of the plain rate is said for authenticated time: {why}."))
        }
        Compared::Found(slower) => Some(format!(
            "Authenticated time comes at {} of the plain rate here ({} as published).",
            slower.inverse().text(),
            ratio(1.0 / PLAIN_OVER_TIME)
        )),
    }
}

/// How much longer authenticated time takes.
fn latency_against_plain(record: &AntpRecord) -> Option<String> {
    let latency = |level| record.latency_ratio(Subject::TIME, Subject::PLAIN, level);
    match Level::ALL.map(latency) {
        [Compared::Found(half), Compared::Found(most)] => {
            let unclear = [(half, "50 %"), (most, "90 %")].into_iter().filter(|(found, _)| !found.is_clear());
            let unclear = joined(unclear.map(|(_, load)| load.to_owned()), " and ");
            let unclear = unclear.map_or_else(String::new, |loads| {
                format!(" The trials do not carry that there is a difference at {loads}.")
            });
            Some(format!(
                "Its median latency differs from that of plain time by {} at 50 % load and {} at 90 % (published: {} \
                 and {}).{unclear}",
                half.change(),
                most.change(),
                signed_share(TIME_LATENCY_INCREASE[0]),
                signed_share(TIME_LATENCY_INCREASE[1])
            ))
        }
        [Compared::Withheld(why), _] | [_, Compared::Withheld(why)] => {
            Some(format!("Its latency is not compared with that of plain time: {why}."))
        }
        [Compared::Missing, _] | [_, Compared::Missing] => None,
    }
}

/// How much faster key exchanges are with curves.
fn exchanges(record: &AntpRecord) -> Option<String> {
    let exchange = |suite| Subject::new(Phase::Exchange, suite);
    let primitives = record.primitive_ratio().map(ratio);
    match record.throughput_ratio(exchange(Suite::Ecdh), exchange(Suite::Rsa)) {
        Compared::Missing => None,
        Compared::Withheld(why) => {
            Some(format!("The rates of key exchanges with ECDH and RSA are not compared: {why}."))
        }
        Compared::Found(faster) => {
            let primitives = primitives.map_or_else(String::new, |found| {
                format!(
                    "; the primitives alone differ by {found} here, and by {PRIMITIVE_ECDH_OVER_RSA} there"
                )
            });
            Some(format!(
                "Key exchanges with ECDH come {} times as often as with RSA (published: \
                 {EXCHANGE_ECDH_OVER_RSA}){primitives}.",
                faster.text()
            ))
        }
    }
}

/// What a cell of Table 1 has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    Measured,
    Marked,
    Missing,
}

/// All cells of Table 1 but those behind the link, which not every host has.
pub(super) fn cells(record: &AntpRecord) -> impl Iterator<Item = Filled> {
    let filled = |has: &dyn Fn(Which) -> bool| match [Which::Valid, Which::Invalid].map(has) {
        [true, _] => Filled::Measured,
        [false, true] => Filled::Marked,
        [false, false] => Filled::Missing,
    };
    let throughput = Subject::ALL
        .into_iter()
        .map(move |subject| filled(&|which| record.throughput(which, subject, Path::Short).is_some()));
    let complete = Suite::ALL.map(|suite| Subject::new(Phase::Complete, suite));
    let places = Subject::ALL.into_iter().chain(complete).flat_map(|subject| {
        PATHS.into_iter().flat_map(move |path| Level::ALL.map(|level| (subject, level, path)))
    });
    let latency = places.map(move |(subject, level, path)| {
        filled(&|which| record.cell(which, subject, level, path).is_some())
    });
    throughput.chain(latency)
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;

    #[test]
    fn findings_say_which_limit_negotiations_met() {
        let mut record = record();
        assert!(
            findings(&record).iter().any(|one| one.contains("91.04 %") && one.contains("something else"))
        );
        record.trials.iter_mut().for_each(|trial| trial.answered_rps *= 1.09);
        let is_said = |record: &AntpRecord, words| findings(record).iter().any(|one| one.contains(words));
        assert!(is_said(&record, "the link is the limit") && !is_said(&record, "token bucket"));
        record.trials.iter_mut().for_each(|trial| trial.answered_rps *= 1.02);
        assert!(is_said(&record, "the link is the limit") && is_said(&record, "token bucket"));
    }
}
