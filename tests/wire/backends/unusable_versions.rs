//! Newer versions of a backend that do not open, or whose library ends the process that loads it:
//! models get the newest version that works, and the reason is logged and listed.

use serde_json::json;
use std::path::Path;
use tempfile::TempDir;
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::versions::{Version, Versions, model};
use trtserver_tests::{Running, Server, folder, parameters};

fn v(version: &'static str, number: f32) -> Version<'static> {
    Version::named("v", version, number)
}

/// A version that contains these macros.
fn with(version: &'static str, macros: &'static [&'static str]) -> Version<'static> {
    Version { macros, ..v(version, 0.0) }
}

/// A server with models `m0` to `m2` of backend `v`, `m0` loaded.
fn server(dir: &TempDir) -> Server {
    let server = explicit().backend_dir(dir.path()).flag("--load-model=m0");
    (0..3).map(|i| format!("m{i}")).fold(server, |s, name| s.model(&name, model(&name, "v", "")))
}

/// The only entry of `unusable`: its file, and a reason that has these parts.
#[track_caller]
fn assert_unusable(server: &Running, file: &Path, parts: &[&str]) {
    let unusable = server.backends()["unusable"].clone();
    assert_eq!((unusable.as_array().map(Vec::len), &unusable[0]["file"]), (Some(1), &json!(file)));
    for part in parts {
        let reason = unusable[0]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains(part), "no {part:?} in {reason:?}");
    }
}

const NO_LICENCE: &[&str] = &["OPEN_FAILS=\"no licence\""];

#[test]
fn models_get_newest_version_that_opens() {
    let dir = folder();
    v("1.0", 10.0).put(dir.path(), "v/1.0");
    let isolated = model("isolated", "v", "") + &parameters(&[("isolation", "process")]);
    let server = server(&dir)
        .model("pinned", model("pinned", "v", "1.1"))
        .model("prefix", model("prefix", "v", "1"))
        .model("isolated", isolated)
        .start();
    let file = with("1.1", NO_LICENCE).put(dir.path(), "v/1.1");
    for name in ["m1", "prefix", "isolated", "m2"] {
        assert_ok(server.load(name));
        assert_eq!(server.number(name), 10.0, "{name}");
    }
    let path = file.display().to_string();
    server.wait_for_log_with(&["'v' 1.1", &path, "cannot be opened", "no licence"]);
    // Logged once for models in the server and once for isolated ones.
    assert_eq!(server.log().matches("cannot be opened").count(), 2, "{}", server.log());
    assert_unusable(&server, &file, &["'v' 1.1 does not open: no licence"]);
    let mut listed = server.backends()["backends"].as_array().cloned().unwrap_or_default();
    listed.retain(|backend| backend["name"] == "v");
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((&listed[0]["version"], &listed[0]["default"]), (&json!("1.0"), &json!(true)));
    assert!(server.load("pinned").error_text().contains("no licence"));
    // The version of a loaded model is still the newest that opens.
    assert_ok(server.load("m0"));
    assert!(!server.log().contains("re-loading"), "{}", server.log());

    v("1.1", 11.0).put(dir.path(), "v/1.1");
    for name in ["m0", "pinned"] {
        assert_ok(server.load(name));
        assert_eq!(server.number(name), 11.0, "{name}");
    }
    assert_eq!(server.backends()["unusable"], json!([]));
    assert_eq!(server.number("m1"), 10.0);
    assert!(server.stop().success());
}

#[test]
fn start_uses_newest_version_that_opens() {
    let dir = folder();
    v("1.0", 10.0).put(dir.path(), "v/1.0");
    let file = with("1.1", NO_LICENCE).put(dir.path(), "v/1.1");
    let server = server(&dir).flag("--load-model=m1").start();
    assert_eq!((server.number("m0"), server.number("m1")), (10.0, 10.0));
    assert_unusable(&server, &file, &["no licence"]);
    assert_eq!(server.log().matches("cannot be opened").count(), 1, "{}", server.log());
    assert!(server.stop().success());
}

#[test]
fn load_fails_with_all_reasons_if_no_version_opens() {
    let dir = folder();
    with("1.0", &["OPEN_FAILS=\"expired\""]).put(dir.path(), "v/1.0");
    with("1.1", NO_LICENCE).put(dir.path(), "v/1.1");
    let server = explicit().backend_dir(dir.path()).model("m", model("m", "v", "")).start();
    let says = server.load("m").error_text();
    let expected = "no version of backend 'v' opens: '1.1': no licence; '1.0': expired";
    assert!(says.contains(expected), "{says}");
    assert!(server.stop().success());
}

/// The library of a new version aborts, exits or does not return while it is loaded.
#[test]
fn library_that_cannot_be_loaded_does_not_end_a_running_server() {
    let dir = folder();
    v("1.0", 10.0).put(dir.path(), "v/1.0");
    let server = server(&dir)
        .flag("--backend-config=v,isolation-open-deadline-seconds=1")
        .model("pinned", model("pinned", "v", "1.1"))
        .start();
    for (constructor, reason) in [
        (&["CONSTRUCTOR=abort()"], "was killed by signal 6 (SIGABRT)"),
        (&["CONSTRUCTOR=_exit(7)"], "ended with exit code 7"),
        (&["CONSTRUCTOR=pause()"], "did not respond within 1 s and was killed"),
    ] {
        let file = with("1.1", constructor).put(dir.path(), "v/1.1");
        assert_ok(server.load("m1"));
        assert_eq!((server.number("m0"), server.number("m1")), (10.0, 10.0), "{reason}");
        server.wait_for_log_with(&[&file.display().to_string(), reason]);
        assert_unusable(&server, &file, &[reason]);
        assert!(server.load("pinned").error_text().contains(reason));
    }
    v("1.1", 11.0).put(dir.path(), "v/1.1");
    assert_ok(server.load("pinned"));
    assert_eq!(server.number("pinned"), 11.0);
    assert!(server.stop().success());
}
