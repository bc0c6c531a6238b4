//! Backend upgrades while models are served: which models use which version, and defective new
//! versions.

use serde_json::json;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tempfile::TempDir;
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::isolated::{kill, wait_until_served};
use trtserver_tests::versions::{Version, Versions, model};
use trtserver_tests::{Server, folder, inference, parameters};

const V: Version<'_> = Version::named("v", "", 0.0);

fn v(version: &str, number: f32) -> Version<'_> {
    Version { version, number, ..V }
}

/// A server with models `m0` to `m4` of backend `v`, `m0` loaded.
fn server(dir: &TempDir) -> Server {
    let server = explicit().backend_dir(dir.path()).flag("--load-model=m0");
    (0..5).map(|i| format!("m{i}")).fold(server, |s, name| s.model(&name, model(&name, "v", "")))
}

#[test]
fn models_loaded_after_upgrade_use_new_version() {
    let dir = folder();
    v("1.9", 19.0).put(dir.path(), "v/1.9");
    let server = server(&dir).model("old", model("old", "v", "1.9")).start();
    server.wait_for_log_with(&["model 'm0' version 1 uses backend 'v' 1.9 from", "(local)"]);
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let (bytes, mut connection) = (inference("m0", ""), server.connect());
                    let mut got = Vec::new();
                    while !end.load(Ordering::Relaxed) {
                        got.push(connection.send(&bytes).response().status);
                    }
                    got
                })
            })
            .collect();
        // Versions are compared as numbers, not as text.
        let new = v("1.10", 110.0).put(dir.path(), "v/1.10");
        // Discovery has not run yet.
        assert_eq!(server.number("m0"), 19.0);
        assert_ok(server.load("m1"));
        assert_eq!((server.number("m0"), server.number("m1")), (19.0, 110.0));
        assert_ok(server.load("old"));
        assert_eq!(server.number("old"), 19.0);
        assert_eq!(server.users("v", "1.9"), (vec!["m0".to_owned(), "old".to_owned()], true));
        assert_eq!(server.users("v", "1.10"), (vec!["m1".to_owned()], true));
        let all = server.backends();
        let expected = json!({
            "name": "v", "version": "1.10", "file": new, "installed": true, "default": true,
            "interface": "1.0", "runtime": "framework of 1.10", "platforms": ["v"], "isolation": "none",
            "models": [{"name": "m1", "version": "1", "isolation": "none"}],
        });
        let listed = all["backends"].as_array().into_iter().flatten().find(|b| b["name"] == "v");
        assert_eq!(listed, Some(&expected));
        let info = |model: &str, version: &str| {
            server.metrics(&format!(
                "trtserver_model_backend_info{{backend=\"v\",backend_version=\"{version}\",isolation=\"none\",model=\"{model}\",version=\"1\"}}"
            ))
        };
        assert_eq!((info("m0", "1.9"), info("m1", "1.10")), (Some(1.0), Some(1.0)));
        // The model is unchanged, but a reload picks up the new backend.
        assert_ok(server.load("m0"));
        assert_eq!(server.number("m0"), 110.0);
        assert_ok(server.load("m0"));
        assert_eq!(server.log().matches("re-loading: m0:1").count(), 1);
        assert_ok(server.unload("old"));
        server.wait_for_log("closed backend 'v' 1.9");
        // The old version is still available, and is opened again.
        assert_ok(server.load("old"));
        assert_eq!(server.number("old"), 19.0);
        end.store(true, Ordering::Relaxed);
        for client in clients {
            let got = client.join().unwrap();
            assert!(got.len() > 10 && got.iter().all(|status| *status == 200), "{got:?}");
        }
    });
    assert_eq!(server.log().matches("opened backend 'v' 1.9").count(), 2);
    assert_eq!(server.log().matches("opened backend 'v' 1.10").count(), 1);
    assert!(server.stop().success());
}

/// The plugin file has been replaced since the load when the child is restarted.
#[test]
fn restarted_child_reports_its_backend_version() {
    let dir = folder();
    v("1.0", 1.0).put(dir.path(), "v");
    let config = |name| model(name, "v", "") + &parameters(&[("isolation", "process")]);
    let server = explicit().backend_dir(dir.path()).model("m0", config("m0"));
    let server = server.flag("--load-model=m0").start();
    assert_eq!(server.number("m0"), 1.0);
    kill(&server, "m0");
    wait_until_served(&server, "m0");
    assert!(!server.log().contains("was replaced"), "{}", server.log());
    let file = v("2.0", 2.0).put(dir.path(), "v");
    kill(&server, "m0");
    wait_until_served(&server, "m0");
    assert_eq!(server.number("m0"), 2.0);
    server.wait_for_log_with(&[
        "model 'm0' version 1",
        &file.display().to_string(),
        "was replaced after the model was loaded with backend 'v' 1.0",
        "version 2.0",
        "reload the model",
    ]);
    assert_ok(server.load("m0"));
    assert_eq!(server.users("v", "2.0").0, ["m0"]);
    kill(&server, "m0");
    wait_until_served(&server, "m0");
    assert_eq!(server.log().matches("was replaced after").count(), 1);
    assert!(server.stop().success());
}

