//! Numbers in readable form: times in a suitable unit, shares, dates. ASCII, but for [`typeset`].

const NS_PER_MS: u64 = 1_000_000;
const SECONDS_PER_DAY: u64 = 86_400;

/// A time: `80 ns`, `12.3 us`, `1.20 ms`, `3.456 s`. Each unit has its fixed number of decimals, so that a column of
/// them lines up; nanoseconds are for what would be `0.0 us`.
#[must_use]
pub fn time(ns: u64) -> String {
    let tenths_us = rounded(ns, 100);
    let hundredths_ms = rounded(ns, NS_PER_MS / 100);
    if ns < 100 {
        format!("{ns} ns")
    } else if tenths_us < 10_000 {
        format!("{}.{} us", tenths_us / 10, tenths_us % 10)
    } else if hundredths_ms < 100_000 {
        format!("{}.{:02} ms", hundredths_ms / 100, hundredths_ms % 100)
    } else {
        let ms = rounded(ns, NS_PER_MS);
        format!("{}.{:03} s", ms / 1000, ms % 1000)
    }
}

/// A time with its sign, as of an offset or a difference: `+12.3 us`, `-80 ns`.
#[must_use]
pub fn signed_time(ns: i64) -> String {
    let sign = match ns.signum() {
        0 => "",
        1 => "+",
        _ => "-",
    };
    format!("{sign}{}", time(ns.unsigned_abs()))
}

/// The same of what has a sign only below zero, as where clocks disagree: `12.3 us`, `-80 ns`.
#[must_use]
pub fn difference(ns: i64) -> String {
    signed_time(ns).trim_start_matches('+').to_owned()
}

/// A change as a share with its sign, in percent: 0.31 is `+31 %`; below ten percent with one decimal.
#[must_use]
pub fn signed_share(ratio: f64) -> String {
    let percent = ratio * 100.0;
    if percent == 0.0 {
        "0 %".to_owned()
    } else if percent.abs() < 9.95 {
        format!("{percent:+.1} %")
    } else {
        format!("{percent:+.0} %")
    }
}

/// A count: `1,234,567`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 step`, `2 steps`.
#[must_use]
pub fn plural(value: u64, one: &str) -> String {
    format!("{} {one}{}", count(value), if value == 1 { "" } else { "s" })
}

/// What begins a sentence.
pub(crate) fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Parts with this between them; `None` if there are none.
pub(crate) fn joined(parts: impl IntoIterator<Item = String>, between: &str) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().collect();
    (!parts.is_empty()).then(|| parts.join(between))
}

/// Words one after the other: `a, b and c`.
pub(crate) fn listed(words: impl IntoIterator<Item = String>) -> String {
    let words: Vec<String> = words.into_iter().collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        Some(_) | None => words.concat(),
    }
}

/// A rate: `98.5`, `150,000`; with a decimal below one hundred, unless it is whole.
#[must_use]
pub fn rate(per_second: f64) -> String {
    if per_second < 99.95 && (per_second - per_second.round()).abs() > 0.05 {
        format!("{per_second:.1}")
    } else {
        count(per_second.round() as u64)
    }
}

/// A share in percent, without its sign: 0.0123 is `1.23`. A value above zero is never shown as zero.
#[must_use]
pub fn percent(ratio: f64) -> String {
    if ratio > 0.0 && ratio < 0.000_05 { "<0.01".to_owned() } else { format!("{:.2}", ratio * 100.0) }
}

/// A ratio of two figures: `0.76`, `12.3`.
#[must_use]
pub fn ratio(value: f64) -> String {
    if value < 9.995 { format!("{value:.2}") } else { format!("{value:.1}") }
}

/// A time that is stored in microseconds.
#[must_use]
pub fn microseconds(us: f64) -> String {
    time((us * 1000.0).round() as u64)
}

/// Such a time with its sign.
#[must_use]
pub fn signed_microseconds(us: f64) -> String {
    signed_time((us * 1000.0).round() as i64)
}

