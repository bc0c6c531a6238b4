//! Readiness with reasons: the bodies of v2's health endpoints, `/v2/trtserver/health` and
//! `--ready-models`.

use serde_json::{Value, json};
use trtserver_tests::http1::request;
use trtserver_tests::{Connection, LoadGate, Server, probe};

/// A model that cannot be loaded.
fn broken() -> String {
    probe("broken", &[("fail_in", "model_open")])
}

/// The models that are not ready, with the parts that do not depend on the time.
fn not_ready(report: &Value) -> Vec<(String, Option<String>, bool, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let models = report["not_ready"].as_array().into_iter().flatten();
    let parts = |m: &Value| {
        let required = m["required"].as_bool().unwrap_or_else(|| panic!("{m}"));
        (
            text(&m["name"]).unwrap_or_else(|| panic!("{m}")),
            text(&m["version"]),
            required,
            text(&m["state"]).unwrap_or_else(|| panic!("{m}")),
        )
    };
    models.map(parts).collect()
}

#[test]
fn reasons_follow_the_load_at_start() {
    let server = Server::new().gated_model().flag("--http-health-port=0").launch();
    let loading = "the server loads its models";
    for (path, status, body) in [
        ("/v2/health/live", 200, json!({"live": true})),
        ("/v2/health/ready", 400, json!({"ready": false, "reason": loading})),
        ("/v2/trtserver/health/started", 400, json!({"started": false, "reason": loading})),
    ] {
        let response = server.get_json(path);
        assert_eq!((response.status, response.json()), (status, body), "{path}");
        assert_eq!(response.header("content-type"), Some("application/json"), "{path}");
    }
    let report = server.get("/v2/trtserver/health").json();
    assert_eq!(
        (&report["live"], &report["started"], &report["ready"]),
        (&json!(true), &json!(false), &json!(false))
    );
    assert_eq!(report["state"], "INITIALIZING");
    LoadGate::reach(&server);
    let report = server.get("/v2/trtserver/health").json();
    let gated = not_ready(&report);
    assert_eq!(gated, [("gated".to_owned(), Some("1".to_owned()), true, "LOADING".to_owned())]);
    LoadGate::reach(&server).open();
    server.wait_until_ready();
    for (path, body) in [
        ("/v2/health/ready", json!({"ready": true})),
        ("/v2/models/gated/ready", json!({"name": "gated", "ready": true})),
        ("/v2/trtserver/health/started", json!({"started": true})),
    ] {
        let response = server.get_json(path);
        assert_eq!((response.status, response.json()), (200, body), "{path}");
    }
    // The same on the listener for health.
    let health = server.listening("health");
    let get = request("GET", "/v2/trtserver/health", &[], b"");
    let report = Connection::open(&health).send(get).response().json();
    assert_eq!(
        (&report["started"], &report["ready"], &report["state"]),
        (&json!(true), &json!(true), &json!("READY"))
    );
    assert_eq!((report.get("reason"), &report["not_ready"]), (None, &json!([])));
    for path in ["/api/health/live", "/api/health/ready"] {
        assert!(server.get(path).body.is_empty(), "{path}");
    }
}

#[test]
fn report_names_the_version_that_is_not_ready_and_why() {
    let server = Server::new()
        .model("broken", broken())
        .model("good", probe("good", &[]))
        .model("refused", "max_batch_size: -1\n")
        .flag("--exit-on-error=false")
        .start();
    let before = server.get("/v2/trtserver/health").json();
    let expected = [("broken", Some("1")), ("refused", None)].map(|(name, version)| {
        (name.to_owned(), version.map(str::to_owned), true, "UNAVAILABLE".to_owned())
    });
    assert_eq!(not_ready(&before), expected);
    for model in before["not_ready"].as_array().expect("a list") {
        assert_ne!(model["reason"], "", "{model}");
        // 2026-11-23T02:20:00.123Z
        let since = model["since"].as_str().expect("a time");
        assert!(since.len() == 24 && since.ends_with('Z') && since.contains('T'), "{since}");
    }
    let ready = server.get_json("/v2/health/ready");
    assert_eq!(ready.status, 400);
    let reason = ready.json()["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.starts_with("model 'broken' version 1 is UNAVAILABLE: "), "{reason}");
    assert!(reason.ends_with("; 1 more: GET /v2/trtserver/health"), "{reason}");
    let of_model = server.get("/v2/models/broken/ready");
    assert_eq!(
        (of_model.status, of_model.error_text()),
        (400, "Model version not ready".to_owned())
    );
    let body = of_model.json();
    assert_eq!((&body["name"], &body["ready"]), (&json!("broken"), &json!(false)));
    assert!(body["reason"].as_str().expect("a reason").starts_with("version 1 is UNAVAILABLE: "));
    // The time since then grows, and the moment stays.
    let elapsed = |report: &Value| report["not_ready"][0]["elapsed_ms"].as_u64().expect("a time");
    server.poll_until("a later report", |server| {
        elapsed(&server.get("/v2/trtserver/health").json()) > elapsed(&before)
    });
}

#[test]
fn ready_models_names_those_that_matter() {
    let server = |flag: &str| {
        Server::new()
            .model("broken", broken())
            .model("good", probe("good", &[]))
            .flag(flag)
            .flag("--model-control-mode=explicit")
            .flag("--load-model=broken")
            .flag("--exit-on-error=false")
            .start()
    };
    let flags = "--ready-models=good";
    let explicit = server(flags);
    assert_eq!(
        explicit.get_json("/v2/health/ready").json()["reason"],
        "model 'good': --ready-models names it, and it is not loaded"
    );
    explicit.wait_for_log("not ready until model 'good'");
    let list = not_ready(&explicit.get("/v2/trtserver/health").json());
    let missing = ("good".to_owned(), None, true, "MISSING".to_owned());
    let broken = ("broken".to_owned(), Some("1".to_owned()), false, "UNAVAILABLE".to_owned());
    assert_eq!(list, [missing, broken.clone()]);

    assert_eq!(explicit.post("/v2/repository/models/good/load", &[], "").status, 200);
    for path in ["/v2/health/ready", "/api/health/ready"] {
        assert_eq!(explicit.get(path).status, 200, "{path}");
    }
    let report = explicit.get("/v2/trtserver/health").json();
    assert_eq!((&report["ready"], not_ready(&report)), (&json!(true), vec![broken]));
    // A model that is required and unloaded does not serve.
    assert_eq!(explicit.post("/v2/repository/models/good/unload", &[], "").status, 200);
    explicit.poll_until("not ready", |server| server.get("/v2/health/ready").status == 400);
    let reason = explicit.get_json("/v2/health/ready").json()["reason"].to_string();
    assert!(reason.contains("model 'good'") && reason.contains("unloaded"), "{reason}");
}

#[test]
fn required_model_that_no_repository_has_fails_the_start() {
    let server =
        || Server::new().model("good", probe("good", &[])).flag("--ready-models=good,typo");
    let text = "model 'typo', which --ready-models names, is in no repository";
    let refused = server().refuses_to_start();
    assert_eq!(refused.code(), 1);
    assert!(refused.stderr.contains(text), "{}", refused.stderr);
    let server = server().flag("--exit-on-error=false").start();
    let reason = server.get_json("/v2/health/ready").json()["reason"].to_string();
    assert!(reason.contains("model 'typo'") && reason.contains("in no repository"), "{reason}");
}
