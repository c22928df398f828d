//! Runs of the demo: the stored format, version 1 (JSON with raw values, nothing derived), and its reports.
//!
//! Fields that a later version adds are ignored. A field that is missing is an error, as is another format. Times are
//! in nanoseconds; instants count from 1970. T1 to T4 are those of RFC 5905 section 8.

mod csv;
mod report;
mod summary;

use serde::{Deserialize, Serialize};

pub use self::csv::csv;
pub use self::report::report;
pub use self::summary::{Added, SchemeSummary, Times, summarise};
use crate::stats::Sample;
use crate::stored::stored;

/// What one run measured, and on what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-run/1")]
pub struct RunRecord {
    /// The command line that made the run.
    pub command: String,
    /// The version of authentick.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// When the run started, in Unix seconds.
    pub started_unix_s: u64,
    /// The machine of the client.
    pub host: Host,
    /// A label for the network path between client and server: `loopback`, `veth`, or the name of a real one.
    pub path: String,
    /// What was measured, in the order of measuring.
    pub schemes: Vec<SchemeRun>,
}

stored!(RunRecord = "authentick-run/1", "a run record", pretty, |_: &RunRecord| Ok(()));

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The model of its processor.
    pub cpu: String,
    /// How many processors the process could use, by its affinity.
    pub cpu_count: u32,
    /// How many processors the host had online; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online_cpu_count: Option<u32>,
    /// The control group's quota in thousandths of a processor; absent: none, or an older record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota_millicpus: Option<u32>,
    /// Octets of its memory; null in records of before this was kept, and where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_octets: Option<u64>,
    /// Name and release of its kernel.
    pub kernel: String,
}

/// The exchanges of one scheme.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemeRun {
    /// `plain`, `nts`, or one that joins later.
    pub scheme: String,
    /// The algorithm that authenticates, such as `AES-SIV-CMAC-256`; `none` for plain NTP.
    pub authentication: String,
    /// The key exchange before the first exchange, if the scheme has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_exchange: Option<KeyExchange>,
    /// The phases of ANTP before the first exchange, if that is the scheme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub antp_phases: Option<AntpPhases>,
    /// Exchanges whose response passed every check, in the order of sending.
    pub exchanges: Vec<Exchange>,
    /// The others, by cause.
    pub failures: Vec<Failure>,
}

/// How long the phases of a key exchange took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyExchange {
    /// TCP connection.
    pub connect_ns: u64,
    /// TLS handshake.
    pub handshake_ns: u64,
    /// Request and response.
    pub exchange_ns: u64,
}

/// How long the phases of ANTP before the first exchange took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AntpPhases {
    /// All rounds of the negotiation.
    pub negotiation_ns: u64,
    /// The check of the server's certificates.
    pub certificate_check_ns: u64,
    /// The client's public-key work.
    pub encapsulation_ns: u64,
    /// The rest of the key exchange.
    pub exchange_ns: u64,
}

/// One request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// T1: the request left, by the client's clock.
    pub sent_ns: i64,
    /// T2: the request arrived, by the server's clock.
    pub server_receive_ns: i64,
    /// T3: the response left, by the server's clock.
    pub server_transmit_ns: i64,
    /// T4: the response arrived, by the client's clock.
    pub arrived_ns: i64,
    /// The server's clock minus the client's: ((T2 - T1) + (T3 - T4)) / 2.
    pub offset_ns: i64,
    /// The time on the path, both ways: (T4 - T1) - (T3 - T2).
    pub delay_ns: i64,
    /// From before the request was made until the response was checked: t10 - t5 of the NTS study, its d_CNTS.
    pub whole_ns: u64,
}

/// Exchanges that failed for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The check that failed, or that there was no answer.
    pub cause: String,
    /// How many.
    pub count: u64,
}

impl SchemeRun {
    /// How long each whole exchange took, in nanoseconds.
    #[must_use]
    pub fn whole(&self) -> Sample<u64> {
        self.exchanges.iter().map(|exchange| exchange.whole_ns).collect()
    }

    /// How many exchanges failed, whatever the cause.
    #[must_use]
    pub fn failure_count(&self) -> u64 {
        self.failures.iter().fold(0, |sum, failure| sum.saturating_add(failure.count))
    }

    /// The name for a reader: `plain`, `nts (AES-SIV-CMAC-256)`.
    #[must_use]
    pub fn label(&self) -> String {
        label(&self.scheme, &self.authentication)
    }
}

