//! Unit tests of `output.rs`: the lines of perf_client.

use super::{failed_pass, load_text, pass_text, report_text, settings_text, summary_text};
use crate::flags;
use crate::measure::{LoadPoint, Point};
use crate::settings::{Action, Program, Settings};
use crate::statistics::ServerStats;
use crate::window::Window;

/// perf_client's settings with these flags.
pub fn parsed(flags: &str) -> Settings {
    let args = format!("perf_client -m m {flags}");
    let args: Vec<_> = args.split_whitespace().map(std::ffi::OsString::from).collect();
    match flags::parse_flags(Program::PerfClient, args) {
        Ok(Action::Measure(settings)) => *settings,
        Ok(Action::Compare(_)) | Err(flags::Stop::Shown(_)) => panic!("{flags}"),
        Err(flags::Stop::Wrong(text)) => panic!("{flags}: {text}"),
    }
}

pub fn window() -> Window {
    let server = ServerStats {
        model: "m".to_owned(),
        version: "1".to_owned(),
        requests: 250,
        inferences: 500,
        executions: 100,
        total_ns: 250 * 400_000,
        queue_ns: 250 * 100_000,
        compute_input_ns: 250 * 10_000,
        compute_infer_ns: 250 * 170_000,
        compute_output_ns: 250 * 20_000,
        compute_ns: 250 * 200_000,
        ..ServerStats::default()
    };
    Window {
        duration_ns: 1_000_000_000,
        requests: 100,
        responses: 100,
        latencies: (1..=100).map(|n| n * 10_000).collect(),
        average_ns: 505_000,
        deviation_us: 288,
        send_ns: 5_000,
        receive_ns: 3_000,
        infer_per_sec: f64::from(160.8_f32),
        server,
        ..Window::default()
    }
}

#[test]
fn settings_are_printed_as_perf_client_does() {
    let cases = [
        (
            "",
            "  Batch size: 1\n  Measurement window: 5000 msec\n  Using synchronous calls for inference\n  Stabilizing using average latency\n",
        ),
        (
            "-d -t 2 -c 8 -l 20 -p 300 -b 4 --percentile 90 -a",
            "  Batch size: 4\n  Measurement window: 300 msec\n  Latency limit: 20 msec\n  Concurrency limit: 8 concurrent requests\n  Using asynchronous calls for inference\n  Stabilizing using p90 latency\n",
        ),
        (
            "--request-rate-range 10:25.5:5 --request-distribution poisson",
            "  Batch size: 1\n  Measurement window: 5000 msec\n  Latency limit: 0 msec\n  Request Rate limit: 25.5 requests per seconds\n  Using poisson distribution on request generation\n  Using synchronous calls for inference\n  Stabilizing using average latency\n",
        ),
        (
            "--concurrency-range 1:16 -l 5 --binary-search",
            "  Batch size: 1\n  Measurement window: 5000 msec\n  Latency limit: 5 msec\n  Concurrency limit: 16 concurrent requests\n  Using Binary Search algorithm\n  Using synchronous calls for inference\n  Stabilizing using average latency\n",
        ),
    ];
    for (flags, expected) in cases {
        let expected = format!("*** Measurement Settings ***\n{expected}\n");
        assert_eq!(settings_text(&parsed(flags), false, false), expected, "{flags}");
    }
    assert!(settings_text(&parsed(""), true, false).contains("Using asynchronous calls"));
    assert_eq!(load_text(LoadPoint::Concurrency(4)), "Request concurrency: 4\n");
    assert_eq!(
        load_text(LoadPoint::Rate(12.5)),
        "Request Rate: 12.5 inference requests per seconds\n"
    );
}

#[test]
fn a_v1_result_is_printed_as_perf_client_does() {
    let expected = "  Client: \n    Request count: 100\n    Throughput: 160.8 infer/sec\n    Avg latency: 505 usec (standard deviation 288 usec)\n    p50 latency: 510 usec\n    p90 latency: 900 usec\n    p95 latency: 950 usec\n    p99 latency: 990 usec\n    Avg HTTP time: 505 usec (send/recv 8 usec + response wait 497 usec)\n  Server: \n    Request count: 250\n    Avg request latency: 400 usec (overhead 100 usec + queue 100 usec + compute 200 usec)\n\n";
    assert_eq!(report_text(&window(), &parsed(""), false), expected);
}

