//! Unit tests of `csv.rs`.

use super::{composing_tables, csv_table};
use crate::measure::{LoadPoint, Point};
use crate::output::tests::{parsed, window};
use crate::window::Window;
use std::path::Path;

fn point(concurrency: usize, window: Window) -> Point {
    let load = LoadPoint::Concurrency(concurrency);
    Point { load, window, rounds: Vec::new(), stable: true, met: true }
}

#[test]
fn rows_are_sorted_by_throughput() {
    let slow = Window { infer_per_sec: 80.25, ..window() };
    let points = [point(1, window()), point(2, slow)];
    assert_eq!(
        csv_table(&points, &parsed("--percentile 85")),
        "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute,Client Recv,p50 latency,p85 latency,p90 latency,p95 latency,p99 latency\n\
         2,80.25,5,197,100,200,3,510,850,900,950,990\n\
         1,160.8,5,197,100,200,3,510,850,900,950,990\n"
    );
    assert_eq!(
        csv_table(&points[..1], &parsed("--generation v2 --request-rate-range 5")),
        "Request Rate,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input,Server Compute Infer,Server Compute Output,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency\n\
         1,160.8,5,197,100,10,170,20,3,510,900,950,990\n"
    );
}

#[test]
fn network_time_is_never_negative() {
    let mut fast = window();
    fast.average_ns = 100_000;
    assert!(csv_table(&[point(1, fast)], &parsed("")).contains("\n1,160.8,5,0,100,200,3,"));
}

#[test]
fn each_step_of_an_ensemble_has_a_file() {
    let mut ensemble = window();
    let mut step = ensemble.server.clone();
    (step.model, step.version, step.requests) = ("step".to_owned(), "3".to_owned(), 500);
    ensemble.server.composing = vec![step];
    let files = composing_tables(&[point(2, ensemble)], &parsed(""), Path::new("/tmp/out.csv"));
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].0, Path::new("/tmp/step_v3.out.csv"));
    assert_eq!(
        files[0].1,
        "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute,Client Recv\n\
         2,321.6,0,50,50,100,0\n"
    );
    let step = |model: &str, version: &str| {
        let mut ensemble = window();
        let mut step = ensemble.server.clone();
        (step.model, step.version) = (model.to_owned(), version.to_owned());
        ensemble.server.composing = vec![step];
        point(1, ensemble)
    };
    // Loaded again as version 2 between two loads.
    let files =
        composing_tables(&[step("a", "1"), step("a", "2")], &parsed(""), Path::new("out.csv"));
    let names: Vec<_> =
        files.iter().map(|(name, text)| (name.to_str(), text.lines().count())).collect();
    assert_eq!(names, [(Some("a_v1.out.csv"), 2), (Some("a_v2.out.csv"), 2)]);
    assert!(composing_tables(&[point(2, window())], &parsed(""), Path::new("x")).is_empty());
}