/// A scheme's name for a reader, with what authenticates, if anything does.
pub(crate) fn label(scheme: &str, authentication: &str) -> String {
    match authentication {
        "" | "none" => scheme.to_owned(),
        authentication => format!("{scheme} ({authentication})"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::Value;

    use super::*;
    use crate::stored;

    /// A scheme with exchanges that took these times.
    pub(crate) fn scheme(scheme: &str, authentication: &str, whole_ns: &[u64]) -> SchemeRun {
        let exchange = |(index, &whole_ns): (usize, &u64)| Exchange {
            sent_ns: 1_000 * index as i64,
            server_receive_ns: 1_000 * index as i64 + 200,
            server_transmit_ns: 1_000 * index as i64 + 250,
            arrived_ns: 1_000 * index as i64 + 500,
            offset_ns: -25,
            delay_ns: 450,
            whole_ns,
        };
        SchemeRun {
            scheme: scheme.to_owned(),
            authentication: authentication.to_owned(),
            key_exchange: None,
            antp_phases: None,
            exchanges: whole_ns.iter().enumerate().map(exchange).collect(),
            failures: Vec::new(),
        }
    }

    /// A record of these schemes on a loopback path.
    pub(crate) fn record(schemes: Vec<SchemeRun>) -> RunRecord {
        RunRecord {
            command: "authentick demo".to_owned(),
            version: "0.1.0".to_owned(),
            commit: "0123456789ab".to_owned(),
            started_unix_s: 1_783_080_000,
            host: Host {
                cpu: "Some CPU".to_owned(),
                cpu_count: 4,
                online_cpu_count: None,
                cpu_quota_millicpus: None,
                memory_octets: None,
                kernel: "Linux 6.12".to_owned(),
            },
            path: "loopback".to_owned(),
            schemes,
        }
    }

    fn complete() -> RunRecord {
        let mut nts = scheme("nts", "AES-SIV-CMAC-256", &[80_000, u64::MAX]);
        nts.key_exchange = Some(KeyExchange { connect_ns: 1, handshake_ns: 2, exchange_ns: 3 });
        nts.antp_phases = Some(AntpPhases {
            negotiation_ns: 1,
            certificate_check_ns: 2,
            encapsulation_ns: 3,
            exchange_ns: 4,
        });
        nts.failures.push(Failure { cause: "no answer".to_owned(), count: 2 });
        nts.exchanges[0].offset_ns = i64::MIN;
        record(vec![scheme("plain", "none", &[60_000, 0]), nts])
    }

    /// Pointers (RFC 6901) to every field of every object in `value`.
    fn fields(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
        match value {
            Value::Object(object) => {
                for (name, inner) in object {
                    found.push((at.to_owned(), name.clone()));
                    fields(inner, &format!("{at}/{name}"), found);
                }
            }
            Value::Array(array) => {
                for (index, inner) in array.iter().enumerate() {
                    fields(inner, &format!("{at}/{index}"), found);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn record_survives_a_round_trip() {
        for record in [complete(), record(Vec::new())] {
            assert_eq!(RunRecord::from_json(&record.to_json()).unwrap(), record);
        }
    }

    #[test]
    fn missing_field_is_named_wherever_it_is() {
        let whole: Value = serde_json::from_str(&complete().to_json()).unwrap();
        let mut all = Vec::new();
        fields(&whole, "", &mut all);
        assert!(all.len() > 50, "{}", all.len());
        for (at, name) in all {
            let mut without = whole.clone();
            without.pointer_mut(&at).unwrap().as_object_mut().unwrap().remove(&name);
            let result = RunRecord::from_json(&without.to_string());
            if ["key_exchange", "antp_phases"].contains(&name.as_str()) {
                assert!(result.is_ok(), "a scheme need not have a key exchange");
                continue;
            }
            let error = result.unwrap_err().to_string();
            assert!(error.contains(&format!("missing field `{name}`")), "{at}/{name}: {error}");
        }
    }

    #[test]
    fn fields_of_a_later_version_are_ignored_wherever_they_are() {
        let whole: Value = serde_json::from_str(&complete().to_json()).unwrap();
        let mut all = Vec::new();
        fields(&whole, "", &mut all);
        let mut extended = whole;
        for (at, _) in all {
            let object = extended.pointer_mut(&at).unwrap().as_object_mut().unwrap();
            object.insert("from the future".to_owned(), Value::Array(vec![Value::Null]));
        }
        assert_eq!(RunRecord::from_json(&extended.to_string()).unwrap(), complete());
    }

    #[test]
    fn other_format_is_refused_before_anything_else_is_looked_at() {
        let error = RunRecord::from_json(r#"{"schemes": 7, "format": "authentick-run/2"}"#).unwrap_err();
        assert!(matches!(&error, stored::Error::Format { found, .. } if found == "authentick-run/2"));
        assert_eq!(
            error.to_string(),
            r#"format: "authentick-run/2" is not known here; this version reads "authentick-run/1""#
        );
    }

    #[test]
    fn text_that_is_no_record_is_an_error_that_says_where() {
        for text in ["", "{", "[]", "null", "{\"format\": 1}"] {
            let error = RunRecord::from_json(text).unwrap_err().to_string();
            assert!(error.starts_with("not a run record: ") && error.contains("line 1"), "{text}: {error}");
        }
        let wrong = complete().to_json().replace("\"cpu_count\": 4", "\"cpu_count\": -4");
        let error = RunRecord::from_json(&wrong).unwrap_err().to_string();
        assert!(error.contains("-4") && error.contains("u32"), "{error}");
    }

    #[test]
    fn label_names_what_authenticates_if_anything_does() {
        assert_eq!(label("nts", "AES-SIV-CMAC-256"), "nts (AES-SIV-CMAC-256)");
        assert_eq!([label("plain", "none"), label("plain", "")], ["plain", "plain"]);
    }

    #[test]
    fn format_has_the_name_that_it_is_stored_under() {
        let stored = serde_json::to_value(complete()).unwrap();
        assert_eq!(stored["format"], <RunRecord as stored::Stored>::FORMAT);
    }

    #[test]
    fn failures_add_up_without_wrapping() {
        let mut run = scheme("nts", "AES-SIV-CMAC-256", &[]);
        assert_eq!(run.failure_count(), 0);
        run.failures = vec![
            Failure { cause: "tag".to_owned(), count: 3 },
            Failure { cause: "no answer".to_owned(), count: 4 },
        ];
        assert_eq!(run.failure_count(), 7);
        run.failures[0].count = u64::MAX;
        assert_eq!(run.failure_count(), u64::MAX);
    }
}
