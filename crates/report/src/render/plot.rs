//! Cumulative distributions of times as inline SVG, and what all plots share: sizes, colours, logarithmic axes.
//!
//! Colours and strokes come from the page's style sheet by class; a dash pattern goes with each colour, so that the
//! lines can be told apart without it. There are no identifiers: several plots can share a page. Text from a record
//! does not get here.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::page::escaped;
use super::{Drawing, Key, Table, or_empty};
use crate::load::Histogram;
use crate::stats::Sample;
use crate::units::{plural, tick, time, typeset, typeset_prose};

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
/// The radius of the mark at an end of a distribution.
const END: f64 = 3.5;
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

impl Size {
    /// A picture so high, with what it shows for those who do not see it, and what `draw` adds.
    pub(super) fn picture(self, height: f64, label: &str, draw: impl FnOnce(&mut String)) -> String {
        let (Size { class, width, .. }, label) = (self, escaped(label));
        let mut out = format!(
            "<svg class=\"plot {class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n"
        );
        draw(&mut out);
        out + "</svg>\n"
    }
}

/// For a wide window.
pub(crate) const WIDE: Size = Size { class: "wide", width: 860.0, height: 380.0 };
/// For a phone: the same text is larger beside a smaller plot.
pub(crate) const NARROW: Size = Size { class: "narrow", width: 400.0, height: 320.0 };

/// Margins around the axes. The left one depends on the numbers.
pub(crate) const RIGHT: f64 = 26.0;
pub(crate) const TOP: f64 = 28.0;
pub(crate) const BOTTOM: f64 = 46.0;
const LEFT: f64 = 46.0;
/// What keeps a name legible on lines that it stands on.
const HALO: &str = "paint-order: stroke; stroke: var(--paper); stroke-width: 4px";
/// From the name of a mark to that of the next one.
const MARK_LINE: f64 = 17.0;
/// From a line of text to the next one, and about how wide a letter is.
const TEXT_LINE: f64 = 16.0;
const LETTER: f64 = 6.9;

/// What a plot of distributions says.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    /// What the plot shows, for those who do not see it.
    pub(crate) label: Cow<'static, str>,
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
    /// Times below zero, which come from clocks that disagree, count as zero.
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
    /// Whether the smallest and the largest value of each are marked, and say what they are when they are pointed at.
    pub(crate) has_ends: bool,
}

impl Drawing for Cumulative {
    /// The names of distributions that are not empty.
    fn legend(&self) -> Vec<Key> {
        let series =
            self.series.iter().enumerate().filter(|(_, (_, distribution))| !distribution.0.is_empty());
        series.map(|(index, (name, _))| Key::of(index, swatch(index, index), name.clone())).collect()
    }

    /// The plot; `None` if there are no values.
    fn svg(&self, size: Size) -> Option<String> {
        let values =
            self.series.iter().flat_map(|(_, distribution)| distribution.0.iter().map(|&(ns, _)| ns));
        let axis = Axis::around(values)?;
        let area = Area::new(size, LEFT);
        let height = size.height + more_height(&self.along(), size);
        Some(size.picture(height, &self.words.label, |out| {
            self.draw_frame(axis, &area, out);
            for (index, (name, distribution)) in self.series.iter().enumerate() {
                if let Some(path) = steps(distribution, axis, &area) {
                    let (class, dashes) = (class_of(index), dashes_of(index));
                    let title = escaped(&distribution.told(name));
                    // Writing to a string cannot fail.
                    let _ = writeln!(
                        out,
                        "<g class=\"layer-{index}\"><title>{title}</title><path class=\"{class}\" {dashes} \
                         d=\"{path}\"/></g>"
                    );
                }
            }
            // Above all lines, so that none hides them.
            for (index, (name, distribution)) in self.series.iter().enumerate().filter(|_| self.has_ends) {
                let _ = writeln!(out, "<g class=\"layer-{index}\">");
                draw_ends(index, name, distribution, axis, &area, out);
                out.push_str("</g>\n");
            }
        }))
    }

    /// Whole percentiles of each.
    fn data(&self) -> Table {
        let series = self.series.iter().filter(|(_, distribution)| !distribution.0.is_empty());
        Table::of(self.words.time, 0..=100_u32)
            .number("percentile", |percentile| *percentile)
            .each(
                series,
                |(name, _)| format!("{name}, ns"),
                |percentile, (_, distribution)| or_empty(distribution.percentile(*percentile)),
            )
            .table()
    }
}

