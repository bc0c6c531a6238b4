//! Models and versions that are added, changed, broken, repaired and removed while the server
//! polls.

use serde_json::json;
use std::fs;
use trtserver_tests::control::{Control, pair, refused};
use trtserver_tests::polling::{ALL, Polled, numbered, polling};
use trtserver_tests::versions::{Version, Versions, model};
use trtserver_tests::{Server, folder, probe};

#[test]
fn flags_of_old_releases_enable_polling() {
    for flags in [
        &["--repository-poll-secs=1", "--repository-settle-secs=0"][..],
        &["--allow-poll-model-repository=true", "--file-system-poll-secs=1"],
    ] {
        let server = Server::new().model("a", probe("a", &[]));
        let server = flags.iter().fold(server, |server, flag| server.flag(*flag)).start();
        server.models().model("b", &probe("b", &[]));
        server.poll_until("the added model serves", |server| server.serves("b"));
        assert!(server.serves("a"));
        let text = "explicit model load / unload is not allowed if polling is enabled";
        for act in ["load", "unload"] {
            refused(server.control("a", act, json!({})), 503, text);
            let v1 = server.v1_error(act, "a");
            assert!(v1.contains("code: UNAVAILABLE") && v1.contains(text), "{v1}");
        }
        assert!(server.stop().success());
    }
}

#[test]
fn models_are_added_changed_removed_and_added_again() {
    let server = polling().model("a", probe("a", &[])).start();
    let success = r#"nv_inference_request_success{model="m",version="1"}"#;
    server.models().number("m", 1, 10);
    server.models().file("m/config.pbtxt", numbered("m"));
    server.wait_for_answer("m", 1, 10);
    server.wait_for_log("New status tracking for model 'm'");
    server.models().number("m", 1, 20);
    server.wait_for_answer("m", 1, 20);
    // An older file with older times.
    let value = server.models().path().join("m/1/value");
    let older = std::time::SystemTime::now() - std::time::Duration::from_secs(86_400);
    let part = server.models().file("m/1/value.tmp", "5");
    fs::File::open(&part).and_then(|file| file.set_modified(older)).unwrap();
    fs::rename(&part, &value).unwrap();
    server.wait_for_answer("m", 1, 5);
    let before = server.metrics(success).unwrap_or_default();
    assert!(before >= 3.0, "a reloaded model continues its counters: {before}");

    server.models().remove("m");
    server.poll_until("the removed model is unloaded", |server| server.reason("m") == "unloaded");
    refused(server.infer("m", ""), 404, "Request for unknown model: 'm' has no available versions");
    assert_eq!(server.get("/v2/health/ready").status, 200);
    let status = server.get("/api/status/m").text();
    assert!(status.contains("MODEL_UNAVAILABLE") && status.contains("unloaded"), "{status}");
    server.models().number("m", 1, 30);
    server.models().file("m/config.pbtxt", numbered("m"));
    server.wait_for_log("New status tracking for re-added model 'm'");
    server.poll_until("it serves", |server| server.get("/v2/models/m/ready").status == 200);
    assert_eq!(server.metrics(success), Some(0.0), "counters begin anew");
    assert_eq!(server.answer("m"), Some((1, 30)));
    assert!(server.serves("a") && !server.log().contains("re-loading: a"));
    assert!(server.stop().success());
}

