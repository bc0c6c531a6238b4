//! The times of a load's steps, loads that take long, and loads that are abandoned.

use serde_json::Value;
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::{LoadGate, Running, Server, folder, probe};

fn loads(server: &Running) -> Value {
    server.get("/v2/trtserver/loads").json()
}

#[test]
fn steps_of_a_load_are_shown() {
    let server = Server::new().gated_model().model("m", probe("m", &[])).launch();
    let gate = LoadGate::reach(&server);
    server.poll_until("the warm-up is shown", |server| {
        let loads = loads(server);
        let loading = loads["loading"].as_array().into_iter().flatten();
        loading.into_iter().any(|load| load["name"] == "gated" && load["stage"] == "warm-up")
    });
    gate.open();
    server.wait_until_ready();
    let loads = loads(&server);
    assert_eq!(loads["loading"], serde_json::json!([]));
    let load = |name: &str| {
        let found = loads["loads"].as_array().into_iter().flatten().find(|l| l["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {loads}"))
    };
    for name in ["m", "gated"] {
        let load = load(name);
        let ms = |step: &str| load[step].as_f64().unwrap_or_else(|| panic!("{step} in {load}"));
        assert_eq!((&load["version"], &load["state"]), (&"1".into(), &"READY".into()));
        assert!(ms("parse_ms") > 0.0 && ms("open_ms") > 0.0, "{load}");
        let sum = ms("fetch_ms") + ms("parse_ms") + ms("open_ms") + ms("warm_ms");
        assert!((sum - ms("total_ms")).abs() < 0.01, "{load}");
        let metric = format!("nv_model_load_duration_secs{{model=\"{name}\",version=\"1\"}}");
        let seconds = server.metrics(&metric).unwrap_or_else(|| panic!("{metric}"));
        assert!((seconds * 1e3 - ms("total_ms")).abs() < 0.01, "{seconds} {load}");
    }
    let log = server.log();
    let line = log.lines().find(|l| l.contains("successfully loaded 'gated' version 1 in "));
    assert!(line.is_some_and(|l| l.contains(" (fetch ") && l.contains(", parse ")), "{log}");
}

#[test]
fn long_load_is_logged_and_ends_when_it_is_abandoned() {
    let dir = folder();
    let never = dir.path().join("never").display().to_string();
    let server = explicit().model("m", probe("m", &[("open_until_file", &never)])).start();
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| server.load("m"));
        server.wait_for_log_with(&[
            "still loading 'm' version 1 after ",
            " s: 0 of 1 instances are open, waiting for the test (25.0 %)",
        ]);
        let shown = loads(&server);
        let load = &shown["loading"][0];
        assert_eq!((&load["name"], &load["permille"]), (&"m".into(), &250.into()), "{shown}");
        assert_eq!(load["reported"], "waiting for the test");
        // The backend learns from the result of its report that the load is not needed.
        assert_ok(server.unload("m"));
        let failed = loading.join().expect("a response");
        assert_eq!(failed.status, 400);
        assert!(failed.error_text().contains("the load was abandoned"), "{}", failed.text());
    });
    std::fs::write(&never, "").expect("a file");
    assert_ok(server.load("m"));
    assert!(server.serves("m"));
    assert_eq!(loads(&server)["loading"], serde_json::json!([]));
}
