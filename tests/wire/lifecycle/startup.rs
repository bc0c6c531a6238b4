//! Start and readiness: sockets before models, ports, version policies.

use std::fs;
use std::net::{TcpListener, TcpStream};
use trtserver_tests::{Connection, LoadGate, Server, Signal, probe};

#[test]
fn sockets_respond_before_models_are_loaded() {
    let server = Server::new().gated_model().launch();
    assert!(!server.has_reported_ready());
    for (path, status) in [
        ("/v2/health/live", 200),
        ("/v2/health/ready", 400),
        ("/api/health/live", 200),
        ("/api/health/ready", 400),
        ("/v2/models/gated/ready", 400),
        ("/api/status", 200),
    ] {
        assert_eq!(server.get(path).status, status, "{path}");
    }
    let status = server.get("/api/status").text();
    assert!(status.contains("ready_state: SERVER_INITIALIZING"), "{status}");
    let refused = server.infer("gated", "");
    assert!([404, 503].contains(&refused.status), "{}", refused.text());
    server.metrics_text();

    LoadGate::reach(&server).open();
    server.wait_until_ready();
    for path in ["/v2/health/ready", "/api/health/ready", "/v2/models/gated/ready"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    assert_eq!(server.infer("gated", "").status, 200);
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.unwrap_or_else(|e| panic!("no free port: {e}")).port()
}

#[test]
fn tcp_probe_finds_no_port_before_models_are_loaded() {
    let ports = [free_port(), free_port(), free_port()];
    let [http, grpc, metrics] = ports;
    let server = Server::new()
        .gated_model()
        .flag(format!("--http-port={http}"))
        .flag(format!("--grpc-port={grpc}"))
        .flag(format!("--metrics-port={metrics}"))
        .flag("--http-health-port=0")
        .launch_closed();
    let gate = LoadGate::reach(&server);
    let connects = |port: u16| TcpStream::connect(("127.0.0.1", port)).is_ok();
    for port in ports {
        assert!(!connects(port), "{port} is open before the models are loaded");
    }
    // The listener for health is open at once.
    let health = server.listening("health");
    for (path, status) in [("/v2/health/live", 200), ("/v2/health/ready", 400)] {
        let get = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(Connection::open(&health).send(get).response().status, status, "{path}");
    }
    assert_eq!(server.process().stdout().lines().count(), 1, "{}", server.process());
    gate.open();
    server.wait_until_ready();
    for port in ports {
        assert!(connects(port), "{port} is closed");
    }
    let get = "GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n";
    let response = Connection::open(&server.listening("http")).send(get).response();
    assert_eq!(response.status, 200);
    assert!(server.stop().success());
}

#[test]
fn ports_stay_closed_when_the_models_cannot_be_loaded() {
    let port = free_port();
    let broken = || {
        Server::new()
            .model("broken", probe("broken", &[("fail_in", "model_open")]))
            .flag(format!("--http-port={port}"))
    };
    let ended = broken().flag("--listen-when-ready").refuses_to_start();
    assert!(!ended.stdout.contains("listening"), "{}", ended.stdout);
    assert!(!ended.stderr.contains("Started HTTPService"), "{}", ended.stderr);
    // Without the exit the ports open after the failed load, as in Triton.
    let server = broken().flag("--exit-on-error=false").launch_closed();
    let http = server.listening("http");
    let get = "GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(Connection::open(&http).send(get).response().status, 400);
}

#[test]
fn port_and_unix_socket_in_use_are_named_by_late_listeners_too() {
    let dir = trtserver_tests::folder();
    let socket = format!("unix:{}", dir.path().join("http").display());
    let one = Server::new().flag(format!("--http-address=127.0.0.1,{socket}")).start();
    let port = one.http().rsplit(':').next().expect("a port").to_owned();
    let late = || Server::new().flag("--listen-when-ready");
    let ended = late().flag(format!("--http-port={port}")).refuses_to_start();
    let expected = format!(
        "127.0.0.1:{port}: Address already in use (os error 98); another program listens there, perhaps another \
         server: choose another port"
    );
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    let ended = late().flag(format!("--http-address={socket}")).refuses_to_start();
    assert!(ended.stderr.contains(&socket), "{}", ended.stderr);
    assert_eq!(one.get("/v2/health/live").status, 200);
}

/// KServe links the models of an image once its container runs.
#[test]
fn repository_that_appears_after_the_start_is_waited_for() {
    let dir = trtserver_tests::folder();
    let late = dir.path().join("models");
    let flag = format!("--model-store={}", late.display());
    let refused = Server::new().flag(&flag).refuses_to_start();
    assert!(refused.stderr.contains("is not a readable directory"), "{}", refused.stderr);
    let server = Server::new().flag(flag).env("MODEL_INIT_MODE", "async").launch();
    server.wait_for_log_with(&["waiting up to 300 s for model repository", "models'"]);
    assert_eq!(server.get("/v2/health/ready").status, 400);
    assert_eq!(server.get("/v2/health/live").status, 200);
    let models = trtserver_tests::Repository::new();
    models.model("echo", &probe("echo", &[]));
    std::os::unix::fs::symlink(models.path(), &late).expect("a link");
    server.wait_until_ready();
    assert_eq!(server.infer("echo", "").status, 200);
}

/// A container whose models were not mounted is live and ready, and says why it serves nothing.
#[test]
fn empty_repository_is_warned_of() {
    let models = trtserver_tests::folder();
    let flag = format!("--model-repository={}", models.path().display());
    let server = Server::new().flag(flag).start();
    let expected = format!("there is no model directory in '{}'", models.path().display());
    server.wait_for_log_with(&["no model is served: ", &expected]);
    assert!(server.stop().success());
}

#[test]
fn http_port_serves_metrics_and_lists_models() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .model("broken", probe("broken", &[("fail_in", "model_open")]))
        .flag("--exit-on-error=false")
        .flag("--http-metrics")
        .start();
    assert_eq!(server.infer("echo", "").status, 200);
    let page = server.get("/metrics");
    assert_eq!(page.status, 200);
    assert!(page.header("content-type").is_some_and(|kind| kind.starts_with("text/plain")));
    assert!(page.text().contains("nv_inference_count{model=\"echo\",version=\"1\"} 1"));
    assert_eq!(server.post("/metrics", &[], "").status, 405);
    assert_eq!(server.get("/v2/models").text(), r#"{"models":["echo"]}"#);
    // Without the flag the port has no such page.
    let server = Server::new().model("echo", probe("echo", &[])).start();
    assert_eq!(server.get("/metrics").status, 404);
    for flags in [["--http-metrics", "--allow-metrics=false"], ["--http-metrics", "--http-port=-1"]]
    {
        let ended = flags.iter().fold(Server::new(), |s, flag| s.flag(*flag)).refuses_to_start();
        assert!(ended.stderr.contains("--http-metrics"), "{flags:?}: {}", ended.stderr);
    }
}

#[test]
fn sigterm_during_load_ends_the_server() {
    let server = Server::new().gated_model().launch();
    // By this line the signal handlers are installed.
    server.wait_for_log("found backend");
    server.signal(Signal::TERM);
    server.wait();
}

#[test]
fn port_zero_gives_free_ports() {
    let one = Server::new().model("echo", probe("echo", &[])).start();
    let two = Server::new().model("echo", probe("echo", &[])).flag("--allow-grpc=false").start();
    let mut all =
        vec![one.http(), one.grpc(), one.metrics_address(), two.http(), two.metrics_address()];
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 5);
    assert!(!two.process().stdout().contains("grpc"));
}

