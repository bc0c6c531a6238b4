//! Backends in C, compiled against `libtritonserver.so` and opened through its backend table, on
//! the test host.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::types::{code, dtype, level};
use trtserver_plugin_testkit::{
    Backend, Instance, InstanceSpec, ModelSpec, Outcome, Request, Session, bytes, load,
    set_log_level, values,
};

fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join("libtritonserver.so")
}

fn table() -> &'static BackendTable {
    static TABLE: LazyLock<&BackendTable> = LazyLock::new(|| load(&library()).unwrap());
    &TABLE
}

/// Compiles `tests/c/<source>.c` into the directory of a backend; returns that.
fn compiled(root: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let dir = root.join("backends").join(name);
    std::fs::create_dir_all(&dir).unwrap();
    let c = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(format!("{source}.c"));
    let mut compiler = Command::new(std::env::var("CC").unwrap_or("cc".to_owned()));
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]);
    compiler.args(options).arg("-o").arg(dir.join(format!("libtriton_{name}.so"))).arg(c);
    compiler.arg("-L").arg(library().parent().unwrap()).arg("-ltritonserver");
    assert!(compiler.status().unwrap().success());
    dir
}

fn open(dir: &Path, name: &str, settings: &[(&str, &str)]) -> Result<Backend, String> {
    Backend::open(table(), name, dir.to_str().unwrap(), settings).map_err(|failure| failure.text)
}

fn model() -> ModelSpec {
    ModelSpec::new("m").input("INPUT", dtype::INT64, &[-1]).output("OUTPUT", dtype::INT64, &[-1])
}

fn identity(root: &Path) -> Instance {
    let backend = open(&compiled(root, "identity", "identity", &[]), "identity", &[]).unwrap();
    let model = backend.open_model(&model()).unwrap();
    model.open_instance(&InstanceSpec::default()).unwrap()
}

fn request(id: &str, numbers: &[i64]) -> Request {
    let shape = [numbers.len() as i64];
    let mut request = Request::new(1).input("INPUT", dtype::INT64, &shape, &bytes(numbers));
    request.id = id.to_owned();
    request.request_output("OUTPUT")
}

fn answer(outcome: &Outcome) -> Vec<i64> {
    values(&outcome.response().unwrap().output("OUTPUT").unwrap().data)
}

#[test]
fn requests_of_a_batch_are_answered_each_by_itself() {
    let _session = Session::start();
    let root = tempfile::tempdir().unwrap();
    let instance = identity(root.path());
    let outcomes =
        instance.execute(&[request("", &[1, 2]), request("fail", &[3]), request("", &[4])]);
    assert_eq!(answer(&outcomes[0]), [1, 2]);
    let failure = outcomes[1].result.clone().unwrap_err();
    assert_eq!((failure.code, failure.text.as_str()), (code::INVALID, "one of the batch"));
    assert_eq!(answer(&outcomes[2]), [4]);
}

#[test]
fn error_of_execute_fails_the_batch() {
    let _session = Session::start();
    let root = tempfile::tempdir().unwrap();
    let instance = identity(root.path());
    for outcome in instance.execute(&[request("", &[1]), request("refuse", &[2])]) {
        let failure = outcome.result.unwrap_err();
        assert_eq!((failure.code, failure.text.as_str()), (code::UNAVAILABLE, "not now"));
    }
    assert_eq!(answer(&instance.execute(&[request("", &[5])])[0]), [5]);
}

#[test]
fn error_of_execute_comes_after_the_responses_that_were_sent() {
    let _session = Session::start();
    let root = tempfile::tempdir().unwrap();
    // In the order of the batch: what comes after it was not touched.
    let outcomes = identity(root.path()).execute(&[request("begun", &[7]), request("", &[8])]);
    assert_eq!(values::<i64>(&outcomes[0].responses[0].output("OUTPUT").unwrap().data), [7]);
    for outcome in &outcomes {
        assert_eq!(outcome.result.clone().unwrap_err().text, "not now");
    }
}

#[test]
fn factory_that_outlives_a_failed_execute_keeps_the_responder() {
    let _session = Session::start();
    let root = tempfile::tempdir().unwrap();
    let instance = identity(root.path());
    let outcomes = instance.execute(&[request("keep", &[1]).cancelled()]);
    assert_eq!(outcomes[0].result.clone().unwrap_err().text, "not now");
    // The host had to wait for the factory, which has read the flag of the request until then.
    let outcomes = instance.execute(&[request("kept", &[1])]);
    let response = outcomes[0].response().unwrap();
    assert_eq!((response.params[0].0.as_str(), response.params[0].3), ("cancelled", 1));
}

#[test]
fn request_released_without_a_response_fails() {
    let _session = Session::start();
    let root = tempfile::tempdir().unwrap();
    let outcomes = identity(root.path()).execute(&[request("forget", &[1])]);
    let failure = outcomes[0].result.clone().unwrap_err();
    assert_eq!(failure.text, "the backend released the request without a final response");
}

#[test]
fn factory_sends_responses_after_execute() {
    let _session = Session::start();
    let root = tempfile::tempdir().unwrap();
    let outcomes = identity(root.path()).execute(&[request("stream", &[7]), request("", &[1])]);
    let sent: Vec<i64> = outcomes[0]
        .responses
        .iter()
        .flat_map(|response| values::<i64>(&response.output("OUTPUT").unwrap().data))
        .collect();
    assert_eq!(sent, [7, 8, 9]);
    assert_eq!(answer(&outcomes[1]), [1]);
}

