//! Cumulative distributions of times as inline SVG, and what all plots share: sizes, colours, logarithmic axes.
//!
//! Colours and strokes come from the page's style sheet by class; a dash pattern goes with each colour, so that the
//! lines can be told apart without it. There are no identifiers: several plots can share a page. Text from a record
//! does not get here.

use std::fmt::Write as _;

use crate::load::Histogram;
use crate::stats::Sample;
use crate::units::{tick, typeset};

/// Colours in the style sheet, `series-0` and so on.
const COLOUR_COUNT: usize = 6;
/// Lengths of strokes and gaps. Their number has no divisor in common with that of the colours, so 30 lines differ.
const DASHES: [&str; 5] = ["none", "8 4", "2 3", "10 3 2 3", "16 5"];
/// Shares of the values that the vertical axis names, in percent.
const SHARES: [u32; 6] = [0, 25, 50, 75, 90, 99];
/// Round values in each decade, in tenths of its start; from the densest to the sparsest.
const STEPS: [&[u64]; 5] = [
    &[10, 11, 12, 14, 16, 18, 20, 22, 25, 30, 35, 40, 45, 50, 55, 60, 70, 80, 90],
    &[10, 12, 15, 20, 25, 30, 40, 50, 60, 80],
    &[10, 15, 20, 30, 50, 70],
    &[10, 20, 30, 50],
    &[10, 20, 50],
];
/// Least distance between the numbers on the horizontal axis, in SVG units.
const TICK_DISTANCE_MIN: f64 = 46.0;
/// The shortest axis: from some time to this many times it.
const SPAN_MIN: f64 = 2.0;
/// What an axis extends beyond the values, as a share of its length.
const MARGIN: f64 = 0.03;

/// The size of a plot, in SVG units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// The class that the style sheet knows it by.
    pub(crate) class: &'static str,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// For a wide window.
pub(crate) const WIDE: Size = Size { class: "wide", width: 860.0, height: 380.0 };
/// For a phone: the same text is larger beside a smaller plot.
pub(crate) const NARROW: Size = Size { class: "narrow", width: 400.0, height: 320.0 };

/// What stands around the axes has this much room. On the left it depends on the numbers.
pub(crate) const RIGHT: f64 = 26.0;
pub(crate) const TOP: f64 = 28.0;
pub(crate) const BOTTOM: f64 = 46.0;
const LEFT: f64 = 46.0;

/// What a plot of distributions says. None of it comes from a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    /// What the plot shows, for those who do not see it.
    pub(crate) label: &'static str,
    /// What the vertical axis counts.
    pub(crate) share_of: &'static str,
    /// What the horizontal axis measures.
    pub(crate) time: &'static str,
}

/// Times in nanoseconds in ascending order, each with how often it came, at least once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Distribution(Vec<(u64, u64)>);

impl From<&Sample<u64>> for Distribution {
    fn from(sample: &Sample<u64>) -> Self {
        let runs = sample.values().chunk_by(|left, right| left == right);
        Distribution(runs.map(|run| (run[0], run.len() as u64)).collect())
    }
}

impl From<&Histogram> for Distribution {
    /// Times below zero, which clocks that disagree make, stand as zero.
    fn from(histogram: &Histogram) -> Self {
        let pairs = histogram.pairs().iter();
        Distribution(pairs.map(|&(value, count)| (u64::try_from(value).unwrap_or(0), count)).collect())
    }
}

/// Distributions with their names, each drawn as the series of its position.
#[derive(Clone, Debug)]
pub(crate) struct Cumulative {
    pub(crate) words: Words,
    pub(crate) series: Vec<(String, Distribution)>,
}

impl Cumulative {
    /// The names of distributions that are not empty.
    pub(super) fn legend(&self) -> Vec<(String, String)> {
        let series =
            self.series.iter().enumerate().filter(|(_, (_, distribution))| !distribution.0.is_empty());
        series.map(|(index, (name, _))| (swatch(index), name.clone())).collect()
    }

