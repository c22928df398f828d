//! Which algorithm for which host, computed from throughput and from what an algorithm withstands; and whether each
//! draft's conclusion, GMAC in the first and CMAC in the later one, follows from today's figures as it did from theirs.
//!
//! The recommendation is the fastest algorithm without an objection ([`Factors::objection`]). Algorithms whose extremes
//! of rounds overlap with those of the fastest are as fast as it: of these the later draft's is recommended. Those
//! whose tag does not fit RFC 5905's MAC are listed separately, as peers do not know our extension field.
//!
//! Of a host without the instructions nothing is said by our code alone, which is made for hosts that have them: there
//! the faster of two implementations counts.

use super::figures::Range;
use super::security::{Carrier, Factors, MESSAGE_SIZE};
use super::{Algorithm, Implementation, Instructions, KeyUse, MacRecord, Side, Timing};
use crate::published::ntp_mac::{self, ALGORITHMS, Machine, NIST_RPS};
use crate::units::{capital, count, joined, ratio};

/// Seconds for which a key is used: a year, as NTP has no means to refresh one.
const KEY_LIFETIME_S: f64 = 365.25 * 86_400.0;
/// "Assuming that the client queries once per minute" (draft-ietf-ntp-mac, section 6.1).
const CLIENT_RPS: f64 = 1.0 / 60.0;

/// Who authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A client, which has one packet at a time.
    Client,
    /// A server, which takes packets in batches.
    Server,
}

impl Role {
    /// Answers under one key in its lifetime, as a power of two.
    #[must_use]
    pub fn messages_log2(self) -> f64 {
        let rate_rps = match self {
            Role::Client => CLIENT_RPS,
            Role::Server => NIST_RPS,
        };
        (rate_rps * KEY_LIFETIME_S).log2()
    }

    /// In a table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
        }
    }
}

/// An algorithm on a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Thousands of packets a second: the median of rounds.
    pub throughput_kps: f64,
    /// The least and the most of a round.
    pub extremes_kps: [f64; 2],
    /// How its tag travels.
    pub carrier: Carrier,
    /// Why it is not recommended.
    pub objection: Option<String>,
}

/// What follows for a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The host.
    pub host: String,
    /// What it does.
    pub role: Role,
    /// All algorithms that were measured there, the fastest first.
    pub ranked: Vec<Ranked>,
}

impl Ranked {
    /// Whether rounds do not tell which of the two is faster.
    fn is_as_fast_as(&self, other: &Ranked) -> bool {
        let ([low, high], [other_low, other_high]) = (self.extremes_kps, other.extremes_kps);
        low <= other_high && other_low <= high
    }

    fn is_eligible(&self) -> bool {
        self.objection.is_none() && self.carrier == Carrier::Trailer
    }
}

impl Verdict {
    fn new(host: String, role: Role, rates: impl Iterator<Item = (Algorithm, Range)>) -> Self {
        let mut ranked: Vec<Ranked> = rates
            .map(|(algorithm, kps)| {
                let factors = Factors::of(algorithm);
                let objection = factors.objection(role.messages_log2(), MESSAGE_SIZE);
                Ranked {
                    algorithm,
                    throughput_kps: kps.median,
                    extremes_kps: [kps.low, kps.high],
                    carrier: factors.carrier,
                    objection,
                }
            })
            .collect();
        ranked.sort_by(|a, b| b.throughput_kps.total_cmp(&a.throughput_kps));
        Verdict { host, role, ranked }
    }

    /// The fastest without an objection, whatever carries its tag.
    #[must_use]
    pub fn fastest(&self) -> Option<&Ranked> {
        self.ranked.iter().find(|ranked| ranked.objection.is_none())
    }

    /// Those without an objection whose tag travels as RFC 5905 has it, and than which none is seen to be faster: the
    /// fastest, and what is as fast.
    pub fn best(&self) -> impl Iterator<Item = &Ranked> {
        let fastest = self.ranked.iter().find(|ranked| ranked.is_eligible());
        let is_best = move |ranked: &&Ranked| {
            ranked.is_eligible() && fastest.is_some_and(|fastest| ranked.is_as_fast_as(fastest))
        };
        self.ranked.iter().filter(is_best)
    }

