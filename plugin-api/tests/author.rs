//! The author side against a fake host.

#![allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)] // a test plays the host, and keeps its promises on purpose

mod fake;
mod sample;

use fake::{Bench, Failure, FakeCall, HOST, Request, alone, assert_clean};
use sample::{KEPT, NUDGED, OWNERS, Sample};
use std::sync::atomic::Ordering;
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::plugin::PluginTable;
use trtserver_plugin_api::abi::types::{Reply, code, error_flags, level};
use trtserver_plugin_api::author::export;
use trtserver_plugin_api::author::*;

fn table() -> &'static PluginTable {
    unsafe { &*export::main::<Sample>(&raw const HOST.0) }
}

/// Opens with `do` = what, runs one batch, closes.
fn run(what: &str, requests: &[Request]) -> Vec<&'static FakeCall> {
    let bench = Bench::open(table(), &[("do", what)]).unwrap();
    let (calls, result) = bench.run(requests);
    assert_eq!(result, Ok(()), "errors travel in the replies");
    bench.close();
    for call in &calls {
        let state = call.state.lock().unwrap();
        assert_eq!((state.ends, call.releases.load(Ordering::SeqCst)), (1, 1), "{what}");
        assert_eq!(call.references.load(Ordering::SeqCst), 1, "{what}");
    }
    assert_clean();
    calls
}

fn error_of(call: &FakeCall) -> Failure {
    call.state.lock().unwrap().end.clone().unwrap().unwrap_err()
}

fn floats(call: &FakeCall) -> Vec<Vec<f32>> {
    let state = call.state.lock().unwrap();
    assert_eq!(state.end, Some(Ok(())));
    state.answers.iter().map(|a| a.floats("OUT")).collect()
}

fn doing(what: &'static str) -> Request {
    Request { params: vec![("do", what)], ..Request::new(&[1.0, 2.0]) }
}

#[test]
fn echo_of_each_call_of_a_batch() {
    let _turn = alone();
    let mut pieces = Request::new(&[]);
    pieces.inputs = vec![("IN", vec![vec![5.0], vec![6.0, 7.0]])];
    let calls = run("echo", &[Request::new(&[1.0, 2.0]), pieces]);
    assert_eq!(floats(calls[0]), [[1.0, 2.0]]);
    assert_eq!(floats(calls[1]), [[5.0, 6.0, 7.0]]);
    let state = calls[0].state.lock().unwrap();
    assert_eq!(state.answers[0].params, [("rows".to_owned(), 4, 2)]);
}

#[test]
fn batches_beyond_the_marks_on_the_stack() {
    let _turn = alone();
    let calls = run("echo", &vec![Request::new(&[1.0]); 100]);
    assert_eq!(calls.len(), 100);
    calls.iter().for_each(|call| assert_eq!(floats(call), [[1.0]]));
}

#[test]
fn an_error_of_the_batch_spares_calls_already_answered() {
    let _turn = alone();
    let calls = run("echo", &[doing("echo"), doing("error"), doing("echo")]);
    assert_eq!(floats(calls[0]), [[1.0, 2.0]]);
    for call in &calls[1..] {
        let Failure { code, flags, text } = error_of(call);
        assert_eq!((code, flags, &*text), (code::UNAVAILABLE, error_flags::RETRYABLE, "not now"));
    }
}

#[test]
fn a_failed_call_is_alone_with_it() {
    let _turn = alone();
    let calls = run("echo", &[doing("fail_call"), doing("echo")]);
    assert_eq!((error_of(calls[0]).code, error_of(calls[0]).flags), (code::INVALID, 2));
    assert_eq!(floats(calls[1]), [[1.0, 2.0]]);
}

#[test]
fn a_missing_input_is_named() {
    let _turn = alone();
    let calls = run("echo", &[Request::default()]);
    assert_eq!(error_of(calls[0]).text, "input 'IN' is missing");
}

#[test]
fn silence_is_not_an_answer() {
    let _turn = alone();
    assert_eq!(error_of(run("never", &[Request::new(&[1.0])])[0]).text, "unanswered");
}

#[test]
fn a_panic_in_execute_becomes_the_error_of_the_open_calls() {
    let _turn = alone();
    let calls = run("echo", &[doing("echo"), doing("panic_execute")]);
    assert_eq!(floats(calls[0]), [[1.0, 2.0]]);
    let error = error_of(calls[1]);
    assert_eq!(error.text, "plugin 'sample' panicked in execute: execute 7");
    assert_eq!(error.code, code::INTERNAL);
}