#[test]
fn backend_receives_isolation() {
    let dir = folder();
    Version { macros: &["ISOLATION"], ..v("1.0", 0.0) }.put(dir.path(), "v");
    let isolated = model("isolated", "v", "") + &parameters(&[("isolation", "process")]);
    let server = Server::new().backend_dir(dir.path()).model("local", model("local", "v", ""));
    let server = server.model("isolated", isolated).start();
    assert_eq!((server.number("local"), server.number("isolated")), (0.0, 1.0));
    assert!(server.stop().success());
}

#[test]
fn model_pins_version_or_version_prefix() {
    let dir = folder();
    for (version, number) in [("1.30.2", 1302.0), ("1.31.0", 1310.0), ("1.31.1", 1311.0)] {
        v(version, number).put(dir.path(), &format!("v/{version}"));
    }
    v("2024.1-rc2", 2.0).put(dir.path(), "v/preview");
    let pins = ["1.31.0", "1.31", "1", "2024.1", "1.3", "1.31.2"];
    let mut server = explicit()
        .backend_dir(dir.path())
        .flag("--backend-config=v,version=1.30")
        .flag("--load-model=free")
        .model("free", model("free", "v", ""));
    for pin in pins {
        server = server.model(pin, model(pin, "v", pin));
    }
    let server = server.start();
    assert_eq!(server.number("free"), 1302.0);
    for (pin, number) in [("1.31.0", 1310.0), ("1.31", 1311.0), ("1", 1311.0), ("2024.1", 2.0)] {
        assert_ok(server.load(pin));
        assert_eq!(server.number(pin), number, "{pin}");
    }
    for pin in ["1.3", "1.31.2"] {
        let says = server.load(pin).error_text();
        for part in [
            &format!(
                "model '{pin}' requests version '{pin}' of backend 'v' (parameter 'backend_version')"
            ),
            "installed: '2024.1-rc2', '1.31.1', '1.31.0', '1.30.2'",
        ] {
            assert!(says.contains(part), "no {part:?} in {says:?}");
        }
    }
    let line = server.wait_for_log("is in a directory 'preview'");
    assert!(line.contains("2024.1-rc2"), "{line}");
    assert!(server.stop().success());
}

#[test]
fn defective_new_version_affects_no_model() {
    let dir = folder();
    v("1.0", 10.0).put(dir.path(), "v/1.0");
    let server = server(&dir).model("pinned", model("pinned", "v", "1.1")).start();
    let file = dir.path().join("v/1.1/libtrtserver_v.so");
    fs::create_dir(dir.path().join("v/1.1")).unwrap();
    fs::write(&file, "no library").unwrap();
    assert_ok(server.load("m1"));
    assert_eq!(server.number("m1"), 10.0);
    let says = server.load("pinned").error_text();
    for part in [
        "requests version '1.1'",
        "installed: '1.0'",
        &file.display().to_string(),
        "not a loadable library",
    ] {
        assert!(says.contains(part), "no {part:?} in {says:?}");
    }
    let unusable = server.backends()["unusable"].clone();
    assert_eq!(unusable[0]["file"], json!(file));
    assert!(unusable[0]["reason"].as_str().unwrap().contains("not a loadable library"));
    // Unchanged files are reported once.
    assert_ok(server.load("m2"));
    let reports = |log: &str| log.lines().filter(|line| line.contains("inventory.rs")).count();
    assert_eq!(reports(&server.log()), 1, "{}", server.log());

    // A copy in progress: half of the file exists.
    let whole = dir.path().join("whole.part");
    v("1.1", 11.0).compile(&whole);
    let bytes = fs::read(&whole).unwrap();
    for there in [0, 100, 4096, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&file, &bytes[..there]).unwrap();
        assert_ok(server.unload("m2"));
        assert_ok(server.load("m2"));
        assert_eq!(server.number("m2"), 10.0);
    }
    server.wait_for_log_with(&["truncated: ", "tried again"]);
    fs::write(&file, &bytes).unwrap();
    assert_ok(server.load("pinned"));
    assert_ok(server.load("m3"));
    assert_eq!((server.number("pinned"), server.number("m3")), (11.0, 11.0));
    assert_eq!((server.number("m0"), server.number("m2")), (10.0, 10.0));
    assert_eq!(server.backends()["unusable"], json!([]));

    // An invalid plugin.toml.
    v("1.2", 12.0).put(dir.path(), "v/1.2");
    fs::write(dir.path().join("v/1.2/plugin.toml"), "nonsense\n").unwrap();
    assert_ok(server.load("m4"));
    assert_eq!(server.number("m4"), 11.0);
    server.wait_for_log_with(&["plugin.toml", "nonsense"]);
    fs::write(dir.path().join("v/1.2/plugin.toml"), "").unwrap();
    assert_ok(server.load("m4"));
    assert_eq!(server.number("m4"), 12.0);
    assert!(server.stop().success());
}