impl Distribution {
    /// A whole percentile by nearest rank; `None` of nothing.
    fn percentile(&self, percent: u32) -> Option<u64> {
        let total: u128 = self.0.iter().map(|&(_, count)| u128::from(count)).sum();
        let rank = (total * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        let reaches = |&&(_, count): &&(u64, u64)| {
            seen += u128::from(count);
            seen >= rank
        };
        self.0.iter().find(reaches).map(|&(ns, _)| ns)
    }

    /// Its figures in a sentence.
    fn told(&self, name: &str) -> String {
        let total: u64 = self.0.iter().fold(0, |sum, &(_, count)| sum.saturating_add(count));
        let at = |percent| self.percentile(percent).map_or_else(String::new, time);
        format!(
            "{name}: median {}, 95th percentile {}, from {} to {}, {}",
            at(50),
            at(95),
            at(0),
            at(100),
            plural(total, "value")
        )
    }
}

impl Cumulative {
    /// Grid, numbers and names of the axes.
    fn draw_frame(&self, axis: Axis, area: &Area, out: &mut String) {
        for share in SHARES {
            area.draw_row(f64::from(share) / 100.0, &format!("{share}\u{a0}%"), out);
        }
        for ns in axis.ticks(area.width(), TICK_DISTANCE_MIN) {
            area.draw_column(axis.position(ns), &typeset(&tick(ns)), out);
        }
        let up = format!("share of {} that took at most this long", self.words.share_of);
        area.draw_axes(Some(&up), &self.along(), out);
    }

    fn along(&self) -> String {
        format!("{}, logarithmic scale", self.words.time)
    }
}

/// The path of the steps: up by one n-th at each of the n values. Values that fall on the same half unit make one step,
/// so its length is bounded by the plot's width, however many values there are.
fn steps(distribution: &Distribution, axis: Axis, area: &Area) -> Option<String> {
    let pairs = &distribution.0;
    let total: f64 = pairs.iter().map(|&(_, count)| count as f64).sum();
    let column = |ns: u64| (area.x(axis.position(ns)) * 2.0).round();
    let mut path = format!("M{:.1} {:.1}", column(pairs.first()?.0) / 2.0, area.y(0.0));
    let mut risen = 0.0;
    for group in pairs.chunk_by(|left, right| column(left.0) == column(right.0)) {
        if risen > 0.0 {
            let _ = write!(path, "H{:.1}", column(group[0].0) / 2.0);
        }
        risen += group.iter().map(|&(_, count)| count as f64).sum::<f64>();
        let _ = write!(path, "V{:.1}", area.y(risen / total));
    }
    Some(path)
}

/// Where a distribution begins and ends: a dot at the smallest and at the largest value, each with what it is.
fn draw_ends(
    index: usize,
    name: &str,
    distribution: &Distribution,
    axis: Axis,
    area: &Area,
    out: &mut String,
) {
    let (Some((least, _)), Some((most, _))) = (distribution.0.first(), distribution.0.last()) else { return };
    for (what, ns, share) in [("smallest", *least, 0.0), ("largest", *most, 1.0)] {
        let (x, y, class) = (area.x(axis.position(ns)), area.y(share), class_of(index));
        let said = escaped(&typeset_prose(&format!("{name}: the {what}, {}", time(ns))));
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{END}\"><title>{said}</title></circle>"
        );
    }
}

/// A piece of a line, for a legend.
pub(super) fn swatch(colour: usize, dashes: usize) -> String {
    swatch_of(&format!("<path class=\"{}\" {} d=\"M1 6H43\"/>", class_of(colour), dashes_of(dashes)))
}

/// A picture for a legend, with this markup.
pub(super) fn swatch_of(mark: &str) -> String {
    format!("<svg class=\"swatch\" viewBox=\"0 0 44 12\" aria-hidden=\"true\">{mark}</svg>")
}

