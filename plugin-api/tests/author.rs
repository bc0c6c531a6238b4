//! The author side against the test host.

#![allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)] // a test plays the host, and keeps its promises on purpose

mod sample;

use sample::{CANCELLED, KEPT, OWNERS, STORED, Sample};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::extensions::{
    AUTOCOMPLETE, AutocompleteExtension, BATCH_SIZES, BatchSizesExtension, CANCEL, CancelExtension,
    METRICS, METRICS_VERSION, MODEL_PROBE, ModelProbeExtension,
};
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::types::{
    Extension, MAX_RANK, Str, code, dtype, error_flags, level, param,
};
use trtserver_plugin_api::author::{Error, export, strings_in};
use trtserver_plugin_testkit::{
    Backend, Failure, Instance, InstanceSpec, Layout, Metric, ModelSpec, Outcome, Request, Session,
    bytes, host_table, probe, set_log_level, take_lookups, take_violations, values,
};

fn table() -> &'static BackendTable {
    trtserver_plugin_testkit::table::<Sample>()
}

/// A model that does `what`.
fn model(what: &str) -> ModelSpec {
    let spec = ModelSpec::new("m").parameter("do", what);
    // One number is a row of the models whose outputs are scattered.
    let (rows, dims): (i32, &[i64]) = if what.starts_with("merge") { (8, &[]) } else { (0, &[-1]) };
    let spec = spec.max_batch_size(rows).input("IN", dtype::FP32, dims);
    let outputs = ["OUT", "OTHER", "UNASKED"];
    let spec = outputs.iter().fold(spec, |spec, name| spec.output(name, dtype::FP32, dims));
    ModelSpec { version: 3, ..spec }
}

fn backend() -> Backend {
    Backend::open(table(), "x", "/plugins", &[]).unwrap()
}

fn open(model: &ModelSpec) -> Result<Instance, Failure> {
    // The sample panics when it formats a record of a higher level.
    set_log_level(level::INFO);
    let spec = InstanceSpec { threads: 2, ..InstanceSpec::default() };
    backend().open_model(model)?.open_instance(&spec)
}

/// Opens a model that does `what`, runs one batch, closes.
fn run(what: &str, requests: &[Request]) -> Vec<Outcome> {
    open(&model(what)).unwrap().execute(requests)
}

fn error_of(outcome: &Outcome) -> &Failure {
    outcome.result.as_ref().unwrap_err()
}

fn floats(outcome: &Outcome) -> Vec<Vec<f32>> {
    assert_eq!(outcome.result, Ok(()));
    outcome.responses.iter().map(|r| values(&r.output("OUT").unwrap().data)).collect()
}

fn request(floats: &[f32]) -> Request {
    let shape = [floats.len() as i64];
    Request::new(1).input("IN", dtype::FP32, &shape, &bytes(floats)).request_output("OUT")
}

fn doing(what: &str) -> Request {
    request(&[1.0, 2.0]).param("do", what)
}

/// The promises that were broken.
fn broken() -> Vec<&'static str> {
    take_violations().into_iter().map(|violation| violation.promise).collect()
}

fn read(s: Str) -> String {
    let bytes = unsafe { std::slice::from_raw_parts(s.p, s.n as usize + 1) };
    assert_eq!(bytes.last(), Some(&0), "no terminating NUL");
    std::str::from_utf8(&bytes[..s.n as usize]).unwrap().to_owned()
}

fn extension<T>(name: &str, version: u32) -> Option<&'static T> {
    let text = [name.as_bytes(), &[0]].concat();
    let name = Str { p: text.as_ptr(), n: name.len() as u64 };
    unsafe { table().get_extension.unwrap()(name, version).cast::<T>().as_ref() }
}

#[test]
fn each_request_of_a_batch_is_echoed() {
    let _session = Session::start();
    let parts = [&bytes(&[5.0f32])[..], &bytes(&[6.0f32, 7.0])];
    let parts = Request::new(1).input_parts("IN", dtype::FP32, &[3], &parts).request_output("OUT");
    let outcomes = run("echo", &[request(&[1.0, 2.0]), parts]);
    assert_eq!(floats(&outcomes[0]), [[1.0, 2.0]]);
    assert_eq!(floats(&outcomes[1]), [[5.0, 6.0, 7.0]]);
    let params = &outcomes[0].responses[0].params;
    assert_eq!(*params, [("rows".to_owned(), param::UINT, String::new(), 2)]);
}

#[test]
fn batches_larger_than_the_states_on_the_stack() {
    let _session = Session::start();
    let outcomes = run("echo", &vec![request(&[1.0]); 100]);
    assert_eq!(outcomes.len(), 100);
    outcomes.iter().for_each(|outcome| assert_eq!(floats(outcome), [[1.0]]));
}