    /// The recommendation: of the best the later draft's, if it is among them, and else the fastest.
    #[must_use]
    pub fn recommended(&self) -> Option<&Ranked> {
        self.best().find(|ranked| ranked.algorithm == CONCLUSION).or_else(|| self.best().next())
    }

    /// An algorithm's place in the ranking.
    #[must_use]
    pub fn of(&self, algorithm: Algorithm) -> Option<&Ranked> {
        self.ranked.iter().find(|ranked| ranked.algorithm == algorithm)
    }
}

/// For this host as client and as server, with the instructions, and without where another implementation was measured.
#[must_use]
pub fn here(record: &MacRecord) -> Vec<Verdict> {
    let roles = record.in_order().flat_map(|side| [Role::Client, Role::Server].map(|role| (side, role)));
    let verdict = |(side, role): (&Side, Role)| {
        let ours = |algorithm| match role {
            Role::Client => side.ours(algorithm, 1),
            Role::Server => side.fastest_batch(algorithm),
        };
        measured(host_name(side.instructions).to_owned(), role, |algorithm| match side.instructions {
            Instructions::With => ours(algorithm),
            Instructions::Without => faster(ours(algorithm)?, side.rival(algorithm, KeyUse::Kept)?),
        })
    };
    roles.filter_map(verdict).collect()
}

fn faster<'a>(one: &'a Timing, other: &'a Timing) -> Option<&'a Timing> {
    let kps = |timing: &Timing| timing.throughput_kps().median;
    Some(if kps(one) >= kps(other) { one } else { other })
}

/// A verdict by timings; `None` if there are none.
fn measured<'a>(
    host: String,
    role: Role,
    timing: impl Fn(Algorithm) -> Option<&'a Timing>,
) -> Option<Verdict> {
    let rate = |algorithm| Some((algorithm, timing(algorithm)?.throughput_kps()));
    let verdict = Verdict::new(host, role, Algorithm::ALL.into_iter().filter_map(rate));
    (!verdict.ranked.is_empty()).then_some(verdict)
}

const fn host_name(instructions: Instructions) -> &'static str {
    match instructions {
        Instructions::With => "this host",
        Instructions::Without => "this host without AES and SHA instructions",
    }
}

/// For this host as a client that uses OpenSSL's code, with the instructions and without: the recommendation depends on
/// the code too. Empty if that was not measured.
#[must_use]
pub fn by_openssl(record: &MacRecord) -> Vec<Verdict> {
    let verdict = |side: &Side| {
        let host = format!("{}, by OpenSSL", host_name(side.instructions));
        measured(host, Role::Client, |algorithm| {
            side.timing(algorithm, Implementation::OpenSsl, KeyUse::Kept, 1)
        })
    };
    record.in_order().filter_map(verdict).collect()
}

/// For the drafts' machines as servers, from their figures. GMAC-SIV has none but its cycles on one of them.
#[must_use]
pub fn published() -> Vec<Verdict> {
    let rates = |machine: Machine| {
        let cells = ALGORITHMS.into_iter().filter_map(move |algorithm| ntp_mac::cell(algorithm, machine));
        cells.map(|cell| (cell.algorithm, Range::one(cell.throughput_kps)))
    };
    let verdict = |machine: Machine| Verdict::new(machine.name().to_owned(), Role::Server, rates(machine));
    Machine::ALL.into_iter().map(verdict).collect()
}

/// The conclusion of the later draft.
const CONCLUSION: Algorithm = Algorithm::Cmac128;
/// What the first draft suggests.
const SUGGESTION: Algorithm = Algorithm::Gmac128;

/// What follows, in sentences.
#[must_use]
pub fn findings(record: &MacRecord) -> Vec<String> {
    let here = here(record);
    let mut sentences = Vec::new();
    for verdict in &here {
        let Some(best) = verdict.recommended() else { continue };
        let place = format!("{}, as a {}", capital(&verdict.host), verdict.role.name());
        let as_fast = verdict.best().filter(|other| other.algorithm != best.algorithm);
        let as_fast = joined(as_fast.map(|other| other.algorithm.to_string()), ", ");
        let as_fast =
            as_fast.map_or_else(String::new, |names| format!("; rounds do not tell it from {names}"));
        sentences.push(format!(
            "{place}: {}, {} thousand packets a second{}{as_fast}.",
            best.algorithm,
            count(best.throughput_kps.round() as u64),
            to_md5(verdict, best)
        ));
    }
    sentences.extend(alone(record));
    sentences.extend(suggestion(&here));
    sentences.extend(conclusion(&here));
    sentences.extend(others(&by_openssl(record)));
    sentences.extend(siv(&here));
    sentences.extend(published_findings());
    sentences
}