    /// The plot; `None` if there are no values.
    pub(super) fn svg(&self, size: Size) -> Option<String> {
        let values =
            self.series.iter().flat_map(|(_, distribution)| distribution.0.iter().map(|&(ns, _)| ns));
        let frame = Frame { axis: Axis::around(values)?, size, words: self.words };
        let label = self.words.label;
        let (width, height, class) = (size.width, size.height, size.class);
        let mut out = format!(
            "<svg class=\"plot {class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n"
        );
        frame.draw(&mut out);
        for (index, (_, distribution)) in self.series.iter().enumerate() {
            if let Some(path) = frame.steps(distribution) {
                // Writing to a string cannot fail.
                let _ =
                    writeln!(out, "<path class=\"{}\" {} d=\"{path}\"/>", class_of(index), dashes_of(index));
            }
        }
        out.push_str("</svg>\n");
        Some(out)
    }
}

/// A piece of the line of a series, for a legend.
fn swatch(series: usize) -> String {
    swatch_of(&format!("class=\"{}\" {} d=\"M1 6H43\"", class_of(series), dashes_of(series)))
}

/// A picture for a legend: the path with these attributes.
pub(super) fn swatch_of(path: &str) -> String {
    format!("<svg class=\"swatch\" viewBox=\"0 0 44 12\" aria-hidden=\"true\"><path {path}/></svg>")
}

pub(crate) fn class_of(series: usize) -> String {
    format!("series series-{}", series % COLOUR_COUNT)
}

pub(crate) fn dashes_of(series: usize) -> String {
    format!("stroke-dasharray=\"{}\"", DASHES[series % DASHES.len()])
}

/// The rectangle that a plot's axes enclose, in SVG units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Area {
    /// The area of a plot of which so much is left of the vertical axis.
    pub(crate) fn new(size: Size, left: f64) -> Self {
        Area { left, right: size.width - RIGHT, top: TOP, bottom: size.height - BOTTOM }
    }

    /// A line of the grid at this height, and its number beside the vertical axis. Texts are markup, here and below.
    pub(crate) fn draw_row(&self, y: f64, number: &str, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{} {y:.1}H{}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{number}</text>",
            self.left,
            self.right,
            self.left - 6.0,
            y + 4.0
        );
    }

    /// A line of the grid so far along, and its number below the horizontal axis.
    pub(crate) fn draw_column(&self, x: f64, number: &str, out: &mut String) {
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {}V{:.1}\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{number}</text>",
            self.top,
            self.bottom + 4.0,
            self.bottom + 18.0
        );
    }

    /// The axes and what they count.
    pub(crate) fn draw_axes(&self, up: &str, along: &str, out: &mut String) {
        let Area { left, right, top, bottom } = self;
        let _ = writeln!(
            out,
            "<path class=\"axis\" d=\"M{left} {top}V{bottom}H{right}\"/>\n\
             <text x=\"0\" y=\"14\">{up}</text>\n\
             <text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">{along}</text>",
            bottom + BOTTOM - 8.0
        );
    }
}

/// A logarithmic axis, of nanoseconds or of another integer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    /// The logarithm of where it starts.
    low: f64,
    /// The logarithm of where it ends.
    high: f64,
}

impl Axis {
    /// An axis with room for all values. Zero has no logarithm and no say.
    pub(crate) fn around(values: impl Iterator<Item = u64>) -> Option<Self> {
        let (mut low, mut high) = (u64::MAX, None);
        for value in values {
            high = high.max(Some(value));
            low = if value > 0 { low.min(value) } else { low };
        }
        let high = high?.max(1);
        let (low, high) = ((low.min(high) as f64).log10(), (high as f64).log10());
        let widening = (SPAN_MIN.log10() - (high - low)).max(0.0) / 2.0;
        let margin = (high - low + 2.0 * widening) * MARGIN;
        Some(Axis { low: low - widening - margin, high: high + widening + margin })
    }

