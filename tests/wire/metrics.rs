//! The metrics port: counters of v1 and v2 requests in the Prometheus text format.

use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::http1::request;
use trtserver_tests::isolated::isolated;
use trtserver_tests::{Connection, Latch, Running, Server, probe, python_v2};

fn server() -> Running {
    Server::new()
        .model("echo", probe("echo", &[]) + "metric_tags: { key: \"team\" value: \"blue\" }\n")
        .model("fails", probe("fails", &[("fail", "always")]))
        .copy_model("tests/models/addsub_fp32")
        .start()
}

/// A batch of three over v1.
fn three_rows(server: &Running) {
    let header = r#"batch_size: 3 input { name: "INPUT0" dims: 2 } output { name: "OUTPUT0" }"#;
    let response = server.post("/api/infer/echo", &[("NV-InferRequest", header)], [0; 24]);
    assert_eq!(response.status, 200, "{}", response.error_text());
}

#[test]
fn both_protocols_share_counters() {
    let server = server();
    let labels = r#"{_team="blue",model="echo",version="1"}"#;
    let value = |name: &str| server.metrics(&format!("{name}{labels}"));
    for name in ["nv_inference_request_success", "nv_inference_count", "nv_inference_exec_count"] {
        assert!(matches!(value(name), None | Some(0.0)), "{name}");
    }
    three_rows(&server);
    assert_eq!(server.infer("echo", "").status, 200);
    for (name, expected) in [
        ("nv_inference_request_success", 2.0),
        ("nv_inference_count", 4.0),
        ("nv_inference_exec_count", 2.0),
        ("nv_inference_pending_request_count", 0.0),
        ("nv_inference_load_ratio_count", 2.0),
    ] {
        assert_eq!(value(name), Some(expected), "{name}");
    }
    for part in ["request", "queue", "compute", "compute_input", "compute_infer", "compute_output"]
    {
        let name = format!("nv_inference_{part}_duration_us");
        assert!(value(&name).is_some(), "no {name}");
    }
}

#[test]
fn durations_are_in_microseconds() {
    let server = Server::new().model("slow", probe("slow", &[("delay_ms", "50")])).start();
    server.infer("slow", "");
    for part in ["request", "compute", "compute_infer"] {
        let sample = format!(r#"nv_inference_{part}_duration_us{{model="slow",version="1"}}"#);
        let us = server.metrics(&sample).unwrap_or_default();
        assert!((50_000.0..5_000_000.0).contains(&us), "{sample} {us}");
    }
}

#[test]
fn failures_are_counted_by_reason_only() {
    let server = server();
    let failures = |reason: &str| {
        server.metrics(&format!(
            r#"nv_inference_request_failure{{model="fails",reason="{reason}",version="1"}}"#
        ))
    };
    for reason in ["REJECTED", "CANCELED", "BACKEND", "OTHER"] {
        assert_eq!(failures(reason), Some(0.0), "{reason}");
    }
    assert_eq!(server.infer("fails", "").status, 500);
    assert_eq!(failures("BACKEND"), Some(1.0));
    assert_eq!(failures("OTHER"), Some(0.0));
    let success = server.metrics(r#"nv_inference_request_success{model="fails",version="1"}"#);
    assert!(matches!(success, None | Some(0.0)), "{success:?}");
}

#[test]
fn text_format_of_prometheus() {
    let server = server();
    three_rows(&server);
    let get = request("GET", "/metrics", &[], b"");
    let response = Connection::open(server.metrics_address()).send(get).response();
    let kind = response.header("content-type").unwrap_or_default();
    assert!(kind.starts_with("text/plain"), "{kind}");
    let mut families = Vec::new();
    for line in response.text().lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a kind");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            families.push(name.to_owned());
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').expect("a sample and a value");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let family = families.last().expect("a family before its samples");
            assert!(sample.starts_with(family.as_str()), "{line} in {family}");
            let labels: Vec<&str> = sample
                .split_once('{')
                .map(|(_, labels)| labels.split(',').filter_map(|l| l.split('=').next()).collect())
                .unwrap_or_default();
            assert!(labels.is_sorted() || sample.contains("le="), "{line}");
        }
    }
    let mut once = families.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), families.len(), "{families:?}");
}