/// The path of a cross that reaches so far each way.
pub(super) fn cross(x: f64, y: f64, reach: f64) -> String {
    let (left, right, top, bottom) = (x - reach, x + reach, y - reach, y + reach);
    format!("M{left:.1} {top:.1}L{right:.1} {bottom:.1}M{left:.1} {bottom:.1}L{right:.1} {top:.1}")
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

    /// How long the horizontal axis is.
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    /// How high the vertical axis is.
    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// Where a share of the horizontal axis ends.
    pub(crate) fn x(&self, share: f64) -> f64 {
        self.left + share * self.width()
    }

    /// Where a share of the vertical axis ends.
    pub(crate) fn y(&self, share: f64) -> f64 {
        self.bottom - share * self.height()
    }

    /// A line of the grid at this share of the height, and its number beside the vertical axis. Texts are markup, here
    /// and below.
    pub(crate) fn draw_row(&self, share: f64, number: &str, out: &mut String) {
        let (Area { left, right, .. }, y) = (self, self.y(share));
        let (before, below) = (left - 6.0, y + 4.0);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{left} {y:.1}H{right}\"/>\
             <text x=\"{before:.1}\" y=\"{below:.1}\" text-anchor=\"end\">{number}</text>"
        );
    }

    /// A line of the grid at this share of the width, and its number below the horizontal axis.
    pub(crate) fn draw_column(&self, share: f64, number: &str, out: &mut String) {
        let (x, top) = (self.x(share), self.top);
        let (end, below) = (self.bottom + 4.0, self.bottom + 18.0);
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {top}V{end:.1}\"/>\
             <text x=\"{x:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{number}</text>"
        );
    }

    /// What a reader who points between two instants of the horizontal axis is told, from its top to its bottom.
    pub(super) fn draw_title(&self, from: f64, to: f64, title: &str, out: &mut String) {
        let (top, height, title) = (self.top, self.height(), escaped(title));
        let (x, width) = (from.max(self.left), (to.min(self.right) - from.max(self.left)).max(0.0));
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"none\" \
             pointer-events=\"all\"><title>{title}</title></rect>"
        );
    }

    /// Lines at these places of the horizontal axis with names, which stand below each other and in front of the lines:
    /// none hides another.
    pub(super) fn draw_marks(&self, marks: &[(f64, &str)], out: &mut String) {
        let Area { left, right, top, bottom } = self;
        for (x, _) in marks {
            let _ = writeln!(out, "<path class=\"mark\" d=\"M{x:.1} {top}V{bottom}\"/>");
        }
        for (number, (x, name)) in marks.iter().enumerate() {
            // The name stands on the side that has more room.
            let (at, anchor) = match *x > (left + right) / 2.0 {
                true => (x - 5.0, "end"),
                false => (x + 5.0, "start"),
            };
            let _ = writeln!(
                out,
                "<text class=\"name\" style=\"{HALO}\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                top + 12.0 + MARK_LINE * number as f64,
                escaped(name)
            );
        }
    }

    /// The axes and what they count; the vertical one may count nothing. What the horizontal one counts may take lines
    /// for which [`more_height`] makes room.
    pub(crate) fn draw_axes(&self, up: Option<&str>, along: &str, out: &mut String) {
        let Area { left, right, top, bottom } = self;
        let up = up.map_or_else(String::new, |up| format!("<text x=\"0\" y=\"14\">{up}</text>\n"));
        let _ = writeln!(out, "<path class=\"axis\" d=\"M{left} {top}V{bottom}H{right}\"/>\n{up}");
        self.draw_along(along, out);
    }

    /// What the horizontal axis counts, below its numbers.
    pub(super) fn draw_along(&self, along: &str, out: &mut String) {
        let right = self.right;
        for (number, line) in lines(along, right).into_iter().enumerate() {
            let y = self.bottom + BOTTOM - 8.0 + TEXT_LINE * number as f64;
            let _ = writeln!(out, "<text x=\"{right}\" y=\"{y:.1}\" text-anchor=\"end\">{line}</text>");
        }
    }
}

