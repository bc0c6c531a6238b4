//! The author side against a fake host.

#![allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)] // a test plays the host, and keeps its promises on purpose

mod fake;
mod sample;

use fake::{ASKED, Bench, Failure, FakeRequest, HOST, RequestSpec, alone, assert_clean};
use sample::{CANCELLED, OWNERS, STORED, Sample};
use std::sync::atomic::Ordering;
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::extensions::{
    AUTOCOMPLETE, AutocompleteExtension, CANCEL, CancelExtension, METRICS,
};
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::types::{Extension, Responder, code, error_flags, level};

use trtserver_plugin_api::author::{Dtype, Error, export, strings_in};

fn table() -> &'static BackendTable {
    unsafe { &*export::main::<Sample>(&raw const HOST.0) }
}

/// Opens with `do` = what, runs one batch, closes.
fn run(what: &str, requests: &[RequestSpec]) -> Vec<&'static FakeRequest> {
    let bench = Bench::open(table(), &[("do", what)]).unwrap();
    let (requests, result) = bench.run(requests);
    assert_eq!(result, Ok(()), "errors travel in the replies");
    bench.close();
    for request in &requests {
        let state = request.state.lock().unwrap();
        assert_eq!((state.ends, request.releases.load(Ordering::SeqCst)), (1, 1), "{what}");
        assert_eq!(request.references.load(Ordering::SeqCst), 1, "{what}");
    }
    assert_clean();
    requests
}

fn error_of(request: &FakeRequest) -> Failure {
    request.state.lock().unwrap().end.clone().unwrap().unwrap_err()
}

fn floats(request: &FakeRequest) -> Vec<Vec<f32>> {
    let state = request.state.lock().unwrap();
    assert_eq!(state.end, Some(Ok(())));
    state.sent.iter().map(|a| a.floats("OUT")).collect()
}

fn doing(what: &'static str) -> RequestSpec {
    RequestSpec { params: vec![("do", what)], ..RequestSpec::new(&[1.0, 2.0]) }
}

#[test]
fn each_request_of_a_batch_is_echoed() {
    let _guard = alone();
    let mut pieces = RequestSpec::new(&[]);
    pieces.inputs = vec![("IN", vec![vec![5.0], vec![6.0, 7.0]])];
    let requests = run("echo", &[RequestSpec::new(&[1.0, 2.0]), pieces]);
    assert_eq!(floats(requests[0]), [[1.0, 2.0]]);
    assert_eq!(floats(requests[1]), [[5.0, 6.0, 7.0]]);
    let state = requests[0].state.lock().unwrap();
    assert_eq!(state.sent[0].params, [("rows".to_owned(), 4, 2)]);
}

#[test]
fn batches_larger_than_the_states_on_the_stack() {
    let _guard = alone();
    let requests = run("echo", &vec![RequestSpec::new(&[1.0]); 100]);
    assert_eq!(requests.len(), 100);
    requests.iter().for_each(|request| assert_eq!(floats(request), [[1.0]]));
}

#[test]
fn batch_error_spares_finished_requests() {
    let _guard = alone();
    let requests = run("echo", &[doing("echo"), doing("error"), doing("echo")]);
    assert_eq!(floats(requests[0]), [[1.0, 2.0]]);
    for request in &requests[1..] {
        let Failure { code, flags, text } = error_of(request);
        assert_eq!((code, flags, &*text), (code::UNAVAILABLE, error_flags::RETRYABLE, "not now"));
    }
}

#[test]
fn failed_request_does_not_fail_its_batch() {
    let _guard = alone();
    let requests = run("echo", &[doing("fail_call"), doing("echo")]);
    assert_eq!((error_of(requests[0]).code, error_of(requests[0]).flags), (code::INVALID, 2));
    assert_eq!(floats(requests[1]), [[1.0, 2.0]]);
}

#[test]
fn missing_input_is_named() {
    let _guard = alone();
    let requests = run("echo", &[RequestSpec::default()]);
    assert_eq!(error_of(requests[0]).text, "input 'IN' is missing");
}

#[test]
fn unfinished_request_fails() {
    let _guard = alone();
    assert_eq!(error_of(run("never", &[RequestSpec::new(&[1.0])])[0]).text, "not finished");
}

#[test]
fn panic_in_execute_fails_unfinished_requests() {
    let _guard = alone();
    let requests = run("echo", &[doing("echo"), doing("panic_execute")]);
    assert_eq!(floats(requests[0]), [[1.0, 2.0]]);
    let error = error_of(requests[1]);
    assert_eq!(error.text, "backend 'sample' panicked in execute: execute 7");
    assert_eq!(error.code, code::INTERNAL);
}

#[test]
fn panics_and_errors_of_open_entries_are_returned() {
    let _guard = alone();
    let open = |what| Bench::open(table(), &[("do", what)]).err().unwrap();
    assert_eq!(open("panic_model").text, "backend 'sample' panicked in model_open: model");
    assert_eq!(
        open("panic_instance").text,
        "backend 'sample' panicked in instance_open: a value that is not a string"
    );
    let error = open("fail_model");
    assert_eq!((error.code, error.flags), (code::NOT_FOUND, error_flags::MODEL_BROKEN));
    assert_eq!(open("fail_instance").code, code::EXHAUSTED);
    assert_clean();
}

