//! The tests behind a sample: Student's t over trials and the exact binomial test over requests.
//!
//! Both distributions are regularised incomplete beta functions, which is all that is needed of a library of
//! statistics.

/// How likely so small a loss is, or a smaller one, if the true one is `tolerated`: small where a rate holds.
///
/// `losses` are the ratios of whole trials. Requests of one trial are not independent, since losses come in bursts, so
/// the trial is the unit: Student's t for the mean of the trials' ratios, as for clusters of equal size (Cochran,
/// "Sampling Techniques", 3rd edition, section 9.2). Few trials may look more alike than chance allows; no losses vary
/// less than independent ones, so the exact binomial test over all requests (Clopper and Pearson, Biometrika 26, 1934)
/// has to agree: it also sets the smallest sample. The larger of both probabilities counts.
pub(super) fn holds(losses: &[f64], failed: u64, sent: u64, tolerated: f64) -> f64 {
    at_most(failed, sent, tolerated).max(student(losses, tolerated, -1.0))
}

/// How likely so large a loss is, or a larger one, if the true one is `tolerated`: small where a rate is too high.
pub(super) fn exceeds(losses: &[f64], failed: u64, sent: u64, tolerated: f64) -> f64 {
    at_least(failed, sent, tolerated).max(student(losses, tolerated, 1.0))
}

/// The interval that holds the true loss with 95 percent confidence: the wider of the t interval over the trials'
/// ratios and the Wilson score interval over all requests (Wilson, Journal of the American Statistical Association 22,
/// 1927).
pub(super) fn interval(losses: &[f64], failed: u64, sent: u64) -> (f64, f64) {
    /// What lies above this share of a normal distribution, and of Student's, is left out at each end.
    const TAIL: f64 = 0.025;
    const QUANTILE: f64 = 1.959_964;
    if sent == 0 || losses.len() < 2 {
        return (0.0, 1.0);
    }
    let (count, share) = (sent as f64, failed as f64 / sent as f64);
    let square = QUANTILE * QUANTILE;
    let centre = (share + square / (2.0 * count)) / (1.0 + square / count);
    let half = QUANTILE * (share * (1.0 - share) / count + square / (4.0 * count * count)).sqrt()
        / (1.0 + square / count);
    let freedom = losses.len() as f64 - 1.0;
    let reach = root(|t| TAIL - student_above(t, freedom)) * error(losses);
    let mean = mean(losses);
    ((mean - reach).min(centre - half).max(0.0), (mean + reach).max(centre + half).min(1.0))
}

/// The mean of the trials' ratios.
pub(super) fn mean(losses: &[f64]) -> f64 {
    losses.iter().sum::<f64>() / losses.len().max(1) as f64
}