#[test]
fn second_response_waits_for_the_first() {
    let _session = Session::start();
    let root = tempfile::tempdir().unwrap();
    let outcomes = identity(root.path()).execute(&[request("interleave", &[7])]);
    outcomes[0].result.clone().unwrap();
    let which: Vec<_> = outcomes[0].responses.iter().map(|r| r.params[0].2.as_str()).collect();
    assert_eq!(which, ["first", "second"]);
    assert!(outcomes[0].responses[1].output("OUTPUT").unwrap().adopted);
}

#[test]
fn response_that_waits_is_sent_before_the_request_ends() {
    let _session = Session::start();
    let root = tempfile::tempdir().unwrap();
    let instance = identity(root.path());
    let ways: [(&str, &[&str], Option<&str>); 4] = [
        ("flags", &["first", "second"], None),
        ("delete", &["second"], None),
        ("final", &["first", "second"], None),
        ("error", &["second"], Some("out of ink")),
    ];
    for (how, expected, error) in ways {
        let outcomes = instance.execute(&[request(&format!("overtaken:{how}"), &[7])]);
        let result = outcomes[0].result.as_ref();
        assert_eq!(result.err().map(|failure| failure.text.as_str()), error, "{how}");
        let which: Vec<_> = outcomes[0].responses.iter().map(|r| r.params[0].2.as_str()).collect();
        assert_eq!(which, expected, "{how}");
    }
}

#[test]
fn misuse_is_an_error_that_names_function_and_handle() {
    let _session = Session::start();
    set_log_level(level::INFO);
    let root = tempfile::tempdir().unwrap();
    let outcomes = identity(root.path()).execute(&[request("misuse", &[7])]);
    let response = outcomes[0].response().unwrap();
    assert_eq!(answer(&outcomes[0]), [7]);
    let text = |key: &str| response.params.iter().find(|p| p.0 == key).unwrap().2.clone();
    let begins = |key: &str, start: &str| {
        assert!(text(key).starts_with(start), "{key}: {}", text(key));
    };
    begins("freed", "backend 'identity': TRITONBACKEND_ResponseDelete: the response 0x");
    begins("null", "backend 'identity': TRITONBACKEND_RequestInputCount: the request is null");
    begins("kind", "backend 'identity': TRITONBACKEND_RequestInputCount: 0x");
    assert!(text("kind").ends_with("is the handle of a model instance, a request is required"));
    assert!(text("foreign").ends_with("is not a handle of a request"));
    begins("result", "backend 'identity': TRITONBACKEND_RequestInputCount: count is null");
    assert!(text("flags").contains("cannot be rescheduled"));
    begins("set", "backend 'identity': TRITONBACKEND_ModelSetConfig: the model is null");
}

#[test]
fn output_of_another_size_than_its_shape_is_refused() {
    let _session = Session::start();
    let root = tempfile::tempdir().unwrap();
    let outcomes = identity(root.path()).execute(&[request("lie", &[1, 2]).unchecked()]);
    let failure = outcomes[0].result.clone().unwrap_err();
    assert!(failure.text.contains("OUTPUT"), "{}", failure.text);
}

#[test]
fn attributes_settings_and_refusals_reach_the_host() {
    let _session = Session::start();
    let root = tempfile::tempdir().unwrap();
    let dir = compiled(root.path(), "identity", "identity", &[]);
    let error = open(&dir, "identity", &[("refuse", "yes")]).err().unwrap();
    assert_eq!(error, "TRITONBACKEND_Initialize: refused by its settings");
    let backend = open(&dir, "identity", &[]).unwrap();
    // SAFETY: the backend is open.
    let info = unsafe { &*backend.info() };
    assert_eq!((info.n_preferred, info.flags & 1), (1, 1));
    let mut refused = model();
    refused.config_json = "{\"name\":\"refuse-me\"}".to_owned();
    assert_eq!(
        backend.open_model(&refused).err().unwrap().text,
        "TRITONBACKEND_ModelInitialize: refused by its configuration"
    );
}

#[test]
fn library_without_execute_or_with_unknown_imports_is_refused() {
    let _session = Session::start();
    let root = tempfile::tempdir().unwrap();
    let without = compiled(root.path(), "empty", "empty", &[]);
    let error = open(&without, "empty", &[]).err().unwrap();
    assert!(error.contains("libtriton_empty.so: it does not define"), "{error}");
    let unknown = compiled(root.path(), "newer", "empty", &["-DNEWER"]);
    let error = open(&unknown, "newer", &[]).err().unwrap();
    assert!(error.contains("TRITONBACKEND_FromTheFuture; it was built for a newer"), "{error}");
    let absent = root.path().join("backends/absent");
    let error = open(&absent, "absent", &[]).err().unwrap();
    assert!(error.starts_with("backend 'absent' has none of "), "{error}");
}

#[test]
fn library_of_a_wheel_is_bound_to_this_one() {
    let _session = Session::start();
    let root = tempfile::tempdir().unwrap();
    // The loader would find this file by the run path, and refuse the backend.
    let real = root.path().join("libtritonserver-1234.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-o"]).arg(&real).args(["-x", "c", "/dev/null"]);
    assert!(compiler.arg("-Wl,-soname,libtritonserver-1234.so").status().unwrap().success());
    let path = format!("-Wl,-rpath,{},--no-as-needed", root.path().display());
    let link = real.to_str().unwrap();
    let dir = compiled(root.path(), "wheel", "identity", &[&path, link]);
    let needed =
        trtserver_library_file::DynamicSection::read(&dir.join("libtriton_wheel.so")).unwrap();
    assert!(needed.needed.contains(&"libtritonserver-1234.so".to_owned()));
    let backend = open(&dir, "wheel", &[]).unwrap();
    let instance = backend.open_model(&model()).unwrap();
    let instance = instance.open_instance(&InstanceSpec::default()).unwrap();
    assert_eq!(answer(&instance.execute(&[request("", &[3])])[0]), [3]);
    let mapped = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!mapped.contains(link), "the real library was opened");
}