#[test]
fn batch_error_spares_finished_requests() {
    let _session = Session::start();
    let outcomes = run("echo", &[doing("echo"), doing("error"), doing("echo")]);
    assert_eq!(floats(&outcomes[0]), [[1.0, 2.0]]);
    for outcome in &outcomes[1..] {
        let Failure { code, flags, text } = error_of(outcome);
        assert_eq!(
            (*code, *flags, &**text),
            (code::UNAVAILABLE, error_flags::RETRYABLE, "not now")
        );
    }
}

#[test]
fn failed_request_does_not_fail_its_batch() {
    let _session = Session::start();
    let outcomes = run("echo", &[doing("fail_call"), doing("echo")]);
    let error = error_of(&outcomes[0]);
    assert_eq!((error.code, error.flags), (code::INVALID, error_flags::CLIENT));
    assert_eq!(floats(&outcomes[1]), [[1.0, 2.0]]);
}

#[test]
fn missing_input_is_named() {
    let _session = Session::start();
    let outcomes = run("echo", &[Request::new(1)]);
    assert_eq!(error_of(&outcomes[0]).text, "input 'IN' is missing");
}

#[test]
fn unfinished_request_fails() {
    let _session = Session::start();
    let outcomes = run("never", &[request(&[1.0])]);
    assert_eq!(error_of(&outcomes[0]).text, "batch_finish: the request has no response");
    assert_eq!(broken(), ["request.once"]);
}

#[test]
fn panic_in_execute_fails_unfinished_requests() {
    let _session = Session::start();
    let outcomes = run("echo", &[doing("echo"), doing("panic_execute")]);
    assert_eq!(floats(&outcomes[0]), [[1.0, 2.0]]);
    let error = error_of(&outcomes[1]);
    assert!(error.text.starts_with("backend 'sample' panicked in execute: execute "), "{error}");
    assert_eq!(error.code, code::INTERNAL);
}

#[test]
fn panics_and_errors_of_open_entries_are_returned() {
    let _session = Session::start();
    let open = |what| open(&model(what)).err().unwrap();
    assert_eq!(open("panic_model").text, "backend 'sample' panicked in model_open: model");
    assert_eq!(
        open("panic_instance").text,
        "backend 'sample' panicked in instance_open: a value that is not a string"
    );
    let error = open("fail_model");
    assert_eq!((error.code, error.flags), (code::NOT_FOUND, error_flags::MODEL_BROKEN));
    assert_eq!(open("fail_instance").code, code::EXHAUSTED);
}

#[test]
fn panics_in_close_are_logged() {
    let session = Session::start();
    drop(open(&model("panic_close")).unwrap());
    assert!(session.logged("backend 'sample' panicked in instance_close: instance drop"));
    assert!(session.logged("backend 'sample' panicked in model_close: model drop"));
}

#[test]
fn cancel_calls_the_handler_and_logs_its_panic() {
    let session = Session::start();
    CANCELLED.store(false, Ordering::SeqCst);
    let instance = open(&model("panic_cancel")).unwrap();
    // A detached request is finished 20 ms later.
    instance.execute_with(&[doing("detach")], Layout::Ordinary, |in_flight| {
        std::thread::sleep(Duration::from_millis(5));
        in_flight.cancel();
    });
    drop(instance);
    assert!(CANCELLED.load(Ordering::SeqCst));
    assert!(session.logged("panicked in cancel: cancel"));
    let outcomes = run("echo", &[doing("cancelled").cancelled()]);
    assert_eq!(error_of(&outcomes[0]).code, code::CANCELLED);
}

#[test]
fn adopted_memory_is_released_once() {
    let _session = Session::start();
    let outcomes = run("echo", &[doing("adopt")]);
    assert_eq!(floats(&outcomes[0]), [[1.0, 2.0]]);
    assert_eq!(OWNERS.load(Ordering::SeqCst), 0);
    // The output REFUSED is not declared.
    assert_eq!(broken(), ["output.declared"]);
}

#[test]
fn outputs_not_requested_are_discarded() {
    let _session = Session::start();
    let outcomes = run("echo", &[doing("unasked")]);
    assert_eq!(floats(&outcomes[0]), [[1.0, 2.0]]);
    assert_eq!(outcomes[0].responses[0].outputs.len(), 1);
}

#[test]
fn output_with_more_dimensions_than_the_limit_is_refused() {
    let _session = Session::start();
    let run = |rank: u32| {
        let dims = vec![1; rank as usize];
        let spec = ModelSpec::new("m").input("IN", dtype::FP32, &dims);
        let spec = ModelSpec { version: 3, ..spec.output("OUT", dtype::FP32, &dims) };
        let request = Request::new(1).input("IN", dtype::FP32, &dims, &bytes(&[1.0f32]));
        let outcomes = open(&spec).unwrap().execute(&[request.request_output("OUT")]);
        outcomes.into_iter().next().unwrap()
    };
    assert_eq!(floats(&run(MAX_RANK)), [[1.0]]);
    let refused = run(MAX_RANK + 1);
    assert_eq!(error_of(&refused).text, "output_alloc: an output has 1025 dimensions");
    assert_eq!(broken().len(), 1);
}