fn to_md5(verdict: &Verdict, best: &Ranked) -> String {
    verdict.of(Algorithm::Md5).map_or_else(String::new, |md5| {
        format!(", {} times what legacy MD5 does", ratio(best.throughput_kps / md5.throughput_kps))
    })
}

/// That nothing follows for hosts without the instructions, where only our code was measured.
fn alone(record: &MacRecord) -> Option<String> {
    let side = record.side(Instructions::Without)?;
    let has_rival = Algorithm::ALL.iter().any(|&algorithm| side.rival(algorithm, KeyUse::Kept).is_some());
    let has_ours = Algorithm::ALL.iter().any(|&algorithm| side.ours(algorithm, 1).is_some());
    (has_ours && !has_rival).then(|| {
        format!(
            "{}: nothing is recommended, as our code for such hosts is not made for speed; that takes a second \
             implementation beside it (OpenSSL, with the feature openssl).",
            capital(host_name(Instructions::Without))
        )
    })
}

/// Whether what the first draft suggests is the fastest here, and why it is not recommended.
fn suggestion(here: &[Verdict]) -> Option<String> {
    let of = |verdict: &Verdict| verdict.of(SUGGESTION).cloned();
    let objection = here.iter().find_map(|verdict| of(verdict)?.objection);
    let measured: Vec<&Verdict> = here.iter().filter(|verdict| of(verdict).is_some()).collect();
    let is_fastest = |verdict: &&&Verdict| {
        let all = verdict.ranked.first().zip(of(verdict));
        all.is_some_and(|(fastest, own)| own.algorithm == fastest.algorithm || own.is_as_fast_as(fastest))
    };
    let fastest = measured.iter().filter(is_fastest).count();
    (!measured.is_empty()).then(|| {
        format!(
            "The first draft suggests {SUGGESTION}, \u{201c}because it has the best latency and throughput \
             performance\u{201d} (draft-aanchal4-ntp-mac-00, Recommendation): here nothing is faster in {fastest} of \
             {} cases{}.",
            measured.len(),
            objection.map_or_else(String::new, |why| format!("; it is not recommended, as {why}"))
        )
    })
}

/// Whether CMAC is what is recommended everywhere here, as the later draft concludes.
fn conclusion(here: &[Verdict]) -> Option<String> {
    if here.is_empty() {
        return None;
    }
    let against = here.iter().filter_map(|verdict| {
        let best = verdict.recommended().filter(|best| best.algorithm != CONCLUSION)?;
        let by = verdict.of(CONCLUSION).map_or_else(String::new, |cmac| {
            format!(", {} times as fast", ratio(best.throughput_kps / cmac.throughput_kps))
        });
        Some(format!("{} ({}): {}{by}", verdict.host, verdict.role.name(), best.algorithm))
    });
    let rule = format!(
        "of what is more than a digest of key and packet, reaches {} bits, survives a repeated nonce, lasts a year \
         without a new key and travels as RFC 5905\u{2019}s MAC",
        super::security::LEVEL_MIN_BITS
    );
    Some(match joined(against, "; ") {
        None => format!(
            "The later draft\u{2019}s conclusion stands: {rule}, nothing is faster than {CONCLUSION} in all {} cases \
             here.",
            here.len()
        ),
        Some(against) => format!(
            "The later draft\u{2019}s conclusion does not stand everywhere: {rule}, something is faster than \
             {CONCLUSION}: {against}."
        ),
    })
}

/// What would be recommended if the code were OpenSSL's.
fn others(verdicts: &[Verdict]) -> Option<String> {
    let place = |verdict: &Verdict| Some(format!("{}: {}", verdict.host, verdict.recommended()?.algorithm));
    let places = joined(verdicts.iter().filter_map(place), "; ")?;
    Some(format!("The same by other code, one packet at a time: {places}."))
}

