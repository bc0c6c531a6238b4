//! `-f`: the results as perf_client's CSV, and a file for each step of an ensemble.

use crate::measure::{LoadPoint, Point};
use crate::number::format_number;
use crate::output::listed_percentiles;
use crate::settings::{Generation, Range, Settings};
use crate::statistics::ServerStats;
use std::path::{Path, PathBuf};

/// The file's text: rows in the order of throughput, times in microseconds.
pub fn csv_table(points: &[Point], settings: &Settings) -> String {
    let mut sorted: Vec<&Point> = points.iter().collect();
    sorted.sort_by(|a, b| a.window.infer_per_sec.total_cmp(&b.window.infer_per_sec));
    let mut out = column_heads(settings);
    for percent in listed_percentiles(settings.percentile) {
        out += &format!(",p{percent} latency");
    }
    out.push('\n');
    for point in sorted {
        let window = &point.window;
        let server = &window.server;
        let (queue, computes) = server_times(server, settings.generation);
        let wait = window.average_ns.saturating_sub(window.send_ns + window.receive_ns);
        // Two clocks are compared, so the difference may be below zero.
        let network = wait.saturating_sub(queue + computes.iter().sum::<u64>());
        let mut row = vec![load_column(point.load), format_number(window.infer_per_sec)];
        let times = [window.send_ns, network, queue].into_iter().chain(computes);
        row.extend(times.chain([window.receive_ns]).map(to_microseconds));
        let latencies = listed_percentiles(settings.percentile);
        row.extend(latencies.into_iter().map(|p| to_microseconds(window.percentile(p.into()))));
        out += &row.join(",");
        out.push('\n');
    }
    out
}

/// The files of an ensemble's steps: `NAME_vVERSION.FILE` beside the file.
pub fn composing_tables(
    points: &[Point],
    settings: &Settings,
    file: &Path,
) -> Vec<(PathBuf, String)> {
    // A step has another version where the model was loaded again between two loads.
    let mut steps: Vec<&ServerStats> = Vec::new();
    for step in points.iter().flat_map(|point| &point.window.server.composing) {
        if !steps.iter().any(|known| known.is_same_step(step)) {
            steps.push(step);
        }
    }
    steps
        .into_iter()
        .map(|step| {
            let mut out = column_heads(settings) + "\n";
            for point in points {
                let all = &point.window.server;
                let Some(stats) = all.step(step) else { continue };
                let (queue, computes) = server_times(stats, settings.generation);
                let overhead = stats
                    .average(stats.total_ns)
                    .saturating_sub(queue + computes.iter().sum::<u64>());
                // Throughput of a step follows from its share of requests.
                let ratio = stats.requests as f64 / all.requests.max(1) as f64;
                let throughput = format_number(ratio * point.window.infer_per_sec);
                let mut row = vec![load_column(point.load), throughput, "0".to_owned()];
                row.extend([overhead, queue].into_iter().chain(computes).map(to_microseconds));
                row.push("0".to_owned());
                out += &row.join(",");
                out.push('\n');
            }
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{}_v{}.{name}", step.model, step.version);
            (file.with_file_name(name), out)
        })
        .collect()
}

fn column_heads(settings: &Settings) -> String {
    let load = match settings.range {
        Range::Concurrency { .. } => "Concurrency",
        Range::Rate { .. } | Range::Intervals(_) => "Request Rate",
    };
    let compute = match settings.generation {
        Generation::V1 => "Server Compute",
        Generation::V2 => "Server Compute Input,Server Compute Infer,Server Compute Output",
    };
    format!(
        "{load},Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,{compute},Client Recv"
    )
}

/// Averages of queue and compute times.
fn server_times(stats: &ServerStats, generation: Generation) -> (u64, Vec<u64>) {
    let compute = match generation {
        Generation::V1 => vec![stats.compute_ns],
        Generation::V2 => {
            vec![stats.compute_input_ns, stats.compute_infer_ns, stats.compute_output_ns]
        }
    };
    let compute = compute.into_iter().map(|ns| stats.average(ns)).collect();
    (stats.average(stats.queue_ns), compute)
}

fn load_column(point: LoadPoint) -> String {
    match point {
        LoadPoint::Concurrency(n) => n.to_string(),
        LoadPoint::Rate(rate) | LoadPoint::Intervals(rate) => format_number(rate),
    }
}

fn to_microseconds(ns: u64) -> String {
    (ns / 1000).to_string()
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
