//! The lines of perf_client, byte for byte: settings, results, summary.

use crate::engine::Distribution;
use crate::measure::{LoadPoint, Point};
use crate::number::format_number;
use crate::settings::{Generation, Program, Protocol, Range, Settings};
use crate::statistics::ServerStats;
use crate::window::Window;
use std::fmt::Write;

/// Percentiles that perf_client prints.
const PERCENTILES: [u32; 4] = [50, 90, 95, 99];

/// Appends a line; writing to a string cannot fail.
macro_rules! line {
    ($out:expr, $($arg:tt)*) => {{
        let _ = writeln!($out, $($arg)*);
    }};
}

/// The block before the measurement.
pub fn settings_text(settings: &Settings, stateful: bool, decoupled: bool) -> String {
    let mut out = String::new();
    line!(out, "*** Measurement Settings ***");
    line!(out, "  Batch size: {}", settings.batch);
    line!(out, "  Measurement window: {} msec", settings.window.as_millis());
    let limit = settings.latency_limit_ms;
    match settings.range {
        Range::Concurrency { start, end, .. } if end != 1 => {
            line!(out, "  Latency limit: {limit} msec");
            if end != 0 {
                line!(out, "  Concurrency limit: {} concurrent requests", start.max(end));
            }
        }
        Range::Rate { start, end, .. } if end != 1.0 => {
            line!(out, "  Latency limit: {limit} msec");
            if end != 0.0 {
                let most = format_number(start.max(end));
                line!(out, "  Request Rate limit: {most} requests per seconds");
            }
        }
        _ => {}
    }
    if let Range::Rate { distribution, .. } = settings.range {
        let name = match distribution {
            Distribution::Poisson => "poisson",
            Distribution::Constant => "uniform",
        };
        line!(out, "  Using {name} distribution on request generation");
    }
    if settings.binary_search {
        line!(out, "  Using Binary Search algorithm");
    }
    let asynchronous = settings.asynchronous.unwrap_or(stateful);
    let kind = if asynchronous { "asynchronous" } else { "synchronous" };
    line!(out, "  Using {kind} calls for inference");
    if decoupled {
        line!(out, "  Detected decoupled model, using the first response for measuring latency");
    }
    match settings.percentile {
        None => line!(out, "  Stabilizing using average latency"),
        Some(percent) => line!(out, "  Stabilizing using p{percent} latency"),
    }
    out.push('\n');
    out
}

/// The line before a load point.
pub fn load_text(load: LoadPoint) -> String {
    match load {
        LoadPoint::Concurrency(n) => format!("Request concurrency: {n}\n"),
        LoadPoint::Rate(rate) => {
            format!("Request Rate: {} inference requests per seconds\n", format_number(rate))
        }
        LoadPoint::Intervals(_) => String::new(),
    }
}

/// `-v`: one window.
pub fn pass_text(number: usize, window: &Window, percentile: Option<u32>) -> String {
    let throughput = format_number(window.infer_per_sec);
    let start = format!("  Pass [{number}] throughput: {throughput} infer/sec. ");
    match percentile {
        Some(percent) => {
            format!(
                "{start}p{percent} latency: {} usec\n",
                window.percentile(percent.into()) / 1000
            )
        }
        None => format!(
            "{start}Avg latency: {} usec (std {} usec)\n",
            window.average_ns / 1000,
            window.deviation_us
        ),
    }
}

/// `-v`: a window without a result.
pub fn failed_pass(number: usize, problem: &str) -> String {
    format!("  Pass [{number}] Error: {problem}\n")
}

/// The result of a load point.
pub fn report_text(window: &Window, settings: &Settings, stateful: bool) -> String {
    let mut out = String::new();
    line!(out, "  Client: ");
    line!(out, "    Request count: {}", window.requests);
    if window.failures > 0 {
        line!(out, "    Failed Request Count: {}", window.failures);
    }
    if window.delayed > 0 {
        line!(out, "    Delayed Request Count: {}", window.delayed);
    }
    if stateful {
        let rate = format_number(window.sequences_per_sec);
        line!(out, "    Sequence count: {} ({rate} seq/sec)", window.sequences);
    }
    if window.responses > window.requests {
        line!(out, "    Response count: {}", window.responses);
    }
    line!(out, "    Throughput: {} infer/sec", format_number(window.infer_per_sec));
    if settings.percentile.is_none() {
        line!(
            out,
            "    Avg latency: {} usec (standard deviation {} usec)",
            window.average_ns / 1000,
            window.deviation_us
        );
    }
    for percent in listed_percentiles(settings.percentile) {
        line!(out, "    p{percent} latency: {} usec", window.percentile(percent.into()) / 1000);
    }
    if settings.program == Program::TrtserverPerf {
        for percent in ["99.9", "99.99"] {
            let value = window.percentile(percent.parse().unwrap_or(100.0));
            line!(out, "    p{percent} latency: {} usec", value / 1000);
        }
    }
    out += &client_detail(window, settings);
    line!(out, "  Server: ");
    server_text(&mut out, &window.server, settings, 1);
    out
}

