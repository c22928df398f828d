//! Sequences of rates: `100:100:8000` is the NTS study's staircase, `1000:1.5:1000000` ntpperf's geometric one.

/// Steps of one run, at most.
pub const STEP_COUNT_MAX: usize = 1000;
/// Requests a second, at most: beyond what any wire carries.
pub const RATE_MAX_RPS: f64 = 100e6;

/// Why text is no sequence of rates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RatesError(String);

/// One rate.
///
/// # Errors
/// If it is no number of requests a second above 0 and up to [`RATE_MAX_RPS`].
pub fn rate(text: &str) -> Result<f64, RatesError> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= RATE_MAX_RPS => Ok(rate),
        _ => Err(RatesError(format!(
            "{text:?} is no rate: requests a second, above 0 and up to {RATE_MAX_RPS}"
        ))),
    }
}

/// `FIRST:STEP:LAST`: rates at equal distances, the last one included if it is met.
///
/// # Errors
/// If the text is not three numbers of which such a sequence can be made.
pub fn ramp(text: &str) -> Result<Vec<f64>, RatesError> {
    let [first, step, last] = three(text, "FIRST:STEP:LAST")?;
    let (first, step, last) = (rate(first)?, rate(step)?, rate(last)?);
    // An index times the step: sums of steps would drift off the last rate.
    sequence(text, last, |index| first + index as f64 * step)
}

/// `FIRST:FACTOR:LAST`: rates in equal ratios, the last one included if it is met.
///
/// # Errors
/// If the text is not three numbers of which such a sequence can be made.
pub fn geometric(text: &str) -> Result<Vec<f64>, RatesError> {
    let [first, factor, last] = three(text, "FIRST:FACTOR:LAST")?;
    let (first, last) = (rate(first)?, rate(last)?);
    match factor.parse::<f64>() {
        Ok(factor) if factor > 1.0 && factor.is_finite() => {
            sequence(text, last, |index| first * factor.powi(index as i32))
        }
        _ => Err(RatesError(format!("{factor:?} is no factor: a number above 1"))),
    }
}

fn three<'a>(text: &'a str, form: &str) -> Result<[&'a str; 3], RatesError> {
    let parts: Vec<&str> = text.split(':').collect();
    parts.try_into().map_err(|_| RatesError(format!("{text:?} is not of the form {form}")))
}

fn sequence(text: &str, last: f64, at: impl Fn(usize) -> f64) -> Result<Vec<f64>, RatesError> {
    // Half a millionth of slack, as a rate that was computed may miss the last one by a rounding.
    let rates: Vec<f64> =
        (0..=STEP_COUNT_MAX).map(at).take_while(|&rate| rate <= last * (1.0 + 5e-7)).collect();
    match rates.len() {
        0 => Err(RatesError(format!("{text:?} ends before it begins"))),
        count if count > STEP_COUNT_MAX => {
            Err(RatesError(format!("{text:?} has more than {STEP_COUNT_MAX} steps")))
        }
        _ => Ok(rates),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staircase_of_the_study_has_eighty_steps() {
        let rates = ramp("100:100:8000").unwrap();
        assert_eq!((rates.len(), rates[0], rates[79]), (80, 100.0, 8000.0));
        assert_eq!(ramp("0.1:0.1:0.3").unwrap().len(), 3);
    }

    #[test]
    fn geometric_sequence_of_ntpperf_ends_below_a_million() {
        let rates = geometric("1000:1.5:1000000").unwrap();
        assert_eq!((rates.len(), rates[1]), (18, 1500.0));
        assert!(rates[17] <= 1e6 && rates[17] * 1.5 > 1e6);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            ["", "1:2", "1:2:3:4", "0:1:2", "5:1:4", "1:-1:4", "1:0.001:100", "a:b:c", "1:nan:3", "1:1:inf"]
        {
            assert!(ramp(text).is_err(), "{text}");
        }
        for text in ["1:1:2", "1:0.5:2", "1:inf:2", "1:1.000001:100"] {
            assert!(geometric(text).is_err(), "{text}");
        }
        assert!(rate("0").is_err() && rate("-1").is_err() && rate("1e9").is_err() && rate("2.5").is_ok());
    }
}
