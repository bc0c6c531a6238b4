//! Unit tests of `compare.rs`.

use super::{ComparisonVerdict, METRICS, compare_results, judge_metric};
use serde_json::{Value, json};

#[test]
fn a_difference_must_exceed_noise_and_tolerance() {
    let [throughput, latency, _] = METRICS;
    let noisy = [100.0, 120.0, 80.0];
    let calm = [100.0, 100.5, 99.5];
    let cases: [(&[f64], &[f64], ComparisonVerdict); 6] = [
        (&calm, &[90.0, 90.5, 89.5], ComparisonVerdict::Worse),
        (&calm, &[110.0, 110.5, 109.5], ComparisonVerdict::Better),
        (&calm, &[98.9, 99.0, 99.1], ComparisonVerdict::Same),
        (&noisy, &[90.0, 110.0, 70.0], ComparisonVerdict::Same),
        (&calm, &calm, ComparisonVerdict::Same),
        (&calm[..2], &[50.0, 50.0], ComparisonVerdict::Unknown),
    ];
    for (before, after, expected) in cases {
        assert_eq!(
            judge_metric(before, after, throughput, 0.02).0,
            expected,
            "{before:?} {after:?}"
        );
        let opposite = match expected {
            ComparisonVerdict::Better => ComparisonVerdict::Worse,
            ComparisonVerdict::Worse => ComparisonVerdict::Better,
            same => same,
        };
        assert_eq!(judge_metric(before, after, latency, 0.02).0, opposite, "{before:?} {after:?}");
    }
}

fn result(model: &str, concurrency: u64, throughput: f64, failures: u64) -> Value {
    let window = |change: f64| {
        let latency = 1e6 / throughput;
        json!({ "throughput": throughput + change, "avg_us": latency + change / 10.0, "p99_us": latency + change })
    };
    let windows = [window(0.0), window(0.5), window(-0.5)];
    let load = json!({ "concurrency": concurrency });
    let points = [json!({ "load": load, "windows": windows, "failures": failures })];
    json!({ "results": [{ "model": model, "points": points }] })
}

#[test]
fn results_are_compared_load_by_load() {
    let before = result("m", 4, 1000.0, 0);
    let (text, worse) = compare_results(&before, &result("m", 4, 800.0, 0), 0.02).unwrap();
    assert!(worse);
    assert!(
        text.starts_with(
            "m, concurrency: 4\n  throughput: 1000 -> 800 infer/sec (-20.0 %, p = 0.00): WORSE\n"
        ),
        "{text}"
    );
    assert!(text.ends_with("The second result is worse.\n"));
    assert!(!compare_results(&before, &result("m", 4, 1200.0, 0), 0.02).unwrap().1);
    assert!(!compare_results(&before, &before, 0.02).unwrap().1);
    // Failed requests are never as good.
    assert!(compare_results(&before, &result("m", 4, 1000.0, 1), 0.02).unwrap().1);
}

#[test]
fn results_without_anything_in_common_are_refused() {
    let before = result("m", 4, 1000.0, 0);
    for after in
        [result("other", 4, 1000.0, 0), result("m", 8, 1000.0, 0), json!({ "results": [] })]
    {
        assert!(compare_results(&before, &after, 0.02).unwrap_err().contains("in common"));
    }
    assert!(compare_results(&json!([]), &before, 0.02).unwrap_err().contains("first file"));
    assert!(compare_results(&before, &json!({}), 0.02).unwrap_err().contains("second file"));
}
