//! Dynamic batching: which requests share a batch, and the statistics of v1 and v2.

use trtserver_tests::scheduled::{batcher, instances};
use trtserver_tests::{Server, python_v1, python_v2};

/// `dynamic_batching` with these preferred sizes and this delay in microseconds.
fn dynamic(preferred: &str, delay: &str) -> String {
    format!(
        "dynamic_batching {{ preferred_batch_size: [ {preferred} ] max_queue_delay_microseconds: {delay} }}\n"
    )
}

/// A delay that no test reaches.
const ENDLESS: &str = "600000000";
const SECOND: &str = "1000000";

/// Several models with one scheduling: the delay hook works once per model.
fn models(mut server: Server, names: &[&str], max_batch_size: u32, scheduling: &str) -> Server {
    for name in names {
        server = server.model(name, batcher(name, max_batch_size, scheduling));
    }
    server
}

#[test]
fn queued_requests_are_batched() {
    let mut server = Server::new().env("TRTSERVER_DELAY_SCHEDULER", "6");
    let two_six = dynamic("2, 6", ENDLESS);
    server = models(
        server,
        &["p26_six", "p26_too_much", "p26_outputs", "p26_fails", "p26_http", "p26_grpc"],
        8,
        &two_six,
    );
    server = models(server, &["v1_26_http", "v1_26_grpc", "v1_26_stream"], 8, &two_six);
    server = models(server, &["p4_flush", "v1_4_flush"], 8, &dynamic("4", ENDLESS));
    server = models(server, &["p6_shapes", "v1_6_shapes"], 8, &dynamic("6", ENDLESS));
    server = models(server, &["p_none", "v1_none"], 4, &dynamic("", ENDLESS));
    server = models(server, &["p0_all", "p0_shapes"], 8, "dynamic_batching { }\n");
    server = models(server, &["p_nobatch"], 0, "dynamic_batching { }\n");
    let server = server.start();
    python_v2(&server, "v2_batching.py", &["-k", "Held"]);
    python_v1(&server, "v1_batching.py", &["-k", "Held"]);
    assert!(server.stop().success());
}

#[test]
fn queue_delay_bounds_batching() {
    let mut server = Server::new().copy_model("tests/models/sum_fp32");
    server = models(server, &["p26_endless", "v1_26_endless"], 8, &dynamic("2, 6", ENDLESS));
    server = models(server, &["p4_endless", "p4_endless_too"], 8, &dynamic("4", ENDLESS));
    server = models(server, &["v1_4_endless"], 8, &dynamic("4", ENDLESS));
    server = models(server, &["p2_third"], 8, &dynamic("2", "300000"));
    server = models(server, &["p4_second"], 8, &dynamic("4", SECOND));
    server = models(server, &["p6_second", "v1_6_second"], 8, &dynamic("6", SECOND));
    server = models(server, &["p3_cancelled", "p3_cancelled_call"], 8, &dynamic("3", ENDLESS));
    server = models(server, &["marker"], 8, "dynamic_batching { }\n");
    let in_order = "dynamic_batching { preserve_ordering: true }\n".to_owned() + &instances(2);
    server = models(server, &["two_instances_in_order"], 1, &in_order);
    let as_it_comes = "dynamic_batching { }\n".to_owned() + &instances(2);
    server = models(server, &["two_instances"], 1, &as_it_comes);
    let server = server.start();
    python_v2(&server, "v2_batching.py", &["-k", "Free"]);
    python_v1(&server, "v1_batching.py", &["-k", "Free"]);
    assert!(server.stop().success());
}

/// Triton's name of the variable.
#[test]
fn delay_hook_has_both_environment_names() {
    let server = Server::new().env("TRITONSERVER_DELAY_SCHEDULER", "2");
    let server = models(server, &["two"], 8, &dynamic("8", "1")).start();
    let mut first = server.connect();
    let body = r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,1],"data":[1]},{"name":"INPUT1","datatype":"FP32","shape":[1,1],"data":[2]}]}"#;
    let request =
        trtserver_tests::http1::request("POST", "/v2/models/two/infer", &[], body.as_bytes());
    first.send(&request);
    let waiting = r#"nv_inference_pending_request_count{model="two",version="1"}"#;
    server.poll_until("the first waits", |server| server.metrics(waiting) == Some(1.0));
    for response in [server.send(&request), first.response()] {
        let batch = &response.json()["outputs"][2];
        assert_eq!(batch["data"], serde_json::json!([2, 2]), "{}", response.text());
    }
}

/// The environment of the sequence batcher's tests, on a server with other models.
#[test]
fn delay_hook_applies_to_models_with_a_queue() {
    let server = Server::new()
        .env("TRTSERVER_DELAY_SCHEDULER", "2")
        .env("TRTSERVER_BACKLOG_DELAY_SCHEDULER", "1");
    let server = models(server, &["batching"], 8, &dynamic("8", "1"));
    let server = models(server, &["plain"], 8, "").start();
    for model in ["batching", "plain"] {
        let body = r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,1],"data":[1]},{"name":"INPUT1","datatype":"FP32","shape":[1,1],"data":[2]}]}"#;
        let path = format!("/v2/models/{model}/infer");
        let request = trtserver_tests::http1::request("POST", &path, &[], body.as_bytes());
        let mut two = [server.connect(), server.connect()];
        for connection in &mut two {
            connection.send(&request);
        }
        for mut connection in two {
            let response = connection.response();
            assert_eq!(response.status, 200, "{}", response.text());
        }
    }
    assert!(server.stop().success());
}
