//! The record of one cell: every exchange of the client that was answered, with both sides' times, in nanoseconds.
//!
//! Rows are lists, so that a thousand of them stay small. The server's times are without what the readings of its clock
//! cost; what one reading costs is in the record.

use serde::{Deserialize, Serialize};

use crate::load::span_rows::{KE_STAGES, NTP_STAGES};
use crate::run::Host;

/// What a client does for a key exchange, in this order: the look-up of the server's name (0 where there is none), what
/// TLS needs before it says anything, the connection, the handshake, request and response, closing its half.
pub const KE_CLIENT_STAGES: [&str; 6] =
    ["look-up", "set-up", "connect", "handshake", "request", "half-close"];

/// What a client does for a request for time, in this order: the look-up, a socket, building and sealing the request,
/// waiting for the answer, checking it.
pub const NTP_CLIENT_STAGES: [&str; 5] = ["look-up", "socket", "build", "wait", "check"];

/// A key exchange: `[[client's stages], [server's stages] or null]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyExchange(
    /// Each of [`KE_CLIENT_STAGES`].
    pub [u64; KE_CLIENT_STAGES.len()],
    /// Each of [`KE_STAGES`]; null if the server has no record of it.
    pub Option<[u64; KE_STAGES.len()]>,
);

/// A request for time and its answer: `[[client's stages], [server's stages] or null]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer(
    /// Each of [`NTP_CLIENT_STAGES`].
    pub [u64; NTP_CLIENT_STAGES.len()],
    /// Each of [`NTP_STAGES`]; null if the server has no record of it.
    pub Option<[u64; NTP_STAGES.len()]>,
);

impl KeyExchange {
    /// d_CKE by the equations: from before the connection to cookies parsed.
    #[must_use]
    pub fn d_cke(&self) -> u64 {
        self.0[2..5].iter().sum()
    }

    /// d_CKE as the study's program took it: also the look-up, what TLS needs before, and the half-close.
    #[must_use]
    pub fn d_cke_of_program(&self) -> u64 {
        self.0.iter().sum()
    }

    /// d_SKE by the equations: from accept to sealed cookies.
    #[must_use]
    pub fn d_ske(&self) -> Option<u64> {
        self.1.map(|stages| stages[..4].iter().sum())
    }

    /// d_SKE as the study's program took it: from the parsed request to the response with all cookies.
    #[must_use]
    pub fn d_ske_of_program(&self) -> Option<u64> {
        self.1.map(|stages| stages[1..].iter().sum())
    }
}

impl Transfer {
    /// d_CNTS by the equations, or of a plain request what stands in its place: from before the request is built to the
    /// answer checked.
    #[must_use]
    pub fn d_cnts(&self) -> u64 {
        self.0[2..].iter().sum()
    }

    /// d_CNTS as the study's program took it: also the look-up and a new socket.
    #[must_use]
    pub fn d_cnts_of_program(&self) -> u64 {
        self.0.iter().sum()
    }

    /// d_SNTP: parsing, and building the header.
    #[must_use]
    pub fn d_sntp(&self) -> Option<u64> {
        self.1.map(|stages| stages[0] + stages[5])
    }

    /// d_SNTS by the equations: opening, verifying, sealing.
    #[must_use]
    pub fn d_snts(&self) -> Option<u64> {
        self.1.map(|stages| stages[2] + stages[3] + stages[6])
    }

    /// d_SNTS as the study's program took it: also the fresh cookie, but without the file that it read.
    #[must_use]
    pub fn d_snts_of_program(&self) -> Option<u64> {
        Some(self.d_snts()? + self.1?[4])
    }
}

/// What a relay of packets between client and server came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relayed {
    /// How long it holds a packet, in microseconds, in each direction.
    pub delay_us: f64,
    /// A round trip of a datagram with nothing else at either end: the median, in microseconds.
    pub echo_us: f64,
    /// How late packets left on average, beyond the delay, in microseconds.
    pub late_mean_us: f64,
    /// The fewest and the most round trips of the key exchanges that were counted; null if none was.
    pub exchange_round_trips: Option<[u64; 2]>,
    /// The same of requests for time.
    pub transfer_round_trips: Option<[u64; 2]>,
}

/// What one client and its server took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", rename = "authentick-nts-unloaded/1")]
pub struct UnloadedRecord {
    /// The version of authentick.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// The command line that began the study.
    pub command: String,
    /// When the study was begun, in Unix seconds.
    pub started_unix_s: u64,
    /// The machine.
    pub host: Host,
    /// The name of the task that it is of.
    pub task: String,
    /// Whether client and server are hosts of their own, by namespaces; false: they share this machine's loopback.
    pub isolated: bool,
    /// Which memcached holds the keys; null: a file does.
    pub memcached: Option<String>,
    /// The relay between them; null: there is none.
    pub relayed: Option<Relayed>,
    /// What one reading of the server's clock costs, in nanoseconds. It is subtracted from the server's times.
    pub clock_ns: u64,
    /// Exchanges of any kind that brought no good answer, and are in no row.
    pub failed: u32,
    /// Key exchanges.
    pub exchanges: Vec<KeyExchange>,
    /// Requests for time with NTS.
    pub transfers: Vec<Transfer>,
    /// Requests for time without.
    pub plain: Vec<Transfer>,
}