#[test]
fn panics_in_close_are_logged() {
    let _guard = alone();
    let scope = Bench::open(table(), &[("do", "panic_close")]).unwrap().close();
    assert!(scope.said("backend 'sample' panicked in instance_close: instance drop"));
    assert!(scope.said("backend 'sample' panicked in model_close: model drop"));
}

#[test]
fn cancel_calls_the_handler_and_logs_its_panic() {
    let _guard = alone();
    let bench = Bench::open(table(), &[("do", "panic_cancel")]).unwrap();
    CANCELLED.store(false, Ordering::SeqCst);
    let cancel = fake::extension::<CancelExtension>(table(), CANCEL, 1).unwrap().cancel;
    unsafe { cancel(bench.instance, std::ptr::null_mut::<Responder>()) };
    assert!(CANCELLED.load(Ordering::SeqCst));
    assert!(bench.close().said("panicked in cancel: cancel"));
    let gone = RequestSpec { cancelled: true, ..doing("cancelled") };
    assert_eq!(error_of(run("echo", &[gone])[0]).code, code::CANCELLED);
}

#[test]
fn adopted_memory_is_released_once() {
    let _guard = alone();
    let mut request = doing("adopt");
    request.requested = vec!["OUT", "REFUSED"];
    let requests = run("echo", &[request]);
    assert_eq!(floats(requests[0]), [[1.0, 2.0]]);
    assert_eq!(OWNERS.load(Ordering::SeqCst), 0);
}

#[test]
fn outputs_not_requested_are_discarded() {
    let _guard = alone();
    let requests = run("echo", &[doing("unasked")]);
    assert_eq!(floats(requests[0]), [[1.0, 2.0]]);
    assert_eq!(requests[0].state.lock().unwrap().sent[0].outputs.len(), 1);
}

#[test]
fn several_responses_to_one_request() {
    let _guard = alone();
    assert_eq!(floats(run("echo", &[doing("stream")])[0]), [[1.0], [2.0]]);
}

#[test]
fn detached_requests_are_finished_after_execute() {
    let _guard = alone();
    let requests = [doing("detach"), doing("echo"), doing("never"), doing("forget")];
    let bench = Bench::open(table(), &[]).unwrap();
    let (requests, _) = bench.run(&requests);
    assert!(requests[0].state.lock().unwrap().end.is_none(), "not yet");
    assert_eq!(error_of(requests[2]).text, "the backend returned without finishing the request");
    bench.close();
    assert_eq!(floats(requests[0]), [[1.0, 2.0]]);
    assert_eq!(floats(requests[1]), [[1.0, 2.0]]);
    assert_eq!(
        error_of(requests[3]).text,
        "the backend dropped a detached request without finishing it"
    );
    for request in requests {
        let counts = (&request.releases, &request.references);
        assert_eq!((counts.0.load(Ordering::SeqCst), counts.1.load(Ordering::SeqCst)), (1, 1));
    }
    assert_clean();
}

#[test]
fn string_elements_have_length_prefixes() {
    let _guard = alone();
    let requests = run("echo", &[doing("strings")]);
    let state = requests[0].state.lock().unwrap();
    let (dtype, shape, bytes) = &state.sent[0].outputs["OUT"];
    assert_eq!((*dtype, &shape[..]), (Dtype::String.to_abi(), &[2][..]));
    let back: Result<Vec<&[u8]>, Error> = strings_in(bytes).collect();
    assert_eq!(back.unwrap(), [&b"ab"[..], b""]);
    assert!(strings_in(&bytes[..5]).any(|s| s.is_err()), "cut off");
    assert!(strings_in(&[255; 4]).all(|s| s.is_err()), "longer than there is");
}

#[test]
fn autocomplete_patches_or_fails() {
    let _guard = alone();
    let bench = Bench::backend(table()).unwrap();
    let complete = |what| {
        let desc = Bench::model_desc(bench.scope, &[("do", what)]);
        let extension = fake::extension::<AutocompleteExtension>(table(), AUTOCOMPLETE, 1).unwrap();
        fake::failure(unsafe { (extension.autocomplete)(bench.backend, desc) })
    };
    complete("nothing").unwrap();
    complete("patch").unwrap();
    let error = complete("panic_complete").unwrap_err();
    assert_eq!(error.text, "backend 'sample' panicked in autocomplete: complete");
    assert_eq!(*bench.scope.patches.lock().unwrap(), [(2, b"max_batch_size: 4".to_vec())]);
    bench.close();
    assert_clean();
}

#[test]
fn logs_and_metrics_stop_at_close() {
    let _guard = alone();
    let scope = Bench::open(table(), &[("do", "metrics")]).unwrap().close();
    assert_eq!(*scope.records.lock().unwrap(), [(level::INFO, "doing metrics".to_owned())]);
    let labels = vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())];
    assert_eq!(*scope.metrics.lock().unwrap(), [("sample_total".to_owned(), labels, 2.5)]);
    let kept = STORED.lock().unwrap().pop().unwrap();
    kept.error(format_args!("too late"));
    assert!(!scope.said("too late") && kept.gauge("g", "", &[]).is_err());
}

