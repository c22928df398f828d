//! Shares of classes, stacked into bars against a rate, in panels one above the other: inline SVG.
//!
//! Like [`super::plot`], whose sizes and colours it shares: no script and no identifiers; what a rate has is the title
//! of its column. Panels share both axes. Classes differ in their texture too, so that they can be told apart without
//! colours: a bar is a thick stroke with dashes. Texts are escaped here.

use std::fmt::Write as _;

use super::chart::{CROSS_REACH, DISTANCE_ALONG, DISTANCE_UP, LEFT, Scale, draw_titles};
use super::page::escaped;
use super::plot::{Area, BOTTOM, RIGHT, Size, TOP, cross, more_height, swatch_of};
use super::{Drawing, Key, Table};
use crate::units::{rate, rate_tick, trimmed, typeset};

/// Height of a panel, as a share of the picture of one plot, and the room between two.
const PANEL: f64 = 0.55;
const GAP: f64 = 30.0;
/// What a bar takes of the distance to the next one.
const BAR: f64 = 0.8;
/// Lengths of strokes and gaps of each class, upwards.
const TEXTURES: [&str; 4] = ["none", "3 1.5", "1.2 1.8", "5 1 1 1"];
const COLOURS: [usize; 4] = [0, 1, 3, 2];
/// The least end of the vertical axis: a share below is no more to be seen in a larger one.
const END_MIN: f64 = 0.01;

/// The shares of a step.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    /// Operations a second.
    pub(crate) rate: f64,
    /// Of each class, from 0 to 1.
    pub(crate) shares: Vec<f64>,
    /// Whether the step counts.
    pub(crate) valid: bool,
}

/// Bars beside each other.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) name: String,
    /// From one rate to the next.
    pub(crate) distance: f64,
    pub(crate) bars: Vec<Bar>,
}

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    /// What it shows, for those who do not see it.
    pub(crate) label: String,
    /// What the horizontal axis counts.
    pub(crate) along: &'static str,
    /// What the vertical axis counts.
    pub(crate) up: &'static str,
    /// From the bottom up, what the legend calls them.
    pub(crate) classes: Vec<String>,
    /// What the legend calls steps that do not count.
    pub(crate) void: &'static str,
    /// From the top down.
    pub(crate) panels: Vec<Panel>,
    /// What a reader who points at a rate is told.
    pub(crate) titles: Vec<(f64, String)>,
}

impl Stack {
    fn bars(&self) -> impl Iterator<Item = &Bar> + Clone {
        self.panels.iter().flat_map(|panel| &panel.bars)
    }

    fn draw_panel(&self, panel: &Panel, [along, up]: [Scale; 2], area: &Area, out: &mut String) {
        for share in up.ticks(area.height(), DISTANCE_UP) {
            let number = format!("{} %", trimmed(share * 100.0, 2));
            area.draw_row(up.position(share), &typeset(&number), out);
        }
        let width = along.position(panel.distance * BAR) * area.width();
        for Bar { rate, shares, valid } in &panel.bars {
            let x = area.x(along.position(*rate));
            let mut sum = 0.0;
            for (class, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                let (from, to) = (area.y(up.position(sum)), area.y(up.position(sum + share)));
                sum += share;
                // Writing to a string cannot fail.
                let name = self.classes.get(class).map_or("", String::as_str);
                let title =
                    format!("{}, {}: {} % {name}", panel.name, told(*rate), trimmed(share * 100.0, 2));
                let path = format!("M{x:.1} {from:.1}V{to:.1}");
                let _ = writeln!(out, "{}", titled(class, &bar(class, width, &path), &title));
            }
            if *valid && sum == 0.0 {
                let title = format!("{}, {}: none", panel.name, told(*rate));
                let _ = writeln!(out, "{}", titled(0, &nothing(x, area.bottom), &title));
            }
            if !valid {
                let path = cross(x, area.y(up.position(sum)), CROSS_REACH);
                let title = escaped(&format!("{}, {}: {}", panel.name, told(*rate), self.void));
                let _ = writeln!(out, "<path class=\"cross\" d=\"{path}\"><title>{title}</title></path>");
            }
        }
        let Area { left, right, top, bottom } = area;
        let (at, name) = (top + 12.0, escaped(&panel.name));
        let _ = writeln!(
            out,
            "<path class=\"axis\" d=\"M{left} {top:.1}V{bottom:.1}H{right}\"/>\
             <text class=\"name\" x=\"{:.1}\" y=\"{at:.1}\">{name}</text>",
            left + 8.0
        );
    }
}