#[test]
fn page_passes_the_parsers_of_prometheus() {
    let queue =
        "dynamic_batching { default_queue_policy { default_timeout_microseconds: 60000000 } }\n";
    let tag = r#"metric_tags: { key: "team" value: "blue \"\\ \n" }"#;
    let server = Server::new()
        .model("echo", probe("echo", &[]) + queue + tag)
        .model("unused", probe("unused", &[]))
        .flag("--metrics-config=summary_latencies=true")
        .start();
    assert_eq!(server.infer("echo", "").status, 200);
    assert_eq!(server.infer("echo", "").status, 200);
    python_v2(&server, "metrics_page.py", &[]);
}

#[test]
fn latency_metrics_are_selected_by_flags() {
    let page = |settings: &[&str]| {
        let mut server = Server::new().model("echo", probe("echo", &[]));
        for setting in settings {
            server = server.flag(format!("--metrics-config={setting}"));
        }
        let server = server.start();
        assert_eq!(server.infer("echo", "").status, 200);
        let get = request("GET", "/metrics", &[], b"");
        Connection::open(server.metrics_address()).send(get).response().text().to_owned()
    };
    let default = page(&[]);
    let labels = r#"{model="echo",version="1"}"#;
    for sample in [
        &format!("nv_inference_request_duration_us{labels} "),
        &format!("trtserver_request_duration_seconds_count{labels} 1\n"),
        &format!("nv_inference_first_response_histogram_ms_count{labels} 1\n"),
    ] {
        assert!(default.contains(sample.as_str()), "{default}");
    }
    assert!(!default.contains("_summary_us"), "{default}");
    let other = page(&[
        "counter_latencies=false",
        "histogram_latencies=false",
        "summary_latencies=true",
        "summary_quantiles=0.5:0.05,1:0",
    ]);
    assert!(!other.contains("_duration_us") && !other.contains("_duration_seconds"), "{other}");
    assert!(other.contains(&format!("nv_inference_request_success{labels} 1\n")), "{other}");
    for part in ["request", "queue", "compute_input", "compute_infer", "compute_output"] {
        let name = format!("nv_inference_{part}_summary_us");
        assert!(other.contains(&format!("{name}_count{labels} 1\n")), "{other}");
        for quantile in ["0.5", "1"] {
            let sample = format!(r#"{name}{{model="echo",version="1",quantile="{quantile}"}} "#);
            let line = other.lines().find_map(|line| line.strip_prefix(&sample)).unwrap_or("none");
            assert!(line.parse::<f64>().is_ok_and(|us| us >= 0.0), "{sample}{line}");
        }
    }
}

#[test]
fn refused_requests_are_no_failures() {
    let server = server();
    let bad_shape =
        r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,1,1],"data":[1]}]}"#;
    for body in [bad_shape, "{"] {
        let response = server.post("/v2/models/echo/infer", &[], body.as_bytes());
        assert_ne!(response.status, 200);
    }
    let page = |name: &str, labels: &str| server.metrics(&format!("{name}{{{labels}}}"));
    for reason in ["REJECTED", "CANCELED", "BACKEND", "OTHER"] {
        let labels = format!(r#"_team="blue",model="echo",reason="{reason}",version="1""#);
        assert_eq!(page("nv_inference_request_failure", &labels), Some(0.0), "{reason}");
    }
    let labels = r#"_team="blue",model="echo",version="1""#;
    assert_eq!(page("trtserver_request_refused_total", labels), Some(2.0));
    let statistics = server.get("/v2/models/echo/stats").text();
    assert!(statistics.contains(r#""fail":{"count":0,"ns":0}"#), "{statistics}");
    // v1 counts them.
    let header = r#"batch_size: 3 input { name: "INPUT0" dims: 2 } output { name: "NONE" }"#;
    let response = server.post("/api/infer/echo", &[("NV-InferRequest", header)], [0; 24]);
    assert_eq!(response.status, 400, "{}", response.error_text());
    let status = server.get("/api/status/echo").text();
    assert!(status.contains("failed"), "{status}");
    assert_eq!(page("trtserver_request_refused_total", labels), Some(3.0));
}

#[test]
fn page_waits_for_no_model() {
    let latch = Latch::new();
    let held = |name: &str, isolation: &str| {
        probe(name, &[("until_file", &latch.path()), ("isolation", isolation)])
            + "instance_group { kind: KIND_CPU count: 1 }\n"
    };
    let server = explicit()
        .model("executing", held("executing", "none"))
        .model("isolated", held("isolated", "process"))
        .model("loading", probe("loading", &[("open_until_file", &latch.path())]))
        .start();
    assert_ok(server.load("executing"));
    assert_ok(server.load("isolated"));
    std::thread::scope(|scope| {
        let busy = ["executing", "isolated"];
        for model in busy {
            // One executes, one waits.
            for _ in 0..2 {
                scope.spawn(|| assert_eq!(server.infer(model, "").status, 200));
            }
        }
        scope.spawn(|| assert_ok(server.load("loading")));
        server.poll_until("all are held", |server| {
            let page = server.metrics_text();
            let has = |model: &str, name: &str, value: u32| {
                page.contains(&format!("{name}{{model=\"{model}\",version=\"1\"}} {value}\n"))
            };
            busy.iter().all(|model| {
                has(model, "trtserver_requests_in_flight", 2)
                    && has(model, "nv_inference_pending_request_count", 1)
            }) && page.contains("trtserver_model_versions{state=\"LOADING\"} 1\n")
        });
        latch.open();
    });
    for model in ["executing", "isolated"] {
        let sample = format!(r#"trtserver_requests_in_flight{{model="{model}",version="1"}}"#);
        assert_eq!(server.metrics(&sample), Some(0.0));
    }
}

#[test]
fn metrics_can_be_disabled() {
    let server = Server::new().flag("--allow-metrics=false").start();
    assert!(!server.process().stdout().contains("metrics"));
    assert_eq!(server.get("/v2/health/ready").status, 200);
}

#[test]
fn metric_of_a_closed_backend_may_return_with_other_labels() {
    let server = explicit().start();
    for (name, isolation) in [("local", "none"), ("isolated", "process")] {
        let model = |label: &str| {
            let count = format!("probe_{name}");
            let parameters = [("isolation", isolation), ("count", &count), ("count_label", label)];
            server.models().model(name, &probe(name, &parameters));
            assert_ok(server.load(name));
            format!("{count}{{{label}=\"{name}_0_cpu\"}}")
        };
        let before = model("at");
        assert_eq!(server.metrics(&before), Some(0.0));
        assert_ok(server.unload(name));
        server.poll_until("it is closed", |server| server.metrics(&before).is_none());
        let after = model("instance");
        assert_eq!(server.infer(name, "").status, 200);
        server.poll_until("it is counted", |server| server.metrics(&after) == Some(1.0));
    }
    assert!(server.stop().success());
}

/// Histograms of an isolated model are sums of what its process has sent.
#[test]
fn histograms_of_backends_are_on_the_page() {
    let server = Server::new()
        .model("local", probe("local", &[("observe", "probe_batches")]))
        .model("away", isolated("away", &[("observe", "probe_batches")]))
        .start();
    for model in ["local", "away"] {
        let sample = |part: &str, bound: &str| {
            server.metrics(&format!(r#"probe_batches_{part}{{at="{model}_0_cpu"{bound}}}"#))
        };
        for _ in 0..3 {
            assert_eq!(server.infer(model, "").status, 200);
        }
        server.poll_until("they are observed", |_| sample("count", "") == Some(3.0));
        assert_eq!(sample("sum", ""), Some(3.0), "{model}");
        for bound in ["1", "2", "4", "+Inf"] {
            let le = format!(r#",le="{bound}""#);
            assert_eq!(sample("bucket", &le), Some(3.0), "{model}: {bound}");
        }
    }
    assert!(server.stop().success());
}
