//! Triton backends and models that cannot be served as they are: each is refused with the reason.

use std::fs;
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::triton_backends::{rogues, unlinked, unusable};

fn model(backend: &str, more: &str) -> String {
    format!(
        "backend: \"{backend}\"\nmax_batch_size: 0\n\
         input [ {{ name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 1 ] }} ]\n\
         output [ {{ name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] }} ]\n{more}"
    )
}

const LIBRARIES: [(&str, &[&str]); 6] = [
    (
        "unlinked",
        &[
            "libtriton_unlinked.so",
            "undefined symbol: TRITON",
            "is linked without libtritonserver.so",
        ],
    ),
    ("unentered", &["libtriton_unentered.so", "TRITONBACKEND_ModelInstanceExecute"]),
    ("unknown", &["libtriton_unknown.so", "TRITONBACKEND_FromAnotherTime", "newer interface"]),
    ("next", &["TRITONBACKEND_Initialize", "needs version 2 of the interface, found 1.19"]),
    ("foreign", &["libtriton_foreign.so", "machine"]),
    ("text", &["libtriton_text.so"]),
];

#[test]
fn unusable_libraries() {
    let backends = rogues(&["rogue", "foreign", "text"]);
    let dir = backends.path();
    unusable(dir, "unentered", "NO_EXECUTE");
    unusable(dir, "unknown", "UNKNOWN_IMPORT");
    unusable(dir, "next", "NEXT_MAJOR");
    unlinked(dir, "unlinked");
    let foreign = dir.join("foreign/libtriton_foreign.so");
    let mut bytes = fs::read(&foreign).unwrap_or_else(|e| panic!("{e}"));
    // The machine in the header of the file: s390.
    bytes[18..20].copy_from_slice(&[22, 0]);
    fs::write(&foreign, bytes).unwrap_or_else(|e| panic!("{e}"));
    fs::write(dir.join("text/libtriton_text.so"), "none").unwrap_or_else(|e| panic!("{e}"));
    let mut server = explicit().triton_start_line().backend_dir(dir);
    for name in LIBRARIES.iter().map(|(name, _)| *name).chain(["rogue"]) {
        server = server.model(name, model(name, ""));
    }
    let server = server.start();
    for (name, parts) in LIBRARIES {
        let response = server.load(name);
        let says = response.error_text();
        assert!(response.status >= 400, "{name}: {}", response.text());
        for part in parts.iter().chain(&[name]) {
            assert!(says.contains(part), "{name}: no {part:?} in {says:?}");
        }
    }
    assert_ok(server.load("rogue"));
    assert!(server.stop().success());
}

/// Such a backend would look for the directory `3`.
#[test]
fn version_directory_must_have_the_bare_number() {
    let backends = rogues(&["rogue"]);
    let server = explicit().triton_start_line().backend_dir(backends.path());
    let server = server.model("copied", model("rogue", "")).file("copied/2_old/model", "").start();
    assert_ok(server.load("copied"));
    server.wait_for_log("ignore version directory '2_old' beside '1', whose name is a bare number");
    let repository = server.models().path();
    fs::rename(repository.join("copied/1"), repository.join("copied/3abc"))
        .unwrap_or_else(|e| panic!("{e}"));
    fs::remove_dir_all(repository.join("copied/2_old")).unwrap_or_else(|e| panic!("{e}"));
    let response = server.load("copied");
    let text =
        "version directory '3abc' of model 'copied' must be called '3': backend 'rogue' looks for";
    assert!(response.error_text().contains(text), "{}", response.text());
    assert!(server.stop().success());
}

#[test]
fn repository_agents_are_not_run() {
    let backends = rogues(&["rogue"]);
    let agents = "model_repository_agents { agents { name: \"checksum\" } }";
    let server = explicit().triton_start_line().backend_dir(backends.path());
    let server = server.model("agents", model("rogue", agents)).start();
    let response = server.load("agents");
    let says = response.error_text();
    assert!(response.status >= 400, "{}", response.text());
    assert!(says.contains("model_repository_agents") && says.contains("'agents'"), "{says}");
    assert!(server.stop().success());
}
