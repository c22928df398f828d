//! Figures of several kinds for each name, as marks on a line for each: inline SVG on a logarithmic axis.
//!
//! A figure is the median of trials with its interval; trials are small dots, and crosses if they do not count. Like
//! [`super::plot`], whose sizes, colours and axis it shares: no script and no identifiers. Marks differ in shape too,
//! so that they can be told apart without colours, and say their figures when they are pointed at. Texts are escaped
//! here.

use std::fmt::Write as _;

use super::page::escaped;
use super::plot::{Area, Axis, BOTTOM, RIGHT, Size, class_of, cross, more_height, swatch_of};
use super::{Drawing, Key, Table, or_empty};
use crate::stats::bootstrap::Estimate;
use crate::units::{plural, rate, rate_tick, tick, time, typeset};

/// Height of a name's line, in SVG units.
const LINE: f64 = 27.0;
const TOP: f64 = 10.0;
/// Room for the names.
const LEFT: f64 = 160.0;
const TICK_DISTANCE_MIN: f64 = 50.0;
/// From the marks of a series to those of the next one, upwards.
const SERIES_DISTANCE: f64 = 5.0;
/// The reach of the marks of single trials, of crosses, and of the ends of intervals.
const DOT: f64 = 1.8;
const CROSS: f64 = 3.5;
const CAP: f64 = 3.0;
/// More trials than these hide each other.
const TRIALS_MAX: usize = 12;

/// The shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    Diamond,
    Triangle,
}

impl Marker {
    pub(super) fn draw(self, colour: usize, x: f64, y: f64) -> String {
        let class = class_of(colour);
        let polygon = |corners: &[(f64, f64)]| {
            let corner = |(right, down): &(f64, f64)| format!("{:.1},{:.1}", x + right, y + down);
            let points = corners.iter().map(corner).collect::<Vec<_>>().join(" ");
            format!("<polygon class=\"dot {class}\" points=\"{points}\"/>")
        };
        match self {
            Marker::Circle => format!("<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>"),
            Marker::Square => format!(
                "<rect class=\"dot {class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"9\" height=\"9\"/>",
                x - 4.5,
                y - 4.5
            ),
            Marker::Diamond => polygon(&[(0.0, -5.5), (5.5, 0.0), (0.0, 5.5), (-5.5, 0.0)]),
            Marker::Triangle => polygon(&[(0.0, -5.5), (5.5, 4.5), (-5.5, 4.5)]),
        }
    }

    /// The mark for a legend.
    pub(crate) fn swatch(self, colour: usize) -> String {
        swatch_of(&self.draw(colour, 22.0, 6.0))
    }
}

/// What is counted along the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// Events a second.
    Rate,
    /// Nanoseconds.
    Time,
}

impl Count {
    fn told(self, value: f64) -> String {
        match self {
            Count::Rate => rate(value),
            Count::Time => time(value.round() as u64),
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Count::Rate => "per second",
            Count::Time => "ns",
        }
    }
}

/// A figure of trials.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Value {
    /// The median of those that count; `None`: none does.
    pub(crate) median: Option<f64>,
    /// The interval in which it lies with 95 %; `None`: nobody knows.
    pub(crate) interval: Option<[f64; 2]>,
    /// Trials that count.
    pub(crate) counted: Vec<f64>,
    /// Trials that do not.
    pub(crate) void: Vec<f64>,
}

impl Value {
    /// Of trials that count, and others; `None` without any.
    pub(crate) fn of(counted: Vec<f64>, void: Vec<f64>) -> Option<Self> {
        let estimate = Estimate::of(counted.iter().copied());
        let (median, interval) = estimate.map_or((None, None), |found| (Some(found.median), found.interval));
        (!counted.is_empty() || !void.is_empty()).then_some(Value { median, interval, counted, void })
    }

    /// One that is known without trials, with its interval if there is one.
    pub(crate) fn alone(median: f64, interval: Option<[f64; 2]>) -> Self {
        Value { median: Some(median), interval, ..Value::default() }
    }

    fn all(&self) -> impl Iterator<Item = f64> + '_ {
        self.counted
            .iter()
            .chain(&self.void)
            .copied()
            .chain(self.median)
            .chain(self.interval.into_iter().flatten())
    }

    /// Its figures in half a sentence.
    fn told(&self, count: Count) -> String {
        let figure = self.median.map_or_else(
            || "no trial counts".to_owned(),
            |median| match self.interval {
                Some([low, high]) => {
                    format!("{} ({} to {})", count.told(median), count.told(low), count.told(high))
                }
                None => count.told(median),
            },
        );
        let trials = (self.counted.len() + self.void.len()) as u64;
        let void = match self.void.len() {
            0 => String::new(),
            void => format!(", {void} of which do not count"),
        };
        if trials == 0 { figure } else { format!("{figure}, in {}{void}", plural(trials, "trial")) }
    }
}

