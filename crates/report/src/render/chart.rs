//! Figures against a rate as inline SVG: lines through steps that count, crosses for those that do not.
//!
//! Like [`super::plot`], whose sizes, colours and logarithmic axis it shares: no script, no identifiers, and no text
//! from a record but what is escaped before.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::page::escaped;
use super::plot::{Area, Axis, Size, class_of, cross, dashes_of, more_height, swatch, swatch_of};
use super::{Drawing, Key, Table, or_empty};
use crate::units::{rate, rate_tick, tick, time, trimmed, typeset};

/// Least distances between the numbers on the axes, in SVG units.
pub(super) const DISTANCE_ALONG: f64 = 52.0;
pub(super) const DISTANCE_UP: f64 = 26.0;
/// From this ratio of the largest rate to the smallest a logarithmic axis is considered.
const LOG_RATIO_MIN: f64 = 8.0;
/// Steps whose middle one lies this near to the smallest, as a share of the whole, were spaced by a factor.
const LOG_MIDDLE_MAX: f64 = 0.3;
/// What a linear axis extends beyond the values, as a share of its length.
const MARGIN: f64 = 0.04;

/// How far beyond the other lines the diagonal may go, as a factor.
const DIAGONAL_MAX: f64 = 1.5;
const PPM_PER_PERCENT: f64 = 10_000.0;

/// The largest number that is drawn; nanoseconds of thirty years.
const DRAWN_MAX: f64 = 1e18;

pub(super) const LEFT: f64 = 66.0;
pub(super) const CROSS_REACH: f64 = 4.0;
/// More dots on a line than these hide each other, where others cross it.
const DOTS_MAX: usize = 40;

/// What the numbers on the vertical axis are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Events a second, from zero.
    #[default]
    Rate,
    /// Parts per million, shown as percent on a logarithmic scale; zeros are left out.
    Share,
    /// Nanoseconds, on a logarithmic scale.
    Time,
}

impl Unit {
    /// A value in words.
    fn told(self, value: f64) -> String {
        match self {
            // Shares of another rate are no whole numbers.
            Unit::Rate if value < 10.0 => trimmed(value, 2),
            Unit::Rate => rate(value),
            Unit::Share => format!("{} %", trimmed(value / PPM_PER_PERCENT, 4)),
            Unit::Time => time(value.round() as u64),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Unit::Rate => "",
            Unit::Share => ", ppm",
            Unit::Time => ", ns",
        }
    }
}

/// A figure at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Requests a second.
    pub(crate) rate: f64,
    pub(crate) value: f64,
    /// Whether the step counts.
    pub(crate) valid: bool,
    /// The interval in which it lies with 95 %; `None`: nobody knows.
    pub(crate) interval: Option<[f64; 2]>,
}

/// A figure at all rates, in any order.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// What the legend calls it.
    pub(crate) name: String,
    /// Number of the colour, as of a series.
    pub(crate) colour: usize,
    /// Number of the dash pattern.
    pub(crate) dashes: usize,
    pub(crate) points: Vec<Point>,
}

/// Lines in one frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chart {
    /// What it shows, for those who do not see it.
    pub(crate) label: Cow<'static, str>,
    /// What the vertical axis counts.
    pub(crate) up: &'static str,
    /// What the horizontal axis counts.
    pub(crate) along: &'static str,
    pub(crate) unit: Unit,
    /// What the legend calls the line where as many would be answered as are offered; `None`: there is none.
    pub(crate) diagonal: Option<&'static str>,
    /// What the legend calls points that do not count.
    pub(crate) void: &'static str,
    /// Rates with a name that are marked.
    pub(crate) marks: Vec<(f64, String)>,
    /// What a reader who points at a rate is told.
    pub(crate) titles: Vec<(f64, String)>,
    /// Whether lines have so many steps that their dots would hide each other: those with more than [`DOTS_MAX`] have
    /// none.
    pub(crate) is_dense: bool,
    pub(crate) lines: Vec<Line>,
}

/// An axis of values that are not negative.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scale {
    Linear { low: f64, high: f64 },
    Logarithmic(Axis),
}