/// More than a day in nanoseconds: no exchange takes so long, and sums of stages stay far from overflowing.
const NS_MAX: u64 = 100_000_000_000_000;

impl UnloadedRecord {
    fn check(&self) -> Result<(), String> {
        for (name, is_sound) in [
            ("exchanges", self.exchanges.iter().all(is_sound_exchange)),
            ("transfers", self.transfers.iter().all(is_sound_transfer)),
            ("plain", self.plain.iter().all(is_sound_transfer)),
        ] {
            if !is_sound {
                return Err(format!(
                    "{name}: a server took longer than its client waited, or a time cannot be"
                ));
            }
        }
        if self.exchanges.is_empty() || self.transfers.is_empty() || self.plain.is_empty() {
            return Err("exchanges, transfers or plain has no row".to_owned());
        }
        let is_ordered = |range: &Option<[u64; 2]>| range.is_none_or(|[least, most]| least <= most);
        match &self.relayed {
            Some(Relayed { delay_us, echo_us, late_mean_us, exchange_round_trips, transfer_round_trips })
                if [*delay_us, *echo_us, *late_mean_us].iter().any(|us| *us < 0.0)
                    || !is_ordered(exchange_round_trips)
                    || !is_ordered(transfer_round_trips) =>
            {
                Err("relayed: a time is below zero, or the fewest round trips are more than the most"
                    .to_owned())
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn is_sound_exchange(row: &KeyExchange) -> bool {
    let KeyExchange(client, server) = row;
    let all = client.iter().chain(server.iter().flatten());
    all.clone().all(|ns| *ns < NS_MAX) && row.d_ske().is_none_or(|ns| ns <= row.d_cke())
}

fn is_sound_transfer(row: &Transfer) -> bool {
    let Transfer(client, server) = row;
    let all = client.iter().chain(server.iter().flatten());
    all.clone().all(|ns| *ns < NS_MAX) && row.d_snts_of_program().is_none_or(|ns| ns <= row.d_cnts())
}

crate::stored::stored!(
    UnloadedRecord = "authentick-nts-unloaded/1",
    "a record of study run nts, without load",
    compact,
    UnloadedRecord::check
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::nts::tests::record;

    #[test]
    fn measures_are_sums_of_the_stages_that_the_equations_and_the_program_have() {
        let exchange = KeyExchange([1, 2, 4, 8, 16, 32], Some([1, 2, 4, 8, 16]));
        assert_eq!((exchange.d_cke(), exchange.d_cke_of_program()), (4 + 8 + 16, 63));
        assert_eq!((exchange.d_ske(), exchange.d_ske_of_program()), (Some(15), Some(30)));
        let transfer = Transfer([1, 2, 400, 8, 16], Some([1, 2, 4, 8, 16, 32, 64]));
        assert_eq!((transfer.d_cnts(), transfer.d_cnts_of_program()), (424, 427));
        assert_eq!(transfer.d_sntp(), Some(1 + 32));
        assert_eq!((transfer.d_snts(), transfer.d_snts_of_program()), (Some(4 + 8 + 64), Some(92)));
        let unknown = (KeyExchange([1; 6], None), Transfer([1; 5], None));
        assert_eq!((unknown.0.d_ske(), unknown.1.d_sntp(), unknown.1.d_snts()), (None, None, None));
    }

    #[test]
    fn record_survives_its_file_with_a_short_line_for_each_exchange() {
        let text = record("unloaded").to_json();
        assert!(text.contains("[[360000,90000,170000,1600000,330000,20000],[1100000,300,9000,7000,2000]]"));
        assert_eq!(UnloadedRecord::from_json(&text).unwrap(), record("unloaded"));
    }

    #[test]
    fn wrong_records_are_refused_with_the_reason() {
        let error = |text: &str| UnloadedRecord::from_json(text).unwrap_err().to_string();
        let text = record("unloaded").to_json();
        assert!(error(&text.replace("unloaded/1", "unloaded/2")).contains("authentick-nts-unloaded/2"));
        assert!(error(&text.replace("\"plain\":", "\"p\":")).contains("missing field `plain`"));
        type Change = fn(&mut UnloadedRecord);
        let changes: [(Change, &str); 6] = [
            (|record| record.exchanges[0].0[3] = NS_MAX, "exchanges: "),
            (|record| record.exchanges[0].1 = Some([u64::MAX / 9; 5]), "exchanges: "),
            (|record| record.transfers[0].0 = [0; 5], "transfers: a server took longer"),
            (|record| record.plain.clear(), "has no row"),
            (|record| record.relayed.as_mut().unwrap().delay_us = -1.0, "relayed: a time"),
            (
                |record| record.relayed.as_mut().unwrap().transfer_round_trips = Some([2, 1]),
                "relayed: a time is below zero, or the fewest",
            ),
        ];
        for (change, part) in changes {
            let mut record = record("unloaded");
            change(&mut record);
            assert!(error(&record.to_json()).contains(part), "{part}: {}", error(&record.to_json()));
        }
    }
}