/// The standard error of that mean, from how the trials differ; there are at least two.
fn error(losses: &[f64]) -> f64 {
    let (count, mean) = (losses.len() as f64, mean(losses));
    let variance = losses.iter().map(|loss| (loss - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (variance / count).sqrt()
}

/// How likely a mean so far from `share`, in the direction of `sign`, is by Student's t; 1 for less than two trials.
fn student(losses: &[f64], share: f64, sign: f64) -> f64 {
    if losses.len() < 2 {
        return 1.0;
    }
    let (distance, error) = (sign * (mean(losses) - share), error(losses));
    match error > 0.0 {
        true => student_above(distance / error, losses.len() as f64 - 1.0),
        // All trials agree; how much that says, the binomial test knows.
        false if distance > 0.0 => 0.0,
        false => 1.0,
    }
}

/// The probability that Student's t with `freedom` degrees of freedom is above `t` (DLMF 8.17; Abramowitz and Stegun
/// 26.7.1).
fn student_above(t: f64, freedom: f64) -> f64 {
    let half = beta(freedom / 2.0, 0.5, freedom / (freedom + t * t)) / 2.0;
    if t >= 0.0 { half } else { 1.0 - half }
}

/// The probability of at most `failed` failures among `sent` (Abramowitz and Stegun 26.5.24).
fn at_most(failed: u64, sent: u64, share: f64) -> f64 {
    match failed >= sent {
        true => 1.0,
        false => 1.0 - at_least(failed + 1, sent, share),
    }
}

/// The probability of at least `failed` failures among `sent`.
fn at_least(failed: u64, sent: u64, share: f64) -> f64 {
    match failed {
        0 => 1.0,
        _ => beta(failed as f64, (sent - failed + 1) as f64, share),
    }
}

/// Where a function that rises crosses zero, between 0 and 100: with one degree of freedom, 2.5 percent of Student's t
/// lie above 12.7.
fn root(rising: impl Fn(f64) -> f64) -> f64 {
    let (low, high) = (0..48).fold((0.0, 100.0), |(low, high), _| {
        let middle = f64::midpoint(low, high);
        if rising(middle) < 0.0 { (middle, high) } else { (low, middle) }
    });
    f64::midpoint(low, high)
}

/// The regularised incomplete beta function by its continued fraction (DLMF 8.17.22), evaluated by Lentz's method.
fn beta(a: f64, b: f64, x: f64) -> f64 {
    // The fraction needs about the square root of its larger argument in terms.
    const TERM_COUNT_MAX: u32 = 100_000;
    const TINY: f64 = 1e-300;
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta(b, a, 1.0 - x);
    }
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for term in 1..=TERM_COUNT_MAX {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            d = 1.0 / away(1.0 + coefficient * d);
            c = away(1.0 + coefficient / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-13 {
            break;
        }
    }
    let scale = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    (scale.exp() * fraction / a).clamp(0.0, 1.0)
}

/// The logarithm of the gamma function for positive arguments, by Stirling's series (DLMF 5.11.1) from 10 on.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 0.0);
    while x < 10.0 {
        below += x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series =
        (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-4 * expected.max(0.01), "{value} instead of {expected}");
    }

    #[test]
    fn quantiles_of_student_are_those_of_the_tables() {
        // Abramowitz and Stegun, table 26.10: t of which so much lies above.
        for (freedom, above, t) in [
            (1.0, 0.025, 12.706),
            (2.0, 0.05, 2.920),
            (4.0, 0.025, 2.776),
            (4.0, 0.005, 4.604),
            (9.0, 0.05, 1.833),
            (120.0, 0.025, 1.980),
        ] {
            assert!((student_above(t, freedom) - above).abs() < 1e-4, "{freedom} {t}");
            assert!((student_above(-t, freedom) - (1.0 - above)).abs() < 1e-4, "{freedom} {t}");
        }
    }

    #[test]
    fn binomial_sums_are_those_of_the_definition() {
        // 0.9^10, and 10 x 0.1 x 0.9^9 more.
        near(at_most(0, 10, 0.1), 0.348_678);
        near(at_most(1, 10, 0.1), 0.736_099);
        near(at_least(2, 10, 0.1), 0.263_901);
        assert_eq!((at_most(10, 10, 0.1), at_least(0, 10, 0.1)), (1.0, 1.0));
        // 437 requests without a loss are the least from which a loss of one percent is excluded at 0.0125.
        assert!(at_most(0, 437, 0.01) < 0.0125 && at_most(0, 436, 0.01) > 0.0125);
        // The median of so many is their mean, within one.
        assert!((at_most(60_000, 6_000_000, 0.01) - 0.5).abs() < 0.01);
    }

    #[test]
    fn interval_over_like_trials_is_that_of_wilson() {
        // 10 of 100: 0.0552 to 0.1744 (Newcombe, Statistics in Medicine 17, 1998, method 3).
        let (low, high) = interval(&[0.1; 5], 10, 100);
        assert!((low - 0.0552).abs() < 1e-4 && (high - 0.1744).abs() < 1e-4, "{low} {high}");
        assert_eq!((interval(&[], 0, 0), interval(&[0.0], 0, 10_000)), ((0.0, 1.0), (0.0, 1.0)));
        assert!(interval(&[0.0; 5], 0, 10_000).1 < 0.0004);
    }

    #[test]
    fn trials_that_differ_widen_the_interval() {
        // Student, Biometrika 6, 1908: additional hours of sleep, here in thousandths; mean 2.33, deviation 2.002, and
        // 2.262 times its tenth's root is 1.432.
        let sleep =
            [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4].map(|hours: f64| 0.1 + hours / 1000.0);
        let (low, high) = interval(&sleep, 1_023_300, 10_000_000);
        assert!((low - 0.100_898).abs() < 1e-6 && (high - 0.103_762).abs() < 1e-6, "{low} {high}");
        let (low, high) = interval(&[0.1; 10], 1_000_000, 10_000_000);
        assert!(high - low < 4e-4, "{low} {high}");
    }

    #[test]
    fn bursts_count_by_trials_and_not_by_requests() {
        // Ten thousand losses, all of them in one trial of five: no sign that the true loss is above one percent.
        let once = [0.05, 0.0, 0.0, 0.0, 0.0];
        assert!(at_most(13_000, 1_000_000, 0.01) > 0.999_999, "independent losses would say so");
        let larger = once.map(|loss| loss * 1.3);
        assert!(exceeds(&larger, 13_000, 1_000_000, 0.01) > 0.3);
        assert!(holds(&once, 10_000, 1_000_000, 0.01) > 0.4);
        assert!(holds(&[0.001, 0.002, 0.0, 0.001, 0.001], 1000, 1_000_000, 0.01) < 1e-4);
        assert!(holds(&[0.0; 5], 0, 100, 0.01) > 0.3, "a hundred requests show nothing");
    }
}
