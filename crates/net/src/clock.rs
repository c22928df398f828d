//! Reading clocks: the time of day, a monotonic one, and what the kernel says about the first.

use authentick_wire::time::NtpTime;
use rustix::time::{ClockId, clock_gettime};

/// The time of day by the system's clock.
#[inline]
#[must_use]
pub fn now() -> NtpTime {
    let time = clock_gettime(ClockId::Realtime);
    NtpTime::from_unix(time.tv_sec, time.tv_nsec as u32)
}

/// Unix seconds by the system's clock; 0 before 1970.
#[must_use]
pub fn unix_seconds() -> u64 {
    u64::try_from(clock_gettime(ClockId::Realtime).tv_sec).unwrap_or(0)
}

/// Nanoseconds on a clock that is never set; only differences mean anything.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds on a clock that is never set and counts on while the host sleeps; only differences mean anything.
#[inline]
#[must_use]
pub fn boot_ns() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds that one reading of [`monotonic_ns`] takes, by itself: the median of many pairs of readings with nothing
/// between them. A span between two readings is longer by this than what lies between them.
#[must_use]
pub fn reading_cost_ns() -> u64 {
    cost_of_reading(monotonic_ns)
}

fn cost_of_reading(mut read_ns: impl FnMut() -> u64) -> u64 {
    const PAIR_COUNT: usize = 2001;
    let mut pairs_ns = [0; PAIR_COUNT];
    for pair_ns in &mut pairs_ns {
        let first_ns = read_ns();
        *pair_ns = read_ns().saturating_sub(first_ns);
    }
    pairs_ns.sort_unstable();
    pairs_ns[PAIR_COUNT / 2]
}

/// Nanoseconds of processor time that this thread has used; what others do to the processor meanwhile is not in them.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The precision of [`now`] as the header's log2 seconds: the shortest time between two readings. RFC 5905 section 7.3.
//= rfc5905#7.3-4
#[must_use]
pub fn precision() -> i8 {
    const ATTEMPT_COUNT: usize = 100;
    let shortest_ns = (0..ATTEMPT_COUNT)
        .filter_map(|_| {
            let first = now();
            (0..1000).map(|_| now().since(first).as_nanos()).find(|&step| step > 0)
        })
        .min()
        .unwrap_or(1_000_000_000);
    let log2 = (shortest_ns as f64 / 1e9).log2().ceil();
    log2.clamp(-30.0, 0.0) as i8
}

/// What the kernel says of the system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelClock {
    /// Some daemon keeps it and vouches for it.
    Synchronised {
        /// An inserted (`Some(true)`) or deleted (`Some(false)`) second is announced for the end of the day.
        leap: Option<bool>,
        /// The largest error, by that daemon's account.
        error_max_us: u64,
    },
    /// Nobody vouches for it.
    Unsynchronised,
    /// The kernel does not tell: `adjtimex` is forbidden here, as in many containers.
    Unknown,
}

/// Asks the kernel; changes nothing and needs no rights.
#[must_use]
pub fn kernel_clock() -> KernelClock {
    // SAFETY: `timex` is a plain C structure of integers, for which all zeros is a value; `modes` zero reads only.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: adjtimex(2) writes to the structure that it is given, which outlives the call.
    let result = unsafe { libc::adjtimex(&raw mut state) };
    if result < 0 {
        return KernelClock::Unknown;
    }
    if result == libc::TIME_ERROR || state.status & libc::STA_UNSYNC != 0 {
        return KernelClock::Unsynchronised;
    }
    let leap = match state.status & (libc::STA_INS | libc::STA_DEL) {
        libc::STA_INS => Some(true),
        libc::STA_DEL => Some(false),
        _ => None,
    };
    KernelClock::Synchronised { leap, error_max_us: u64::try_from(state.maxerror).unwrap_or(0) }
}

/// Ticks a second in which the kernel counts processor time. proc(5), sysconf(3).
#[must_use]
pub fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// Octets of a page of memory.
#[must_use]
pub fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_of_a_reading_is_the_median_of_pairs_whatever_interrupts_some() {
        let (mut now_ns, mut count) = (0, 0);
        let cost_ns = cost_of_reading(|| {
            count += 1;
            now_ns += if count % 7 == 0 { 50_000 } else { 31 };
            now_ns
        });
        assert_eq!(cost_ns, 31);
        assert!(count > 1000);
        assert!(reading_cost_ns() < 1_000_000, "a pair of readings lies within a millisecond");
    }

    //= rfc5905#7.3-4
    #[test]
    fn clocks_run_forward_and_are_finer_than_a_millisecond() {
        let (first, start) = (now(), monotonic_ns());
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(monotonic_ns() - start >= 2_000_000);
        assert!(now().since(first).as_nanos() > 1_000_000);
        assert!((-30..=-10).contains(&precision()), "{}", precision());
    }

    #[test]
    fn waiting_takes_no_processor_time() {
        let start = thread_cpu_ns();
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(thread_cpu_ns() - start < 10_000_000);
        while thread_cpu_ns() - start < 10_000_000 {}
    }

    #[test]
    fn kernel_tells_or_declines() {
        // Which of the three it is depends on the host; asking must not fail or change anything.
        let first = kernel_clock();
        assert_eq!(std::mem::discriminant(&first), std::mem::discriminant(&kernel_clock()));
    }
}
