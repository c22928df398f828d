//! Send buffers of server sockets: what their size is worth, and when they are full.
//!
//! A response to an on-link address that does not exist stays in the send buffer for three seconds, until the kernel
//! gives its neighbour up. Spoofed requests from such addresses fill a small buffer, and then no client is answered.

use std::time::{Duration, Instant};

use authentick_net::udp::SendBuffer;

use crate::metrics::counters::Totals;

/// How long a send buffer has had room again before the next line about it.
const QUIET: Duration = Duration::from_secs(60);
/// What the kernel may keep for each unresolved neighbour: a few responses.
const NEIGHBOUR_QUEUE: usize = 4096;

/// What a smaller send buffer than servers ask for is worth, and the remedy; `None` if it is not smaller.
#[must_use]
pub fn shortage(buffer: SendBuffer) -> Option<String> {
    (!buffer.is_whole()).then(|| {
        format!(
            "send buffers of {} KiB: responses to others are lost at more than {} requests/s from unresolved \
             neighbours; {}",
            buffer.size >> 10,
            buffer.unresolved_rate(),
            remedy()
        )
    })
}

fn remedy() -> String {
    format!(
        "set sysctl net.core.wmem_max = {} and restart, and net.ipv4.neigh.default.unres_qlen_bytes = \
         {NEIGHBOUR_QUEUE} with its twin of net.ipv6; for a pod on its node, before the pod starts",
        SendBuffer::wanted()
    )
}

/// Logs a line when responses begin to be dropped for lack of room.
#[derive(Debug, Default)]
pub(crate) struct SendBufferWatch {
    dropped_count: u64,
    last_drop: Option<Instant>,
}

impl SendBufferWatch {
    /// Looks at the counters of all workers.
    pub(crate) fn tick(&mut self, totals: &Totals, now: Instant) {
        if let Some(line) = self.line(totals, now) {
            log::warn!("{line}");
        }
    }

    fn line(&mut self, totals: &Totals, now: Instant) -> Option<String> {
        let count = totals.send_buffer_full.saturating_sub(self.dropped_count);
        if count == 0 {
            return None;
        }
        self.dropped_count = totals.send_buffer_full;
        let was_quiet = self.last_drop.is_none_or(|last| now.duration_since(last) > QUIET);
        self.last_drop = Some(now);
        let [unsent, size] = totals.full_at;
        let cause = match unsent >= size / 10 * 9 {
            true => format!(", neighbours do not resolve: {}", remedy()),
            false => String::new(),
        };
        was_quiet.then(|| format!("send buffer full: dropped={count} unsent={unsent} size={size}{cause}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_buffer_names_its_rate_and_sysctls() {
        let text = shortage(SendBuffer { size: 425_984 }).unwrap();
        for part in ["416 KiB", "more than 184 requests/s", "net.core.wmem_max = 4194304"] {
            assert!(text.contains(part), "{text}");
        }
        for part in ["net.ipv4.neigh.default.unres_qlen_bytes = 4096", "net.ipv6", "pod"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(shortage(SendBuffer { size: 2 * SendBuffer::wanted() }), None);
    }

    #[test]
    fn full_buffer_is_logged_once_until_it_was_quiet() {
        let mut watch = SendBufferWatch::default();
        let start = Instant::now();
        let mut line = |count, full_at, seconds| {
            let totals = Totals { send_buffer_full: count, full_at, ..Totals::default() };
            watch.line(&totals, start + Duration::from_secs(seconds))
        };
        assert_eq!(line(0, [0, 0], 0), None);
        let text = line(7, [425_000, 425_984], 1).unwrap();
        assert!(text.contains("dropped=7") && text.contains("neighbours do not resolve"), "{text}");
        assert_eq!((line(9, [425_000, 425_984], 50), line(10, [425_000, 425_984], 100)), (None, None));
        assert_eq!(line(10, [425_000, 425_984], 200), None);
        let text = line(11, [100, 425_984], 201).unwrap();
        assert!(text.contains("dropped=1") && !text.contains("neighbours"), "{text}");
    }
}