#[test]
fn only_changed_versions_are_reopened() {
    let labels = |file: &str| {
        let config = numbered("m")
            .replace("name: \"OUTPUT0\"", &format!("name: \"OUTPUT0\" label_filename: \"{file}\""));
        config + ALL
    };
    let server = polling()
        .file("m/1/value", "10")
        .file("m/2/value", "20")
        .file("m/labels.txt", "zero\none\n")
        .file("m/config.pbtxt", labels("labels.txt"))
        .start();
    let opened = |times| server.wait_until_opened("m", times);
    opened([1, 1, 0]);
    server.models().number("m", 2, 21);
    server.wait_for_answer("m", 2, 21);
    opened([1, 2, 0]);
    server.models().number("m", 3, 30);
    server.wait_for_answer("m", 3, 30);
    opened([1, 2, 1]);

    // Labels, version policy and tags of metrics reopen none.
    let label = || {
        let body = r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}],
            "outputs":[{"name":"OUTPUT0","parameters":{"classification":1}}]}"#;
        server.post("/v2/models/m/infer", &[], body).text()
    };
    assert!(label().contains("32.000000:1:one"), "{}", label());
    server.models().file("m/labels.txt", "zero\nuno\n");
    server.poll_until("the labels are read", |_| label().contains("32.000000:1:uno"));
    server.models().file("m/others.txt", "null\neins\n");
    let tagged = labels("others.txt") + "metric_tags { key: \"team\" value: \"a\" }\n";
    server.models().file("m/config.pbtxt", &tagged);
    server.poll_until("the other labels are read", |_| label().contains("32.000000:1:eins"));
    assert!(server.metrics_text().contains(r#"_team="a""#));
    let config = tagged.replace("all { }", "specific { versions: [ 1, 2 ] }");
    server.models().file("m/config.pbtxt", config);
    server.wait_for_answer("m", 2, 21);
    assert_eq!(server.get("/v2/models/m").json()["versions"], json!(["1", "2"]));
    opened([1, 2, 1]);

    // Removed versions stay visible; added again they continue their counters.
    let count = r#"nv_inference_request_success{_team="a",model="m",version="2"}"#;
    let before = server.metrics(count).unwrap_or_default();
    fs::remove_dir_all(server.models().path().join("m/2")).unwrap();
    server.wait_for_answer("m", 1, 10);
    server.poll_until("version 2 is unloaded", |server| {
        server.entries("m")[1]["reason"] == "unloaded"
    });
    server.models().number("m", 2, 22);
    server.wait_for_answer("m", 2, 22);
    assert!(server.metrics(count) > Some(before) && before > 0.0);
    opened([1, 3, 1]);
    assert!(server.stop().success());
}

#[test]
fn broken_edit_keeps_the_old_version_and_shows_the_reason() {
    let server = polling().file("m/1/value", "10").file("m/config.pbtxt", numbered("m")).start();
    let failed = || {
        let text = server.metrics_text();
        let line = text.lines().find(|line| line.starts_with("trtserver_model_load_failed{"));
        line.unwrap_or_default().to_owned()
    };
    assert_eq!(failed(), "");
    let path = server.models().file("m/config.pbtxt", "name: \"m\"\n  max_batch_size: eight\n");
    let place = format!("{}:2:19: max_batch_size", path.display());
    server.poll_until("the index has the reason", |server| server.reason("m").contains(&place));
    assert_eq!(server.entries("m")[0]["state"], "READY");
    assert_eq!(server.answer("m"), Some((1, 10)));
    let status = server.get("/api/status/m").text();
    assert!(status.contains("MODEL_READY") && status.contains(&place), "{status}");
    assert!(failed().contains(&place) && failed().ends_with(" 1"), "{}", failed());
    server.wait_for_log_with(&["failed to load 'm'", &place]);
    assert_eq!(server.get("/v2/health/ready").status, 200);

    // Repaired, then a file with which the version does not open, which is repaired by the file
    // before.
    server.models().file("m/config.pbtxt", numbered("m"));
    server.poll_until("nothing is wrong", |server| server.reason("m").is_empty());
    assert_eq!(failed(), "");
    server.models().file("m/1/value", "ten");
    server.poll_until("the reason is shown", |s| s.reason("m").contains("not a whole number"));
    assert_eq!(server.answer("m"), Some((1, 10)));
    server.models().number("m", 1, 11);
    server.wait_for_answer("m", 1, 11);
    assert_eq!(server.reason("m"), "");

    // All versions are gone: the old one serves until the model is removed.
    fs::rename(server.models().path().join("m/1"), server.models().path().join("m/one")).unwrap();
    let none = "at least one version must be available under the version policy of model 'm'";
    server.poll_until("the reason is shown", |server| server.reason("m").contains(none));
    assert_eq!(server.answer("m"), Some((1, 11)));
    assert!(server.stop().success());
}

#[test]
fn ensemble_follows_the_models_of_its_steps() {
    let server = polling().model("a", probe("a", &[])).start();
    // The ensemble before its step: it is loaded once the step is.
    server.models().model("pair", &pair("m"));
    let missing = "ensemble pair contains models that are not available or ambiguous: m";
    server.poll_until("the ensemble fails", |server| server.reason("pair").contains(missing));
    server.models().number("m", 1, 10);
    server.models().file("m/config.pbtxt", numbered("m"));
    server.wait_for_answer("pair", 1, 20);
    server.models().number("m", 1, 100);
    server.wait_for_answer("pair", 1, 200);
    server.models().remove("m");
    server.poll_until("the ensemble is not served", |server| server.answer("pair").is_none());
    server.models().number("m", 1, 7);
    server.models().file("m/config.pbtxt", numbered("m"));
    server.wait_for_answer("pair", 1, 14);
    assert!(server.stop().success());
}

#[test]
fn repository_that_cannot_be_listed_unloads_nothing() {
    let server = polling().file("m/1/value", "10").file("m/config.pbtxt", numbered("m")).start();
    let root = server.models().path();
    let moved = root.with_extension("moved");
    fs::rename(root, &moved).unwrap();
    server.wait_for_log_with(&["Failed to poll model repository", "its models stay as they are"]);
    assert_eq!(server.answer("m"), Some((1, 10)));
    fs::create_dir(root).unwrap();
    server.wait_for_log("another, empty directory has taken its place");
    assert_eq!(server.answer("m"), Some((1, 10)));
    fs::remove_dir(root).unwrap();
    fs::rename(&moved, root).unwrap();
    server.models().number("m", 1, 11);
    server.wait_for_answer("m", 1, 11);
    assert!(!server.log().contains("unloading: m"));
    assert!(server.stop().success());
}

#[test]
fn entries_that_do_not_count_change_nothing() {
    let server = polling()
        .file("m/1/value", "10")
        .file("m/config.pbtxt", numbered("m"))
        .file(".git/1/model", "")
        .file("lost+found/1/model", "")
        .file("m.tmp/1/model", "")
        .file("m~/1/model", "")
        .file("README", "")
        .file("m/2.tmp/value", "20")
        .start();
    assert_eq!(server.index().as_array().map(Vec::len), Some(1), "{}", server.index());
    for file in ["m/.config.pbtxt.swp", "m/config.pbtxt~", "m/1/.value", "m/1/value.tmp", ".x/1/y"]
    {
        server.models().file(file, "x");
    }
    // A change that counts is loaded after them.
    server.models().file("n/1/value", "1");
    server.models().file("n/config.pbtxt", numbered("n"));
    server.wait_for_answer("n", 1, 1);
    assert!(!server.log().contains("re-loading: m"));
    assert_eq!(server.answer("m"), Some((1, 10)));
    assert!(server.stop().success());
}

#[test]
fn model_in_two_repositories_keeps_serving_with_the_reason() {
    let other = folder();
    let mut flag = std::ffi::OsString::from("--model-repository=");
    flag.push(other.path());
    let server = polling();
    let server =
        server.file("m/1/value", "10").file("m/config.pbtxt", numbered("m")).flag(flag).start();
    fs::create_dir_all(other.path().join("m/1")).unwrap();
    let text = "failed to poll model 'm': not unique across all model repositories";
    server.poll_until("the reason is shown", |server| server.reason("m").contains(text));
    assert_eq!(server.answer("m"), Some((1, 10)));
    fs::remove_dir_all(other.path().join("m")).unwrap();
    server.poll_until("nothing is wrong", |server| server.reason("m").is_empty());
    assert!(!server.log().contains("re-loading: m"));
    assert!(server.stop().success());
}

#[test]
fn newer_backend_alone_reloads_nothing() {
    let dir = folder();
    Version::named("v", "1.0", 1.0).put(dir.path(), "v/1.0");
    let config = model("m", "v", "");
    let server = polling().backend_dir(dir.path()).model("m", &config).start();
    Version::named("v", "1.1", 2.0).put(dir.path(), "v/1.1");
    // Neither alone, nor when another version of the model is added.
    server.models().model("n", &model("n", "v", ""));
    server.poll_until("the added model serves", |server| server.serves("n"));
    assert_eq!((server.number("m"), server.number("n")), (1.0, 2.0));
    server.models().version("m", 2);
    server.models().file("m/config.pbtxt", config + ALL);
    server.poll_until("version 2 serves", |server| server.number("m") == 2.0);
    let first = server.post("/v2/models/m/versions/1/infer", &[], ONE).json();
    assert_eq!(first["outputs"][0]["data"][0], json!(1.0), "{first}");
    server.wait_until_opened("m", [1, 1]);
    assert!(server.stop().success());
}

const ONE: &str = r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}]}"#;
