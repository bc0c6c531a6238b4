//! SVG plot of throughput against latency: a line per series, a dot per concurrency. Its axes serve
//! other plots too.

use crate::Result;
use std::fmt::Write;
use std::path::Path;

pub const PANEL: f64 = 460.0;
pub const HEIGHT: f64 = 300.0;
pub const LEFT: f64 = 60.0;
pub const TOP: f64 = 40.0;
/// Gap between two panels, with the axis labels of the right one.
const GAP: f64 = 70.0;
/// Space below a panel for its axis labels.
pub const BELOW: f64 = 60.0;
const LEGEND: f64 = 220.0;
const LEGEND_LINE: f64 = 17.0;
/// Distinct colours for all clients and protocols of a group.
pub const COLOURS: [&str; 12] = [
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f",
    "#bcbd22", "#17becf", "#003f5c", "#ffa600",
];

#[derive(Default)]
pub struct Plot {
    groups: Vec<Group>,
}

/// A comparison: two panels.
struct Group {
    name: String,
    series: Vec<Series>,
}

struct Series {
    name: String,
    /// Peer server: dashed, in the colour of ours.
    is_peer: bool,
    /// Responses per second, p50 and p99 in microseconds.
    points: Vec<[f64; 3]>,
}

impl Plot {
    /// Points with values that are not positive have no place on logarithmic scales and are left
    /// out.
    pub fn add(&mut self, group: &str, name: &str, is_peer: bool, point: [f64; 3]) {
        if point.iter().any(|number| !number.is_finite() || *number <= 0.0) {
            return;
        }
        let at = self.groups.iter().position(|other| other.name == group).unwrap_or_else(|| {
            self.groups.push(Group { name: group.to_owned(), series: Vec::new() });
            self.groups.len() - 1
        });
        let series = &mut self.groups[at].series;
        match series.iter_mut().find(|series| series.name == name && series.is_peer == is_peer) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name: name.to_owned(), is_peer, points: vec![point] }),
        }
    }

    pub fn write(&self, file: &Path) -> Result<()> {
        if self.groups.is_empty() {
            return Err(format!("{}: there is nothing to draw", file.display()));
        }
        std::fs::write(file, self.svg())
            .map_err(|e| format!("cannot write {}: {e}", file.display()))
    }

    fn svg(&self) -> String {
        let width = LEFT + 2.0 * PANEL + GAP + LEGEND;
        let height: f64 = self.groups.iter().map(Group::height).sum();
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let mut y = 0.0;
        for group in &self.groups {
            // Writing to a string does not fail.
            let _ = writeln!(svg, "<g transform=\"translate(0 {y})\">");
            group.draw(&mut svg);
            svg += "</g>\n";
            y += group.height();
        }
        svg + "</svg>\n"
    }
}

impl Group {
    fn height(&self) -> f64 {
        let legend = LEGEND_LINE * (self.series.len() as f64 + 1.0);
        TOP + legend.max(HEIGHT + BELOW)
    }

    fn draw(&self, svg: &mut String) {
        let all = || self.series.iter().flat_map(|series| &series.points);
        let across = Axis::of(all().map(|point| point[0]), PANEL);
        // One scale for both panels.
        let up = Axis::of(all().flat_map(|point| [point[1], point[2]]), HEIGHT);
        for (number, title) in [(1, "p50"), (2, "p99")] {
            let left = LEFT + (number - 1) as f64 * (PANEL + GAP);
            let title = format!("{}: {title} latency, µs", self.name);
            frame(svg, left, &title, "inferences a second", &across, &up);
            for series in &self.series {
                self.line(svg, series, |point| {
                    (left + across.at(point[0]), TOP + HEIGHT - up.at(point[number]))
                });
            }
        }
        self.legend(svg, LEFT + 2.0 * PANEL + GAP + 20.0);
    }

    /// A series and its peer have one colour.
    fn colour(&self, series: &Series) -> &'static str {
        let mut names: Vec<&str> = Vec::new();
        for other in &self.series {
            if !names.contains(&other.name.as_str()) {
                names.push(&other.name);
            }
        }
        let at = names.iter().position(|name| *name == series.name).unwrap_or(0);
        COLOURS[at % COLOURS.len()]
    }

    fn line(&self, svg: &mut String, series: &Series, place: impl Fn(&[f64; 3]) -> (f64, f64)) {
        let (colour, dashes) = (self.colour(series), dashes(series));
        let places: Vec<(f64, f64)> = series.points.iter().map(place).collect();
        let text: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"{dashes}/>",
            text.join(" ")
        );
        let fill = if series.is_peer { "white" } else { colour };
        for (x, y) in places {
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" stroke=\"{colour}\" fill=\"{fill}\"/>"
            );
        }
    }

    fn legend(&self, svg: &mut String, left: f64) {
        for (i, series) in self.series.iter().enumerate() {
            let y = TOP + LEGEND_LINE * (i as f64 + 0.5);
            let (colour, dashes) = (self.colour(series), dashes(series));
            let vs = if series.is_peer { "vs: " } else { "" };
            let _ = writeln!(
                svg,
                "<path d=\"M{left:.0} {y:.1}h24\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>\
                 <text x=\"{:.0}\" y=\"{:.1}\">{vs}{}</text>",
                left + 30.0,
                y + 4.0,
                series.name
            );
        }
    }
}

fn dashes(series: &Series) -> &'static str {
    if series.is_peer { " stroke-dasharray=\"5 3\"" } else { "" }
}

/// Logarithmic scale between two of 1, 2, 5, 10, 20, …
pub struct Axis {
    low: f64,
    high: f64,
    length: f64,
}

impl Axis {
    pub fn of(values: impl Iterator<Item = f64>, length: f64) -> Self {
        let (low, high) =
            values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        let low = steps().rev().find(|step| *step <= low).unwrap_or(1e-3);
        let high = steps().find(|step| *step >= high && *step > low).unwrap_or(1e12);
        Axis { low, high, length }
    }

    pub fn at(&self, value: f64) -> f64 {
        (value / self.low).log10() / (self.high / self.low).log10() * self.length
    }

    /// Grid lines and their labels.
    fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        let within = steps().filter(|step| (self.low..=self.high).contains(step));
        within.map(|step| (self.at(step), written(step)))
    }
}

fn steps() -> impl DoubleEndedIterator<Item = f64> {
    (-3..12).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)))
}

fn written(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.0}M", v / 1e6),
        v if v >= 1e3 => format!("{:.0}k", v / 1e3),
        v => v.to_string(),
    }
}

/// Grid, labels and title of a panel. `axis` names what grows to the right.
pub fn frame(svg: &mut String, left: f64, title: &str, axis: &str, across: &Axis, up: &Axis) {
    let bottom = TOP + HEIGHT;
    for (x, text) in across.ticks() {
        let x = left + x;
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
            bottom + 18.0
        );
    }
    for (y, text) in up.ticks() {
        let y = bottom - y;
        let right = left + PANEL;
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            left - 6.0,
            y + 4.0
        );
    }
    let middle = left + PANEL / 2.0;
    let _ = writeln!(
        svg,
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{title}</text>\
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{axis}</text>",
        TOP - 14.0,
        bottom + 38.0
    );
}

#[cfg(test)]
#[path = "plot_tests.rs"]
mod tests;
