//! Libraries of the legacy custom interface that cannot be loaded: each is refused with the
//! interface's message, and another model is served.

use std::sync::Arc;
use trtserver_tests::Running;
use trtserver_tests::custom::{Custom, Generation, MODES, Mode, library, tensors};

/// A library for another machine.
fn wrong_machine() -> Arc<Vec<u8>> {
    let mut bytes = library("addsub.c", Generation::B, &[]).to_vec();
    assert_eq!(&bytes[..4], b"\x7fELF");
    // e_machine: an Elf64 for S/390.
    bytes[18..20].copy_from_slice(&22_u16.to_le_bytes());
    Arc::new(bytes)
}

fn model(name: &str) -> Custom {
    let inputs = tensors("input", &[("INPUT0", "INT32", "2"), ("INPUT1", "INT32", "2")]);
    let outputs = tensors("output", &[("OUTPUT0", "INT32", "2"), ("OUTPUT1", "INT32", "2")]);
    Custom::new(name, &(inputs + &outputs))
}

fn good_is_served(server: &Running) {
    is_served(server, "good");
}

fn is_served(server: &Running, model: &str) {
    let input = |name: &str| {
        format!(r#"{{"name":"{name}","datatype":"INT32","shape":[1,2],"data":[1,2]}}"#)
    };
    let body = format!(r#"{{"inputs":[{},{}]}}"#, input("INPUT0"), input("INPUT1"));
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.json()["outputs"][0]["data"], serde_json::json!([2, 4]));
}

/// Starts a server with a good model and these, which must fail to load with messages that contain
/// these parts.
fn fail_to_load(broken: Vec<(&str, Custom, &[&str])>) {
    MODES.into_iter().for_each(|mode| fail_there(mode, &broken));
}

fn fail_there(mode: Mode, broken: &[(&str, Custom, &[&str])]) {
    let mut server = mode
        .server()
        .flag("--exit-on-error=false")
        .custom(model("good").library("addsub.c", Generation::B));
    let mut expected = Vec::new();
    for (name, custom, parts) in broken {
        server = server.custom(custom.clone());
        expected.push((*name, *parts));
    }
    let server = server.start();
    let index = server.post("/v2/repository/index", &[], "").json();
    let entries = index.as_array().into_iter().flatten();
    for (name, parts) in expected {
        let entry = entries.clone().find(|entry| entry["name"] == name);
        let entry = entry.unwrap_or_else(|| panic!("no {name} in {index}"));
        assert_eq!(entry["state"], "UNAVAILABLE", "{entry}");
        let reason = entry["reason"].as_str().unwrap_or_default();
        for part in parts {
            assert!(reason.contains(part), "{name}: no {part:?} in {reason:?}");
        }
        server.wait_for_log_with(&["failed to load", &format!("'{name}'"), parts[0]]);
        assert_eq!(server.get(&format!("/v2/models/{name}/ready")).status, 400, "{name}");
    }
    good_is_served(&server);
    assert!(server.stop().success());
}

#[test]
fn generation_that_nothing_says_is_found_by_a_trial() {
    for mode in MODES {
        // `good` is of generation B, which is the first that is tried.
        let later = model("later").bytes(library("addsub.c", Generation::C, &[]));
        let good = model("good").bytes(library("addsub.c", Generation::B, &[]));
        let server = mode.server().custom(good).custom(later).start();
        good_is_served(&server);
        is_served(&server, "later");
        server.wait_for_log_with(&[
            "'later_0_0_cpu'",
            "it exports no CustomVersion, and no parameter 'custom_api' says its generation",
            "its initialise ends with signal",
            "succeeds as one of generation C",
        ]);
        server.wait_for_log_with(&["later_0_0_cpu", "is treated as a library of generation C"]);
        server.wait_for_log_with(&["good_0_0_cpu", "is treated as a library of generation B"]);
        assert!(server.stop().success());
    }
}

#[test]
fn unloadable_files_are_refused() {
    const CANNOT: &str = "unable to load custom library: ";
    let with = |name: &str, bytes: &[u8]| model(name).bytes(Arc::new(bytes.to_vec()));
    let truncated = &library("addsub.c", Generation::B, &[])[..1000];
    let needs = library("not_a_backend.c", Generation::B, &["NEEDS_MORE"]);
    fail_to_load(vec![
        ("text", with("text", b"not a library\n"), &[CANNOT, "text/1/libcustom.so", "14 bytes"]),
        ("prose", with("prose", &b"prose ".repeat(99)), &[CANNOT, "prose/1/libcustom.so", "ELF"]),
        ("empty", with("empty", b""), &[CANNOT, "empty/1/libcustom.so", "empty"]),
        ("cut", with("cut", truncated), &[CANNOT, "cut/1/libcustom.so", "1000 of at least"]),
        ("machine", model("machine").bytes(wrong_machine()), &[CANNOT, "machine 22"]),
        ("needs", model("needs").bytes(needs), &[CANNOT, "undefined_number"]),
        ("missing", model("missing"), &["unable to find Custom model 'libcustom.so' for missing"]),
        (
            "other",
            model("other").file("other.so"),
            &["unable to find Custom model 'other.so' for other"],
        ),
    ]);
}

#[test]
fn missing_symbols_are_refused() {
    let b = |name: &str, defines: &[&str]| {
        model(name).bytes(library("addsub.c", Generation::B, defines))
    };
    let v2 = |name: &str, defines: &[&str]| {
        model(name).bytes(library("addsub.c", Generation::V2b, defines))
    };
    let nothing = model("nothing").bytes(library("not_a_backend.c", Generation::B, &[]));
    fail_to_load(vec![
        (
            "nothing",
            nothing,
            &[
                "unable to find 'CustomInitialize' entrypoint in custom library: ",
                "undefined symbol",
                "'CustomFinalize'",
                "'CustomErrorString'",
                "'CustomExecute'",
            ],
        ),
        (
            "initialize",
            b("initialize", &["WITHOUT_INITIALIZE"]),
            &["unable to find 'CustomInitialize' entrypoint in custom library: "],
        ),
        (
            "finalize",
            b("finalize", &["WITHOUT_FINALIZE"]),
            &["unable to find 'CustomFinalize' entrypoint in custom library: "],
        ),
        (
            "error_string",
            b("error_string", &["WITHOUT_ERROR_STRING"]),
            &["unable to find 'CustomErrorString' entrypoint in custom library: "],
        ),
        (
            "execute",
            b("execute", &["WITHOUT_EXECUTE"]),
            &["unable to find 'CustomExecute' entrypoint in custom library: "],
        ),
        (
            "execute_v2",
            v2("execute_v2", &["WITHOUT_EXECUTE"]),
            &["unable to find 'CustomExecuteV2' entrypoint in custom library: "],
        ),
        (
            "version_3",
            v2("version_3", &["EXPORT_VERSION=3"]),
            &["unable to load custom library: invalid custom version 3 is provided"],
        ),
        (
            "not_a",
            v2("not_a", &[]).parameter("custom_api", "A"),
            &["unable to load custom library: ", "custom_api", "'A'", "CustomVersion"],
        ),
        (
            "version_0",
            v2("version_0", &["EXPORT_VERSION=0"]),
            &["unable to load custom library: invalid custom version 0 is provided"],
        ),
    ]);
}

#[test]
fn initialize_errors_are_reported() {
    let faulty = |name: &str, generation: Generation| {
        model(name)
            .library("faulty.c", generation)
            .more(&format!(r#"metric_tags {{ key: "fault" value: "{name}" }}"#))
    };
    let named = |name: &str, command: &str, generation: Generation| {
        model(name)
            .library("faulty.c", generation)
            .more(&format!(r#"metric_tags {{ key: "fault" value: "{command}" }}"#))
    };
    fail_to_load(vec![
        (
            "initialize_error",
            faulty("initialize_error", Generation::B),
            &["initialize error for 'initialize_error': (7) out of ink"],
        ),
        (
            "initialize_silent_error",
            faulty("initialize_silent_error", Generation::B),
            &["initialize error for 'initialize_silent_error': (8) <no error string>"],
        ),
        (
            "half_begun",
            named("half_begun", "initialize_late_error", Generation::C),
            &["initialize error for 'half_begun': (7) out of ink"],
        ),
        (
            "without_context",
            named("without_context", "initialize_error", Generation::V2b),
            &["initialize error for 'without_context': failed to create instance, error code: 7"],
        ),
        (
            "no_sequences",
            model("no_sequences").library("sequence.c", Generation::B),
            &[
                "initialize error for 'no_sequences': (3) the configuration has no sequence_batching",
            ],
        ),
    ]);
}
