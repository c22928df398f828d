//! What algorithms withstand, and what follows for which host.

use super::kilo;
use crate::mac::recommend::{self, Ranked, Role, Verdict};
use crate::mac::security::{Carrier, Extension, Factors, LEVEL_MIN_BITS, MESSAGE_SIZE, RepeatedNonce};
use crate::mac::{Algorithm, MacRecord};
use crate::render::{Section, Table, or_absent};
use crate::units::joined;

pub(super) fn section(record: &MacRecord) -> Section {
    let mut section = Section::new("Which algorithm for which host");
    section.say(format!(
        "Recommended is the fastest of what is more than a digest of key and packet, reaches {LEVEL_MIN_BITS} bits, \
         loses nothing when a nonce comes twice, as servers keep no state by which they could avoid that, is good \
         for as many packets as a key sees in a year, and travels as RFC 5905\u{2019}s MAC; where rounds do not tell \
         which is faster, it is CMAC. A client asks once a minute, a server answers 28,000 times a second: 2^{:.1} and \
         2^{:.1} answers.",
        Role::Client.messages_log2(),
        Role::Server.messages_log2()
    ));
    let mut here = recommend::here(record);
    here.extend(recommend::by_openssl(record));
    section.show([factors(), verdicts("Recommended on this host", here)]);
    let mut published =
        verdicts("Recommended on the drafts\u{2019} machines, by their figures", recommend::published());
    published.notes.push("By throughput of draft-ietf-ntp-mac, sections 4 and 5, as a server.".to_owned());
    section.show([published]);
    section
}

fn factors() -> Table {
    let name = "What algorithms withstand: the four factors of draft-aanchal4-ntp-mac-00, section 6";
    let note = "Limits of packets are those of NIST SP 800-38B, appendix B, for CMAC, in blocks, of which each packet \
                here has three; of SP 800-38D, sections 8 and 8.3, for nonces of twelve random octets; and \
                CMAC\u{2019}s 2^48 for HMAC-MD5 and GMAC-SIV, whose bound is the same. Where there is none nobody has \
                set one. draft-ietf-ntp-mac, section 6, allows GMAC 2^48, after which a nonce of twelve octets has \
                repeated with probability 0.39. Tags of SHA-1 and longer are 20 octets on the wire, that of \
                HMAC-SHA-224 is 16. All messages here have 48 octets, three blocks of AES. The level is the least of \
                key, tag and primitive; the later draft\u{2019}s table gives a forger of Poly1305 2^-103 from the \
                first packet on.";
    Table::of(name, Algorithm::ALL.map(Factors::of))
        .words("Algorithm", |factors| factors.algorithm)
        .number("Tag, bits", |factors| factors.tag_bits)
        .number("Key, bits", |factors| factors.key_bits)
        .number("min(key, tag)", Factors::bound_bits)
        .words("Primitive", |factors| factors.primitive)
        .number("Its bits", |factors| or_absent(factors.primitive_bits))
        .number("Level, bits", |factors| or_absent(factors.level_bits()))
        .number("Packets per key", packets)
        .words("Extension", |factors| match factors.extension {
            Extension::Impossible => "no",
            Extension::OfWholeTags => "of whole tags",
            Extension::Possible => "yes",
        })
        .words("A repeated nonce costs", |factors| match factors.repeated_nonce {
            RepeatedNonce::TakesNone => "there is none",
            RepeatedNonce::ShowsEquality => "nothing",
            RepeatedNonce::LosesNonce => "forgery under it",
            RepeatedNonce::LosesHashKey => "the key",
        })
        .words("Tag travels", |factors| match factors.carrier {
            Carrier::Trailer => "as the MAC",
            Carrier::ExtensionField => "in a field of ours",
        })
        .noted([note])
}

/// The limit of packets under a key, as a power of two.
pub(super) fn packets(factors: &Factors) -> String {
    or_absent(factors.usage.messages_log2(MESSAGE_SIZE).map(|log2| format!("2^{log2}")))
}

fn verdicts(name: &str, verdicts: Vec<Verdict>) -> Table {
    let algorithm = |ranked: Option<&Ranked>| or_absent(ranked.map(|ranked| ranked.algorithm));
    let rate = |ranked: Option<&Ranked>| or_absent(ranked.map(|ranked| kilo(ranked.throughput_kps)));
    Table::of(name, verdicts)
        .words("Host", |verdict| verdict.host.clone())
        .words("Role", |verdict| verdict.role.name())
        .words("Recommended", |verdict| algorithm(verdict.recommended()))
        .number("Thousand packets/s", |verdict| rate(verdict.recommended()))
        .words("As fast", as_fast)
        .words("Fastest without objection, whatever carries it", |verdict| algorithm(verdict.fastest()))
        .number("Thousand packets/s", |verdict| rate(verdict.fastest()))
        .words("Faster than recommended, and why not", faster)
        .table()
}

/// What rounds do not tell from what is recommended.
fn as_fast(verdict: &Verdict) -> String {
    let recommended = verdict.recommended().map(|best| best.algorithm);
    let others = verdict.best().filter(|ranked| Some(ranked.algorithm) != recommended);
    or_absent(joined(others.map(|ranked| ranked.algorithm.to_string()), ", "))
}

/// What is faster than what is recommended, each with the reason why it is not.
fn faster(verdict: &Verdict) -> String {
    let recommended = verdict.recommended().map(|best| best.algorithm);
    let is_best = |one: &Ranked| verdict.best().any(|best| best.algorithm == one.algorithm);
    let faster = verdict.ranked.iter().take_while(|ranked| Some(ranked.algorithm) != recommended);
    let faster = faster.filter(|ranked| !is_best(ranked));
    let faster = faster.map(|ranked| {
        let why = ranked.objection.as_deref().unwrap_or("no standard carries it");
        format!("{} ({why})", ranked.algorithm)
    });
    or_absent(joined(faster, "; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::tests::record;

    #[test]
    fn each_host_has_its_recommendation_and_what_was_faster() {
        let section = section(&record());
        let [factors, here, published] = section.tables()[..] else { panic!("{section:?}") };
        assert_eq!((factors.rows.len(), here.rows.len(), published.rows.len()), (12, 6, 6));
        assert_eq!(here.rows[0].cells[..4], ["this host", "client", "CMAC(AES-128)", "16,667"]);
        assert!(here.rows[0].cells[7].contains("GMAC(AES-128) (one repeated nonce gives the key away)"));
        let marvell = &published.rows[5].cells;
        assert_eq!(marvell[..4], ["Marvell", "server", "CMAC(AES-128)", "246"]);
        assert!(marvell[7].contains("HMAC-MD5 (MD5 is broken for collisions)"));
        let said = section.sentences();
        assert!(said[0].contains("2^19.0 and 2^39.7 answers"), "{said:?}");
        let gmac = factors.rows.iter().find(|row| row.cells[0] == "GMAC(AES-128)").unwrap();
        assert_eq!(
            gmac.cells[1..],
            ["128", "128", "128", "AES-128", "128", "128", "2^32", "no", "the key", "in a field of ours"]
        );
    }
}
