//! Requests that a plan cannot execute, and executions that fail: the request fails alone.

use super::*;

#[test]
fn shapes_and_tensors_that_the_model_does_not_have_are_refused() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let server = scaling(&fakes, 10, "").start();
    let zeros = |n: usize| json!(vec![0.0; n]);
    let cases = [
        (vec![tensor("X", "FP32", &[9, 4], zeros(36))], "8"),
        (vec![tensor("X", "FP32", &[1, 5], zeros(5))], "5"),
        (vec![tensor("X", "INT32", &[1, 4], json!([0, 0, 0, 0]))], "INT32"),
        (vec![tensor("Q", "FP32", &[1, 4], zeros(4))], "Q"),
        (vec![], "X"),
    ];
    for (inputs, part) in cases {
        let refused = infer(&server, "m", &inputs);
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(refused.text().contains(part), "no {part:?} in {}", refused.text());
        scales(&server, "m", 1);
    }
    stops(server, &fakes);
}

#[test]
fn execution_that_fails_fails_its_requests_with_the_reason_of_tensorrt() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let server = scaling(&fakes, major, "").env("FAKE_NVINFER_FAIL", "enqueue:2").start();
        scales(&server, "m", 1);
        let failed = send_rows(&server, "m", 1);
        assert_eq!(failed.status, 500, "{}", failed.text());
        assert!(failed.text().contains("Internal Error (the plan fails)"), "{}", failed.text());
        scales(&server, "m", 1);
        assert_eq!(server.get("/v2/models/m/ready").status, 200);
        stops(server, &fakes);
    }
}

#[test]
fn execution_that_faults_loses_the_device_and_no_other() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let on = |gpu: u32| format!("instance_group {{ kind: KIND_GPU gpus: {gpu} }}");
    let server = model(
        fakes.server(),
        "faulty",
        scale_config("faulty", &on(0)),
        &Plan::scale(10).line("fault"),
    );
    let server = model(server, "other", scale_config("other", &on(1)), &Plan::scale(10))
        .env("FAKE_CUDA_DEVICES", "A/7.5/64,B/7.5/64")
        .start();
    scales(&server, "other", 1);
    let lost = send_rows(&server, "faulty", 1);
    assert_eq!(lost.status, 503, "{}", lost.text());
    assert!(lost.text().contains("GPU 0 is lost"), "{}", lost.text());
    server.poll_until("it is not ready", |server| {
        server.get("/v2/models/faulty/ready").status != 200
    });
    scales(&server, "other", 2);
    server.signal(trtserver_tests::Signal::TERM);
    server.wait();
}
