//! A record for tests, and what a file may not say.

use super::*;

/// Nanoseconds of ours, one at a time, with the instructions.
fn base_ns(algorithm: Algorithm) -> f64 {
    match algorithm {
        Algorithm::Md5 => 160.0,
        Algorithm::Sha1 => 90.0,
        Algorithm::Sha256 => 95.0,
        Algorithm::Sha384 | Algorithm::Sha512 => 200.0,
        Algorithm::HmacMd5 => 320.0,
        Algorithm::HmacSha224 => 180.0,
        Algorithm::Cmac128 => 60.0,
        Algorithm::Cmac256 => 80.0,
        Algorithm::Gmac128 => 40.0,
        Algorithm::GmacSiv128 => 110.0,
        Algorithm::Poly1305 => 150.0,
    }
}

/// As a record has it: shorter numbers survive a file to the last bit.
fn hundredth(ns: f64) -> f64 {
    (ns * 100.0).round() / 100.0
}

fn timings() -> Vec<Timing> {
    let mut timings = Vec::new();
    for algorithm in Algorithm::ALL {
        let base = base_ns(algorithm);
        let rounds = |ns: f64| [ns, ns * 1.1, ns * 0.95].map(hundredth).to_vec();
        let mut add = |implementation, key, batch, ns: f64| {
            timings.push(Timing { algorithm, implementation, key, batch, ns: rounds(ns) });
        };
        for (batch, ns) in [(1, base), (4, base * 0.6), (16, base * 0.4), (64, base * 0.3)] {
            add(Implementation::Authentick, KeyUse::Kept, batch, ns);
        }
        add(Implementation::Authentick, KeyUse::SetUp, 1, base * 2.0);
        let rival = match algorithm {
            Algorithm::GmacSiv128 => Implementation::AwsLc,
            _ => Implementation::OpenSsl,
        };
        add(rival, KeyUse::Kept, 1, base * 1.5);
        add(rival, KeyUse::SetUp, 1, base * 4.0);
    }
    timings
}

fn spreads() -> Vec<Spread> {
    Algorithm::ALL
        .into_iter()
        .map(|algorithm| Spread {
            algorithm,
            implementation: Implementation::Authentick,
            count: 10_000,
            p50_ns: base_ns(algorithm),
            p99_ns: base_ns(algorithm) + 12.0,
            deviation_ns: 300.0,
            quiet_deviation_ns: 2.5,
        })
        .collect()
}

/// Both sides of a made-up machine, on which GMAC is the fastest and CMAC the fastest of what may be used.
pub(crate) fn record() -> MacRecord {
    let mut record = MacRecord {
        version: "0.1.0".to_owned(),
        commit: "0123456789ab".to_owned(),
        command: "authentick bench mac --json".to_owned(),
        started_unix_s: 1_780_000_000,
        host: Host {
            cpu: "A <b>processor".to_owned(),
            cpu_count: 2,
            online_cpu_count: None,
            cpu_quota_millicpus: None,
            memory_octets: None,
            kernel: "Linux 6.1".to_owned(),
        },
        packet_size: PACKET_SIZE,
        round_count: 3,
        turn_ms: 5.0,
        reference_hz: Some(2.4e9),
        openssl: Some("OpenSSL 3.0.19".to_owned()),
        sides: [Instructions::With, Instructions::Without]
            .map(|instructions| Side {
                instructions,
                seen: match instructions {
                    Instructions::With => ["aes", "pclmulqdq", "sha"].map(str::to_owned).to_vec(),
                    Instructions::Without => Vec::new(),
                },
                path: "AES-NI".to_owned(),
                remarks: Vec::new(),
                timings: timings(),
                spreads: spreads(),
            })
            .into(),
    };
    for algorithm in [Algorithm::Cmac128, Algorithm::Cmac256, Algorithm::Gmac128, Algorithm::GmacSiv128] {
        scale(&mut record, Instructions::Without, algorithm, 1.8);
    }
    record
}

/// Makes an algorithm on a side so many times as slow.
pub(crate) fn scale(record: &mut MacRecord, instructions: Instructions, algorithm: Algorithm, factor: f64) {
    let sides = record.sides.iter_mut().filter(|side| side.instructions == instructions);
    let timings = sides.flat_map(|side| &mut side.timings).filter(|timing| timing.algorithm == algorithm);
    timings.flat_map(|timing| &mut timing.ns).for_each(|ns| *ns = hundredth(*ns * factor));
}

#[test]
fn record_survives_its_file() {
    let text = record().to_json();
    assert_eq!(MacRecord::from_json(&text).unwrap(), record());
    assert!(
        text.contains("\"algorithm\": \"HMAC-SHA224\"") && text.contains("\"implementation\": \"aws-lc\"")
    );
}

#[test]
fn wrong_records_are_refused_with_the_reason() {
    let error = |record: MacRecord| MacRecord::from_json(&record.to_json()).unwrap_err().to_string();
    let changed = |change: fn(&mut MacRecord)| {
        let mut record = record();
        change(&mut record);
        error(record)
    };
    assert!(changed(|record| record.packet_size = 64).contains("packet_size: 64"));
    assert!(changed(|record| record.sides[1].instructions = Instructions::With).contains("there twice"));
    assert!(changed(|record| record.sides[0].timings[1].batch = 1).contains("legacy MD5 of authentick"));
    assert!(changed(|record| record.sides[0].timings[0].ns[1] = 0.0).contains("each of 3 rounds"));
    assert!(changed(|record| record.sides[0].timings[0].ns.truncate(2)).contains("each of 3 rounds"));
    assert!(changed(|record| record.sides[0].spreads[0].p99_ns = 1.0).contains("cannot be"));
    assert!(changed(|record| record.reference_hz = Some(0.0)).contains("reference_hz"));
    let text = record().to_json();
    let error = |text: &str| MacRecord::from_json(text).unwrap_err().to_string();
    assert!(error(&text.replace("mac-bench/1", "mac-bench/9")).contains("authentick-mac-bench/9"));
    assert!(error(&text.replace("\"sides\"", "\"side\"")).contains("missing field `sides`"));
    assert!(error(&text.replace("GMAC-SIV128", "SIV")).contains("unknown variant `SIV`"));
}

#[test]
fn every_algorithm_has_a_name_of_its_own() {
    let names: BTreeSet<&str> = Algorithm::ALL.into_iter().map(Algorithm::name).collect();
    assert_eq!(names.len(), Algorithm::ALL.len());
}
