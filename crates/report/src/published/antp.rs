//! "Authenticated Network Time Synchronization" (Dowling, Stebila, Zaverucha, USENIX Security 2016): what the text of
//! its section 4.2 says of ANTP's speed.
//!
//! The cells of its Table 1 are not known to us, but for the one that the text quotes: what is not here is shown as
//! unknown, and never computed from other hardware. What is computed from quoted figures says so.

/// How the source is cited.
pub const SOURCE: &str = "Dowling, Stebila, Zaverucha, \u{201c}Authenticated Network Time Synchronization\u{201d} \
                          (USENIX Security 2016), section 4.2";

/// What stands where the paper has a figure that we do not have.
pub const UNKNOWN: &str = "unknown to us";

/// Seconds of a trial: "each trial was run for 100 seconds" (section 4.2, Results - individual phases).
pub const TRIAL_SECONDS: f64 = 100.0;

/// "the average of 5 trials to prevent outlier results" (section 4.2, Results - individual phases).
pub const TRIAL_COUNT: u32 = 5;

/// "the server's (single) core had around 95% utilization" (section 4.2, Methodology).
pub const SERVER_SHARE: f64 = 0.95;

/// "the server dropped less than 1% of packets being received per second" (section 4.2, Methodology).
pub const LOSS_MAX: f64 = 0.01;

/// Loads at which latency was taken, as shares of the supported throughput: "either 50% or 90%" (section 4.2,
/// Methodology).
pub const LOADS: [f64; 2] = [0.5, 0.9];

/// "175,644 time synchronization requests per second" (section 4.2, Results and extrapolation): ANTP, one core.
pub const TIME_RPS: f64 = 175_644.0;

/// "throughput is reduced by only a factor of approximately 1.6" against plain NTP (section 4.2, Time synchronization
/// phases).
pub const PLAIN_OVER_TIME: f64 = 1.6;

/// "Latency increase on the local network for ANTP at 50% load is only about 14%" against plain NTP (section 4.2, Time
/// synchronization phases), and "at 90% load is about 27%": in the order of [`LOADS`].
pub const TIME_LATENCY_INCREASE: [f64; 2] = [0.14, 0.27];

/// "we observe a 7.54x improvement in throughput for ANTP's ECDH key exchange over ANTP's RSA key exchange" (section
/// 4.2, Key exchange phases).
pub const EXCHANGE_ECDH_OVER_RSA: f64 = 7.54;

/// "the runtime of ECC NIST P-256 point multiplication is 8.62x faster than RSA 2048 private key operations", by
/// OpenSSL's speed command (section 4.2, Key exchange phases).
pub const PRIMITIVE_ECDH_OVER_RSA: f64 = 8.62;

/// "Latency on the local network for RSA key exchange is approximately 2.9x that of ECDH key exchange at 90% load"
/// (section 4.2, Key exchange phases).
pub const EXCHANGE_LATENCY_RSA_OVER_ECDH: f64 = 2.9;

/// The link that bound the negotiation: "an isolated 1 gigabit LAN" (section 4.2, Methodology), and "network bandwidth
/// was saturated for this measurement" (Negotiation phases).
pub const LINK_BPS: f64 = 1e9;

/// Plain NTP as the text implies it, not a cell of Table 1: [`TIME_RPS`] times [`PLAIN_OVER_TIME`].
#[must_use]
pub fn plain_rps() -> f64 {
    TIME_RPS * PLAIN_OVER_TIME
}

/// What one request costs beyond a plain one by the same two figures, in microseconds.
#[must_use]
pub fn authentication_us() -> f64 {
    (1.0 / TIME_RPS - 1.0 / plain_rps()) * 1e6
}

/// The share of its primitives' ratio that the exchange kept: 0.87.
#[must_use]
pub fn exchange_efficiency() -> f64 {
    EXCHANGE_ECDH_OVER_RSA / PRIMITIVE_ECDH_OVER_RSA
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_rate_and_cost_follow_from_two_quoted_figures() {
        // 5.7 us a request against 3.6 us.
        assert!((plain_rps() - 281_030.4).abs() < 0.1, "{}", plain_rps());
        assert!((authentication_us() - 2.135).abs() < 0.001, "{}", authentication_us());
        assert!((exchange_efficiency() - 0.8747).abs() < 0.0001);
    }

    #[test]
    fn quoted_rate_is_the_one_of_the_quoted_pool() {
        // "175,644 time synchronization requests per second would correspond to a pool of 5,755,502,592 clients": they
        // poll every 2^15 s, which the text calls nine hours.
        assert_eq!(TIME_RPS * 32_768.0, 5_755_502_592.0);
    }
}