#[test]
fn backend_info_contains_the_constants() {
    let _guard = alone();
    let facts = unsafe { &*(table().backend_info)(std::ptr::null_mut()) };
    assert_eq!((&*fake::read(facts.name), &*fake::read(facts.runtime)), ("sample", ""));
    let platform = unsafe { (*facts.platforms, *facts.default_files) };
    assert_eq!(fake::read(platform.0), "sample_graph");
    assert_eq!(fake::read(platform.1), "model.sample");
    assert_eq!((facts.n_platforms, facts.align), (1, 16));
    assert_eq!((facts.input_memory_types, facts.n_preferred, facts.max_in_flight), (1, 1, 1));
    let bench = Bench::backend(table()).unwrap();
    let opened = unsafe { &*(table().backend_info)(bench.backend) };
    assert_eq!(fake::read(opened.runtime), "Sample 9");
    bench.close();
}

#[test]
fn extensions_are_returned_by_name_and_version() {
    let _guard = alone();
    let table = table();
    let found = |name, version| fake::extension::<u64>(table, name, version).copied();
    assert_eq!(found(AUTOCOMPLETE, 1), Some(size_of::<AutocompleteExtension>() as u64));
    assert_eq!(found(CANCEL, 1), Some(size_of::<CancelExtension>() as u64));
    for (name, version) in [(CANCEL, 2), ("trts.cance", 1), ("", 1), ("trts.unknown", 1)] {
        assert_eq!(found(name, version), None, "{name} {version}");
    }
    let info = unsafe { &*(table.backend_info)(std::ptr::null_mut()) };
    let list = |p, n| unsafe { std::slice::from_raw_parts(p, n as usize) }.iter();
    let named = |e: &Extension| (fake::read(e.name), e.version);
    let offered: Vec<_> = list(info.extensions, info.n_extensions).map(named).collect();
    assert_eq!(offered, [(AUTOCOMPLETE.to_owned(), 1), (CANCEL.to_owned(), 1)]);
    let required: Vec<_> =
        list(info.required_extensions, info.n_required_extensions).map(named).collect();
    assert_eq!(required, [(METRICS.to_owned(), 1)]);
}

/// Lookups of host extensions happen when something is opened, never while a batch executes.
#[test]
fn executing_a_batch_looks_up_no_extension() {
    let _guard = alone();
    let bench = Bench::open(table(), &[("do", "metrics")]).unwrap();
    assert_eq!(std::mem::take(&mut *ASKED.lock().unwrap()), [(METRICS.to_owned(), 1)]);
    assert_eq!(bench.run(&[doing("echo")]).1, Ok(()));
    assert_eq!(*ASKED.lock().unwrap(), []);
    bench.close();
}

#[test]
fn incompatible_host_receives_the_table() {
    let _guard = alone();
    let mut other: HostTable = unsafe { std::ptr::read(&raw const HOST.0) };
    other.abi_major += 1;
    let table = unsafe { &*export::main::<Sample>(&raw const other) };
    assert_eq!((table.abi_major, table.size), (1, size_of::<BackendTable>() as u64));
    assert!(!unsafe { export::main::<Sample>(std::ptr::null()) }.is_null());
}

#[test]
fn scattered_outputs_are_sent_when_execute_returns() {
    let _guard = alone();
    for what in ["merge", "merge_adopt"] {
        let requests = run(
            what,
            &[RequestSpec::new(&[1.0]), doing_one("fail_call"), RequestSpec::new(&[3.0])],
        );
        assert_eq!((floats(requests[0]), floats(requests[2])), (vec![vec![1.0]], vec![vec![3.0]]));
        assert_eq!(error_of(requests[1]).text, "bad request");
        assert_eq!(OWNERS.load(Ordering::SeqCst), 0);
    }
    let requests = run("merge_error", &[RequestSpec::new(&[1.0]), doing_one("fail_call")]);
    assert_eq!(error_of(requests[0]).text, "in the end");
    assert_eq!(error_of(requests[1]).text, "bad request");
}

#[test]
fn detached_requests_get_no_scattered_output() {
    let _guard = alone();
    let bench = Bench::open(table(), &[("do", "merge")]).unwrap();
    let (requests, _) = bench.run(&[doing_one("detach"), RequestSpec::new(&[3.0])]);
    assert_eq!(floats(requests[1]), [[3.0]]);
    assert!(requests[0].state.lock().unwrap().end.is_none(), "not yet");
    bench.close();
    assert_eq!(floats(requests[0]), [[-1.0]]);
    requests.iter().for_each(|request| assert_eq!(request.releases.load(Ordering::SeqCst), 1));
    assert_clean();
}

fn doing_one(what: &'static str) -> RequestSpec {
    RequestSpec { params: vec![("do", what)], ..RequestSpec::new(&[2.0]) }
}