impl Scale {
    /// An axis from zero, or from near the smallest value if all are far from zero.
    fn linear(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let high = values.clone().reduce(f64::max).filter(|&high| high > 0.0)?;
        let low = values.fold(high, f64::min);
        let low = if low < high / 2.0 { 0.0 } else { low - (high - low).max(high * MARGIN) };
        Some(Scale::Linear { low, high: high + (high - low) * MARGIN })
    }

    pub(super) fn from_zero(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        Scale::linear(values.chain([0.0]))
    }

    fn logarithmic(values: impl Iterator<Item = f64>) -> Option<Self> {
        Axis::around(values.map(|value| value.round() as u64)).map(Scale::Logarithmic)
    }

    /// The axis of rates: logarithmic if their steps grow by a factor.
    fn of_rates(rates: &[f64]) -> Option<Self> {
        let (low, high) = (*rates.first()?, *rates.last()?);
        let middle = (rates[(rates.len() - 1) / 2] - low) / (high - low);
        match rates.len() > 2 && low >= 1.0 && high / low >= LOG_RATIO_MIN && middle <= LOG_MIDDLE_MAX {
            true => Scale::logarithmic(rates.iter().copied()),
            false => Scale::linear(rates.iter().copied()),
        }
    }

    /// How far along the axis a value stands, from 0 to 1.
    pub(super) fn position(self, value: f64) -> f64 {
        match self {
            Scale::Linear { low, high } => ((value - low) / (high - low)).clamp(0.0, 1.0),
            Scale::Logarithmic(axis) => axis.position(value.round() as u64),
        }
    }

    /// Round values with at least `distance` between them on an axis that is `length` long.
    pub(super) fn ticks(self, length: f64, distance: f64) -> Vec<f64> {
        let (low, high) = match self {
            Scale::Logarithmic(axis) => {
                return axis.ticks(length, distance).into_iter().map(|value| value as f64).collect();
            }
            Scale::Linear { low, high } => (low, high),
        };
        let least = (high - low) * distance / length;
        let decade = 10f64.powf(least.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade).into_iter().find(|&step| step >= least);
        let step = step.unwrap_or(10.0 * decade);
        let first = (low / step).ceil() as u64;
        // Products, as sums would carry their errors along.
        (first..).map(|index| index as f64 * step).take_while(|&value| value <= high).collect()
    }
}

impl Drawing for Chart {
    /// Lines and crosses with their names.
    fn legend(&self) -> Vec<Key> {
        let line = |(layer, line): (usize, &Line)| {
            Key::of(layer, swatch(line.colour, line.dashes), line.name.clone())
        };
        let mut legend: Vec<Key> = self.lines.iter().enumerate().map(line).collect();
        if let Some(name) = self.diagonal {
            legend.push(Key::shared(swatch_of("<path class=\"diagonal\" d=\"M1 6H43\"/>"), name));
        }
        if self.lines.iter().flat_map(|line| &line.points).any(|point| !point.valid) {
            let path = format!("<path class=\"cross\" d=\"{}\"/>", cross(22.0, 6.0, CROSS_REACH));
            legend.push(Key::shared(swatch_of(&path), self.void));
        }
        legend
    }

