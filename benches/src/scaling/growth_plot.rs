//! SVG plot of growth: the CPU time of a request with many models, connections or instances,
//! divided by that with the fewest.

use super::MOST_GROWTH;
use crate::Result;
use crate::plot::{Axis, BELOW, COLOURS, HEIGHT, LEFT, PANEL, TOP, frame};
use std::fmt::Write;
use std::path::Path;

const LEGEND_LINE: f64 = 17.0;

#[derive(Default)]
pub struct GrowthPlot {
    panels: Vec<Panel>,
}

/// What grows, and a line for each kind of request.
struct Panel {
    of: &'static str,
    series: Vec<(String, Vec<[f64; 2]>)>,
}

impl GrowthPlot {
    /// Adds a point: `growth` with `count` of something.
    pub fn add(&mut self, of: &'static str, series: String, count: usize, growth: f64) {
        if !growth.is_finite() || growth <= 0.0 {
            return;
        }
        let at = self.panels.iter().position(|panel| panel.of == of).unwrap_or_else(|| {
            self.panels.push(Panel { of, series: Vec::new() });
            self.panels.len() - 1
        });
        let all = &mut self.panels[at].series;
        let point = [count as f64, growth];
        match all.iter_mut().find(|(name, _)| *name == series) {
            Some((_, points)) => points.push(point),
            None => all.push((series, vec![point])),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.panels.is_empty()
    }

    pub fn write(&self, file: &Path) -> Result<()> {
        std::fs::write(file, self.svg())
            .map_err(|e| format!("cannot write {}: {e}", file.display()))
    }

    fn svg(&self) -> String {
        let width = (LEFT + PANEL) * self.panels.len() as f64 + LEFT / 2.0;
        let lines = self.panels.iter().map(|panel| panel.series.len()).max().unwrap_or(0);
        let height = TOP + HEIGHT + BELOW + LEGEND_LINE * lines as f64;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        for (number, panel) in self.panels.iter().enumerate() {
            panel.draw(&mut svg, LEFT + (LEFT + PANEL) * number as f64);
        }
        svg + "</svg>\n"
    }
}

impl Panel {
    fn draw(&self, svg: &mut String, left: f64) {
        let counts = self.series.iter().flat_map(|(_, points)| points).map(|point| point[0]);
        let across = Axis::of(counts, PANEL);
        let growths = self.series.iter().flat_map(|(_, points)| points).map(|point| point[1]);
        let up = Axis::of(growths.chain([0.5, 2.0]), HEIGHT);
        let title = format!("CPU time of a request by number of {}", self.of);
        frame(svg, left, &title, self.of, &across, &up);
        let target = TOP + HEIGHT - up.at(MOST_GROWTH);
        // Writing to a string does not fail.
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {target:.1}h{PANEL}\" stroke=\"#d62728\" stroke-dasharray=\"5 3\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#d62728\">target {MOST_GROWTH}</text>",
            left + 6.0,
            target - 5.0
        );
        for (number, (name, points)) in self.series.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let place =
                |point: &[f64; 2]| (left + across.at(point[0]), TOP + HEIGHT - up.at(point[1]));
            let places: Vec<(f64, f64)> = points.iter().map(place).collect();
            let text: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"/>",
                text.join(" ")
            );
            for (x, y) in places {
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
                );
            }
            let y = TOP + HEIGHT + BELOW + LEGEND_LINE * number as f64;
            let _ = writeln!(
                svg,
                "<path d=\"M{left:.0} {y:.1}h24\" stroke=\"{colour}\" stroke-width=\"2\"/>\
                 <text x=\"{:.0}\" y=\"{:.1}\">{name}</text>",
                left + 30.0,
                y + 4.0
            );
        }
    }
}

#[cfg(test)]
#[path = "growth_plot_tests.rs"]
mod tests;
