//! Verdicts: conditions that a result must meet, and whether one result is better than another
//! beyond noise.

mod requirement;
mod welch;

pub use requirement::Requirement;

use crate::number::format_number;
use serde_json::Value;

/// Chance of calling equal results different.
const SIGNIFICANCE: f64 = 0.01;
/// Fewer windows have no spread worth the name.
const FEWEST: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonVerdict {
    Better,
    Worse,
    Same,
    /// Too few windows.
    Unknown,
}

impl ComparisonVerdict {
    fn name(self) -> &'static str {
        match self {
            ComparisonVerdict::Better => "better",
            ComparisonVerdict::Worse => "WORSE",
            ComparisonVerdict::Same => "no difference beyond noise",
            ComparisonVerdict::Unknown => "too few windows to tell",
        }
    }
}

/// A figure that is compared.
#[derive(Clone, Copy, Debug)]
pub struct ComparedMetric {
    name: &'static str,
    field: &'static str,
    unit: &'static str,
    more_is_better: bool,
}

pub const METRICS: [ComparedMetric; 3] = [
    ComparedMetric {
        name: "throughput",
        field: "throughput",
        unit: "infer/sec",
        more_is_better: true,
    },
    ComparedMetric { name: "avg latency", field: "avg_us", unit: "usec", more_is_better: false },
    ComparedMetric { name: "p99 latency", field: "p99_us", unit: "usec", more_is_better: false },
];

/// Judges the values of windows: Welch's t-test on their means, and a difference above the
/// tolerance.
pub fn judge_metric(
    before: &[f64],
    after: &[f64],
    metric: ComparedMetric,
    tolerance: f64,
) -> (ComparisonVerdict, String) {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (old, new) = (mean(before), mean(after));
    let change = if old == 0.0 { 0.0 } else { new / old - 1.0 };
    let (verdict, chance) = if before.len() < FEWEST || after.len() < FEWEST {
        (ComparisonVerdict::Unknown, String::new())
    } else {
        let p = welch::p_value(before, after);
        let differs = p < SIGNIFICANCE && change.abs() > tolerance;
        let verdict = match (differs, (change > 0.0) == metric.more_is_better) {
            (false, _) => ComparisonVerdict::Same,
            (true, true) => ComparisonVerdict::Better,
            (true, false) => ComparisonVerdict::Worse,
        };
        (verdict, format!(", p = {p:.2}"))
    };
    let text = format!(
        "{}: {} -> {} {} ({:+.1} %{chance}): {}",
        metric.name,
        format_number(old),
        format_number(new),
        metric.unit,
        change * 100.0,
        verdict.name()
    );
    (verdict, text)
}

/// The values of a metric in the windows of a point.
fn window_values(point: &Value, metric: ComparedMetric) -> Vec<f64> {
    let windows = point["windows"].as_array().map(Vec::as_slice).unwrap_or_default();
    windows.iter().filter_map(|window| window[metric.field].as_f64()).collect()
}

/// The comparison of two points.
pub fn compare_points(
    before: &Value,
    after: &Value,
    tolerance: f64,
) -> Vec<(ComparisonVerdict, String)> {
    METRICS
        .into_iter()
        .map(|metric| {
            judge_metric(
                &window_values(before, metric),
                &window_values(after, metric),
                metric,
                tolerance,
            )
        })
        .collect()
}

/// A report of two results, and whether the second is worse anywhere.
///
/// # Errors
/// They are not results, or have no load in common.
pub fn compare_results(
    before: &Value,
    after: &Value,
    tolerance: f64,
) -> Result<(String, bool), String> {
    let list = |json: &Value, which: &str| {
        let results = json["results"].as_array().cloned();
        results.ok_or_else(|| format!("the {which} file is not a result of --json"))
    };
    let (old, new) = (list(before, "first")?, list(after, "second")?);
    let (mut out, mut worse, mut compared) = (String::new(), false, 0);
    for (index, new) in new.iter().enumerate() {
        // By model; among several servers of one model, in the order given.
        let nth = after["results"].as_array().map_or(0, |all| {
            all[..index].iter().filter(|other| other["model"] == new["model"]).count()
        });
        let Some(old) = old.iter().filter(|old| old["model"] == new["model"]).nth(nth) else {
            continue;
        };
        let loads = |json: &Value| json["points"].as_array().cloned().unwrap_or_default();
        for point in loads(new) {
            let Some(twin) = loads(old).into_iter().find(|old| old["load"] == point["load"]) else {
                continue;
            };
            compared += 1;
            let model = new["model"].as_str().unwrap_or_default();
            out += &format!("{model}, {}\n", load_text(&point["load"]));
            for (verdict, text) in compare_points(&twin, &point, tolerance) {
                worse |= verdict == ComparisonVerdict::Worse;
                out += &format!("  {text}\n");
            }
            if point["failures"].as_u64().unwrap_or(0) > 0 {
                worse = true;
                out += "  the second result has failed requests: WORSE\n";
            }
        }
    }
    if compared == 0 {
        return Err("the two results have no model and load in common".to_owned());
    }
    out +=
        if worse { "The second result is worse.\n" } else { "The second result is not worse.\n" };
    Ok((out, worse))
}

pub fn load_text(load: &Value) -> String {
    let mut parts = Vec::new();
    if let Some(fields) = load.as_object() {
        for (name, value) in fields {
            parts.push(format!("{}: {value}", name.replace('_', " ")));
        }
    }
    parts.join(", ")
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
