//! Line plots as SVG.

use super::escape_html;
use crate::number::format_number;
use std::fmt::Write;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 50.0;
/// Colours that readers with colour blindness can distinguish too.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8a6d00"];

#[derive(Clone, Copy, PartialEq)]
pub enum Scale {
    Linear,
    Log,
}

pub struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

pub struct Plot {
    pub title: &'static str,
    pub x: (&'static str, Scale),
    pub y: (&'static str, Scale),
    /// Named places of the x axis; chosen if empty.
    pub x_ticks: Vec<(String, f64)>,
    pub curves: Vec<Curve>,
}

/// An axis: values onto pixels.
struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(scale: Scale, values: &[f64], from: f64, to: f64) -> Self {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let high = finite().fold(0.0, f64::max);
        let (low, high) = match scale {
            Scale::Linear => (0.0, if high > 0.0 { high * 1.05 } else { 1.0 }),
            Scale::Log => {
                let positive = finite().filter(|value| *value > 0.0);
                let low = positive.fold(f64::MAX, f64::min).min(high.max(1.0));
                (10_f64.powf(low.log10().floor()), 10_f64.powf(high.max(1.0).log10().floor() + 1.0))
            }
        };
        Axis { scale, low, high, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(self.low) / self.low).log10() / (self.high / self.low).log10(),
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    fn ticks(&self) -> Vec<(String, f64)> {
        let named = |value: f64| (format_number(value), value);
        match self.scale {
            Scale::Linear => {
                let rough = (self.high - self.low) / 6.0;
                let unit = 10_f64.powf(rough.log10().floor());
                let step =
                    [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * unit).find(|s| *s >= rough);
                let step = step.unwrap_or(unit * 10.0);
                (0..=8)
                    .map(|n| f64::from(n) * step)
                    .filter(|v| *v <= self.high)
                    .map(named)
                    .collect()
            }
            Scale::Log => {
                let first = self.low.log10().round() as i32;
                let last = self.high.log10().round() as i32;
                (first..=last).map(|exponent| named(10_f64.powi(exponent))).collect()
            }
        }
    }
}

impl Plot {
    pub fn svg(&self) -> String {
        let all = |value: fn(&(f64, f64)) -> f64| -> Vec<f64> {
            self.curves.iter().flat_map(|curve| &curve.points).map(value).collect()
        };
        let x = Axis::new(self.x.1, &all(|point| point.0), LEFT, WIDTH - RIGHT);
        let y = Axis::new(self.y.1, &all(|point| point.1), HEIGHT - BOTTOM, TOP);
        let mut out = format!(
            "<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" \
             font-family=\"system-ui,sans-serif\" font-size=\"13\">\n",
            self.title
        );
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for (name, value) in y.ticks() {
            let at = y.at(value);
            let _ = writeln!(
                out,
                "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
                LEFT - 8.0,
                at + 4.0
            );
        }
        let ticks = if self.x_ticks.is_empty() { x.ticks() } else { self.x_ticks.clone() };
        for (name, value) in ticks.into_iter().filter(|(_, value)| *value <= x.high) {
            let at = x.at(value);
            let _ = writeln!(
                out,
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"#eee\"/>\
                 <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
                bottom + 18.0
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            (LEFT + right) / 2.0,
            HEIGHT - 8.0,
            self.x.0,
            (TOP + bottom) / 2.0,
            self.y.0
        );
        for (index, curve) in self.curves.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let place = |point: &(f64, f64)| format!("{:.1},{:.1}", x.at(point.0), y.at(point.1));
            let places: Vec<String> = curve.points.iter().map(place).collect();
            let _ = writeln!(
                out,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
                places.join(" ")
            );
            if places.len() <= 100 {
                for point in &curve.points {
                    let _ = writeln!(
                        out,
                        "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\"><title>{}: {}, {}</title></circle>",
                        x.at(point.0),
                        y.at(point.1),
                        escape_html(&curve.name),
                        format_number(point.0),
                        format_number(point.1)
                    );
                }
            }
        }
        out += "</svg>\n<figcaption>";
        out += self.title;
        for (index, curve) in self.curves.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let _ = write!(
                out,
                "<br><span style=\"color:{colour}\">&#9632;</span> {}",
                escape_html(&curve.name)
            );
        }
        out + "</figcaption></figure>\n"
    }
}
