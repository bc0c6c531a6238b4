//! Unit tests of `management_json.rs`.

use super::*;
use trtserver_proto::v2::InferBatchStatistics;

fn text(json: Vec<u8>) -> String {
    String::from_utf8(json).unwrap()
}

#[test]
fn keys_in_protocol_order() {
    assert_eq!(text(error_json("say \"no\"\n")), r#"{"error":"say \"no\"\n"}"#);
    let entry =
        |state: &str| ModelIndex { name: "m".into(), state: state.into(), ..Default::default() };
    assert_eq!(
        text(repository_index_json(&[entry(""), entry("READY")])),
        r#"[{"name":"m"},{"name":"m","state":"READY"}]"#
    );
    let stats = ModelStatistics {
        name: "m".into(),
        version: "1".into(),
        batch_stats: vec![InferBatchStatistics { batch_size: 2, ..Default::default() }],
        batch_closed: [("delay".to_owned(), 2)].into(),
        ..Default::default()
    };
    let zero = r#"{"count":0,"ns":0}"#;
    let want = format!(
        r#"{{"model_stats":[{{"name":"m","version":"1","last_inference":0,"inference_count":0,"execution_count":0,"inference_stats":{{"success":{zero},"fail":{zero},"queue":{zero},"compute_input":{zero},"compute_infer":{zero},"compute_output":{zero},"cache_hit":{zero},"cache_miss":{zero}}},"response_stats":{{}},"batch_stats":[{{"batch_size":2,"compute_input":{zero},"compute_infer":{zero},"compute_output":{zero}}}],"memory_usage":[],"batch_closed":{{"delay":2}}}}]}}"#
    );
    assert_eq!(text(statistics_json(std::slice::from_ref(&stats))), want);
    let warmup_stats = [("s\"".to_owned(), StatisticDuration { count: 1, ns: 2 })].into();
    let warm = text(statistics_json(&[ModelStatistics { warmup_stats, ..stats }]));
    let end = r#""batch_closed":{"delay":2},"warmup_stats":{"s\"":{"count":1,"ns":2}}}]}"#;
    assert!(warm.ends_with(end), "{warm}");
    assert_eq!(
        text(trace_settings_json(&[
            ("trace_level".to_owned(), vec!["OFF".to_owned()]),
            ("trace_rate".to_owned(), vec!["1000".to_owned()])
        ])),
        r#"{"trace_level":["OFF"],"trace_rate":"1000"}"#
    );
    assert_eq!(
        text(log_settings_json(&[
            ("log_info", Log::BoolParam(true)),
            ("log_verbose_level", Log::Uint32Param(1))
        ])),
        r#"{"log_info":true,"log_verbose_level":1}"#
    );
}
