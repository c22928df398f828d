//! What a fleet looks like from its members' own pages of metrics: for hosts that share keys without a store of keys
//! that everybody reaches, by a file or by deriving them alike.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use authentick_fleet::{Count, SymmetricUses};
use authentick_proto::keyset::KeySet;

use super::status::{Clients, MemberStatus, Status, Statuses};
use crate::keystore::KeyKind;

/// The counter of requests under each key that opens, and the gauge that is 1 for the key that seals.
pub(crate) const REQUESTS: &str = "nts_cookie_key_requests";
pub(crate) const SEALS: &str = "nts_cookie_key_seals";

/// Between two readings, from which follows how many requests come in a second.
const APART: Duration = Duration::from_secs(2);

/// The gauges of tags made under each symmetric key, and of how many are its limit.
pub(crate) const USES: &str = "ntp_symmetric_key_uses";
pub(crate) const USES_LIMIT: &str = "ntp_symmetric_key_uses_limit";

/// What one page says of keys.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    seals: Option<u32>,
    /// Requests under each cookie key that opens.
    requests: BTreeMap<u32, u64>,
    /// Uses and limit of each symmetric key, by its number and type.
    symmetric: BTreeMap<(u32, String), (u64, Option<u64>)>,
}

impl Page {
    fn symmetric(&self) -> Vec<SymmetricUses> {
        let of = |((id, algorithm), (uses, limit)): (&(u32, String), &(u64, Option<u64>))| SymmetricUses {
            id: *id,
            algorithm: algorithm.clone(),
            uses: *uses,
            limit: *limit,
        };
        self.symmetric.iter().map(of).collect()
    }
}

/// How the hosts are whose pages of metrics are at `urls`, each like `http://127.0.0.1:9975/metrics`; `fetch` brings
/// the text of one, or says why not. Pages tell of cookie keys and symmetric keys.
pub fn status(urls: &[String], fetch: impl Fn(&str) -> Result<String, String> + Sync) -> Statuses {
    let page = |url: &String| fetch(url).and_then(|text| parse(&text));
    let read = |url: &String| {
        let (before, start) = (page(url)?, Instant::now());
        thread::sleep(APART);
        let after = page(url)?;
        let minutes = start.elapsed().as_secs_f64() / 60.0;
        let count = |(id, requests): (&u32, &u64)| {
            let lately = before.requests.get(id).map_or(0, |before| requests.saturating_sub(*before));
            Count { id: *id, requests: *requests, last_minute: (lately as f64 / minutes).round() as u64 }
        };
        let counts: Vec<Count> = after.requests.iter().map(count).collect();
        Ok((after.seals, counts, after.symmetric()))
    };
    // Each may take as long as a timeout, so they are asked at once.
    let said = thread::scope(|scope| {
        let asked: Vec<_> = urls.iter().map(|url| scope.spawn(|| read(url))).collect();
        asked.into_iter().map(|thread| thread.join().expect("it does not panic")).collect::<Vec<_>>()
    });
    let (mut members, mut symmetric) = (Vec::new(), Vec::new());
    for (url, said) in urls.iter().zip(said) {
        let said = said.map(|(seals, counts, uses)| {
            symmetric.extend(uses);
            (seals, counts)
        });
        members.push(MemberStatus::asked(url.clone(), said));
    }
    let status = Status::new(KeySet::WORDS, None, Vec::new(), members, &Clients::Counted);
    Statuses::new(Some(status), None, symmetric)
}

/// What a page says.
fn parse(text: &str) -> Result<Page, String> {
    let mut page = Page::default();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once("{key=\"") else { continue };
        let name = name.strip_suffix("_total").unwrap_or(name);
        if [USES, USES_LIMIT].contains(&name) {
            page.take_symmetric(name, rest).ok_or_else(|| of_no_key(line))?;
            continue;
        }
        if ![REQUESTS, SEALS].contains(&name) {
            continue;
        }
        let figure = rest.split_once("\"} ").and_then(|(id, value)| {
            Some((u32::from_str_radix(id, 16).ok()?, value.trim().parse::<f64>().ok()?))
        });
        let (id, value) = figure.ok_or_else(|| of_no_key(line))?;
        if name == REQUESTS {
            page.requests.insert(id, value as u64);
        } else if value > 0.0 {
            page.seals = Some(id);
        }
    }
    match page.requests.is_empty() && page.symmetric.is_empty() {
        true => {
            Err(format!("says nothing of keys ({REQUESTS}, {USES}): it has none, or is another server's"))
        }
        false => Ok(page),
    }
}

fn of_no_key(line: &str) -> String {
    format!("has a line that says nothing of a key: {line}")
}

impl Page {
    /// Takes what follows `name{key="`: the rest of the labels, and the value.
    fn take_symmetric(&mut self, name: &str, rest: &str) -> Option<()> {
        let (id, rest) = rest.split_once("\",type=\"")?;
        let (algorithm, value) = rest.split_once("\"} ")?;
        let place = self.symmetric.entry((id.parse().ok()?, algorithm.to_owned())).or_default();
        let value = value.trim().parse::<f64>().ok()? as u64;
        match name == USES {
            true => place.0 = value,
            false => place.1 = Some(value),
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_says_which_key_seals_and_how_often_each_was_used() {
        let text = "# HELP nts_cookie_key_requests Requests.\n# TYPE nts_cookie_key_requests counter\n\
            nts_cookie_key_requests_total{key=\"0000000a\"} 7\nnts_cookie_key_requests_total{key=\"fffffff0\"} 0\n\
            nts_cookie_key_seals{key=\"0000000a\"} 1.0\nnts_cookie_key_seals{key=\"fffffff0\"} 0.0\n\
            ntp_symmetric_key_uses{key=\"12\",type=\"AES128\"} 9\nntp_symmetric_key_uses{key=\"3\",type=\"SHA1\"} 1\n\
            ntp_symmetric_key_uses_limit{key=\"12\",type=\"AES128\"} 70368744177664\nntp_uptime_seconds 3.1\n# EOF\n";
        let requests = BTreeMap::from([(10, 7), (0xFFFF_FFF0, 0)]);
        let symmetric =
            [((12, "AES128".to_owned()), (9, Some(1 << 46))), ((3, "SHA1".to_owned()), (1, None))];
        let expected = Page { seals: Some(10), requests, symmetric: symmetric.into() };
        assert_eq!(parse(text), Ok(expected));
        assert!(parse("# EOF\n").unwrap_err().contains("nothing of keys"));
        for broken in ["zz\"} 7", "0000000a\"} many", "0000000a"] {
            let line = format!("nts_cookie_key_requests_total{{key=\"{broken}\n");
            assert!(parse(&line).unwrap_err().contains("a line that says nothing"), "{line}");
        }
        for broken in ["1\"} 1", "x\",type=\"SHA1\"} 1", "1\",type=\"SHA1\"} x", "1\",type=\"SHA1\" 1"] {
            let line = format!("ntp_symmetric_key_uses{{key=\"{broken}\n");
            assert!(parse(&line).unwrap_err().contains("a line that says nothing"), "{line}");
        }
    }
}