    /// The chart; `None` if there are fewer than two rates, or no value above zero.
    fn svg(&self, size: Size) -> Option<String> {
        let points = || self.lines.iter().flat_map(|line| &line.points).filter(|point| self.shows(point));
        let mut rates: Vec<f64> = points().map(|point| point.rate).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        if rates.len() < 2 {
            return None;
        }
        let values = points().map(|point| point.value);
        let most = values.clone().fold(0.0, f64::max);
        // The diagonal shows how much more was offered, and does not crush the other lines.
        let top = rates[rates.len() - 1].min(most * DIAGONAL_MAX);
        let up = match self.unit {
            Unit::Rate if self.diagonal.is_some() => Scale::from_zero(values.chain([top]))?,
            Unit::Rate => Scale::from_zero(values)?,
            Unit::Share | Unit::Time => Scale::logarithmic(values)?,
        };
        let frame = Frame { along: Scale::of_rates(&rates)?, up, top, area: Area::new(size, LEFT) };
        let height = size.height + more_height(&self.along(&frame), size);
        Some(size.picture(height, &self.label, |out| {
            self.draw_frame(&frame, out);
            // Marks say more than what is behind them, and stand in front of it.
            draw_titles(&self.titles, frame.along, &frame.area, out);
            if self.diagonal.is_some() {
                let below = rates.iter().copied().filter(|&rate| rate < frame.top);
                let end = rates.last().map(|last| last.min(frame.top));
                let path = frame.path(below.chain(end).map(|rate| (rate, rate)));
                // Writing to a string cannot fail.
                let _ = writeln!(out, "<path class=\"diagonal\" d=\"{path}\"/>");
            }
            for (layer, line) in self.lines.iter().enumerate() {
                let points: Vec<&Point> = line.points.iter().filter(|point| self.shows(point)).collect();
                let _ = writeln!(out, "<g class=\"layer-{layer}\"><title>{}</title>", escaped(&line.name));
                frame.draw(line, &points, self, out);
                out.push_str("</g>\n");
            }
            let marks: Vec<(f64, &str)> =
                self.marks.iter().map(|(rate, name)| (frame.x(*rate), name.as_str())).collect();
            frame.area.draw_marks(&marks, out);
        }))
    }

    fn data(&self) -> Table {
        let points = self.lines.iter().flat_map(|line| line.points.iter().map(move |point| (line, point)));
        let number = |value: f64| if value.is_finite() { trimmed(value, 4) } else { String::new() };
        let unit = self.unit.name();
        let end = |point: &Point, index: usize| or_empty(point.interval.map(|ends| number(ends[index])));
        let name = if self.up.is_empty() { self.along } else { self.up };
        Table::of(name, points)
            .words("line", |(line, _)| line.name.clone())
            .number(self.along, |(_, point)| number(point.rate))
            .number(format!("value{unit}"), |(_, point)| number(point.value))
            .number(format!("95 % from{unit}"), |(_, point)| end(point, 0))
            .number(format!("95 % to{unit}"), |(_, point)| end(point, 1))
            .words("counts", |(_, point)| if point.valid { "yes" } else { "no" })
            .table()
    }
}

impl Chart {
    /// Whether a point is drawn: zero has no logarithm, and a stored number may be absurd.
    fn shows(&self, point: &Point) -> bool {
        let sound = |number: f64| (0.0..=DRAWN_MAX).contains(&number);
        sound(point.rate) && sound(point.value) && (self.unit == Unit::Rate || point.value > 0.0)
    }

    /// What a mark says.
    fn told(&self, line: &Line, point: &Point) -> String {
        let value = self.unit.told(point.value);
        let value = match point.interval {
            Some([low, high]) => format!("{value} ({} to {})", self.unit.told(low), self.unit.told(high)),
            None => value,
        };
        let void = if point.valid { String::new() } else { format!(", {}", self.void) };
        escaped(&format!("{}: {value} at {}{void}", line.name, Unit::Rate.told(point.rate)))
    }

    /// Grid, numbers and names of the axes.
    fn draw_frame(&self, frame: &Frame, out: &mut String) {
        let area = &frame.area;
        for value in frame.up.ticks(area.height(), DISTANCE_UP) {
            let number = match self.unit {
                Unit::Rate => rate_tick(value),
                Unit::Share => format!("{} %", trimmed(value / PPM_PER_PERCENT, 4)),
                Unit::Time => tick(value as u64),
            };
            area.draw_row(frame.up.position(value), &typeset(&number), out);
        }
        for rate in frame.along.ticks(area.width(), DISTANCE_ALONG) {
            area.draw_column(frame.along.position(rate), &typeset(&rate_tick(rate)), out);
        }
        area.draw_axes(Some(self.up), &self.along(frame), out);
    }

