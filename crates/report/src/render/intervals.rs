//! Shares with their intervals, in lines that stand together in groups: inline SVG on a linear axis from zero.
//!
//! Like [`super::plot`], whose sizes and colours it shares: no script and no identifiers; what a line says in figures
//! is the title of its marks. Kinds of lines differ in the shape of their marks too, so that they can be told apart
//! without colours. Texts are escaped here.

use std::fmt::Write as _;

use super::dots::Marker;
use super::page::escaped;
use super::plot::{Area, BOTTOM, RIGHT, Size, class_of, cross, more_height, swatch_of};
use super::{Drawing, Key, Table, or_empty};
use crate::stats::bootstrap::Estimate;
use crate::units::trimmed;

/// Height of a line, and between groups, in SVG units.
const LINE: f64 = 16.0;
const GAP: f64 = 9.0;
const TOP: f64 = 10.0;
/// Room for the names.
const LEFT: f64 = 142.0;
/// The least end of the axis, and what lies beyond the last value.
const END_MIN: f64 = 1.0;
const MARGIN: f64 = 1.05;
/// No axis is longer: what is beyond it stands at its end.
const END_MAX: f64 = 3.0;
/// From one number on the axis to the next, in percent, and the least distance between them.
const STEPS: [usize; 4] = [20, 25, 50, 100];
const DISTANCE: f64 = 46.0;
/// The reach of the marks of single trials, of crosses, and of the ends of intervals.
const DOT: f64 = 2.2;
const CROSS: f64 = 4.0;
const CAP: f64 = 3.5;

/// What lines are of.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    /// What the legend calls it.
    pub(crate) name: String,
    pub(crate) marker: Marker,
    pub(crate) colour: usize,
}

/// A share.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// The number of its kind.
    pub(crate) kind: usize,
    /// What its figures are, in a sentence.
    pub(crate) title: String,
    /// Trials that count.
    pub(crate) counted: Vec<f64>,
    /// Trials that do not.
    pub(crate) void: Vec<f64>,
}

/// Lines under one name.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) lines: Vec<Line>,
}

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct Intervals {
    /// What it shows, for those who do not see it.
    pub(crate) label: String,
    /// What the axis counts.
    pub(crate) along: &'static str,
    /// What the legend calls the line at one.
    pub(crate) one: &'static str,
    /// What the legend calls trials that do not count.
    pub(crate) void: &'static str,
    pub(crate) kinds: Vec<Kind>,
    /// From the top down.
    pub(crate) groups: Vec<Group>,
}

impl Line {
    fn is_empty(&self) -> bool {
        self.counted.is_empty() && self.void.is_empty()
    }
}

impl Intervals {
    fn lines(&self) -> impl Iterator<Item = &Line> {
        self.groups.iter().flat_map(|group| &group.lines).filter(|line| !line.is_empty())
    }

    /// The end of the axis; `None` without a value.
    fn end(&self) -> Option<f64> {
        let values = self.lines().flat_map(|line| line.counted.iter().chain(&line.void));
        let most = values.copied().filter(|value| value.is_finite()).reduce(f64::max)?;
        Some((most.max(END_MIN) * MARGIN).min(END_MAX))
    }

    fn draw_line(&self, line: &Line, y: f64, position: impl Fn(f64) -> f64, out: &mut String) {
        let Some(kind) = self.kinds.get(line.kind) else { return };
        let class = class_of(kind.colour);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "<g class=\"layer-{}\"><title>{}</title>", line.kind, escaped(&line.title));
        for value in &line.counted {
            let x = position(*value);
            let _ = writeln!(out, "<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{DOT}\"/>");
        }
        for value in &line.void {
            let path = cross(position(*value), y, CROSS);
            let _ = writeln!(out, "<path class=\"cross {class}\" d=\"{path}\"/>");
        }
        if let Some(Estimate { median, interval }) = Estimate::of(line.counted.iter().copied()) {
            if let Some([low, high]) = interval.map(|ends| ends.map(&position)) {
                let (top, bottom) = (y - CAP, y + CAP);
                let _ = writeln!(
                    out,
                    "<path class=\"whisker {class}\" d=\"M{low:.1} {top:.1}V{bottom:.1}M{low:.1} {y:.1}\
                 H{high:.1}M{high:.1} {top:.1}V{bottom:.1}\"/>"
                );
            }
            let _ = writeln!(out, "{}", kind.marker.draw(kind.colour, position(median), y));
        }
        out.push_str("</g>\n");
    }
}

