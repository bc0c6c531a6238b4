//! Adapters: plugins that open backend libraries of another server, here `libfoo_NAME.so`.

#![allow(clippy::unwrap_used)] // the functions here are parts of tests

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::versions::{Version, Versions, model};
use trtserver_tests::{compile, folder, root, trtserver};

const MANIFEST: &str = "isolation = \"process\"\n\
                        [adapter]\n\
                        file = \"libadapter.so\"\n\
                        library = \"libfoo_{name}.so\"\n\
                        directory-file = \"script.txt\"\n\
                        directory-backend = \"one\"\n\
                        [settings]\n\
                        from-adapter = 1\n";

/// Installs the adapter `foo`.
fn put_adapter(dir: &Path) {
    fs::create_dir_all(dir.join("foo")).unwrap();
    let include = format!("-I{}", root().join("plugin-api/include").display());
    let library = dir.join("foo/libadapter.so");
    compile("tests/plugins/adapter/adapter.c", &library, &[include, "-D_GNU_SOURCE".into()]);
    fs::write(dir.join("foo/plugin.toml"), MANIFEST).unwrap();
}

/// Installs a library that the adapter opens.
fn put_library(dir: &Path, name: &str, number: i32) -> PathBuf {
    fs::create_dir_all(dir.join(name)).unwrap();
    let file = dir.join(name).join(format!("libfoo_{name}.so"));
    compile("tests/plugins/adapter/foo.c", &file, &[format!("-DNUMBER={number}")]);
    file
}

fn listed(dir: &Path) -> (i32, Value) {
    let words = ["plugin", "list", "--json", "--backend-dir"].map(Into::into).into_iter();
    let ended = trtserver(words.chain([dir.as_os_str().to_owned()]));
    (ended.code(), serde_json::from_str(&ended.stdout).unwrap())
}

fn entry<'a>(all: &'a Value, name: &str, version: &str) -> &'a Value {
    let of = |b: &&Value| b["name"] == name && b["version"] == version;
    all["backends"].as_array().unwrap().iter().find(of).unwrap_or_else(|| panic!("{all:#}"))
}

#[test]
fn adapter_opens_libraries_beside_plugins() {
    let dir = folder();
    put_adapter(dir.path());
    let one = put_library(dir.path(), "one", 1);
    put_library(dir.path(), "both", 2);
    Version::named("both", "1.0", 3.0).put(dir.path(), "both");
    fs::create_dir(dir.path().join("scripted")).unwrap();
    fs::write(dir.path().join("scripted/script.txt"), "").unwrap();
    fs::write(dir.path().join("scripted/plugin.toml"), "[settings]\nfrom-own = 2\n").unwrap();

    let server = explicit().backend_dir(dir.path()).flag("--backend-config=one,given=3");
    let server = server.flag("--backend-config=one,min-compute-capability=7");
    let server = server.model("isolated", model("isolated", "one", ""));
    let local = model("local", "one", "") + &trtserver_tests::parameters(&[("isolation", "none")]);
    let server = server.model("local", local);
    let server = server.model("own", model("own", "both", ""));
    let server = server.model("adapted", model("adapted", "both", "foo"));
    let running = server.model("script", model("script", "scripted", "")).start();
    for (name, number) in
        [("isolated", 1.0), ("local", 1.0), ("own", 3.0), ("adapted", 2.0), ("script", 1.0)]
    {
        assert_ok(running.load(name));
        assert_eq!(running.number(name), number, "{name}");
    }

    let log = running.log();
    let root = dir.path().display();
    for text in [
        format!("found backend 'one' foo-2.5 in {}, opened through foo", one.display()),
        format!(
            "backend 'both' is offered as '1.0' in {root}/both/libtrtserver_both.so and as 'foo-2.5' in"
        ),
        format!("adapter opens one in {root}/one: adapted-library={root}/one/libfoo_one.so"),
        format!(
            "backend-directory={root} default-max-batch-size=4 from-adapter=1 given=3 min-compute-capability=7"
        ),
        format!(
            "adapter opens scripted in {root}/scripted: adapted-library={root}/one/libfoo_one.so"
        ),
        "from-adapter=1 from-own=2 min-compute-capability=0.000000".to_owned(),
    ] {
        assert!(log.contains(&text), "no {text:?} in {log}");
    }
    let status = running.backends();
    let shown = entry(&status, "one", "foo-2.5");
    assert_eq!((&shown["file"], &shown["adapter"]), (&json!(one), &json!("foo")));
    assert_eq!(shown["isolation"], "process");
    assert_eq!(entry(&status, "both", "1.0")["default"], true);
    let sample = "trtserver_model_backend_info{backend=\"one\",backend_version=\"foo-2.5\",\
                  isolation=\"process\",model=\"isolated\",version=\"1\"}";
    assert_eq!(running.metrics(sample), Some(1.0));
    assert!(running.stop().success());

    let (code, all) = listed(dir.path());
    assert_eq!(code, 0, "{all:#}");
    let shown = entry(&all, "one", "foo-2.5");
    assert_eq!((&shown["file"], &shown["adapter"]), (&json!(one), &json!("foo")));
}

#[test]
fn adapted_backend_without_what_it_needs_is_refused() {
    let dir = folder();
    let lone = dir.path().join("lone");
    put_library(dir.path(), "lone", 1);
    let server = explicit().backend_dir(dir.path());
    let running = server.model("m", model("m", "lone", "")).start();
    let reason = format!(
        "libfoo_lone.so in '{}' needs the plugin 'foo', which is not installed",
        lone.display()
    );
    let text = running.load("m").error_text();
    assert!(text.contains(&reason), "no {reason:?} in {text:?}");
    assert_eq!(running.backends()["unusable"][0]["reason"], json!(reason));

    // The adapter appears, then a script without the library that runs it.
    put_adapter(dir.path());
    fs::create_dir(dir.path().join("scripted")).unwrap();
    fs::write(dir.path().join("scripted/script.txt"), "").unwrap();
    assert_ok(running.load("m"));
    assert_eq!(running.number("m"), 1.0);
    let (code, all) = listed(dir.path());
    assert_eq!(code, 1);
    let script = all["backends"].as_array().unwrap().iter().find(|b| b["name"] == "scripted");
    let problem = script.unwrap()["problem"].as_str().unwrap();
    assert!(
        problem.contains("needs libfoo_one.so of the backend 'one', which is in no backend"),
        "{problem}"
    );
    assert!(running.stop().success());

    fs::remove_file(dir.path().join("foo/libadapter.so")).unwrap();
    let (_, all) = listed(dir.path());
    assert!(all.to_string().contains("its adapter '"), "{all}");
    fs::write(dir.path().join("foo/plugin.toml"), "[adapter]\nfile = \"a\"\nlibrary = \"b\"\n")
        .unwrap();
    let server = explicit().backend_dir(dir.path());
    let refused = server.refuses_to_start();
    let reason = "[adapter]: library must be a file name with one '{name}', got 'b'";
    assert!(refused.stderr.contains(reason), "{}", refused.stderr);
}
