//! Start lines of TRTIS: names of the program, ports, profiling, platform configuration, and the
//! answers of 18.04.

use std::os::unix::fs::symlink;
use std::process::Command;
use trtserver_tests::fakes::Fakes;
use trtserver_tests::grpc::field;
use trtserver_tests::http1::{Connection, request};
use trtserver_tests::http2::{Client, call_headers, message};
use trtserver_tests::{Process, Running, Server, TIMEOUT, dist, folder, probe, python_v1};

fn echo() -> Server {
    Server::new().model("echo", probe("echo", &[]))
}

/// `host:PORT` as `PORT`.
fn port(address: &str) -> &str {
    address.rsplit(':').next().unwrap_or_default()
}

#[test]
fn name_of_the_program_decides_help_and_start_lines() {
    let bin = folder();
    for (name, code) in [("inference_server", 1), ("trtserver", 1), ("tritonserver", 0)] {
        let program = bin.path().join(name);
        symlink(dist().join("bin/trtserver"), &program).unwrap();
        let mut help = Command::new(&program);
        help.arg("--help");
        assert_eq!(Process::spawn(help).wait(TIMEOUT).code(), code, "{name}");
        let server = echo().program([&program]).start();
        assert_eq!(server.infer("echo", "").status, 200, "{name}");
        let log = server.log();
        let (http, grpc) = (port(server.http()), port(server.grpc()));
        let era_a = format!("] \"Starting server listening on :{http}\"\n");
        let base = [
            format!(
                "] \"Reporting prometheus metrics on port {}\"\n",
                port(server.metrics_address())
            ),
            "] \"Starting server 'inference:0' listening on\"\n".to_owned(),
            format!("] \" localhost:{grpc} for gRPC requests\"\n"),
            format!("] \" localhost:{http} for HTTP requests\"\n"),
        ];
        assert_eq!(log.contains(&era_a), name == "inference_server", "{name}: {log}");
        for line in &base {
            assert_eq!(log.contains(line), name == "trtserver", "{name}: {line}: {log}");
        }
        let triton = log.contains("Initializing Triton Inference Server");
        let tensorrt = log.contains("Initializing TensorRT Inference Server");
        assert_eq!((triton, tensorrt), (name == "tritonserver", name != "tritonserver"), "{log}");
        assert!(server.stop().success());
    }
}

#[test]
fn health_port_of_minus_one_serves_no_health_over_http() {
    let server = echo().flag("--http-health-port=-1").start();
    for (path, status) in [
        ("/api/health/live", 400),
        ("/api/health/ready", 400),
        ("/v2/health/live", 404),
        ("/v2/health/ready", 404),
        ("/api/status", 200),
        ("/v2/models/echo/ready", 200),
    ] {
        let response = server.get(path);
        assert_eq!(response.status, status, "{path}");
        assert_eq!(response.header("nv-status").is_some(), path == "/api/status", "{path}");
    }
    assert!(server.stop().success());
}

#[test]
fn http_port_of_minus_one_serves_health_alone() {
    let server = echo().flag("--http-port=-1").flag("--http-health-port=0").start();
    assert!(!server.process().stdout().contains("listening http "), "{}", server.process());
    let health = server.listening("health");
    for (path, status) in
        [("/api/health/ready", 200), ("/v2/health/live", 200), ("/api/status", 404)]
    {
        let response = Connection::open(&health).send(request("GET", path, &[], b"")).response();
        assert_eq!(response.status, status, "{path}");
    }
    assert!(server.stop().success());
}

/// The `request_status` of a Profile call.
fn profile(server: &Running, command: &str) -> Vec<u8> {
    let mut client = Client::open(server.grpc());
    let call = client.call(&call_headers("/nvidia.inferenceserver.GRPCService/Profile"));
    client.send(call, &message(&field(1, command.as_bytes())), true);
    client.end(call).body
}