#[test]
fn overwritten_plugin_file_serves_no_new_models() {
    let dir = folder();
    let file = v("1.0", 1.0).put(dir.path(), "v");
    let server = server(&dir).start();
    // Replaced twice, the second time with the same version number.
    v("1.1", 2.0).put(dir.path(), "v");
    assert_ok(server.load("m1"));
    v("1.1", 3.0).put(dir.path(), "v");
    assert_ok(server.load("m2"));
    let numbers = |models: &[&str]| models.iter().map(|m| server.number(m)).collect::<Vec<_>>();
    assert_eq!(numbers(&["m0", "m1", "m2"]), [1.0, 2.0, 3.0]);
    assert_eq!(server.users("v", "1.0"), (vec!["m0".to_owned()], false));
    server.wait_for_log_with(&["the file of backend 'v' 1.0", "was removed or replaced"]);
    // Overwritten in place: the changed library must not get models.
    let touched = fs::File::options().append(true).open(&file).unwrap();
    touched.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let says = server.load("m3").error_text();
    assert!(says.contains("written to while it was loaded"), "{says}");
    // The file is removed.
    fs::remove_file(&file).unwrap();
    assert!(server.load("m3").error_text().contains("v"));
    assert_eq!(numbers(&["m0", "m1", "m2"]), [1.0, 2.0, 3.0]);
    v("0.9", 0.5).put(dir.path(), "v/0.9");
    assert_ok(server.load("m3"));
    assert_eq!(server.number("m3"), 0.5);
    assert!(server.stop().success());
}

#[test]
fn duplicate_version_is_refused() {
    let dir = folder();
    let first = v("1.0", 1.0).put(dir.path(), "v/1.0");
    let second = v("1.0", 2.0).put(dir.path(), "v/1.0.bak");
    let ended = server(&dir).refuses_to_start();
    let log = &ended.stderr;
    let line = log.lines().find(|l| l.contains("version '1.0' of backend 'v' is claimed by"));
    for file in [&first, &second] {
        assert!(line.is_some_and(|l| l.contains(&*file.to_string_lossy())), "{log}");
    }
    // The file in use stays while it serves; the other one is used after its removal.
    let aside = dir.path().join("aside.part");
    fs::rename(&second, &aside).unwrap();
    // A symbolic link is not a second file.
    std::os::unix::fs::symlink("1.0", dir.path().join("v/latest")).unwrap();
    let server = server(&dir).start();
    fs::rename(&aside, &second).unwrap();
    assert_ok(server.load("m1"));
    assert_eq!(server.number("m1"), 1.0);
    server.wait_for_log_with(&[
        "is claimed by",
        &first.to_string_lossy(),
        &second.to_string_lossy(),
    ]);
    fs::remove_file(&first).unwrap();
    assert_ok(server.load("m2"));
    assert_eq!((server.number("m1"), server.number("m2")), (1.0, 2.0));
    assert!(server.stop().success());
}

#[test]
fn new_version_cannot_claim_platform_of_another_backend() {
    let dir = folder();
    v("1.0", 1.0).put(dir.path(), "v/1.0");
    let other = Version { macros: &["PLATFORM=\"v\""], ..Version::named("w", "9.0", 9.0) };
    let server = server(&dir).start();
    other.put(dir.path(), "w/9.0");
    assert_ok(server.load("m1"));
    server.wait_for_log("platform 'v' is claimed by");
    assert_eq!(server.number("m1"), 1.0);
    assert!(server.stop().success());
}

/// A directory of the operator adds to the installed backends. Of a name that both have, only the
/// operator's counts.
#[test]
fn given_directory_adds_to_the_installed_backends() {
    let dir = folder();
    Version::named("v", "1.0", 1.0).put(dir.path(), "v/1.0");
    Version::named("probe", "0.0.1", 2.0).put(dir.path(), "probe");
    let server = Server::new()
        .backend_dir(dir.path())
        .model("m", model("m", "v", ""))
        .model("own", model("own", "probe", ""))
        .copy_model("examples/models/simple")
        .start();
    assert_eq!((server.number("m"), server.number("own")), (1.0, 2.0));
    assert_eq!(server.get("/v2/models/simple/ready").status, 200);
    let listed = server.backends()["backends"].clone();
    let of_name = |name: &str| -> Vec<String> {
        let all = listed.as_array().into_iter().flatten();
        let named = all.filter(|backend| backend["name"] == name);
        named.map(|backend| backend["file"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let [own] = &of_name("probe")[..] else { panic!("{listed}") };
    assert!(own.starts_with(&dir.path().display().to_string()), "{listed}");
    assert_eq!(of_name("onnxruntime").len(), 1, "{listed}");
    assert!(server.stop().success());
}