    fn along(&self, frame: &Frame) -> String {
        match frame.along {
            Scale::Linear { .. } => self.along.to_owned(),
            Scale::Logarithmic(_) => format!("{}, logarithmic scale", self.along),
        }
    }
}

/// What a reader is told of each rate, from halfway to the one before to halfway to the next.
pub(super) fn draw_titles(titles: &[(f64, String)], along: Scale, area: &Area, out: &mut String) {
    let mut titles: Vec<(f64, &str)> =
        titles.iter().map(|(rate, title)| (area.x(along.position(*rate)), title.as_str())).collect();
    titles.sort_by(|left, right| left.0.total_cmp(&right.0));
    let between = |left: usize| match (titles.get(left), titles.get(left + 1)) {
        (Some((left, _)), Some((right, _))) => (left + right) / 2.0,
        (Some(_), None) | (None, _) => area.right,
    };
    let mut from = area.left;
    for (index, (_, title)) in titles.iter().enumerate() {
        let to = between(index);
        area.draw_title(from, to, title, out);
        from = to;
    }
}

/// Axes and the room to draw in.
struct Frame {
    along: Scale,
    up: Scale,
    /// Where the diagonal ends.
    top: f64,
    area: Area,
}

impl Frame {
    fn x(&self, rate: f64) -> f64 {
        self.area.x(self.along.position(rate))
    }

    fn y(&self, value: f64) -> f64 {
        self.area.y(self.up.position(value))
    }

    fn path(&self, points: impl Iterator<Item = (f64, f64)>) -> String {
        let mut path = String::new();
        for (rate, value) in points {
            let letter = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{:.1} {:.1}", self.x(rate), self.y(value));
        }
        path
    }