/// The rate of a bar.
fn told(rate_rps: f64) -> String {
    format!("{} a second", rate(rate_rps))
}

/// A mark in the layer of a class, which says its figure.
fn titled(class: usize, mark: &str, title: &str) -> String {
    format!("<g class=\"layer-{class}\"><title>{}</title>{mark}</g>", escaped(title))
}

/// A bar of a class.
fn bar(class: usize, width: f64, path: &str) -> String {
    let (colour, texture) = (COLOURS[class % COLOURS.len()], TEXTURES[class % TEXTURES.len()]);
    format!(
        "<path class=\"bar series-{colour}\" stroke-width=\"{width:.1}\" stroke-dasharray=\"{texture}\" d=\"{path}\"/>"
    )
}

/// The mark of a step that has none of any class: it was measured.
fn nothing(x: f64, y: f64) -> String {
    format!("<circle class=\"dot series-{}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.8\"/>", COLOURS[0])
}

impl Drawing for Stack {
    /// The classes that there is anything of.
    fn legend(&self) -> Vec<Key> {
        let is_there =
            |class: usize| self.bars().any(|bar| bar.shares.get(class).is_some_and(|share| *share > 0.0));
        let classes = self.classes.iter().enumerate().filter(|(class, _)| is_there(*class));
        let mut legend: Vec<Key> = classes
            .map(|(class, name)| Key::of(class, swatch_of(&bar(class, 10.0, "M1 6H43")), name.clone()))
            .collect();
        if self.bars().any(|bar| bar.valid && bar.shares.iter().all(|share| *share <= 0.0)) {
            legend.push(Key::shared(swatch_of(&nothing(22.0, 6.0)), "none"));
        }
        if self.bars().any(|bar| !bar.valid) {
            let path = format!("<path class=\"cross\" d=\"{}\"/>", cross(22.0, 6.0, CROSS_REACH));
            legend.push(Key::shared(swatch_of(&path), self.void));
        }
        legend
    }