impl Drawing for Intervals {
    /// The kinds that there is a line of, with their marks.
    fn legend(&self) -> Vec<Key> {
        let is_there = |&(index, _): &(usize, &Kind)| self.lines().any(|line| line.kind == index);
        let kinds = self.kinds.iter().enumerate().filter(is_there);
        let mut legend: Vec<Key> = kinds
            .map(|(layer, kind)| Key::of(layer, kind.marker.swatch(kind.colour), kind.name.clone()))
            .collect();
        legend.push(Key::shared(swatch_of("<path class=\"diagonal\" d=\"M22 0V12\"/>"), self.one));
        if self.lines().any(|line| !line.void.is_empty()) {
            let path = format!("<path class=\"cross\" d=\"{}\"/>", cross(22.0, 6.0, CROSS));
            legend.push(Key::shared(swatch_of(&path), self.void));
        }
        legend
    }

    fn data(&self) -> Table {
        let all = self.groups.iter().flat_map(|group| group.lines.iter().map(move |line| (group, line)));
        let rows = all.flat_map(|(group, line)| {
            let estimate = Estimate::of(line.counted.iter().copied());
            let median = estimate.map(|found| ("median", found.median, found.interval));
            let trials = line.counted.iter().map(|value| ("trial", *value, None));
            let void = line.void.iter().map(|value| ("trial that does not count", *value, None));
            let found = median.into_iter().chain(trials).chain(void);
            found.map(move |(what, value, interval)| (group, line, what, value, interval))
        });
        let number = |value: f64| trimmed(value, 6);
        Table::of(self.along, rows)
            .words("group", |(group, ..)| group.name.clone())
            .words("kind", |(_, line, ..)| {
                self.kinds.get(line.kind).map_or_else(String::new, |kind| kind.name.clone())
            })
            .words("what", |(_, _, what, ..)| *what)
            .number("share", |(.., value, _)| number(*value))
            .number("95 % from", |(.., interval)| or_empty(interval.map(|ends| number(ends[0]))))
            .number("95 % to", |(.., interval)| or_empty(interval.map(|ends| number(ends[1]))))
            .table()
    }