/// A text in lines that fit into a width, in SVG units.
fn lines(text: &str, width: f64) -> Vec<String> {
    let fits = |line: &str| line.chars().count() as f64 * LETTER <= width;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut().filter(|line| fits(&format!("{line} {word}"))) {
            Some(line) => *line = format!("{line} {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// What a picture needs at its bottom for a name of its horizontal axis that does not fit into a line.
pub(super) fn more_height(along: &str, size: Size) -> f64 {
    lines(along, size.width - RIGHT).len().saturating_sub(1) as f64 * TEXT_LINE
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
    /// An axis with room for all values. Zero has no logarithm, and is ignored.
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

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Words =
        Words { label: Cow::Borrowed("label"), share_of: "exchanges", time: "whole exchange" };

    fn sample(values: &[u64]) -> Distribution {
        Distribution::from(&Sample::from(values))
    }

    fn plot(samples: &[Distribution], size: Size) -> Option<String> {
        let series = samples.iter().map(|sample| (String::new(), sample.clone())).collect();
        Cumulative { words: WORDS, series, has_ends: false }.svg(size)
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
    fn long_name_of_an_axis_takes_lines_that_fit() {
        let long = "words ".repeat(30);
        for size in [WIDE, NARROW] {
            let found = lines(long.trim(), size.width - RIGHT);
            assert_eq!(found.join(" "), long.trim());
            assert!(found.iter().all(|line| line.len() as f64 * LETTER <= size.width - RIGHT), "{found:?}");
            assert_eq!(more_height(long.trim(), size), (found.len() - 1) as f64 * TEXT_LINE);
            assert_eq!(more_height("short", size), 0.0);
        }
    }

    #[test]
    fn data_are_whole_percentiles_and_a_line_says_its_figures() {
        let series = vec![("<a>".to_owned(), sample(&(1..=100).collect::<Vec<u64>>()))];
        let drawing = Cumulative { words: WORDS, series, has_ends: false };
        let rows = drawing.data().rows;
        let at = |row: usize| rows[row].cells.clone();
        assert_eq!(
            (rows.len(), at(0), at(50), at(100)),
            (
                101,
                vec!["0".into(), "1".into()],
                vec!["50".into(), "50".into()],
                vec!["100".into(), "100".into()]
            )
        );
        let svg = drawing.svg(WIDE).unwrap();
        crate::render::page::assert_titled(&svg);
        assert!(
            svg.contains("&lt;a&gt;: median 50 ns, 95th percentile 95 ns, from 1 ns to 0.1 us, 100 values"),
            "{svg}"
        );
    }

    #[test]
    fn line_rises_by_the_share_of_its_values() {
        let (axis, area) = (Axis { low: 0.0, high: 2.0 }, Area::new(WIDE, LEFT));
        let x = |ns| format!("{:.1}", area.x(axis.position(ns)));
        let y = |share| format!("{:.1}", area.y(share));
        let expected = format!("M{} {}V{}H{}V{}", x(1), y(0.0), y(0.75), x(100), y(1.0));
        assert_eq!(steps(&sample(&[100, 1, 1, 1]), axis, &area), Some(expected));
    }

    #[test]
    fn histogram_is_drawn_as_the_values_that_it_counts() {
        let histogram = Histogram::from(vec![(-5, 1), (1, 3), (100, 1)]);
        let [from_values, _] = plots(&[sample(&[0, 1, 1, 1, 100])]);
        assert_eq!(plots(&[Distribution::from(&histogram)])[0], from_values);
    }

    #[test]
    fn ends_are_marked_where_that_is_asked_for_and_say_what_they_are() {
        let series =
            vec![("a <b>".to_owned(), sample(&[2_000_000, 1_200, 1_500])), ("none".to_owned(), sample(&[]))];
        let with = |has_ends| Cumulative { words: WORDS, series: series.clone(), has_ends };
        for size in [WIDE, NARROW] {
            assert!(!with(false).svg(size).unwrap().contains("<circle"));
            let svg = with(true).svg(size).unwrap();
            assert_eq!(svg.matches("<circle class=\"dot series series-0\"").count(), 2);
            for said in ["a &lt;b&gt;: the smallest, 1.2\u{a0}\u{b5}s", "a &lt;b&gt;: the largest, 2.00 ms"] {
                assert!(svg.contains(&format!("<title>{said}</title>")), "{svg}");
            }
        }
        // The first one is where the line begins, and the last where it ends.
        let (svg, area) = (with(true).svg(WIDE).unwrap(), Area::new(WIDE, LEFT));
        let low = format!("cy=\"{:.1}\"", area.y(0.0));
        let high = format!("cy=\"{:.1}\"", area.y(1.0));
        assert!(svg.find(&low).unwrap() < svg.find(&high).unwrap());
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
        let looks: std::collections::HashSet<String> = (0..30).map(|series| swatch(series, series)).collect();
        assert_eq!(looks.len(), 30);
    }
}