#[test]
fn several_responses_to_one_request() {
    let _session = Session::start();
    assert_eq!(floats(&run("echo", &[doing("stream")])[0]), [[1.0], [2.0]]);
}

#[test]
fn detached_requests_are_finished_after_execute() {
    let _session = Session::start();
    let requests = [doing("detach"), doing("echo"), doing("never"), doing("forget")];
    let outcomes = run("echo", &requests);
    assert_eq!(error_of(&outcomes[2]).text, "the backend returned without finishing the request");
    assert_eq!(floats(&outcomes[0]), [[1.0, 2.0]]);
    assert_eq!(floats(&outcomes[1]), [[1.0, 2.0]]);
    assert_eq!(
        error_of(&outcomes[3]).text,
        "the backend dropped a detached request without finishing it"
    );
}

#[test]
fn string_elements_have_length_prefixes() {
    let _session = Session::start();
    let mut model = model("echo");
    model.outputs[0].dtype = dtype::STRING;
    let outcomes = open(&model).unwrap().execute(&[doing("strings")]);
    let output = outcomes[0].response().unwrap().output("OUT").unwrap();
    assert_eq!((output.dtype, &output.shape[..]), (dtype::STRING, &[2][..]));
    let bytes = &output.data;
    let back: Result<Vec<&[u8]>, Error> = strings_in(bytes).collect();
    assert_eq!(back.unwrap(), [&b"ab"[..], b""]);
    assert!(strings_in(&bytes[..5]).any(|s| s.is_err()), "cut off");
    assert!(strings_in(&[255; 4]).all(|s| s.is_err()), "longer than there is");
}

#[test]
fn autocomplete_patches_or_fails() {
    let _session = Session::start();
    let backend = backend();
    let complete = |what| backend.autocomplete(&model(what)).unwrap();
    assert_eq!(complete("nothing").unwrap(), []);
    assert_eq!(complete("patch").unwrap(), [(2, b"max_batch_size: 4".to_vec())]);
    let error = complete("panic_complete").unwrap_err();
    assert_eq!(error.text, "backend 'sample' panicked in autocomplete: complete");
}

#[test]
fn state_of_autocomplete_reaches_open_and_is_dropped() {
    let _session = Session::start();
    let backend = backend();
    let spec = model("state");
    assert_eq!(backend.autocomplete(&spec).unwrap().unwrap(), []);
    assert_eq!(backend.open_completed_model(&spec).err().unwrap().text, "read once");
    assert_eq!(backend.open_model(&spec).err().unwrap().text, "no state");
    assert_eq!(KEPT.load(Ordering::Relaxed), 0);
}

#[test]
fn model_probe_returns_an_entry_or_a_reason() {
    let _session = Session::start();
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("model_probe");
    for (entry, expected) in [
        ("readme", Ok(None)),
        ("sample_dir/", Ok(Some("sample_dir"))),
        ("sample_file", Err("sample_file is a file")),
        ("sample_absent", Err("\"absent\" is not in ")),
        ("sample_panic", Err("backend 'sample' panicked in model_probe: probe")),
    ] {
        let _ = std::fs::remove_dir_all(&dir);
        match entry.strip_suffix('/') {
            Some(entry) => std::fs::create_dir_all(dir.join(entry)).unwrap(),
            None => {
                std::fs::create_dir_all(&dir).unwrap();
                std::fs::write(dir.join(entry), "").unwrap();
            }
        }
        match (probe(table(), "sample_graph", &dir), expected) {
            (Ok(found), expected) => assert_eq!(Ok(found.as_deref()), expected),
            (Err(e), expected) => assert!(e.text.contains(expected.unwrap_err()), "{}", e.text),
        }
    }
}

#[test]
fn logs_and_metrics_stop_at_close() {
    let session = Session::start();
    drop(open(&model("metrics")).unwrap());
    assert_eq!(session.log(), [(level::INFO, "doing metrics".to_owned())]);
    let labels = vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())];
    let metric = Metric { name: "sample_total".to_owned(), labels, value: 2.5 };
    assert_eq!(session.metrics(), [metric]);
    // Using the closed scope would be a violation.
    let stored = STORED.lock().unwrap().pop().unwrap();
    stored.error(format_args!("too late"));
    assert!(stored.gauge("g", "", &[]).is_err());
}