#[test]
fn port_in_use_is_named() {
    let one = Server::new().start();
    let port = one.http().rsplit(':').next().expect("a port");
    let ended = Server::new().flag(format!("--http-port={port}")).refuses_to_start();
    assert_eq!(ended.code(), 1);
    assert!(ended.stderr.contains(&format!("127.0.0.1:{port}")), "{}", ended.stderr);
}

#[test]
fn empty_repository_is_valid() {
    let server = Server::new().start();
    assert_eq!(server.get("/v2/health/ready").status, 200);
    assert!(server.stop().success());
}

#[test]
fn health_port() {
    let server = Server::new().flag("--http-health-port=0").start();
    let out = server.process().stdout();
    let address = out.lines().find_map(|line| line.strip_prefix("listening health "));
    let address = address.unwrap_or_else(|| panic!("no line `listening health …` in\n{out}"));
    for (path, status) in [("/v2/health/live", 200), ("/api/health/ready", 200), ("/v2", 404)] {
        let get = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(Connection::open(address).send(get).response().status, status, "{path}");
    }
}

#[test]
fn non_strict_readiness() {
    let server = Server::new()
        .model("broken", probe("broken", &[("fail_in", "model_open")]))
        .flag("--exit-on-error=false")
        .flag("--strict-readiness=false")
        .start();
    for path in ["/v2/health/ready", "/api/health/ready"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
}

#[test]
fn version_policy_selects_versions() {
    let with = |policy: &str| {
        let server = Server::new().model("echo", probe("echo", &[]) + policy);
        for version in ["3", "7", "10"] {
            fs::create_dir(server.models().join("echo").join(version)).expect("a folder");
        }
        let server = server.start();
        server.get("/v2/models/echo").json()["versions"].to_string()
    };
    assert_eq!(with(""), r#"["10"]"#);
    assert_eq!(with("version_policy: { latest: { num_versions: 2 } }\n"), r#"["7","10"]"#);
    assert_eq!(with("version_policy: { all: { } }\n"), r#"["1","3","7","10"]"#);
    assert_eq!(with("version_policy: { specific: { versions: [ 1, 7, 8 ] } }\n"), r#"["1","7"]"#);
}