    /// How far along the axis a value stands, from 0 to 1; zero stands at the start.
    pub(crate) fn position(self, ns: u64) -> f64 {
        (((ns as f64).log10() - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// As many round values as fit on an axis that is `length` long, with `distance` between them.
    pub(crate) fn ticks(self, length: f64, distance: f64) -> Vec<u64> {
        let visible = |ns: &u64| (self.low..=self.high).contains(&(*ns as f64).log10());
        let fits = |ticks: &Vec<u64>| {
            ticks
                .windows(2)
                .all(|pair| (self.position(pair[1]) - self.position(pair[0])) * length >= distance)
        };
        let decades = (0..=19).map(|exponent| 10_u64.pow(exponent));
        let by_steps = STEPS.iter().map(|steps| {
            let values =
                decades.clone().flat_map(|decade| steps.iter().map(move |step| tenths(decade, *step)));
            values.flatten().filter(visible).collect()
        });
        let by_decades = (1..).map(|stride| decades.clone().filter(visible).step_by(stride).collect());
        by_steps.chain(by_decades).find(fits).unwrap_or_default()
    }
}

/// So many tenths of `value`, if that is an integer and fits.
fn tenths(value: u64, count: u64) -> Option<u64> {
    let product = value.checked_mul(count)?;
    (product % 10 == 0).then_some(product / 10)
}

/// An axis and the room to draw in.
#[derive(Clone, Copy, Debug)]
struct Frame {
    axis: Axis,
    size: Size,
    words: Words,
}

impl Frame {
    fn inner_width(&self) -> f64 {
        self.size.width - LEFT - RIGHT
    }

    fn x(&self, ns: u64) -> f64 {
        LEFT + self.axis.position(ns) * self.inner_width()
    }

    fn y(&self, share: f64) -> f64 {
        self.size.height - BOTTOM - share * (self.size.height - TOP - BOTTOM)
    }

    /// Grid, numbers and names of the axes.
    fn draw(&self, out: &mut String) {
        let area = Area::new(self.size, LEFT);
        for share in SHARES {
            area.draw_row(self.y(f64::from(share) / 100.0), &format!("{share}\u{a0}%"), out);
        }
        for ns in self.axis.ticks(self.inner_width(), TICK_DISTANCE_MIN) {
            area.draw_column(self.x(ns), &typeset(&tick(ns)), out);
        }
        let up = format!("share of {} that took at most this long", self.words.share_of);
        area.draw_axes(&up, &format!("{}, logarithmic scale", self.words.time), out);
    }

    /// The path of the steps: up by one n-th at each of the n values. Values that fall on the same half unit make one
    /// step, so its length is bounded by the plot's width, however many values there are.
    fn steps(&self, distribution: &Distribution) -> Option<String> {
        let pairs = &distribution.0;
        let total: f64 = pairs.iter().map(|&(_, count)| count as f64).sum();
        let column = |ns: u64| (self.x(ns) * 2.0).round();
        let mut path = format!("M{:.1} {:.1}", column(pairs.first()?.0) / 2.0, self.y(0.0));
        let mut risen = 0.0;
        for group in pairs.chunk_by(|left, right| column(left.0) == column(right.0)) {
            if risen > 0.0 {
                let _ = write!(path, "H{:.1}", column(group[0].0) / 2.0);
            }
            risen += group.iter().map(|&(_, count)| count as f64).sum::<f64>();
            let _ = write!(path, "V{:.1}", self.y(risen / total));
        }
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Words = Words { label: "label", share_of: "exchanges", time: "whole exchange" };

    fn sample(values: &[u64]) -> Distribution {
        Distribution::from(&Sample::from(values))
    }

    fn plot(samples: &[Distribution], size: Size) -> Option<String> {
        let series = samples.iter().map(|sample| (String::new(), sample.clone())).collect();
        Cumulative { words: WORDS, series }.svg(size)
    }

    /// The plot in both sizes; panics if a coordinate is no number or lies outside.
    fn plots(samples: &[Distribution]) -> [String; 2] {
        [WIDE, NARROW].map(|size| {
            let svg = plot(samples, size).unwrap();
            for path in svg.split(" d=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
                for number in path.split(['M', 'H', 'V', ' ']).filter(|number| !number.is_empty()) {
                    let number: f64 = number.parse().unwrap();
                    assert!((0.0..=size.width).contains(&number), "{path}");
                }
            }
            svg
        })
    }

    fn series_count(svg: &str) -> usize {
        svg.matches("class=\"series ").count()
    }

    #[test]
    fn nothing_has_no_plot() {
        assert!(plot(&[], WIDE).is_none());
        assert!(plot(&[sample(&[]), sample(&[])], WIDE).is_none());
    }

    #[test]
    fn empty_series_leaves_the_colours_of_the_others_alone() {
        let [svg, _] = plots(&[sample(&[]), sample(&[5])]);
        assert_eq!(series_count(&svg), 1);
        assert!(svg.contains("series-1"));
    }

    #[test]
    fn one_value_equal_values_and_extreme_values_are_drawn() {
        for values in [&[1][..], &[0], &[0, 0], &[7; 50], &[0, 60_000], &[0, 1, u64::MAX]] {
            for svg in plots(&[sample(values)]) {
                assert_eq!(series_count(&svg), 1, "{values:?}");
                assert!(
                    svg.matches("text-anchor=\"middle\"").count() >= 1,
                    "{values:?} have no tick:\n{svg}"
                );
            }
        }
        // Half of this axis is beyond what 64 bits hold, and there is no round value in the other half.
        plots(&[sample(&[u64::MAX])]);
    }

    #[test]
    fn line_rises_by_the_share_of_its_values() {
        let frame = Frame { axis: Axis { low: 0.0, high: 2.0 }, size: WIDE, words: WORDS };
        let (x, y) = (|ns| format!("{:.1}", frame.x(ns)), |share| format!("{:.1}", frame.y(share)));
        let expected = format!("M{} {}V{}H{}V{}", x(1), y(0.0), y(0.75), x(100), y(1.0));
        assert_eq!(frame.steps(&sample(&[100, 1, 1, 1])), Some(expected));
    }

    #[test]
    fn histogram_is_drawn_as_the_values_that_it_counts() {
        let histogram = Histogram::from(vec![(-5, 1), (1, 3), (100, 1)]);
        let [from_values, _] = plots(&[sample(&[0, 1, 1, 1, 100])]);
        assert_eq!(plots(&[Distribution::from(&histogram)])[0], from_values);
    }

    #[test]
    fn size_is_bounded_however_many_values_there_are() {
        let many: Vec<u64> = (0..200_000).map(|index| 50_000 + index).collect();
        let [svg, _] = plots(&[sample(&many)]);
        assert!(svg.len() < 40_000, "{}", svg.len());
    }

    #[test]
    fn ticks_keep_their_distance_on_any_axis() {
        for low in [1_u64, 3, 60_000, 99_999, 1_000_000_000] {
            for factor in [1, 2, 3, 10, 70, 1_000, 10_000_000] {
                let axis = Axis::around([low, low * factor].into_iter()).unwrap();
                for length in [WIDE.width, NARROW.width].map(|width| width - LEFT - RIGHT) {
                    let ticks = axis.ticks(length, TICK_DISTANCE_MIN);
                    assert!((1..=16).contains(&ticks.len()), "{low} x {factor}: {ticks:?}");
                    for pair in ticks.windows(2) {
                        let distance = (axis.position(pair[1]) - axis.position(pair[0])) * length;
                        assert!(distance >= TICK_DISTANCE_MIN, "{low} x {factor}: {ticks:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn first_thirty_series_look_different() {
        let looks: std::collections::HashSet<String> = (0..30).map(swatch).collect();
        assert_eq!(looks.len(), 30);
    }
}
