//! Figures of several kinds for each name, as marks on a line for each: inline SVG on a logarithmic axis.
//!
//! Like [`super::plot`], whose sizes, colours and axis it shares: no script, no identifiers, no text from a record.
//! Marks differ in shape too, so that they can be told apart without colours.

use std::fmt::Write as _;

use super::Drawing;
use super::plot::{Area, Axis, BOTTOM, RIGHT, Size, class_of, cross, swatch_of};
use crate::units::{rate_tick, tick, typeset};

/// Height of a name's line, in SVG units.
const LINE: f64 = 27.0;
const TOP: f64 = 10.0;
/// Room for the names.
const LEFT: f64 = 160.0;
const TICK_DISTANCE_MIN: f64 = 50.0;

/// The shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    Diamond,
    Triangle,
    Cross,
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
            Marker::Cross => format!("<path class=\"{class}\" d=\"{}\"/>", cross(x, y, 4.5)),
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

impl Drawing for Dots {
    /// What there is of it, with the marks of each.
    fn legend(&self) -> Vec<(String, String)> {
        let series = self.series.iter().filter(|series| series.values.iter().any(Option::is_some));
        series.map(|series| (series.marker.swatch(series.colour), series.name.to_owned())).collect()
    }

    /// The picture; `None` if there are no values.
    fn svg(&self, size: Size) -> Option<String> {
        let values = self.series.iter().flat_map(|series| series.values.iter().copied().flatten());
        let axis = Axis::around(values)?;
        let bottom = TOP + LINE * self.names.len() as f64;
        let area = Area { left: LEFT, right: size.width - RIGHT, top: TOP, bottom };
        Some(size.picture(bottom + BOTTOM, self.label, |out| {
            for value in axis.ticks(area.width(), TICK_DISTANCE_MIN) {
                let number = match self.count {
                    Count::Rate => rate_tick(value as f64),
                    Count::Time => tick(value),
                };
                area.draw_column(axis.position(value), &typeset(&number), out);
            }
            area.draw_axes(None, &format!("{}, logarithmic scale", self.along), out);
            for (index, name) in self.names.iter().enumerate() {
                let y = TOP + LINE * (index as f64 + 0.5);
                // Writing to a string cannot fail.
                let _ = writeln!(
                    out,
                    "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/>\
                     <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
                    area.right,
                    LEFT - 8.0,
                    y + 4.5
                );
                for series in &self.series {
                    if let Some(value) = series.values.get(index).copied().flatten() {
                        let x = area.x(axis.position(value));
                        let _ = writeln!(out, "{}", series.marker.draw(series.colour, x, y));
                    }
                }
            }
        }))
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
        use Marker::{Circle, Cross, Diamond, Square, Triangle};
        let swatches = [Circle, Square, Cross, Diamond, Triangle].map(|marker| marker.swatch(0));
        for (element, swatch) in
            ["<circle", "<rect", "<path", "<polygon", "<polygon"].into_iter().zip(&swatches)
        {
            assert!(swatch.contains(element), "{swatch}");
        }
        assert_ne!(swatches[3], swatches[4]);
    }
}
