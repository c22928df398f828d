//! Figures of several kinds for each name, as marks on a line for each: inline SVG on a logarithmic axis.
//!
//! Like [`super::plot`], whose sizes, colours and axis it shares: no script, no identifiers, no text from a record.
//! Marks differ in shape too, so that they can be told apart without colours.

use std::fmt::Write as _;

use super::chart::rate_tick;
use super::plot::{Axis, Size, class_of};
use crate::units::{tick, typeset};

/// Height of a name's line, in SVG units.
const LINE: f64 = 27.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 46.0;
const RIGHT: f64 = 26.0;
/// Room for the names.
const LEFT: f64 = 160.0;
const TICK_DISTANCE_MIN: f64 = 50.0;

/// The shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    Cross,
}

impl Marker {
    fn draw(self, colour: usize, x: f64, y: f64) -> String {
        let class = class_of(colour);
        match self {
            Marker::Circle => format!("<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>"),
            Marker::Square => format!(
                "<rect class=\"dot {class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"9\" height=\"9\"/>",
                x - 4.5,
                y - 4.5
            ),
            Marker::Cross => {
                let (left, right, top, bottom) = (x - 4.5, x + 4.5, y - 4.5, y + 4.5);
                format!(
                    "<path class=\"{class}\" d=\"M{left:.1} {top:.1}L{right:.1} {bottom:.1}M{left:.1} {bottom:.1}\
                     L{right:.1} {top:.1}\"/>"
                )
            }
        }
    }

    /// The mark for a legend.
    pub(crate) fn swatch(self, colour: usize) -> String {
        let mark = self.draw(colour, 22.0, 6.0);
        format!("<svg class=\"swatch\" viewBox=\"0 0 44 12\" aria-hidden=\"true\">{mark}</svg>")
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

/// A figure for each name.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// What the legend calls it.
    pub(crate) name: &'static str,
    pub(crate) marker: Marker,
    pub(crate) colour: usize,
    pub(crate) values: Vec<Option<u64>>,
}

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct Dots {
    /// What it shows, for those who do not see it.
    pub(crate) label: &'static str,
    /// What the axis counts, in words and as numbers.
    pub(crate) along: &'static str,
    pub(crate) count: Count,
    /// From the top down.
    pub(crate) names: Vec<&'static str>,
    pub(crate) series: Vec<Series>,
}

impl Dots {
    /// What there is of it, with the marks of each.
    pub(super) fn legend(&self) -> Vec<(String, String)> {
        let series = self.series.iter().filter(|series| series.values.iter().any(Option::is_some));
        series.map(|series| (series.marker.swatch(series.colour), series.name.to_owned())).collect()
    }

    /// The picture; `None` if there are no values.
    pub(crate) fn svg(&self, size: Size) -> Option<String> {
        let values = self.series.iter().flat_map(|series| series.values.iter().copied().flatten());
        let axis = Axis::around(values)?;
        let bottom = TOP + LINE * self.names.len() as f64;
        let (height, right) = (bottom + BOTTOM, size.width - RIGHT);
        let x = |value: u64| LEFT + axis.position(value) * (right - LEFT);
        let mut out = format!(
            "<svg class=\"plot {}\" viewBox=\"0 0 {} {height}\" role=\"img\" aria-label=\"{}\">\n",
            size.class, size.width, self.label
        );
        // Writing to a string cannot fail.
        for value in axis.ticks(right - LEFT, TICK_DISTANCE_MIN) {
            let at = x(value);
            let number = typeset(&match self.count {
                Count::Rate => rate_tick(value as f64),
                Count::Time => tick(value),
            });
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{at:.1} {TOP}V{:.1}\"/><text x=\"{at:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{number}</text>",
                bottom + 4.0,
                bottom + 18.0
            );
        }
        let _ = writeln!(
            out,
            "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>\n\
             <text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">{}, logarithmic scale</text>",
            height - 8.0,
            self.along
        );
        for (index, name) in self.names.iter().enumerate() {
            let y = TOP + LINE * (index as f64 + 0.5);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/>\
                 <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
                LEFT - 8.0,
                y + 4.5
            );
            for series in &self.series {
                if let Some(value) = series.values.get(index).copied().flatten() {
                    let _ = writeln!(out, "{}", series.marker.draw(series.colour, x(value), y));
                }
            }
        }
        out.push_str("</svg>\n");
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::plot::{NARROW, WIDE};
    use super::*;

    fn dots(values: &[Option<u64>]) -> Dots {
        let series = Series { name: "name", marker: Marker::Cross, colour: 1, values: values.to_vec() };
        let names = vec!["a", "b", "c"];
        Dots { label: "label", along: "along", count: Count::Rate, names, series: vec![series] }
    }

    #[test]
    fn each_value_has_a_mark_and_none_is_outside() {
        for size in [WIDE, NARROW] {
            let svg = dots(&[Some(1_000), None, Some(50_000_000)]).svg(size).unwrap();
            assert_eq!(svg.matches("class=\"series series-1\"").count(), 2);
            assert_eq!(svg.matches("class=\"name\"").count(), 3);
            for path in svg.split(" d=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
                for number in path.split(['M', 'L', 'H', 'V', ' ']).filter(|number| !number.is_empty()) {
                    let number: f64 = number.parse().unwrap();
                    assert!((0.0..=size.width).contains(&number), "{path}");
                }
            }
        }
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
        let swatches = [Marker::Circle, Marker::Square, Marker::Cross].map(|marker| marker.swatch(0));
        for (element, swatch) in ["<circle", "<rect", "<path"].into_iter().zip(&swatches) {
            assert!(swatch.contains(element), "{swatch}");
        }
    }
}