/// What GMAC-SIV would gain, if there were a standard for it.
fn siv(here: &[Verdict]) -> Option<String> {
    let places = here.iter().filter_map(|verdict| {
        let (siv, cmac) = (verdict.of(Algorithm::GmacSiv128)?, verdict.of(CONCLUSION)?);
        let of = ratio(siv.throughput_kps / cmac.throughput_kps);
        Some(format!("{} ({}): {of}", verdict.host, verdict.role.name()))
    });
    let places = joined(places, "; ")?;
    let published = ntp_mac::cell(CONCLUSION, Machine::XeonWith)
        .map_or_else(String::new, |cmac| ratio(cmac.cycles / ntp_mac::GMAC_SIV_CYCLES));
    Some(format!(
        "{} withstands a repeated nonce too, and no standard carries it in NTP. Its speed by {CONCLUSION}\u{2019}s: \
         {places}. The draft\u{2019}s figures give {published}.",
        Algorithm::GmacSiv128,
    ))
}

/// What the drafts' own figures say of their sentence on CMAC.
fn published_findings() -> Vec<String> {
    let verdicts = published();
    let faster = verdicts.iter().filter_map(|verdict| {
        let cmac = verdict.of(CONCLUSION)?;
        let others = verdict.ranked.iter().take_while(|ranked| ranked.algorithm != CONCLUSION);
        let others = others.filter(|ranked| !matches!(ranked.algorithm, Algorithm::Gmac128 | Algorithm::Md5));
        let times = |ranked: &Ranked| {
            format!("{} {} times", ranked.algorithm, ratio(ranked.throughput_kps / cmac.throughput_kps))
        };
        Some(format!("{} ({})", verdict.host, joined(others.map(times), ", ")?))
    });
    let faster: Vec<String> = faster.collect();
    let is_cmac = |verdict: &&Verdict| verdict.recommended().is_some_and(|best| best.algorithm == CONCLUSION);
    let recommended = verdicts.iter().filter(is_cmac).count();
    vec![format!(
        "\u{201c}Leaving out GMAC, it has the best performance with and without hardware support\u{201d} \
         (draft-ietf-ntp-mac, section 7, of CMAC). Its own tables say otherwise, legacy MD5 left out too, on {} of {} \
         machines: {}. By security and speed together CMAC is recommended on {recommended} of them.",
        faster.len(),
        verdicts.len(),
        faster.join("; "),
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::tests::{record, scale};

    #[test]
    fn year_of_nist_answers_wears_gmac_out_and_not_cmac() {
        assert!((Role::Server.messages_log2() - 39.68).abs() < 0.01);
        assert!((Role::Client.messages_log2() - 19.0).abs() < 0.01);
    }

    #[test]
    fn draft_that_calls_cmac_the_fastest_but_gmac_is_held_against_its_tables() {
        let found = published_findings().join(" ");
        assert!(
            found.contains(
                "on 3 of 6 machines: Cortex-A9 (HMAC-MD5 1.01 times); Cortex-A53 (HMAC-MD5 1.41 times); \
                                Marvell (HMAC-MD5 1.78 times, Poly1305(ChaCha20) 1.11 times)"
            ),
            "{found}"
        );
        assert!(found.contains("CMAC is recommended on 6 of them"), "{found}");
    }

    #[test]
    fn fastest_that_may_be_used_is_recommended_not_the_fastest() {
        let verdicts = here(&record());
        assert_eq!(verdicts.len(), 4);
        for verdict in &verdicts {
            let rates: Vec<f64> = verdict.ranked.iter().map(|ranked| ranked.throughput_kps).collect();
            assert!(rates.is_sorted_by(|a, b| a >= b));
            assert_eq!(verdict.ranked[0].algorithm, Algorithm::Gmac128, "the record is made so");
            assert_eq!(verdict.recommended().unwrap().algorithm, Algorithm::Cmac128);
        }
        assert!(findings(&record()).iter().any(|found| found.contains("conclusion stands")));
    }

    #[test]
    fn conclusion_falls_where_another_is_faster() {
        let mut record = record();
        scale(&mut record, Instructions::Without, Algorithm::HmacSha224, 0.01);
        let found = findings(&record).join("\n");
        assert!(found.contains("does not stand everywhere"), "{found}");
        assert!(found.contains("without AES and SHA instructions (client): HMAC-SHA224/128, "), "{found}");
        assert!(!found.contains("this host (client): HMAC"), "{found}");
        // A fast but unsafe algorithm changes nothing.
        let mut record = crate::mac::tests::record();
        scale(&mut record, Instructions::With, Algorithm::Md5, 0.01);
        scale(&mut record, Instructions::With, Algorithm::HmacMd5, 0.01);
        assert!(findings(&record).join("\n").contains("conclusion stands"));
    }

    #[test]
    fn other_code_may_lead_to_another_recommendation() {
        let mut record = record();
        scale(&mut record, Instructions::Without, Algorithm::Cmac128, 9.0);
        scale(&mut record, Instructions::Without, Algorithm::Cmac256, 9.0);
        let side = &mut record.sides[1];
        let cmac = side.timings.iter_mut().filter(|timing| {
            timing.algorithm == Algorithm::Cmac128 && timing.implementation == Implementation::OpenSsl
        });
        cmac.flat_map(|timing| &mut timing.ns).for_each(|ns| *ns /= 9.0);
        let found = findings(&record).join("\n");
        // Of a host without the instructions our code alone says nothing: the faster one counts.
        assert!(!found.contains("(client): HMAC-SHA224/128"), "{found}");
        assert!(found.contains("instructions, by OpenSSL: CMAC(AES-128)."), "{found}");
        record.sides.iter_mut().for_each(|side| {
            side.timings.retain(|timing| timing.implementation != Implementation::OpenSsl);
        });
        assert!(by_openssl(&record).is_empty() && !findings(&record).join("").contains("by OpenSSL"));
        record.sides.iter_mut().for_each(|side| {
            side.timings.retain(|timing| timing.implementation != Implementation::AwsLc);
        });
        let found = findings(&record).join("\n");
        assert!(found.contains("instructions: nothing is recommended, as our code"), "{found}");
        assert_eq!(here(&record).len(), 2, "this host alone");
    }

    #[test]
    fn what_rounds_do_not_tell_apart_is_as_fast() {
        // Rounds of each scatter by 15 %.
        for (factor, tied) in [(0.95, true), (0.7, true), (0.6, false)] {
            let mut record = record();
            scale(&mut record, Instructions::With, Algorithm::Cmac256, factor);
            let verdict = &here(&record)[0];
            let best: Vec<Algorithm> = verdict.best().map(|ranked| ranked.algorithm).collect();
            assert_eq!(best.contains(&Algorithm::Cmac128), tied, "{factor}: {best:?}");
            let expected = if tied { Algorithm::Cmac128 } else { Algorithm::Cmac256 };
            assert_eq!(verdict.recommended().unwrap().algorithm, expected, "{factor}");
            let told = findings(&record)[0].contains("rounds do not tell it from CMAC(AES-256)");
            assert_eq!(told, factor < 0.9 && tied, "{factor}: {}", findings(&record)[0]);
        }
    }

    #[test]
    fn each_draft_is_held_to_what_it_says_itself() {
        let found = findings(&record()).join("\n");
        let first = "The first draft suggests GMAC(AES-128)";
        assert!(found.contains(first) && found.contains("nothing is faster in 4 of 4 cases"), "{found}");
        let mut record = record();
        scale(&mut record, Instructions::Without, Algorithm::Gmac128, 9.0);
        let found = findings(&record).join("\n");
        assert!(
            found.contains("nothing is faster in 2 of 4 cases; it is not recommended, as one"),
            "{found}"
        );
    }

    #[test]
    fn extension_field_is_told_apart_from_the_mac_that_peers_know() {
        let mut record = record();
        scale(&mut record, Instructions::With, Algorithm::GmacSiv128, 0.01);
        let verdict = &here(&record)[0];
        assert_eq!(verdict.fastest().unwrap().algorithm, Algorithm::GmacSiv128);
        assert_eq!(verdict.recommended().unwrap().algorithm, Algorithm::Cmac128);
    }

    #[test]
    fn host_of_which_nothing_is_known_has_no_verdict() {
        let mut record = record();
        record.sides.retain(|side| side.instructions == Instructions::With);
        assert_eq!(here(&record).len(), 2);
        record.sides.clear();
        assert!(here(&record).is_empty() && findings(&record).len() == 1);
    }
}
