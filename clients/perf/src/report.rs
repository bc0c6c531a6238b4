//! `--report`: one self-contained HTML page with tables and plots as inline SVG.

mod plot;

use crate::compare::load_text;
use plot::{Curve, Plot, Scale};
use serde_json::Value;
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:1100px;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:1em 0}th,td{padding:.25em .8em;text-align:right;border-bottom:1px solid #ddd}\
th:first-child,td:first-child{text-align:left}.bad{color:#b00020;font-weight:600}svg{max-width:100%;height:auto}\
figure{margin:1.5em 0}figcaption{color:#555}";

/// `json` is the value that `--json` writes.
pub fn html_page(json: &Value, comparison: &str) -> String {
    let mut out = String::new();
    let what = format!(
        "{} over {}{}",
        text(&json["generation"]),
        text(&json["protocol"]),
        if json["streaming"] == true { " streams" } else { "" }
    );
    let _ = writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>trtserver-perf</title>\
         <style>{STYLE}</style></head><body>\n<h1>trtserver-perf</h1>\n<p>{}, batch size {}, windows of {} ms</p>",
        escape_html(&what),
        json["batch_size"],
        json["window_ms"]
    );
    let results = html_list(&json["results"]);
    out += &html_plots(results);
    for result in results {
        let _ = writeln!(
            out,
            "<h2>{} on {}</h2>",
            escape_html(&text(&result["model"])),
            escape_html(&text(&result["server"]))
        );
        out += &html_table(html_list(&result["points"]));
    }
    if !comparison.is_empty() {
        let _ = writeln!(out, "<h2>Comparison</h2>\n<pre>{}</pre>", escape_html(comparison));
    }
    out += "</body></html>\n";
    out
}

fn html_list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn name(result: &Value) -> String {
    format!("{} on {}", text(&result["model"]), text(&result["server"]))
}

fn html_plots(results: &[Value]) -> String {
    let curve = |result: &Value, percentile: &str| {
        let point = |point: &Value| {
            let x = point["throughput"].as_f64()?;
            Some((x, point["latency_us"][percentile].as_f64()?))
        };
        let points = html_list(&result["points"]).iter().filter_map(point).collect();
        Curve { name: format!("{} ({percentile})", name(result)), points }
    };
    let both = |result| [curve(result, "p50"), curve(result, "p99")];
    let throughput = Plot {
        title: "Throughput and latency",
        x: ("inferences per second", Scale::Linear),
        y: ("latency, microseconds", Scale::Log),
        x_ticks: Vec::new(),
        curves: results.iter().flat_map(both).collect(),
    };
    // Nines: 90 % is 1, 99 % is 2, and so on.
    let spectrum = |result: &Value, point: &Value| {
        let histogram = html_list(&point["histogram_us"]);
        let counts =
            || histogram.iter().filter_map(|pair| Some((pair[0].as_f64()?, pair[1].as_u64()?)));
        let all: u64 = counts().map(|(_, count)| count).sum();
        let mut seen = 0;
        let mut points = Vec::new();
        for (latency, count) in counts() {
            let before = 1.0 - seen as f64 / all.max(1) as f64;
            seen += count;
            points.push((-before.log10(), latency));
        }
        // A page stays small: the shape needs no more points.
        let step = points.len().div_ceil(400).max(1);
        let last = points.last().copied();
        let mut kept: Vec<(f64, f64)> = points.into_iter().step_by(step).collect();
        kept.extend(last);
        Curve { name: format!("{}, {}", name(result), load_text(&point["load"])), points: kept }
    };
    let all = results.iter().flat_map(|result| {
        html_list(&result["points"]).iter().map(move |point| spectrum(result, point))
    });
    let ticks = [("0 %", 0.0), ("90 %", 1.0), ("99 %", 2.0), ("99.9 %", 3.0), ("99.99 %", 4.0)];
    let percentiles = Plot {
        title: "Latency by percentile",
        x: ("percentile", Scale::Linear),
        y: ("latency, microseconds", Scale::Log),
        x_ticks: ticks.map(|(name, at)| (name.to_owned(), at)).to_vec(),
        curves: all.collect(),
    };
    throughput.svg() + &percentiles.svg()
}

fn html_table(points: &[Value]) -> String {
    let mut out = "<table>\n<tr><th>Load</th><th>Inferences/s</th><th>Requests</th><th>Failed</th>"
        .to_owned();
    for name in ["avg", "p50", "p90", "p99", "p99.9", "p99.99", "max"] {
        let _ = write!(out, "<th>{name} µs</th>");
    }
    out += "<th>Server queue µs</th><th>Server compute µs</th><th>Mean batch</th><th>Stable</th></tr>\n";
    for point in points {
        let number =
            |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), |n| format!("{n:.0}"));
        let failed = point["failures"].as_u64().unwrap_or(0);
        let server = &point["server"];
        let count = |name: &str| server[name].as_f64().unwrap_or(0.0);
        let batch = match count("executions") {
            0.0 => "-".to_owned(),
            executions => format!("{:.2}", count("inferences") / executions),
        };
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td{}>{failed}</td>",
            escape_html(&load_text(&point["load"])),
            number(&point["throughput"]),
            number(&point["requests"]),
            if failed > 0 { " class=\"bad\"" } else { "" }
        );
        for name in ["avg", "p50", "p90", "p99", "p99.9", "p99.99", "max"] {
            let _ = write!(out, "<td>{}</td>", number(&point["latency_us"][name]));
        }
        let _ = writeln!(
            out,
            "<td>{}</td><td>{}</td><td>{batch}</td><td{}</td></tr>",
            number(&server["queue_us"]),
            number(&server["compute_us"]),
            if point["stable"] == true { ">yes" } else { " class=\"bad\">no" }
        );
    }
    out + "</table>\n"
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