#[test]
fn details_follow_flags_and_model() {
    let lines = |flags: &str, window: &Window, stateful| {
        let text = report_text(window, &parsed(flags), stateful);
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let has = |lines: &[String], line: &str| {
        assert!(lines.iter().any(|l| l == line), "{line}: {lines:#?}")
    };
    let verbose = lines("-v", &window(), false);
    has(
        &verbose,
        "    Avg HTTP time: 505 usec (send 5 usec + response wait 497 usec + receive 3 usec)",
    );
    let grpc = lines("-i gRPC", &window(), false);
    has(
        &grpc,
        "    Avg gRPC time: 505 usec ((un)marshal request/response 8 usec + response wait 497 usec)",
    );
    let grpc = lines("-i grpc -v --percentile 85", &window(), false);
    has(
        &grpc,
        "    Avg gRPC time: 505 usec (marshal 5 usec + response wait 497 usec + unmarshal 3 usec)",
    );
    has(&grpc, "    p85 latency: 850 usec");
    assert!(!grpc.iter().any(|line| line.contains("Avg latency")));
    let mut other = window();
    (other.delayed, other.sequences, other.sequences_per_sec) = (3, 7, 7.25);
    let stateful = lines("", &other, true);
    has(&stateful, "    Delayed Request Count: 3");
    has(&stateful, "    Sequence count: 7 (7.25 seq/sec)");
    let v2 = lines("--generation v2", &window(), false);
    has(&v2, "    Inference count: 500");
    has(&v2, "    Execution count: 100");
    has(&v2, "    Successful request count: 250");
    has(
        &v2,
        "    Avg request latency: 400 usec (overhead 100 usec + queue 100 usec + compute input 10 usec + compute infer 170 usec + compute output 20 usec)",
    );
    other.server.requests = 0;
    assert!(
        report_text(&other, &parsed(""), false).ends_with("  Server: \n    Request count: 0\n")
    );
}

#[test]
fn steps_of_an_ensemble_are_printed() {
    let mut window = window();
    let step =
        ServerStats { model: "step".to_owned(), version: "3".to_owned(), ..window.server.clone() };
    window.server.composing = vec![step];
    let text = report_text(&window, &parsed(""), false);
    let expected = "  Server: \n    Request count: 250\n    Avg request latency: 400 usec\n    Total avg compute time : 200 usec\n    Total avg queue time : 100 usec\n\n  Composing models: \n  step, version: 3\n      Request count: 250\n      Avg request latency: 400 usec (overhead 100 usec + queue 100 usec + compute 200 usec)\n\n";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn passes_and_summary_are_printed() {
    assert_eq!(
        pass_text(2, &window(), None),
        "  Pass [2] throughput: 160.8 infer/sec. Avg latency: 505 usec (std 288 usec)\n"
    );
    assert_eq!(
        pass_text(1, &window(), Some(95)),
        "  Pass [1] throughput: 160.8 infer/sec. p95 latency: 950 usec\n"
    );
    assert_eq!(failed_pass(3, "none"), "  Pass [3] Error: none\n");
    let point =
        |load| Point { load, window: window(), rounds: Vec::new(), stable: true, met: true };
    let points = [point(LoadPoint::Concurrency(2)), point(LoadPoint::Rate(40.0))];
    assert_eq!(
        summary_text(&points, &parsed("")),
        "Inferences/Second vs. Client Average Batch Latency\nConcurrency: 2, throughput: 160.8 infer/sec, latency 505 usec\nRequest Rate: 40, throughput: 160.8 infer/sec, latency 505 usec\n"
    );
    assert!(
        summary_text(&[], &parsed("--percentile 95")).ends_with("vs. Client p95 Batch Latency\n")
    );
}
