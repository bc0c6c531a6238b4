//! docs/protocol/v1.md §10 and v2.md §5: paths, methods and the form of the page.

use trtserver_tests::http1::{Connection, request};
use trtserver_tests::{Server, inference, probe};

#[test]
fn page_paths_and_form() {
    let tags = "metric_tags { key: 'zone' value: 'a' }\n";
    let server = Server::new().model("echo", probe("echo", &[]) + tags).start();
    let fetch = |method: &str, path: &str| {
        let mut connection = Connection::open(server.metrics_address());
        connection.send(request(method, path, &[], b"")).response()
    };
    assert_eq!(server.send(inference("echo", "")).status, 200);
    for path in ["/metrics", "/metrics/", "/metrics?x=1"] {
        let page = fetch("GET", path);
        assert_eq!(page.status, 200, "{path}");
        assert_eq!(page.header("content-type"), Some("text/plain; charset=utf-8"), "{path}");
        let text = page.text();
        // Labels in the order of their names, whole numbers without decimals.
        let line = "nv_inference_request_success{_zone=\"a\",model=\"echo\",version=\"1\"} 1\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("# TYPE nv_inference_request_success counter\n"), "{text}");
        // A family without series is left out, HELP and TYPE too.
        for absent in ["nv_gpu_utilization", "nv_cache_num_hits_per_model", "nv_energy_consumption"]
        {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
    }
    // As Triton: other paths have an empty page.
    for path in ["/", "/v2", "/metricsx"] {
        let page = fetch("GET", path);
        assert_eq!((page.status, page.text().as_str()), (200, ""), "{path}");
    }
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(fetch(method, "/metrics").status, 405, "{method}");
    }
    assert!(server.stop().success());
}

/// The four reasons exist from the load on; the load ratio has the buckets of TRTIS.
#[test]
fn families_of_a_model() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let series = |labels: &str| format!("{{model=\"echo\",{labels}version=\"1\"}}");
    for reason in ["REJECTED", "CANCELED", "BACKEND", "OTHER"] {
        let labels = series(&format!("reason=\"{reason}\","));
        let name = format!("nv_inference_request_failure{labels}");
        assert_eq!(server.metrics(&name), Some(0.0), "{reason}");
    }
    assert_eq!(server.send(inference("echo", "")).status, 200);
    for bound in ["1.05", "1.1", "1.25", "1.5", "2", "10", "50", "+Inf"] {
        let name = format!(
            "nv_inference_load_ratio_bucket{{model=\"echo\",version=\"1\",le=\"{bound}\"}}"
        );
        let text = server.metrics_text();
        assert!(text.contains(&name), "{name}: {text}");
    }
    for name in ["nv_inference_pending_request_count", "nv_model_load_duration_secs"] {
        assert!(server.metrics(&format!("{name}{}", series(""))).is_some(), "{name}");
    }
    for name in ["nv_cpu_utilization", "nv_cpu_memory_total_bytes", "nv_cpu_memory_used_bytes"] {
        assert!(server.metrics(name).is_some(), "{name}");
    }
    assert!(server.stop().success());
}