#[test]
fn panics_and_errors_of_the_other_entries() {
    let _turn = alone();
    let open = |what| Bench::open(table(), &[("do", what)]).err().unwrap();
    assert_eq!(open("panic_model").text, "plugin 'sample' panicked in model_open: model");
    assert_eq!(
        open("panic_instance").text,
        "plugin 'sample' panicked in instance_open: a value that is not a text"
    );
    let error = open("fail_model");
    assert_eq!((error.code, error.flags), (code::NOT_FOUND, error_flags::MODEL_BROKEN));
    assert_eq!(open("fail_instance").code, code::EXHAUSTED);
    assert_clean();
}

#[test]
fn panics_in_close_are_logged() {
    let _turn = alone();
    let scope = Bench::open(table(), &[("do", "panic_close")]).unwrap().close();
    assert!(scope.said("plugin 'sample' panicked in instance_close: instance drop"));
    assert!(scope.said("plugin 'sample' panicked in model_close: model drop"));
}

#[test]
fn cancel_reaches_the_canceller_and_a_panic_there_is_logged() {
    let _turn = alone();
    let bench = Bench::open(table(), &[("do", "panic_cancel")]).unwrap();
    NUDGED.store(false, Ordering::SeqCst);
    let cancel = table().cancel.unwrap();
    unsafe { cancel(bench.instance, std::ptr::null_mut::<Reply>()) };
    assert!(NUDGED.load(Ordering::SeqCst));
    assert!(bench.close().said("panicked in cancel: cancel"));
    let gone = Request { cancelled: true, ..doing("cancelled") };
    assert_eq!(error_of(run("echo", &[gone])[0]).code, code::CANCELLED);
}

#[test]
fn donated_memory_is_released_once() {
    let _turn = alone();
    let mut request = doing("adopt");
    request.wanted = vec!["OUT", "REFUSED"];
    let calls = run("echo", &[request]);
    assert_eq!(floats(calls[0]), [[1.0, 2.0]]);
    assert_eq!(OWNERS.load(Ordering::SeqCst), 0);
}

#[test]
fn outputs_nobody_asked_for_go_nowhere() {
    let _turn = alone();
    let calls = run("echo", &[doing("unasked")]);
    assert_eq!(floats(calls[0]), [[1.0, 2.0]]);
    assert_eq!(calls[0].state.lock().unwrap().answers[0].outputs.len(), 1);
}

#[test]
fn a_stream_of_answers() {
    let _turn = alone();
    assert_eq!(floats(run("echo", &[doing("stream")])[0]), [[1.0], [2.0]]);
}

#[test]
fn detached_calls_are_answered_after_execute() {
    let _turn = alone();
    let requests = [doing("detach"), doing("echo"), doing("never"), doing("forget")];
    let bench = Bench::open(table(), &[]).unwrap();
    let (calls, _) = bench.run(&requests);
    assert!(calls[0].state.lock().unwrap().end.is_none(), "not yet");
    assert_eq!(error_of(calls[2]).text, "the plugin returned without answering");
    bench.close();
    assert_eq!(floats(calls[0]), [[1.0, 2.0]]);
    assert_eq!(floats(calls[1]), [[1.0, 2.0]]);
    assert_eq!(error_of(calls[3]).text, "the plugin dropped a detached call unanswered");
    for call in calls {
        let counts = (&call.releases, &call.references);
        assert_eq!((counts.0.load(Ordering::SeqCst), counts.1.load(Ordering::SeqCst)), (1, 1));
    }
    assert_clean();
}

#[test]
fn strings_carry_their_lengths() {
    let _turn = alone();
    let calls = run("echo", &[doing("strings")]);
    let state = calls[0].state.lock().unwrap();
    let (dtype, shape, bytes) = &state.answers[0].outputs["OUT"];
    assert_eq!((*dtype, &shape[..]), (Dtype::String.to_abi(), &[2][..]));
    let back: Result<Vec<&[u8]>, Error> = strings_in(bytes).collect();
    assert_eq!(back.unwrap(), [&b"ab"[..], b""]);
    assert!(strings_in(&bytes[..5]).any(|s| s.is_err()), "cut off");
    assert!(strings_in(&[255; 4]).all(|s| s.is_err()), "longer than there is");
}