#[test]
fn profile_starts_and_stops_the_cuda_profiler() {
    let fakes = Fakes::new();
    let on_gpu = probe("gpu", &[]) + "instance_group [ { kind: KIND_GPU } ]\n";
    let server = fakes
        .server()
        .model("gpu", on_gpu)
        .flag("--allow-profiling=true")
        .env("FAKE_CUDA_LOG", fakes.path("calls"))
        .start();
    let calls = |name: &str| {
        let log = std::fs::read_to_string(fakes.path("calls")).unwrap_or_default();
        log.lines().filter(|line| line.contains(name)).count()
    };
    for (command, function) in [("start", "cuProfilerStart"), ("stop", "cuProfilerStop")] {
        let response = server.get(&format!("/api/profile?cmd={command}"));
        assert_eq!((response.status, response.body.len()), (200, 0), "{}", response.error_text());
        assert!(response.error_text().starts_with("code: SUCCESS server_id:"));
        assert_eq!(calls(function), 1, "{command} over HTTP");
        let status = profile(&server, command);
        // Five bytes of prefix, `request_status`, in it `code: SUCCESS`.
        assert_eq!(&status[7..9], b"\x08\x01", "{command}: {status:?}");
        assert_eq!(calls(function), 2, "{command} over gRPC");
    }
    server.wait_for_log("the CUDA profiler is started on 1 GPUs");
    for path in ["/api/profile", "/api/profile/?cmd=pause"] {
        let response = server.get(path);
        let command = path.split_once('=').map_or("", |(_, command)| command);
        let text = format!("Unknown profile command \\'{command}\\'");
        assert_eq!(response.status, 400, "{path}");
        assert!(response.error_text().contains(&text), "{path}: {}", response.error_text());
    }
    let status = profile(&server, "pause");
    assert!(String::from_utf8_lossy(&status).contains("Unknown profile command 'pause'"));
    assert!(
        server.get("/api/status").text().contains("profile_stats {\n  success {\n    count: 7\n")
    );
    assert!(server.stop().success());
}

#[test]
fn profile_without_gpus_succeeds_with_a_warning() {
    let server = Fakes::unusable().server().flag("--allow-profiling").start();
    assert_eq!(server.get("/api/profile?cmd=start").status, 200);
    server.wait_for_log("this process uses no GPU, there is nothing to profile");
    assert!(server.stop().success());
}

/// As a test of 0.12 expects it: the server stays up, neither live nor ready, without models, in
/// state 10.
#[test]
fn bad_platform_config_file_fails_the_start() {
    let dir = folder();
    let file = dir.path().join("platforms");
    let flag = format!("--platform-config-file={}", file.display());
    let session = |text: &str| {
        format!(
            "platform_configs {{ key: \"tensorflow_graphdef\" value {{ source_adapter_config {{\n\
             [type.googleapis.com/nvidia.inferenceserver.GraphDefBundleSourceAdapterConfig] {{\n\
             session_config {{ {text} }} }} }} }} }}\n"
        )
    };
    for (text, reason) in [
        (None, "No such file or directory"),
        (Some("garbage".to_owned()), "Invalid protobuf file: '"),
        (Some(session("log_device_placement: true")), " 3:18: ConfigProto has no field"),
    ] {
        if let Some(text) = &text {
            std::fs::write(&file, text).unwrap();
        }
        let ended = echo().flag(&flag).refuses_to_start();
        assert_eq!(ended.code(), 1, "{text:?}");
        assert!(ended.stderr.contains(reason), "{text:?}: {}", ended.stderr);
    }
    let server = echo().flag(&flag).flag("--exit-on-error=false").launch();
    server.wait_for_log("Invalid protobuf file: '");
    server
        .poll_until("the start has failed", |server| server.get("/api/health/live").status == 400);
    assert_eq!(server.get("/api/health/ready").status, 400);
    let status = server.get("/api/status").text();
    assert!(status.contains("ready_state: SERVER_FAILED_TO_INITIALIZE\n"), "{status}");
    assert!(!status.contains("model_status"), "{status}");
    assert!(server.stop().success());

    std::fs::write(&file, session("gpu_options { allow_growth: true }")).unwrap();
    let server = echo().flag(&flag).start();
    assert_eq!(server.infer("echo", "").status, 200);
    assert!(server.stop().success());
}