    /// The picture; `None` if there are no values.
    fn svg(&self, size: Size) -> Option<String> {
        let end = self.end()?;
        let drawn = |group: &&Group| group.lines.iter().any(|line| !line.is_empty());
        let groups: Vec<&Group> = self.groups.iter().filter(drawn).collect();
        let height = self.lines().count() as f64 * LINE + groups.len() as f64 * GAP;
        let area = Area { left: LEFT, right: size.width - RIGHT, top: TOP, bottom: TOP + height };
        let share = |value: f64| (value / end).clamp(0.0, 1.0);
        Some(size.picture(TOP + height + BOTTOM + more_height(self.along, size), &self.label, |out| {
            let fits = |step: &usize| *step as f64 / 100.0 / end * area.width() >= DISTANCE;
            let step = STEPS.into_iter().find(fits).unwrap_or(STEPS[STEPS.len() - 1]);
            for percent in (0..=300_u32).step_by(step).filter(|&percent| f64::from(percent) / 100.0 <= end) {
                area.draw_column(share(f64::from(percent) / 100.0), &format!("{percent}\u{a0}%"), out);
            }
            area.draw_axes(None, self.along, out);
            let x = area.x(share(1.0));
            let _ = writeln!(out, "<path class=\"diagonal\" d=\"M{x:.1} {TOP}V{:.1}\"/>", area.bottom);
            let mut top = TOP;
            for group in groups {
                let lines = group.lines.iter().filter(|line| !line.is_empty());
                let count = lines.clone().count() as f64;
                let (end, middle) = (LEFT - 8.0, top + (GAP + count * LINE) / 2.0 + 4.5);
                let name = escaped(&group.name);
                let _ = writeln!(
                    out,
                    "<text class=\"name\" x=\"{end}\" y=\"{middle:.1}\" text-anchor=\"end\">{name}</text>"
                );
                for (index, line) in lines.enumerate() {
                    let y = top + GAP / 2.0 + LINE * (index as f64 + 0.5);
                    self.draw_line(line, y, |value| area.x(share(value)), out);
                }
                top += GAP + count * LINE;
                let _ = writeln!(out, "<path class=\"grid\" d=\"M{LEFT} {top:.1}H{}\"/>", area.right);
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::assert_titled;
    use super::super::plot::{NARROW, WIDE};
    use super::*;

    fn intervals(counted: &[f64], void: &[f64]) -> Intervals {
        let kind = |name: &str, marker, colour| Kind { name: name.to_owned(), marker, colour };
        let line = |kind, counted: &[f64], void: &[f64]| Line {
            kind,
            title: "<title> & more".to_owned(),
            counted: counted.to_vec(),
            void: void.to_vec(),
        };
        let empty = Group { name: "empty".to_owned(), lines: vec![line(1, &[], &[])] };
        let group =
            Group { name: "<name>".to_owned(), lines: vec![line(0, counted, void), line(1, &[], &[])] };
        Intervals {
            label: "<label>".to_owned(),
            along: "along",
            one: "all of it",
            void: "does not count",
            kinds: vec![kind("first", Marker::Diamond, 0), kind("second", Marker::Triangle, 1)],
            groups: vec![group, empty],
        }
    }

    #[test]
    fn trials_are_dots_and_crosses_and_their_median_has_an_interval() {
        for size in [WIDE, NARROW] {
            let svg = intervals(&[0.9, 0.8, 1.1], &[0.2]).svg(size).unwrap();
            assert_titled(&svg);
            assert_eq!(svg.matches("<circle").count(), 3);
            assert_eq!(svg.matches("<polygon").count(), 1);
            assert_eq!(svg.matches("class=\"cross ").count(), 1);
            assert_eq!(svg.matches("class=\"whisker series series-0\"").count(), 1, "{svg}");
            assert_eq!(svg.matches("class=\"name\"").count(), 1, "a group without a value is left out");
            assert!(svg.contains("<title>&lt;title&gt; &amp; more</title>") && svg.contains("&lt;name&gt;"));
            assert!(svg.contains("aria-label=\"&lt;label&gt;\"") && svg.contains(">100\u{a0}%<"));
            for path in svg.split(" d=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
                for number in path.split(['M', 'L', 'H', 'V', ' ']).filter(|number| !number.is_empty()) {
                    let number: f64 = number.parse().unwrap();
                    assert!((0.0..=size.width).contains(&number), "{path}");
                }
            }
        }
    }

    #[test]
    fn single_trial_has_no_interval_and_nothing_has_no_picture() {
        let svg = intervals(&[0.9], &[]).svg(WIDE).unwrap();
        assert!(!svg.contains("class=\"whisker series series-0\"") && svg.contains("<polygon"));
        assert!(intervals(&[], &[]).svg(WIDE).is_none());
        assert!(intervals(&[f64::NAN], &[]).svg(WIDE).is_none());
        // What is absurd stands at the end of the axis.
        assert!(intervals(&[1e300], &[]).svg(WIDE).unwrap().contains(">300\u{a0}%<"));
    }

    #[test]
    fn legend_has_what_is_drawn() {
        let names =
            |drawing: &Intervals| drawing.legend().into_iter().map(|key| key.name).collect::<Vec<_>>();
        assert_eq!(names(&intervals(&[0.9], &[])), ["first", "all of it"]);
        assert_eq!(names(&intervals(&[0.9], &[0.5])), ["first", "all of it", "does not count"]);
    }
}