#[test]
fn complete_patches_or_fails() {
    let _turn = alone();
    let bench = Bench::plugin(table()).unwrap();
    let complete = |what| {
        let desc = Bench::model_desc(bench.scope, &[("do", what)]);
        fake::failure(unsafe { table().model_complete.unwrap()(bench.plugin, desc) })
    };
    complete("nothing").unwrap();
    complete("patch").unwrap();
    let error = complete("panic_complete").unwrap_err();
    assert_eq!(error.text, "plugin 'sample' panicked in model_complete: complete");
    assert_eq!(*bench.scope.patches.lock().unwrap(), [(2, b"max_batch_size: 4".to_vec())]);
    bench.close();
    assert_clean();
}

#[test]
fn logs_and_metrics_stop_at_close() {
    let _turn = alone();
    let scope = Bench::open(table(), &[("do", "metrics")]).unwrap().close();
    assert_eq!(*scope.records.lock().unwrap(), [(level::INFO, "doing metrics".to_owned())]);
    let labels = vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())];
    assert_eq!(*scope.metrics.lock().unwrap(), [("sample_total".to_owned(), labels, 2.5)]);
    let kept = KEPT.lock().unwrap().pop().unwrap();
    kept.error(format_args!("too late"));
    assert!(!scope.said("too late") && kept.gauge("g", "", &[]).is_err());
}

#[test]
fn about_says_what_the_constants_say() {
    let _turn = alone();
    let facts = unsafe { &*(table().describe)(std::ptr::null_mut()) };
    assert_eq!((&*fake::read(facts.name), &*fake::read(facts.runtime)), ("sample", ""));
    let platform = unsafe { (*facts.platforms, *facts.default_files) };
    assert_eq!(fake::read(platform.0), "sample_graph");
    assert_eq!(fake::read(platform.1), "model.sample");
    assert_eq!((facts.n_platforms, facts.n_features, facts.align), (1, 2, 16));
    assert_eq!((facts.input_places, facts.n_preferred, facts.max_in_flight), (1, 1, 1));
    let bench = Bench::plugin(table()).unwrap();
    let opened = unsafe { &*(table().describe)(bench.plugin) };
    assert_eq!(fake::read(opened.runtime), "Sample 9");
    bench.close();
}

#[test]
fn a_host_that_does_not_fit_still_gets_the_table() {
    let _turn = alone();
    let mut other: HostTable = unsafe { std::ptr::read(&raw const HOST.0) };
    other.abi_major += 1;
    let table = unsafe { &*export::main::<Sample>(&raw const other) };
    assert_eq!((table.abi_major, table.size), (1, size_of::<PluginTable>() as u64));
    assert!(!unsafe { export::main::<Sample>(std::ptr::null()) }.is_null());
}

#[test]
fn a_merged_batch_is_answered_when_execute_returns() {
    let _turn = alone();
    for what in ["merge", "merge_adopt"] {
        let calls =
            run(what, &[Request::new(&[1.0]), doing_one("fail_call"), Request::new(&[3.0])]);
        assert_eq!((floats(calls[0]), floats(calls[2])), (vec![vec![1.0]], vec![vec![3.0]]));
        assert_eq!(error_of(calls[1]).text, "bad call");
        assert_eq!(OWNERS.load(Ordering::SeqCst), 0);
    }
    let calls = run("merge_error", &[Request::new(&[1.0]), doing_one("fail_call")]);
    assert_eq!(error_of(calls[0]).text, "in the end");
    assert_eq!(error_of(calls[1]).text, "bad call");
}

#[test]
fn detached_calls_of_a_merged_batch_answer_for_themselves() {
    let _turn = alone();
    let bench = Bench::open(table(), &[("do", "merge")]).unwrap();
    let (calls, _) = bench.run(&[doing_one("detach"), Request::new(&[3.0])]);
    assert_eq!(floats(calls[1]), [[3.0]]);
    assert!(calls[0].state.lock().unwrap().end.is_none(), "not yet");
    bench.close();
    assert_eq!(floats(calls[0]), [[-1.0]]);
    calls.iter().for_each(|call| assert_eq!(call.releases.load(Ordering::SeqCst), 1));
    assert_clean();
}

fn doing_one(what: &'static str) -> Request {
    Request { params: vec![("do", what)], ..Request::new(&[2.0]) }
}
