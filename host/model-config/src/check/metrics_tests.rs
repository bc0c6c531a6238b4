//! Unit tests of `metrics.rs`.

use super::super::super::testing::parse;
use super::*;
use trtserver_base::stats::FIRST_RESPONSE;

#[test]
fn metric_control_rules() {
    let family = format!("metric_identifier {{ family: '{FIRST_RESPONSE}' }}");
    let control = |fields: &str| format!("model_metrics {{ metric_control {{ {fields} }} }}");
    let numbers = |n: u32| (0..n).map(|i| format!("{i}, ")).collect::<String>();
    let rows: [(&str, &str); 8] = [
        (&control(&format!("{family} histogram_options {{ buckets: [ 1, 2 ] }}")), ""),
        (&control(""), "metric control must specify 'metric_identifier' for m"),
        (
            &control("metric_identifier {}"),
            "metric identifier must specify non-empty 'family' for m",
        ),
        (
            &control("metric_identifier { family: 'f' }"),
            "Metric family 'f' in 'metric_identifier' is not a customizable metric in Triton \
             core. Those of this server are trtserver_request_duration_seconds, \
             trtserver_queue_duration_seconds, trtserver_compute_duration_seconds, \
             nv_inference_first_response_histogram_ms, for m",
        ),
        (&control(&family), "metric control must specify 'histogram_options' for m"),
        (
            &control(&format!("{family} histogram_options {{}}")),
            "histogram options must specify non-empty 'buckets' for m",
        ),
        (
            &control(&format!("{family} histogram_options {{ buckets: [ 2, 2 ] }}")),
            "'buckets' of 'nv_inference_first_response_histogram_ms' must be finite, not negative \
             and in ascending order for m",
        ),
        (
            &control(&format!(
                "{family} histogram_options {{ buckets: [ {} 1e9 ] }}",
                numbers(200)
            )),
            "'buckets' of 'nv_inference_first_response_histogram_ms' are 201, at most 200 are \
             possible, for m",
        ),
    ];
    for (text, expected) in rows {
        let checked = check_metrics(&parse(&format!("name: 'm' {text}")));
        let got = checked.map_or_else(|e| e.message, |()| String::new());
        assert_eq!(got, expected, "{text}");
    }
}

#[test]
fn buckets_of_a_family_replace_the_default_ones() {
    let text = format!(
        "name: 'm' model_metrics {{ metric_control {{ metric_identifier {{ family: '{FIRST_RESPONSE}' }} \
         histogram_options {{ buckets: [ 1, 2 ] }} }} }}"
    );
    let expected = |family: &str| (family == FIRST_RESPONSE).then_some(&[1.0, 2.0][..]);
    assert_eq!(histogram_buckets(&parse(&text)), HistogramBuckets::new(expected));
    assert_eq!(histogram_buckets(&parse("name: 'm'")), HistogramBuckets::default());
    assert_ne!(histogram_buckets(&parse(&text)), HistogramBuckets::default());
}