#[test]
fn backend_info_contains_the_constants() {
    let _session = Session::start();
    let facts = unsafe { &*(table().backend_info)(std::ptr::null_mut()) };
    assert_eq!((&*read(facts.name), &*read(facts.runtime)), ("sample", ""));
    let platform = unsafe { (*facts.platforms, *facts.default_files) };
    assert_eq!(read(platform.0), "sample_graph");
    assert_eq!(read(platform.1), "model.sample");
    assert_eq!((facts.n_platforms, facts.align), (1, 16));
    assert_eq!((facts.input_memory_types, facts.n_preferred, facts.max_in_flight), (1, 1, 1));
    let backend = backend();
    assert_eq!(read(unsafe { (*backend.info()).runtime }), "Sample 9");
}

#[test]
fn extensions_are_returned_by_name_and_version() {
    let _session = Session::start();
    let found = |name, version| extension::<u64>(name, version).copied();
    assert_eq!(found(AUTOCOMPLETE, 1), Some(size_of::<AutocompleteExtension>() as u64));
    assert_eq!(found(CANCEL, 1), Some(size_of::<CancelExtension>() as u64));
    assert_eq!(found(MODEL_PROBE, 1), Some(size_of::<ModelProbeExtension>() as u64));
    assert_eq!(found(BATCH_SIZES, 1), Some(size_of::<BatchSizesExtension>() as u64));
    for (name, version) in [(CANCEL, 2), ("trts.cance", 1), ("", 1), ("trts.unknown", 1)] {
        assert_eq!(found(name, version), None, "{name} {version}");
    }
    let info = unsafe { &*(table().backend_info)(std::ptr::null_mut()) };
    let list = |p, n| unsafe { std::slice::from_raw_parts(p, n as usize) }.iter();
    let named = |e: &Extension| (read(e.name), e.version);
    let offered: Vec<_> = list(info.extensions, info.n_extensions).map(named).collect();
    let names = [AUTOCOMPLETE, CANCEL, MODEL_PROBE, BATCH_SIZES];
    assert_eq!(offered, names.map(|name| (name.to_owned(), 1)));
    let required: Vec<_> =
        list(info.required_extensions, info.n_required_extensions).map(named).collect();
    assert_eq!(required, [(METRICS.to_owned(), 1)]);
}

#[test]
fn sizes_that_an_instance_is_prepared_for_are_listed() {
    let _session = Session::start();
    let sizes = |what| open(&model(what)).unwrap().batch_sizes();
    assert_eq!(sizes("sizes"), [(1, 1000), (4, 4000)]);
    assert_eq!(sizes("echo"), []);
}

/// Lookups of host extensions happen when something is opened, never while a batch executes.
#[test]
fn executing_a_batch_looks_up_no_extension() {
    let _session = Session::start();
    let instance = open(&model("metrics")).unwrap();
    assert_eq!(take_lookups(), [(METRICS.to_owned(), METRICS_VERSION)]);
    assert_eq!(instance.execute(&[doing("echo")])[0].result, Ok(()));
    assert_eq!(take_lookups(), []);
}

#[test]
fn incompatible_host_receives_the_table() {
    let _session = Session::start();
    let mut other: HostTable = unsafe { std::ptr::read(host_table()) };
    other.abi_major += 1;
    let table = unsafe { &*export::main::<Sample>(&raw const other) };
    assert_eq!((table.abi_major, table.size), (1, size_of::<BackendTable>() as u64));
    assert!(!unsafe { export::main::<Sample>(std::ptr::null()) }.is_null());
}

#[test]
fn scattered_outputs_are_sent_when_execute_returns() {
    let _session = Session::start();
    for what in ["merge", "merge_adopt"] {
        let outcomes = run(what, &[request(&[1.0]), doing_one("fail_call"), request(&[3.0])]);
        assert_eq!(
            (floats(&outcomes[0]), floats(&outcomes[2])),
            (vec![vec![1.0]], vec![vec![3.0]])
        );
        assert_eq!(error_of(&outcomes[1]).text, "bad request");
        assert_eq!(OWNERS.load(Ordering::SeqCst), 0);
    }
    let outcomes = run("merge_error", &[request(&[1.0]), doing_one("fail_call")]);
    assert_eq!(error_of(&outcomes[0]).text, "in the end");
    assert_eq!(error_of(&outcomes[1]).text, "bad request");
    // Adopting an output a second time.
    assert_eq!(broken(), ["host.calls"]);
}

#[test]
fn detached_requests_get_no_scattered_output() {
    let _session = Session::start();
    let outcomes = run("merge", &[doing_one("detach"), request(&[3.0])]);
    assert_eq!(floats(&outcomes[1]), [[3.0]]);
    assert_eq!(floats(&outcomes[0]), [[-1.0]]);
}

fn doing_one(what: &str) -> Request {
    request(&[2.0]).param("do", what)
}