/// The clients of 18.04 know no `server_id`, and other layouts of status and response header.
#[test]
fn model_base_path_gives_the_answers_of_18_04() {
    let server = echo();
    let path = server.models().display().to_string();
    let server = server.flag(format!("--model_base_path={path}")).start();
    server.wait_for_log(&format!("Starting server listening on :{}", port(server.http())));
    let header =
        r#"batch_size: 1 input { name: "INPUT0" dims: 2 } output { name: "OUTPUT0" byte_size: 8 }"#;
    let response = server.post("/api/infer/echo", &[("NV-InferRequest", header)], [7; 8]);
    assert_eq!(response.status, 200, "{}", response.error_text());
    let text = response.error_text();
    let (status, id) = text.split_once(" request_id: ").unwrap_or_default();
    assert!(status == "code: SUCCESS" && id.parse::<u64>().is_ok(), "{text}");
    // Binary without being asked for: `batch_size` 1 and one output with 8 bytes, at their numbers
    // of that time.
    let end = b"\x08\x01\x12\x0d\x0a\x07OUTPUT0\x12\x02\x08\x08";
    assert!(response.body.ends_with(end), "{:?}", response.body);

    let text = server.get("/api/status").text();
    for part in [
        "version: \"",
        "model_status {\n  key: \"echo\"\n  value {\n    config {\n      name: \"echo\"\n      model_platform: \"probe\"\n      max_batch_size: 8\n",
        "      instance {\n        name: \"echo\"\n      }\n",
        "    infer_durations {\n      key: 1\n      value {\n        count: 1\n",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    for later in ["server_id", "ready_state", "version_status", "instance_group", "uptime_ns"] {
        assert!(!text.contains(later), "{later} in {text}");
    }
    // The response does not count its own request.
    assert!(server.get("/api/status").text().contains("status_duration {\n  count: 1\n"));
    assert!(server.stop().success());
}

/// Text and JSON of the status as a server of the client's release writes them.
#[test]
fn status_has_the_fields_and_names_of_the_release_that_the_server_says_it_is() {
    let server = echo().env("TENSORRT_SERVER_VERSION", "1.11.0").start();
    assert_eq!(server.infer("echo", "").status, 200);
    python_v1(&server, "v1_status.py", &[]);
    let json = server.get("/api/status/echo?format=json").json();
    assert_eq!(json["modelStatus"]["echo"]["config"]["maxBatchSize"], 8, "{json}");
    assert!(server.stop().success());

    let server = echo().start();
    assert_eq!(server.infer("echo", "").status, 200);
    let json = server.get("/api/status/echo?format=json").json();
    assert_eq!(json["model_status"]["echo"]["config"]["max_batch_size"], 8, "{json}");
    let text = server.get("/api/status/echo").text();
    assert!(text.contains("compute_infer {") && !text.contains("backend:"), "{text}");
    assert!(server.stop().success());
}

#[test]
fn model_without_versions_keeps_its_configuration_in_the_status() {
    let policy = "version_policy { specific { versions: [ 7 ] } }\n";
    let server = Server::new()
        .model("none", probe("none", &[]) + policy)
        .flag("--exit-on-error=false")
        .start();
    let status = server.get("/api/status/none").text();
    for part in ["max_batch_size: 8\n", "name: \"INPUT0\"\n", "versions: 7\n", "count: 1\n"] {
        assert!(status.contains(part), "no {part:?} in {status}");
    }
    assert!(!status.contains("version_status"), "{status}");
    assert!(server.stop().success());
}

/// Rules of v1.x: KIND_MODEL is for TensorFlow, ragged inputs are for custom models. A start line
/// of Triton allows both, see
/// `ragged_batching.rs`.
#[test]
fn start_line_of_trtis_refuses_what_v1_did_not_have() {
    let with = |from: &str, to: &str| {
        let server = echo().copy_model("tests/models/identity_fp32");
        let path = server.models().join("identity_fp32/config.pbtxt");
        let config = std::fs::read_to_string(path).unwrap();
        server.file("identity_fp32/config.pbtxt", config.replacen(from, to, 1))
    };
    let group = ("max_batch_size", "instance_group { kind: KIND_MODEL }\nmax_batch_size");
    let ragged = ("dims: [ -1 ]", "dims: [ -1 ] allow_ragged_batch: true");
    for ((from, to), text) in [
        (
            group,
            "instance group identity_fp32_0 of model identity_fp32 has kind KIND_MODEL which is supported only on \
             TensorFlow models (",
        ),
        (
            ragged,
            "ragged-batch input tensors are only supported for custom platform for identity_fp32 (",
        ),
    ] {
        let ended = with(from, to).refuses_to_start();
        assert!(ended.stderr.contains(text), "{to}: {}", ended.stderr);
    }
    let server = with(group.0, group.1).triton_start_line().start();
    assert_eq!(server.get("/v2/models/identity_fp32/ready").status, 200);
    assert!(server.stop().success());
}