pub fn listed_percentiles(own: Option<u32>) -> Vec<u32> {
    let mut all = PERCENTILES.to_vec();
    all.extend(own);
    all.sort_unstable();
    all.dedup();
    all
}

fn client_detail(window: &Window, settings: &Settings) -> String {
    let [all, send, receive] =
        [window.average_ns, window.send_ns, window.receive_ns].map(|ns| ns / 1000);
    let wait = all.saturating_sub(send + receive);
    let both = send + receive;
    let (protocol, verbose) = (settings.protocol.name(), settings.verbose);
    let parts = match (settings.protocol, verbose) {
        (Protocol::Grpc, false) => {
            format!("(un)marshal request/response {both} usec + response wait {wait} usec")
        }
        (Protocol::Grpc, true) => {
            format!("marshal {send} usec + response wait {wait} usec + unmarshal {receive} usec")
        }
        (Protocol::Http, false) => {
            format!("send/recv {both} usec + response wait {wait} usec")
        }
        (Protocol::Http, true) => {
            format!("send {send} usec + response wait {wait} usec + receive {receive} usec")
        }
    };
    format!("    Avg {protocol} time: {all} usec ({parts})\n")
}

/// `level` 1 is the model, deeper levels are the steps of an ensemble.
fn server_text(out: &mut String, stats: &ServerStats, settings: &Settings, level: usize) {
    let ident = "  ".repeat(level);
    let v2 = settings.generation == Generation::V2;
    if v2 {
        line!(out, "{ident}  Inference count: {}", stats.inferences);
        line!(out, "{ident}  Execution count: {}", stats.executions);
        line!(out, "{ident}  Successful request count: {}", stats.requests);
    } else {
        line!(out, "{ident}  Request count: {}", stats.requests);
        if settings.program == Program::TrtserverPerf && stats.executions > 0 {
            line!(out, "{ident}  Inference count: {}", stats.inferences);
            // The status of v1 tells how often the model was executed, not with which batches.
            let mean = stats.inferences as f64 / stats.executions as f64;
            line!(out, "{ident}  Execution count: {} (avg batch size {mean:.2})", stats.executions);
        }
    }
    if stats.requests == 0 {
        return;
    }
    // Each average is rounded down from whole microseconds, as perf_client does.
    let average = |ns: u64| ns / 1000 / stats.requests;
    let (all, queue, compute) =
        (average(stats.total_ns), average(stats.queue_ns), average(stats.compute_ns));
    let parts =
        [stats.compute_input_ns, stats.compute_infer_ns, stats.compute_output_ns].map(average);
    let computed = if v2 { parts.iter().sum() } else { compute };
    let overhead = all.saturating_sub(queue + computed);
    let _ = write!(out, "{ident}  Avg request latency: {all} usec");
    if stats.composing.is_empty() {
        let _ = write!(out, " (overhead {overhead} usec + queue {queue} usec + ");
        if v2 {
            let [input, infer, output] = parts;
            line!(
                out,
                "compute input {input} usec + compute infer {infer} usec + compute output {output} usec)"
            );
        } else {
            line!(out, "compute {compute} usec)");
        }
        if settings.program == Program::TrtserverPerf {
            batch_text(out, stats, &ident);
        }
        out.push('\n');
        return;
    }
    out.push('\n');
    line!(out, "{ident}  Total avg compute time : {computed} usec");
    line!(out, "{ident}  Total avg queue time : {queue} usec");
    out.push('\n');
    line!(out, "{ident}Composing models: ");
    for step in &stats.composing {
        line!(out, "{ident}{}, version: {}", step.model, step.version);
        server_text(out, step, settings, level + 1);
    }
}

/// How large the batches were that the server executed.
fn batch_text(out: &mut String, stats: &ServerStats, ident: &str) {
    if stats.batches.is_empty() {
        return;
    }
    let list: Vec<String> =
        stats.batches.iter().map(|(size, count)| format!("{size}: {count}")).collect();
    line!(out, "{ident}  Executions by batch size: {}", list.join(", "));
}

/// The table at the end.
pub fn summary_text(points: &[Point], settings: &Settings) -> String {
    let mut out = "Inferences/Second vs. Client ".to_owned();
    match settings.percentile {
        None => line!(out, "Average Batch Latency"),
        Some(percent) => line!(out, "p{percent} Batch Latency"),
    }
    for point in points {
        let load = match point.load {
            LoadPoint::Concurrency(n) => format!("Concurrency: {n}"),
            LoadPoint::Rate(rate) | LoadPoint::Intervals(rate) => {
                format!("Request Rate: {}", format_number(rate))
            }
        };
        line!(
            out,
            "{load}, throughput: {} infer/sec, latency {} usec",
            format_number(point.window.infer_per_sec),
            point.window.judged(settings.percentile) / 1000
        );
    }
    out
}

#[cfg(test)]
#[path = "output_tests.rs"]
pub mod tests;