/// A size of memory: `812 kiB`, `12.3 MiB`, `2.00 GiB`.
#[must_use]
pub fn memory(octets: u64) -> String {
    const KIB: f64 = 1024.0;
    let kib = octets as f64 / KIB;
    if kib < KIB {
        format!("{kib:.0} kiB")
    } else if kib < KIB * KIB {
        format!("{:.1} MiB", kib / KIB)
    } else {
        format!("{:.2} GiB", kib / KIB / KIB)
    }
}

/// A round value on an axis, without needless decimals: `500 ns`, `1.5 us`, `20 ms`, `1 s`.
#[must_use]
pub fn tick(ns: u64) -> String {
    let (size, unit) = match ns {
        0..1_000 => (1, "ns"),
        1_000..NS_PER_MS => (1_000, "us"),
        NS_PER_MS..1_000_000_000 => (NS_PER_MS, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let decimals = format!("{:0width$}", ns % size, width = size.ilog10() as usize);
    let decimals = decimals.trim_end_matches('0');
    let point = if decimals.is_empty() { "" } else { "." };
    format!("{}{point}{decimals} {unit}", ns / size)
}

/// An instant by its Unix seconds: `2026-07-03 12:00:00 UTC`.
#[must_use]
pub fn utc(unix_s: u64) -> String {
    let (year, month, day) = civil(unix_s / SECONDS_PER_DAY);
    let second = unix_s % SECONDS_PER_DAY;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Seconds that were counted: `2`, `0.25`, `1.6`; to a thousandth.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    trimmed(seconds, 3)
}

/// A number with so many decimals at most, without those that say nothing.
pub(crate) fn trimmed(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A round rate on an axis: `500`, `1.5 k`, `20 M`.
pub(crate) fn rate_tick(rate: f64) -> String {
    match rate {
        1e6.. => format!("{} M", trimmed(rate / 1e6, 4)),
        1e3.. => format!("{} k", trimmed(rate / 1e3, 4)),
        _ => trimmed(rate, 4),
    }
}

/// A number from this module as a page shows it: with the signs for micro, minus and plus or minus, and spaces that do
/// not break.
#[must_use]
pub fn typeset(text: &str) -> String {
    let text = typeset_prose(text).replace("+-", "\u{b1}").replace(' ', "\u{a0}");
    let mut out = String::with_capacity(text.len());
    for (index, char) in text.char_indices() {
        let is_sign = char == '-'
            && !out.ends_with(char::is_alphanumeric)
            && text[index + 1..].starts_with(|next: char| next.is_ascii_digit());
        out.push(if is_sign { '\u{2212}' } else { char });
    }
    out
}

/// A sentence as a page shows it: no line break between a number and its unit, and micro has its sign.
#[must_use]
pub fn typeset_prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, word) in text.split(' ').enumerate() {
        let end = word.find(|char: char| !char.is_ascii_alphabetic() && char != '%').unwrap_or(word.len());
        let (unit, rest) = word.split_at(end);
        let is_unit = matches!(unit, "us" | "%" | "GbE") && out.ends_with(|char: char| char.is_ascii_digit());
        out.push_str(match (index, is_unit) {
            (0, _) => "",
            (_, true) => "\u{a0}",
            (_, false) => " ",
        });
        out.push_str(if is_unit && unit == "us" { "\u{b5}s" } else { unit });
        out.push_str(rest);
    }
    out
}

/// `ns` in steps of `step`, to the nearest, halves up.
fn rounded(ns: u64, step: u64) -> u64 {
    ns.saturating_add(step / 2) / step
}

/// Year, month and day by days since 1970-01-01 in the Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    // Eras of 400 years have 146,097 days each. Years start in March here, so that a leap day is the last of its year.
    let days = days + 719_468;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (400 * (days / 146_097) + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_take_the_unit_that_suits_them() {
        for (ns, expected) in [
            (0, "0 ns"),
            (99, "99 ns"),
            (100, "0.1 us"),
            (149, "0.1 us"),
            (150, "0.2 us"),
            (12_340, "12.3 us"),
            (999_949, "999.9 us"),
            (999_950, "1.00 ms"),
            (1_204_999, "1.20 ms"),
            (999_994_999, "999.99 ms"),
            (999_995_000, "1.000 s"),
            (61_002_000_000, "61.002 s"),
        ] {
            assert_eq!(time(ns), expected, "{ns}");
        }
        assert!(time(u64::MAX).ends_with(" s"));
    }

    #[test]
    fn signs_are_shown_where_there_is_one() {
        assert_eq!(signed_time(400), "+0.4 us");
        assert_eq!(signed_time(-1_200_000), "-1.20 ms");
        assert_eq!(signed_time(0), "0 ns");
        assert!(signed_time(i64::MIN).starts_with('-'));
    }

    #[test]
    fn small_shares_have_a_decimal() {
        for (ratio, expected) in [
            (0.31, "+31 %"),
            (0.0294, "+2.9 %"),
            (0.0994, "+9.9 %"),
            (0.0996, "+10 %"),
            (-0.5, "-50 %"),
            (0.0, "0 %"),
        ] {
            assert_eq!(signed_share(ratio), expected);
        }
    }

    #[test]
    fn ticks_have_no_idle_decimals() {
        for (ns, expected) in [
            (1, "1 ns"),
            (500, "500 ns"),
            (1_000, "1 us"),
            (1_500, "1.5 us"),
            (110_000, "110 us"),
            (1_050_000, "1.05 ms"),
            (20_000_000, "20 ms"),
            (1_000_000_000, "1 s"),
        ] {
            assert_eq!(tick(ns), expected);
        }
    }

    #[test]
    fn dates_agree_with_the_calendar() {
        for (unix_s, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_783_080_000, "2026-07-03 12:00:00 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(unix_s), expected);
        }
        assert!(utc(u64::MAX).ends_with(" UTC"));
    }

    #[test]
    fn rates_shares_and_sizes_are_written_for_people() {
        for (value, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(value), expected);
        }
        for (value, expected) in
            [(0.0, "0"), (0.5, "0.5"), (98.54, "98.5"), (98.96, "99"), (99.97, "100"), (9909.4, "9,909")]
        {
            assert_eq!(rate(value), expected, "{value}");
        }
        for (value, expected) in [(0.0, "0.00"), (0.000_01, "<0.01"), (0.0123, "1.23"), (1.0, "100.00")] {
            assert_eq!(percent(value), expected);
        }
        assert_eq!((ratio(0.757), ratio(9.994), ratio(12.34)), ("0.76".into(), "9.99".into(), "12.3".into()));
        assert_eq!((microseconds(12.34), microseconds(-1.0)), ("12.3 us".into(), "0 ns".into()));
        for (octets, expected) in [(2048, "2 kiB"), (5 << 20, "5.0 MiB"), (3 << 30, "3.00 GiB")] {
            assert_eq!(memory(octets), expected);
        }
    }

    #[test]
    fn units_are_typeset() {
        assert_eq!(typeset("-0.4 us (-31 %)"), "\u{2212}0.4\u{a0}\u{b5}s\u{a0}(\u{2212}31\u{a0}%)");
        assert_eq!(typeset("1.20 ms"), "1.20\u{a0}ms");
        assert_eq!(typeset("-31.0 us +-55.0 us"), "\u{2212}31.0\u{a0}\u{b5}s\u{a0}\u{b1}55.0\u{a0}\u{b5}s");
        assert_eq!(typeset("6,061 (aws-lc) 2^-32"), "6,061\u{a0}(aws-lc)\u{a0}2^\u{2212}32");
        assert_eq!(
            typeset_prose("12.3 us, 4 % of 1 GbE; tell us, a-2 %"),
            "12.3\u{a0}\u{b5}s, 4\u{a0}% of 1\u{a0}GbE; tell us, a-2\u{a0}%"
        );
    }

    #[test]
    fn seconds_have_no_idle_decimals() {
        for (value, expected) in
            [(2.0, "2"), (1.000_016_09, "1"), (0.25, "0.25"), (100.0, "100"), (1e-5, "0")]
        {
            assert_eq!(seconds(value), expected);
        }
    }
}