    /// The picture; `None` without a step.
    fn svg(&self, size: Size) -> Option<String> {
        // Half a step to the right of the last one, so that its bar is whole.
        let reach = self.panels.iter().flat_map(|panel| {
            panel.bars.iter().map(|bar| bar.rate + panel.distance / 2.0).collect::<Vec<_>>()
        });
        let rates: Vec<f64> = reach.filter(|rate| rate.is_finite()).collect();
        let along = Scale::from_zero(rates.into_iter())?;
        let sums = self.bars().map(|bar| bar.shares.iter().sum::<f64>());
        let up = Scale::from_zero(sums.filter(|sum| sum.is_finite()).chain([END_MIN]))?;
        let panel_height = (size.height - TOP - BOTTOM) * PANEL;
        let count = self.panels.len() as f64;
        let bottom = TOP + count * panel_height + (count - 1.0) * GAP;
        let whole = Area { left: LEFT, right: size.width - RIGHT, top: TOP, bottom };
        Some(size.picture(bottom + BOTTOM + more_height(self.along, size), &self.label, |out| {
            // Marks say more than what is behind them, and stand in front of it.
            draw_titles(&self.titles, along, &whole, out);
            for (index, panel) in self.panels.iter().enumerate() {
                let top = TOP + index as f64 * (panel_height + GAP);
                let area = Area { top, bottom: top + panel_height, ..whole };
                self.draw_panel(panel, [along, up], &area, out);
            }
            for rate in along.ticks(whole.width(), DISTANCE_ALONG) {
                let (x, number) = (whole.x(along.position(rate)), typeset(&rate_tick(rate)));
                let _ = writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{number}</text>",
                    bottom + 18.0
                );
            }
            let _ = writeln!(out, "<text x=\"0\" y=\"14\">{}</text>", escaped(self.up));
            whole.draw_along(self.along, out);
        }))
    }

    fn data(&self) -> Table {
        let bars = self.panels.iter().flat_map(|panel| panel.bars.iter().map(move |bar| (panel, bar)));
        let share = |bar: &Bar, class: usize| bar.shares.get(class).copied().unwrap_or(0.0);
        Table::of(self.up, bars)
            .words("panel", |(panel, _)| panel.name.clone())
            .number(self.along, |(_, bar)| trimmed(bar.rate, 4))
            .each(
                0..self.classes.len(),
                |&class| self.classes[class].clone(),
                |(_, bar), &class| trimmed(share(bar, class), 6),
            )
            .words("counts", |(_, bar)| if bar.valid { "yes" } else { "no" })
            .table()
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::{assert_titled, assert_whole};
    use super::super::plot::{NARROW, WIDE};
    use super::*;

    fn stack(bars: &[(f64, [f64; 2], bool)]) -> Stack {
        let bar = |&(rate, shares, valid): &(f64, [f64; 2], bool)| Bar { rate, shares: shares.into(), valid };
        let panel = |name: &str| Panel {
            name: name.to_owned(),
            distance: 100.0,
            bars: bars.iter().map(bar).collect(),
        };
        Stack {
            label: "<label>".to_owned(),
            along: "along",
            up: "up",
            classes: vec!["first".to_owned(), "second".to_owned()],
            void: "does not count",
            panels: vec![panel("<theirs>"), panel("ours")],
            titles: vec![(100.0, "a <b>".to_owned()), (200.0, "c".to_owned())],
        }
    }

    #[test]
    fn bars_stand_on_each_other_and_none_is_outside() {
        let stack = stack(&[(100.0, [0.0, 0.0], true), (200.0, [0.1, 0.2], true), (300.0, [0.0, 1.0], true)]);
        for size in [WIDE, NARROW] {
            let svg = stack.svg(size).unwrap();
            assert_whole(&svg);
            assert_eq!(svg.matches("class=\"bar series-0\"").count(), 2);
            assert_eq!(svg.matches("class=\"bar series-1\"").count(), 4);
            assert_titled(&svg);
            assert!(svg.contains("<title>&lt;theirs&gt;, 200 a second: 20 % second</title>"), "{svg}");
            assert_eq!(svg.matches("<circle").count(), 2, "the step in each panel that has none");
            assert!(svg.contains("&lt;theirs&gt;") && svg.contains("a &lt;b&gt;"), "{svg}");
            let ends: Vec<(&str, &str)> = svg
                .lines()
                .filter_map(|line| line.split_once("class=\"bar")?.1.split_once(" d=\"M")?.1.split_once('V'))
                .collect();
            let (first, second) = (ends[0], ends[1]);
            let end = first.1.split('"').next().unwrap();
            assert_eq!(end, second.0.split_once(' ').unwrap().1);
            let height: f64 = svg
                .split("viewBox=\"0 0 ")
                .nth(1)
                .unwrap()
                .split(['"', ' '])
                .nth(1)
                .unwrap()
                .parse()
                .unwrap();
            for path in svg.split(" d=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
                for number in path.split(['M', 'L', 'H', 'V', ' ']).filter(|number| !number.is_empty()) {
                    let number: f64 = number.parse().unwrap();
                    assert!((0.0..=size.width.max(height)).contains(&number), "{path}");
                }
            }
        }
        let names: Vec<String> = stack.legend().into_iter().map(|key| key.name).collect();
        assert_eq!(names, ["first", "second", "none"]);
    }

    #[test]
    fn step_that_does_not_count_is_a_cross_and_nothing_has_no_picture() {
        let (stack, nothing) = (stack(&[(100.0, [0.0, 0.0], false)]), stack(&[]));
        let svg = stack.svg(WIDE).unwrap();
        assert_eq!((svg.matches("class=\"cross\"").count(), svg.matches("class=\"bar").count()), (2, 0));
        assert_eq!(stack.legend().len(), 1);
        assert!(nothing.svg(WIDE).is_none());
    }
}