/// A figure for each name.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// What the legend calls it.
    pub(crate) name: String,
    pub(crate) marker: Marker,
    pub(crate) colour: usize,
    pub(crate) values: Vec<Option<Value>>,
}

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct Dots {
    /// What it shows, for those who do not see it; its figures follow.
    pub(crate) label: String,
    /// What the axis counts, in words and as numbers.
    pub(crate) along: &'static str,
    pub(crate) count: Count,
    /// From the top down.
    pub(crate) names: Vec<String>,
    pub(crate) series: Vec<Series>,
}

/// What an axis of integers can show.
fn whole(value: f64) -> u64 {
    value.round() as u64
}

impl Dots {
    /// What there is to be drawn, with the numbers of its series and its name.
    fn values(&self) -> impl Iterator<Item = (usize, usize, &Value)> {
        self.series.iter().enumerate().flat_map(|(layer, series)| {
            series
                .values
                .iter()
                .enumerate()
                .filter_map(move |(index, value)| Some((layer, index, value.as_ref()?)))
        })
    }

    fn told(&self, layer: usize, index: usize, value: &Value) -> String {
        let name = self.names.get(index).map_or("", String::as_str);
        format!("{name}, {}: {}", self.series[layer].name, value.told(self.count))
    }

    /// Marks of a series on a line of this height.
    fn draw(&self, layer: usize, index: usize, value: &Value, place: impl Fn(f64) -> f64, y: f64) -> String {
        let Series { marker, colour, .. } = self.series[layer];
        let class = class_of(colour);
        let title = escaped(&self.told(layer, index, value));
        let mut out = format!("<g class=\"layer-{layer}\"><title>{title}</title>");
        if value.counted.len() <= TRIALS_MAX {
            for trial in &value.counted {
                let x = place(*trial);
                // Writing to a string cannot fail.
                let _ =
                    write!(out, "<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{DOT}\"/>");
            }
        }
        for trial in &value.void {
            let path = cross(place(*trial), y, CROSS);
            let _ = write!(out, "<path class=\"cross {class}\" d=\"{path}\"/>");
        }
        if let Some([low, high]) = value.interval.map(|ends| ends.map(&place)) {
            let (top, bottom) = (y - CAP, y + CAP);
            let _ = write!(
                out,
                "<path class=\"whisker {class}\" d=\"M{low:.1} {top:.1}V{bottom:.1}M{low:.1} {y:.1}\
                 H{high:.1}M{high:.1} {top:.1}V{bottom:.1}\"/>"
            );
        }
        if let Some(median) = value.median {
            out += &marker.draw(colour, place(median), y);
        }
        out + "</g>\n"
    }
}

impl Drawing for Dots {
    /// What there is of it, with the marks of each.
    fn legend(&self) -> Vec<Key> {
        let series = self.series.iter().enumerate();
        let series = series.filter(|(_, series)| series.values.iter().any(Option::is_some));
        let mut legend: Vec<Key> = series
            .map(|(layer, series)| Key::of(layer, series.marker.swatch(series.colour), series.name.clone()))
            .collect();
        if self.values().any(|(.., value)| !value.void.is_empty()) {
            let path = format!("<path class=\"cross\" d=\"{}\"/>", cross(22.0, 6.0, CROSS));
            legend.push(Key::shared(swatch_of(&path), "a trial that does not count"));
        }
        legend
    }

    /// The picture; `None` if there are no values.
    fn svg(&self, size: Size) -> Option<String> {
        let all = self.values().flat_map(|(.., value)| value.all()).filter(|value| value.is_finite());
        let axis = Axis::around(all.map(whole))?;
        let bottom = TOP + LINE * self.names.len() as f64;
        let area = Area { left: LEFT, right: size.width - RIGHT, top: TOP, bottom };
        let said: Vec<String> =
            self.values().map(|(layer, index, value)| self.told(layer, index, value)).collect();
        let label = format!("{}. {}", self.label, said.join("; "));
        let along = format!("{}, logarithmic scale", self.along);
        Some(size.picture(bottom + BOTTOM + more_height(&along, size), &label, |out| {
            for value in axis.ticks(area.width(), TICK_DISTANCE_MIN) {
                let number = match self.count {
                    Count::Rate => rate_tick(value as f64),
                    Count::Time => tick(value),
                };
                area.draw_column(axis.position(value), &typeset(&number), out);
            }
            area.draw_axes(None, &along, out);
            for (index, name) in self.names.iter().enumerate() {
                let y = TOP + LINE * (index as f64 + 0.5);
                let _ = writeln!(
                    out,
                    "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/>\
                     <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                    area.right,
                    LEFT - 8.0,
                    y + 4.5,
                    escaped(name)
                );
                let middle = (self.series.len() as f64 - 1.0) / 2.0;
                for (layer, _, value) in self.values().filter(|(_, of, _)| *of == index) {
                    let y = y + (layer as f64 - middle) * SERIES_DISTANCE;
                    *out += &self.draw(layer, index, value, |value| area.x(axis.position(whole(value))), y);
                }
            }
        }))
    }