    /// A dot for each value with its interval, a line through the middle one of each rate, and crosses for steps that
    /// do not count.
    fn draw(&self, line: &Line, points: &[&Point], chart: &Chart, out: &mut String) {
        let class = class_of(line.colour);
        let mut counted: Vec<&Point> = points.iter().copied().filter(|point| point.valid).collect();
        counted
            .sort_by(|left, right| left.rate.total_cmp(&right.rate).then(left.value.total_cmp(&right.value)));
        let middles = counted.chunk_by(|left, right| left.rate == right.rate).map(|trials| {
            let middle = trials[(trials.len() - 1) / 2];
            (middle.rate, middle.value)
        });
        let path = self.path(middles);
        if !path.is_empty() {
            let _ = writeln!(out, "<path class=\"{class}\" {} d=\"{path}\"/>", dashes_of(line.dashes));
        }
        // Dots at zero would hide each other.
        for point in &counted {
            let Some([low, high]) = point.interval.map(|ends| ends.map(|end| self.y(end))) else { continue };
            let (x, title) = (self.x(point.rate), chart.told(line, point));
            let _ = writeln!(
                out,
                "<path class=\"whisker {class}\" d=\"M{x:.1} {low:.1}V{high:.1}\"><title>{title}</title></path>"
            );
        }
        let has_dots = !chart.is_dense || counted.len() <= DOTS_MAX;
        for point in counted.iter().filter(|point| point.value > 0.0 && has_dots) {
            let (x, y) = (self.x(point.rate), self.y(point.value));
            let title = chart.told(line, point);
            let _ = writeln!(
                out,
                "<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"><title>{title}</title></circle>"
            );
        }
        for point in points.iter().filter(|point| !point.valid) {
            let cross = cross(self.x(point.rate), self.y(point.value), CROSS_REACH);
            let title = chart.told(line, point);
            let _ =
                writeln!(out, "<path class=\"cross {class}\" d=\"{cross}\"><title>{title}</title></path>");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::assert_titled;
    use super::super::plot::{NARROW, WIDE};
    use super::*;

    fn chart(unit: Unit, points: &[(f64, f64, bool)]) -> Chart {
        let points = points.iter().map(|&(rate, value, valid)| Point { rate, value, valid, interval: None });
        let points = points.collect();
        Chart {
            label: "label".into(),
            up: "up",
            along: "along",
            unit,
            diagonal: (unit == Unit::Rate).then_some("all"),
            void: "void",
            marks: vec![(2000.0, "capacity".to_owned())],
            titles: Vec::new(),
            is_dense: false,
            lines: vec![Line { name: "line".to_owned(), colour: 0, dashes: 0, points }],
        }
    }

    #[test]
    fn interval_is_a_whisker_and_all_is_in_the_data() {
        let mut chart = chart(Unit::Time, &[(1e3, 1e6, true), (2e3, 2e6, false)]);
        chart.lines[0].points[0].interval = Some([9e5, 1.2e6]);
        for svg in drawn(&chart) {
            assert_titled(&svg);
            assert_eq!(svg.matches("class=\"whisker ").count(), 1);
            assert!(svg.contains("line: 1.00 ms (900.0 us to 1.20 ms) at 1,000<"), "{svg}");
            assert!(svg.contains("line: 2.00 ms at 2,000, void<"), "{svg}");
        }
        let rows: Vec<Vec<String>> = chart.data().rows.into_iter().map(|row| row.cells).collect();
        assert_eq!(rows[0], ["line", "1000", "1000000", "900000", "1200000", "yes"]);
        assert_eq!(rows[1], ["line", "2000", "2000000", "", "", "no"]);
    }

    /// Both sizes; panics if a coordinate is no number or lies outside.
    fn drawn(chart: &Chart) -> [String; 2] {
        [WIDE, NARROW].map(|size| {
            let svg = chart.svg(size).unwrap();
            for path in svg.split(" d=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
                for number in path.split(['M', 'L', 'H', 'V', ' ']).filter(|number| !number.is_empty()) {
                    let number: f64 = number.parse().unwrap();
                    assert!((0.0..=size.width).contains(&number), "{path}");
                }
            }
            svg
        })
    }

    #[test]
    fn one_rate_or_nothing_has_no_chart() {
        for points in
            [&[][..], &[(1.0, 1.0, true)], &[(5.0, 1.0, true), (5.0, 2.0, true)], &[(0.0, 1.0, true)]]
        {
            assert!(chart(Unit::Rate, points).svg(WIDE).is_none(), "{points:?}");
        }
        assert!(chart(Unit::Share, &[(1.0, 0.0, true), (2.0, 0.0, true)]).svg(WIDE).is_none());
    }

    #[test]
    fn invalid_step_is_a_cross_and_not_on_the_line() {
        let chart = chart(Unit::Rate, &[(1e3, 1e3, true), (2e3, 5e2, false), (3e3, 2e3, true)]);
        for svg in drawn(&chart) {
            assert_eq!(svg.matches("class=\"cross ").count(), 1);
            assert_eq!(svg.matches("class=\"dot ").count(), 2);
            let line = svg.lines().find(|line| line.starts_with("<path class=\"series series-0\"")).unwrap();
            assert_eq!(line.matches('L').count(), 1, "{line}");
        }
    }

    #[test]
    fn dots_of_few_steps_are_drawn_beside_a_dense_line_and_titles_stand_in_columns() {
        let many: Vec<(f64, f64, bool)> = (1..=80).map(|step| (f64::from(step) * 100.0, 5e6, true)).collect();
        let mut dense = chart(Unit::Time, &many);
        dense.is_dense = true;
        dense.lines.push(chart(Unit::Time, &[(2e3, 1e6, true), (4e3, 2e6, true)]).lines.remove(0));
        dense.titles = vec![(4e3, "later <b>".to_owned()), (2e3, "first".to_owned())];
        dense.marks.push((2_000.0, "<mark>".to_owned()));
        for svg in drawn(&dense) {
            assert_eq!(svg.matches("class=\"dot ").count(), 2);
            let titles: Vec<&str> =
                svg.split("<title>").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
            assert_eq!(titles[..2], ["first", "later &lt;b&gt;"]);
            // Each line, and what dots there are.
            assert_eq!(titles[2..], ["line", "line", "line: 1.00 ms at 2,000", "line: 2.00 ms at 4,000"]);
            assert_titled(&svg);
            assert!(svg.contains(">&lt;mark&gt;</text>") && !svg.contains("<b>"));
            // The second name stands below the first.
            let names: Vec<&str> =
                svg.split("class=\"name\"").skip(1).map(|rest| rest.split(" y=\"").nth(1).unwrap()).collect();
            assert!(names[0].starts_with("40.0") && names[1].starts_with("57.0"), "{names:?}");
        }
    }

    #[test]
    fn diagonal_is_cut_where_it_would_crush_the_lines() {
        let saturated = chart(Unit::Rate, &[(1e3, 1e3, true), (2e3, 1e3, true), (9e3, 1e3, true)]);
        for svg in drawn(&saturated) {
            let diagonal = svg.lines().find(|line| line.starts_with("<path class=\"diagonal\"")).unwrap();
            // From the first rate to the upper edge, which lies before the second.
            assert_eq!(diagonal.matches('L').count(), 1, "{diagonal}");
            assert!(svg.contains(">1\u{a0}k</text>"));
        }
    }

    #[test]
    fn shares_are_percent_and_zeros_are_not_drawn() {
        let shares = chart(Unit::Share, &[(1e3, 0.0, true), (2e3, 100.0, true), (3e3, 200_000.0, true)]);
        for svg in drawn(&shares) {
            assert_eq!(svg.matches("class=\"dot ").count(), 2);
            assert!(svg.contains(">0.1\u{a0}%</text>") && svg.contains(">10\u{a0}%</text>"), "{svg}");
        }
    }

    #[test]
    fn line_goes_through_the_middle_of_trials_at_one_rate() {
        let once = chart(
            Unit::Time,
            &[(1e3, 100.0, true), (2e3, 300.0, true), (2e3, 50.0, true), (2e3, 90.0, true)],
        );
        let [svg, _] = drawn(&once);
        let line = svg.lines().find(|line| line.starts_with("<path class=\"series")).unwrap();
        let end = line.split('L').nth(1).unwrap().split('"').next().unwrap();
        let (x, y) = end.split_once(' ').unwrap();
        assert!(svg.contains(&format!("cx=\"{x}\" cy=\"{y}\"")), "{svg}");
        assert_eq!(line.matches('L').count(), 1);
    }

    #[test]
    fn rates_that_grow_by_a_factor_have_a_logarithmic_axis() {
        let of = |rates: &[f64]| matches!(Scale::of_rates(rates), Some(Scale::Logarithmic(_)));
        let geometric: Vec<f64> = (0..12).map(|index| 1000.0 * 1.5f64.powi(index)).collect();
        let staircase: Vec<f64> = (1..=80).map(|index| 100.0 * f64::from(index)).collect();
        assert!(of(&geometric) && of(&[1e3, 2e3, 4e3, 8e3]));
        assert!(!of(&staircase) && !of(&[1e3, 4e3, 6e3, 9e3]) && !of(&[100.0, 110.0]) && !of(&[1.0, 100.0]));
    }

    #[test]
    fn ticks_keep_their_distance() {
        for (low, high) in [(0.0, 1.0), (0.0, 8000.0), (110_000.0, 125_000.0), (0.3, 0.9), (1.0, 3e9)] {
            let scale = Scale::linear([low, high].into_iter()).unwrap();
            for length in [320.0, 780.0] {
                let ticks = scale.ticks(length, DISTANCE_ALONG);
                assert!((2..=16).contains(&ticks.len()), "{low} to {high}: {ticks:?}");
                for pair in ticks.windows(2) {
                    let distance = (scale.position(pair[1]) - scale.position(pair[0])) * length;
                    assert!(distance >= DISTANCE_ALONG - 0.01, "{low} to {high}: {ticks:?}");
                }
            }
        }
    }

    #[test]
    fn numbers_on_axes_have_no_idle_decimals() {
        for (rate, expected) in
            [(0.0, "0"), (0.5, "0.5"), (500.0, "500"), (1500.0, "1.5 k"), (2e4, "20 k"), (2.5e6, "2.5 M")]
        {
            assert_eq!(rate_tick(rate), expected);
        }
    }
}
