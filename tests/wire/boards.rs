//! The board of Grafana and the rules of Prometheus in `deploy` ask for metrics that the server has.

use std::collections::BTreeSet;
use trtserver_tests::{Server, root};

/// What these hosts, devices and failures show is not on the page of every server.
const CONDITIONAL: [&str; 6] = [
    "nv_gpu_utilization",
    "trtserver_auth_reloads_total",
    "trtserver_model_load_failed",
    "trtserver_queue_saturation_ratio",
    "trtserver_tls_certificate_expiry_seconds",
    "trtserver_tls_reloads_total",
];

/// The names of metrics in a text.
fn metric_names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    let is_metric = |word: &&str| {
        (word.starts_with("nv_") || word.starts_with("trtserver_")) && !word.contains(':')
    };
    let base = |word: &str| {
        let parts = ["_bucket", "_sum", "_count"];
        let part = parts.into_iter().find(|part| word.ends_with(part));
        let is_histogram = part.is_some() && !word.ends_with("request_count");
        match part.filter(|_| is_histogram) {
            Some(part) => word.trim_end_matches(part).to_owned(),
            None => word.to_owned(),
        }
    };
    words.filter(is_metric).map(base).collect()
}

fn read(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn boards_and_rules_name_metrics_that_exist() {
    let server = Server::new().copy_model("tests/models/addsub_fp32").start();
    let body = r#"{"inputs":[
        {"name":"INPUT0","datatype":"FP32","shape":[1,16],"data":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]},
        {"name":"INPUT1","datatype":"FP32","shape":[1,16],"data":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}]}"#;
    assert_eq!(server.post("/v2/models/addsub_fp32/infer", &[], body).status, 200);
    let (page, documented) = (server.metrics_text(), read("docs/compatibility/metrics.md"));
    // The groups of rules have names of their own.
    let groups = ["trtserver_recording", "trtserver_alerts"];
    for file in ["deploy/grafana/trtserver.json", "deploy/prometheus/trtserver.rules.yml"] {
        let names = metric_names(&read(file));
        assert!(names.len() > 8, "{file}: {names:?}");
        for name in names.iter().filter(|name| !groups.contains(&name.as_str())) {
            assert!(
                documented.contains(&format!("`{name}`")),
                "{file}: '{name}' is not documented"
            );
            let is_there = page.contains(&format!("# TYPE {name} "));
            assert!(is_there || CONDITIONAL.contains(&&**name), "{file}: no '{name}' on the page");
        }
    }
}
