//! Throughput against latency as an SVG picture: a line for each series, a dot for each number of requests at once.

use crate::Result;
use std::fmt::Write;
use std::path::Path;

const PANEL: f64 = 460.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 40.0;
const GAP: f64 = 80.0;
const LEGEND: f64 = 300.0;
const LEGEND_LINE: f64 = 17.0;
/// Hues go round in steps that leave neighbours far apart.
const HUE_STEP: f64 = 137.5;

#[derive(Default)]
pub struct Plot {
    series: Vec<Series>,
}

struct Series {
    name: String,
    /// Of the other server: dashed, in the colour of ours.
    beside: bool,
    /// Answers a second, p50 and p99 in microseconds.
    points: Vec<[f64; 3]>,
}

impl Plot {
    pub fn add(&mut self, name: &str, beside: bool, point: [f64; 3]) {
        if point.iter().any(|number| !number.is_finite() || *number <= 0.0) {
            return;
        }
        let same = |series: &&mut Series| series.name == name && series.beside == beside;
        match self.series.iter_mut().find(same) {
            Some(series) => series.points.push(point),
            None => {
                let (name, points) = (name.to_owned(), vec![point]);
                self.series.push(Series { name, beside, points });
            }
        }
    }

    pub fn write(&self, file: &Path) -> Result<()> {
        if self.series.is_empty() {
            return Err(format!("{}: there is nothing to draw", file.display()));
        }
        std::fs::write(file, self.svg())
            .map_err(|e| format!("cannot write {}: {e}", file.display()))
    }

    fn svg(&self) -> String {
        let width = LEFT + 2.0 * PANEL + GAP + LEGEND;
        let lines = self.series.len() as f64;
        let height = (TOP + HEIGHT + 60.0).max(TOP + LEGEND_LINE * (lines + 1.0));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let all = || self.series.iter().flat_map(|series| &series.points);
        let across = Axis::of(all().map(|point| point[0]), PANEL);
        // One scale for both, so that they can be compared.
        let up = Axis::of(all().flat_map(|point| [point[1], point[2]]), HEIGHT);
        for (number, title) in [(1, "p50"), (2, "p99")] {
            let left = LEFT + (number - 1) as f64 * (PANEL + GAP);
            frame(&mut svg, left, &format!("{title} latency, µs"), &across, &up);
            for series in &self.series {
                self.line(&mut svg, series, |point| {
                    (left + across.at(point[0]), TOP + HEIGHT - up.at(point[number]))
                });
            }
        }
        self.legend(&mut svg, LEFT + 2.0 * PANEL + GAP + 20.0);
        svg + "</svg>\n"
    }

    /// A series and the same of the other server have one colour.
    fn colour(&self, series: &Series) -> String {
        let first = self.series.iter().position(|other| other.name == series.name);
        format!("hsl({:.0},70%,42%)", first.unwrap_or(0) as f64 * HUE_STEP % 360.0)
    }

    fn line(&self, svg: &mut String, series: &Series, place: impl Fn(&[f64; 3]) -> (f64, f64)) {
        let (colour, dashes) = (self.colour(series), dashes(series));
        let places: Vec<(f64, f64)> = series.points.iter().map(place).collect();
        let text: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        // Writing to a string does not fail.
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"{dashes}/>",
            text.join(" ")
        );
        for (x, y) in places {
            let _ =
                writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
    }

    fn legend(&self, svg: &mut String, left: f64) {
        for (i, series) in self.series.iter().enumerate() {
            let y = TOP + LEGEND_LINE * (i as f64 + 0.5);
            let (colour, dashes) = (self.colour(series), dashes(series));
            let vs = if series.beside { "vs: " } else { "" };
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
    if series.beside { " stroke-dasharray=\"5 3\"" } else { "" }
}

/// Logarithmic, from one power of ten to another.
struct Axis {
    low: f64,
    high: f64,
    length: f64,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64>, length: f64) -> Self {
        let (low, high) =
            values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        let low = low.log10().floor();
        Axis { low, high: high.log10().ceil().max(low + 1.0), length }
    }

    fn at(&self, value: f64) -> f64 {
        (value.log10() - self.low) / (self.high - self.low) * self.length
    }

    /// Where lines are drawn, and what is written there: at each power of ten.
    fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        let powers = self.low as i32..=self.high as i32;
        powers.map(|power| (self.at(10f64.powi(power)), written(10f64.powi(power))))
    }
}

fn written(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.0}M", v / 1e6),
        v if v >= 1e3 => format!("{:.0}k", v / 1e3),
        v => v.to_string(),
    }
}

fn frame(svg: &mut String, left: f64, title: &str, across: &Axis, up: &Axis) {
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
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">inferences a second</text>",
        TOP - 14.0,
        bottom + 38.0
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_servers_of_a_series_have_one_colour() {
        let mut plot = Plot::default();
        plot.add("v2-http identity 64 own", false, [1000.0, 50.0, 90.0]);
        plot.add("v2-http identity 64 own", false, [9000.0, 150.0, 400.0]);
        plot.add("v2-http identity 64 own", true, [500.0, 100.0, 200.0]);
        plot.add("nothing", false, [f64::NAN, 1.0, 1.0]);
        let svg = plot.svg();
        assert_eq!(svg.matches("<polyline").count(), 4);
        assert_eq!(svg.matches("stroke-dasharray").count(), 3);
        assert_eq!(svg.matches("<circle").count(), 6);
        assert_eq!(svg.matches("hsl(0,70%,42%)").count(), 4 + 6 + 2);
    }

    #[test]
    fn an_axis_goes_from_one_power_of_ten_to_another() {
        let axis = Axis::of([30.0, 800.0].into_iter(), 200.0);
        let ticks: Vec<_> = axis.ticks().collect();
        let wanted = [(0.0, "10"), (100.0, "100"), (200.0, "1k")];
        assert_eq!(ticks, wanted.map(|(at, text)| (at, text.to_owned())));
    }
}
