//! Isolated models respond to requests exactly as local ones.

use super::SERVER;
use rustix::process::kill_process;
use std::fs;
use std::time::{Duration, Instant};
use trtserver_tests::isolated::{isolated, process, processes, wait_until_served};
use trtserver_tests::{
    ENDPOINTS, InferenceClient, Running, Server, Signal, folder, parameters, probe, python_v2, root,
};

#[test]
fn responses_equal_those_of_a_local_model() {
    for parameters in [
        "",
        r#""fail":"out of ink""#,
        r#""fail":"not there","fail_code":5"#,
        r#""fail":"""#,
        r#""fail_in":"execute","fail":"out of paper""#,
        r#""panic_in":"execute""#,
        r#""garbage":"wrong_dtype""#,
        r#""garbage":"wrong_shape""#,
        r#""garbage":"unknown_output""#,
        r#""garbage":"missing_output""#,
        r#""garbage":"short""#,
        r#""garbage":"twice""#,
        r#""garbage":"never""#,
        r#""garbage":"never","detach":true"#,
        r#""responses":0"#,
        r#""responses":3"#,
        r#""detach":true"#,
        r#""adopt":true"#,
        r#""merge":true"#,
        r#""delay_ms":5"#,
    ] {
        let [local, remote] = ["local", "isolated"].map(|model| {
            let response = SERVER.infer(model, parameters);
            (response.status, response.text().replace(model, "M"))
        });
        assert_eq!(local, remote, "{parameters}");
    }
    assert!(!processes(&SERVER, "isolated:").is_empty());
    assert!(processes(&SERVER, "local:").is_empty());
}

#[test]
fn tensors_of_all_sizes_are_transferred_unchanged() {
    for elements in [0usize, 1, 63, 64, 1000, 300_000] {
        let data: Vec<u8> = (0..elements).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let json = format!(
            r#"{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,{elements}],"parameters":{{"binary_data_size":{}}}}}],"outputs":[{{"name":"OUTPUT0","parameters":{{"binary_data":true}}}}]}}"#,
            data.len()
        );
        let length = json.len().to_string();
        let body = [json.as_bytes(), &data].concat();
        let headers = [("Inference-Header-Content-Length", &*length)];
        let response = SERVER.post("/v2/models/isolated/infer", &headers, &body);
        assert_eq!(response.status, 200, "{elements}: {}", response.text());
        assert!(response.body.ends_with(&data), "{elements}");
    }
}

#[test]
fn output_and_metrics_of_the_child_are_collected() {
    let server = Server::new()
        .model("noisy", isolated("noisy", &[("count", "probe_calls")]))
        .flag("--log-verbose=1")
        .start();
    let sample = r#"probe_calls{at="noisy_0_cpu"}"#;
    server.wait_for_log_with(&[
        "probe instance noisy_0_cpu is open",
        "process=\\\"model noisy:1\\\"",
    ]);
    for _ in 0..3 {
        assert_eq!(server.infer("noisy", r#""say":"so it goes""#).status, 200);
    }
    server.wait_for_log_with(&["so it goes", "process=\\\"model noisy:1\\\""]);
    // A scrape shows what was counted before a response.
    assert_eq!(server.metrics(sample), Some(3.0));
    for n in 4..30 {
        assert_eq!(server.infer("noisy", "").status, 200);
        assert_eq!(server.metrics(sample), Some(f64::from(n)));
    }
    // A process that does not answer delays a scrape once, and by little.
    kill_process(process(&server, "noisy"), Signal::STOP).unwrap();
    let scrape = || {
        let begin = Instant::now();
        assert_eq!(server.metrics(sample), Some(29.0));
        begin.elapsed()
    };
    scrape();
    // The fastest of several: a busy machine delays some of them.
    let later = (0..5).map(|_| scrape()).min().unwrap();
    assert!(later < Duration::from_millis(100), "{later:?}");
    kill_process(process(&server, "noisy"), Signal::CONT).unwrap();
    assert_eq!(server.infer("noisy", "").status, 200);
    server.poll_until("it is asked again", |server| server.metrics(sample) == Some(30.0));
    kill_process(process(&server, "noisy"), Signal::KILL).unwrap();
    wait_until_served(&server, "noisy");
    server.poll_until("they are counted anew", |s| s.metrics(sample).is_some_and(|n| n < 30.0));
    assert!(server.stop().success());
}

#[test]
fn cancellation_reaches_the_child() {
    let server =
        Server::new().model("stuck", isolated("stuck", &[("until_cancelled", "true")])).start();
    let waits = |s: &Running| s.log().matches("the probe waits to be cancelled").count();
    let sample = r#"trtserver_request_cancelled_total{model="stuck",version="1",when="executing"}"#;
    for (n, endpoint) in ENDPOINTS.into_iter().enumerate() {
        let client = InferenceClient::send(&server, endpoint, "stuck", [1.0, 2.0]);
        server.poll_until("it waits", |s| waits(s) == n + 1);
        drop(client);
        let cancelled = Some(n as f64 + 1.0);
        server.poll_until(&format!("{endpoint:?}"), |s| s.metrics(sample) == cancelled);
        assert_eq!(server.infer("stuck", r#""until_cancelled":false"#).status, 200);
    }
    assert!(server.stop().success());
}

#[test]
fn isolated_onnx_model() {
    let model = root().join("examples/models/digits/config.pbtxt");
    let config = fs::read_to_string(model).unwrap() + &parameters(&[("isolation", "process")]);
    let server = Server::new().copy_models("examples/models").file("digits/config.pbtxt", config);
    let server = server.start();
    assert_eq!(processes(&server, "digits:").len(), 1);
    python_v2(&server, "run_docs.py", &["docs/requests.md"]);
    assert!(server.stop().success());
}

#[test]
fn isolated_backend_is_not_loaded_into_the_server() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .model("in", probe("in", &[("isolation", "none")]))
        .flag("--backend-config=probe,isolation=process")
        .flag("--backend-config=probe,isolation-deadline-seconds=20");
    let server = server.without("in").start();
    assert_eq!(server.infer("echo", "").status, 200);
    let maps = format!("/proc/{}/maps", server.process().pid().as_raw_nonzero());
    let maps = fs::read_to_string(maps).unwrap();
    assert!(!maps.contains("trtserver_probe"), "{maps}");
    assert!(server.stop().success());
    let dir = folder();
    let dead = dir.path().join("libtrtserver_dead.so");
    fs::write(&dead, "no library").unwrap();
    let server = Server::new().backend_dir(dir.path());
    let server = server.flag("--backend-config=dead,isolation=process").start();
    server.wait_for_log_with(&["libtrtserver_dead.so", "not a loadable library"]);
    assert!(server.stop().success());
}

#[test]
fn oversized_parameters_are_refused() {
    let note = |n: usize| format!(r#""note":"{}""#, "x".repeat(n));
    let response = SERVER.infer("isolated", &note(2 << 20));
    let says = response.error_text();
    assert_eq!(response.status, 400, "{says}");
    assert!(says.contains("model 'isolated'") && says.contains("at most 1048576"), "{says}");
    assert_eq!(SERVER.infer("isolated", &note(900_000)).status, 200);
    assert_eq!(SERVER.infer("local", &note(2 << 20)).status, 200);
}
