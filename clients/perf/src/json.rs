//! `--json`: all results with their windows and histograms, for programs and for `--compare`.

use crate::measure::{LoadPoint, Point, TargetResults};
use crate::output::listed_percentiles;
use crate::settings::{Generation, Settings};
use crate::statistics::ServerStats;
use crate::window::Window;
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

/// Significant digits of the histogram.
const DIGITS: u8 = 3;

pub fn results_json(all: &[TargetResults], settings: &Settings) -> Value {
    let result = |measured: &TargetResults| {
        let target = &measured.target;
        let points: Vec<Value> =
            measured.points.iter().map(|point| self::point_json(point, settings)).collect();
        json!({
            "server": target.server,
            "model": target.model.name,
            "version": measured.points.first().map_or("", |p| p.window.server.version.as_str()),
            "points": points,
        })
    };
    json!({
        "format": "trtserver-perf 1",
        "generation": match settings.generation { Generation::V1 => "v1", Generation::V2 => "v2" },
        "protocol": settings.protocol.name(),
        "streaming": settings.streaming,
        "batch_size": settings.batch,
        "shared_memory": settings.shared_memory,
        "window_ms": settings.window.as_millis() as u64,
        "results": all.iter().map(result).collect::<Vec<_>>(),
    })
}

fn to_microseconds(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

pub fn point_json(point: &Point, settings: &Settings) -> Value {
    let load = match point.load {
        LoadPoint::Concurrency(n) => json!({ "concurrency": n }),
        LoadPoint::Rate(rate) => json!({ "request_rate": rate }),
        LoadPoint::Intervals(rate) => json!({ "intervals_with_mean_rate": rate }),
    };
    let window = &point.window;
    let mut latency = Map::new();
    latency.insert("avg".to_owned(), json!(to_microseconds(window.average_ns)));
    latency.insert("std".to_owned(), json!(window.deviation_us));
    let whole =
        listed_percentiles(settings.percentile).into_iter().map(|p| (p.to_string(), f64::from(p)));
    for (name, percent) in whole.chain([("99.9".to_owned(), 99.9), ("99.99".to_owned(), 99.99)]) {
        latency.insert(format!("p{name}"), json!(to_microseconds(window.percentile(percent))));
    }
    latency.insert("max".to_owned(), json!(to_microseconds(window.percentile(100.0))));
    let short = |window: &Window| {
        json!({
            "throughput": window.infer_per_sec,
            "avg_us": to_microseconds(window.average_ns),
            "p99_us": to_microseconds(window.percentile(99.0)),
            "requests": window.requests,
        })
    };
    json!({
        "load": load,
        "stable": point.stable,
        "met": point.met,
        "throughput": window.infer_per_sec,
        "requests": window.requests,
        "failures": window.failures,
        "first_failure": window.first_failure,
        "delayed": window.delayed,
        "sequences": window.sequences,
        "responses": window.responses,
        "latency_us": latency,
        "send_us": to_microseconds(window.send_ns),
        "receive_us": to_microseconds(window.receive_ns),
        "histogram_us": latency_histogram(&window.latencies),
        "windows": point.rounds.iter().flatten().map(short).collect::<Vec<_>>(),
        "server": server_json(&window.server, settings.generation),
    })
}

/// Pairs of a latency and the number of requests that took about as long.
pub fn latency_histogram(latencies: &[u64]) -> Vec<(f64, u64)> {
    let Ok(mut histogram) = Histogram::<u64>::new(DIGITS) else { return Vec::new() };
    for latency in latencies {
        histogram.saturating_record(*latency);
    }
    let steps = histogram.iter_recorded();
    steps
        .map(|step| (to_microseconds(step.value_iterated_to()), step.count_since_last_iteration()))
        .collect()
}

fn server_json(stats: &ServerStats, generation: Generation) -> Value {
    let average = |ns: u64| to_microseconds(stats.average(ns));
    let mut fields = Map::new();
    let mut add = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    add("model", json!(stats.model));
    add("version", json!(stats.version));
    add("requests", json!(stats.requests));
    add("failed", json!(stats.failed));
    add("inferences", json!(stats.inferences));
    add("executions", json!(stats.executions));
    add("total_us", json!(average(stats.total_ns)));
    add("queue_us", json!(average(stats.queue_ns)));
    add("compute_us", json!(average(stats.compute_ns)));
    if generation == Generation::V2 {
        add("compute_input_us", json!(average(stats.compute_input_ns)));
        add("compute_infer_us", json!(average(stats.compute_infer_ns)));
        add("compute_output_us", json!(average(stats.compute_output_ns)));
        let batches = stats.batches.iter().map(|(size, count)| (size.to_string(), json!(count)));
        add("executions_by_batch_size", Value::Object(batches.collect()));
    }
    let steps: Vec<Value> =
        stats.composing.iter().map(|step| server_json(step, generation)).collect();
    if !steps.is_empty() {
        add("composing", json!(steps));
    }
    Value::Object(fields)
}