    fn data(&self) -> Table {
        let plain = |value: Option<f64>| or_empty(value.map(|value| format!("{value:.0}")));
        let unit = self.count.unit();
        Table::of(self.along, self.values())
            .words("what", |(_, index, _)| self.names.get(*index).cloned().unwrap_or_default())
            .words("series", |(layer, ..)| self.series[*layer].name.clone())
            .number(format!("median, {unit}"), |(.., value)| plain(value.median))
            .number(format!("95 % from, {unit}"), |(.., value)| plain(value.interval.map(|ends| ends[0])))
            .number(format!("95 % to, {unit}"), |(.., value)| plain(value.interval.map(|ends| ends[1])))
            .number("trials that count", |(.., value)| value.counted.len())
            .number("trials that do not", |(.., value)| value.void.len())
            .table()
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::assert_titled;
    use super::super::plot::{NARROW, WIDE};
    use super::*;

    fn dots(values: &[Option<u64>]) -> Dots {
        let values = values.iter().map(|value| value.map(|value| Value::alone(value as f64, None))).collect();
        let series = Series { name: "<series>".to_owned(), marker: Marker::Circle, colour: 1, values };
        let names = ["<a>", "b", "c"].map(str::to_owned).to_vec();
        Dots { label: "label".to_owned(), along: "along", count: Count::Rate, names, series: vec![series] }
    }

    #[test]
    fn each_value_has_a_mark_and_none_is_outside() {
        for size in [WIDE, NARROW] {
            let svg = dots(&[Some(1_000), None, Some(50_000_000)]).svg(size).unwrap();
            assert_eq!(svg.matches("class=\"dot series series-1\"").count(), 2);
            assert_eq!(svg.matches("class=\"name\"").count(), 3);
            assert_titled(&svg);
            assert!(
                svg.contains("<title>&lt;a&gt;, &lt;series&gt;: 1,000</title>") && !svg.contains("<a>"),
                "{svg}"
            );
            for path in svg.split(" d=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
                for number in path.split(['M', 'L', 'H', 'V', ' ']).filter(|number| !number.is_empty()) {
                    let number: f64 = number.parse().unwrap();
                    assert!((0.0..=size.width).contains(&number), "{path}");
                }
            }
        }
    }

    #[test]
    fn trials_are_dots_and_crosses_and_their_median_has_an_interval() {
        let mut dots = dots(&[None, None, None]);
        dots.series[0].values[1] = Value::of(vec![1_000.0, 2_000.0, 3_000.0], vec![9_000.0]);
        dots.series[0].values[2] = Value::of(Vec::new(), vec![500.0]);
        let svg = dots.svg(WIDE).unwrap();
        assert_titled(&svg);
        assert_eq!(svg.matches("<circle").count(), 3 + 1);
        assert_eq!(svg.matches("class=\"cross ").count(), 2);
        assert_eq!(svg.matches("class=\"whisker ").count(), 1);
        assert!(
            svg.contains("b, &lt;series&gt;: 2,000 (1,000 to 3,000), in 4 trials, 1 of which do not count<"),
            "{svg}"
        );
        assert!(svg.contains("c, &lt;series&gt;: no trial counts, in 1 trial"), "{svg}");
        assert_eq!(dots.legend().len(), 2);
        assert_eq!(dots.data().rows[0].cells, ["b", "<series>", "2000", "1000", "3000", "3", "1"]);
        assert!(Value::of(Vec::new(), Vec::new()).is_none());
    }

    #[test]
    fn nothing_has_no_picture() {
        assert!(dots(&[None, None, None]).svg(WIDE).is_none());
    }

    #[test]
    fn axis_counts_what_it_is_told_to() {
        let mut dots = dots(&[Some(1_000), Some(1_000_000)]);
        assert!(dots.svg(WIDE).unwrap().contains(">10\u{a0}k<"));
        dots.count = Count::Time;
        assert!(dots.svg(WIDE).unwrap().contains(">10\u{a0}\u{b5}s<"));
    }

    #[test]
    fn shapes_differ() {
        use Marker::{Circle, Diamond, Square, Triangle};
        let swatches = [Circle, Square, Diamond, Triangle].map(|marker| marker.swatch(0));
        for (element, swatch) in ["<circle", "<rect", "<polygon", "<polygon"].into_iter().zip(&swatches) {
            assert!(swatch.contains(element), "{swatch}");
        }
        assert_ne!(swatches[2], swatches[3]);
    }
}
