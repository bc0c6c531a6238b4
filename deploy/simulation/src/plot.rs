//! Line plots as SVG.

use std::fmt::Write;

/// One line of a plot.
pub struct PlotLine {
    pub title: String,
    pub points: Vec<(f64, f64)>,
}

/// A plot with linear x and linear or logarithmic y.
pub struct LinePlot {
    pub title: &'static str,
    pub x_title: &'static str,
    pub y_title: &'static str,
    pub x_ticks: Vec<f64>,
    pub y_ticks: Vec<f64>,
    pub is_logarithmic: bool,
    pub lines: Vec<PlotLine>,
}

const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333"];
const LEFT: f64 = 70.0;
const TOP: f64 = 40.0;
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 300.0;

impl LinePlot {
    fn x(&self, value: f64) -> f64 {
        let (first, last) = ends(&self.x_ticks);
        LEFT + WIDTH * ((value - first) / (last - first)).clamp(0.0, 1.0)
    }

    fn y(&self, value: f64) -> f64 {
        let scaled = |value: f64| if self.is_logarithmic { value.max(1e-9).ln() } else { value };
        let (first, last) = ends(&self.y_ticks);
        let (first, last) = (scaled(first), scaled(last));
        TOP + HEIGHT * (1.0 - ((scaled(value) - first) / (last - first)).clamp(0.0, 1.0))
    }

    fn axes(&self, svg: &mut String) {
        let (right, bottom) = (LEFT + WIDTH, TOP + HEIGHT);
        for tick in &self.y_ticks {
            let y = self.y(*tick);
            let _ = writeln!(
                svg,
                "<path d='M{LEFT} {y:.1}H{right}' stroke='#ddd'/><text x='{:.1}' y='{:.1}' text-anchor='end'>{tick}</text>",
                LEFT - 6.0,
                y + 4.0
            );
        }
        for tick in &self.x_ticks {
            let x = self.x(*tick);
            let _ = writeln!(
                svg,
                "<path d='M{x:.1} {TOP}V{bottom}' stroke='#eee'/><text x='{x:.1}' y='{:.1}' text-anchor='middle'>{tick}</text>",
                bottom + 16.0
            );
        }
        let _ = writeln!(
            svg,
            "<text x='{:.1}' y='{:.1}' text-anchor='middle'>{}</text><text x='{LEFT}' y='{:.1}'>{}</text>",
            LEFT + WIDTH / 2.0,
            bottom + 34.0,
            self.x_title,
            TOP - 8.0,
            self.y_title
        );
    }

    /// The picture. Values outside the ticks are drawn at the edge.
    pub fn svg(&self) -> String {
        let mut svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 800 390' font-family='sans-serif' font-size='12'>\n\
             <rect width='800' height='390' fill='white'/><text x='{LEFT}' y='16' font-size='14'>{}</text>\n",
            self.title
        );
        self.axes(&mut svg);
        for (number, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let point = |(x, y): &(f64, f64)| format!("{:.1},{:.1}", self.x(*x), self.y(*y));
            let points: Vec<String> = line.points.iter().map(point).collect();
            let y = TOP + 12.0 + 18.0 * number as f64;
            let x = LEFT + WIDTH + 10.0;
            let _ = writeln!(
                svg,
                "<polyline points='{}' fill='none' stroke='{colour}' stroke-width='1.5'/>\
                 <path d='M{x} {y}h16' stroke='{colour}' stroke-width='3'/><text x='{:.1}' y='{:.1}'>{}</text>",
                points.join(" "),
                x + 20.0,
                y + 4.0,
                line.title
            );
        }
        svg + "</svg>\n"
    }
}

fn ends(ticks: &[f64]) -> (f64, f64) {
    (ticks.first().copied().unwrap_or(0.0), ticks.last().copied().unwrap_or(1.0))
}
