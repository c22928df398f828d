//! What the page of metrics says of keys in CFNTS's layout.

use std::fmt;
use std::sync::atomic::Ordering;

use super::Page;
use crate::keystore::CfntsCounters;

const REFUSED_VALUES: (&str, &str) =
    ("refused_values", "Values found there that are other ones than before, or none, each counted once");

impl Page<'_, '_> {
    pub(super) fn cfnts(&mut self, counters: &CfntsCounters) -> fmt::Result {
        self.memcached("cfnts", &[&*counters.post], REFUSED_VALUES)?;
        let help = "When the last hour ends that there is a key for, in Unix seconds; 0 if there is none";
        self.gauge("cfnts_keys_end_timestamp_seconds", help, counters.end.load(Ordering::Relaxed) as f64)
    }
}
