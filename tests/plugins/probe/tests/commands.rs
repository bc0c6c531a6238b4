//! The probe through both doors, and its commands on the fake host of the interface's own tests.

#![allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)] // a test plays the host

#[path = "../../../../plugin-api/tests/fake/mod.rs"]
mod fake;

use fake::{Bench, Failure, HOST, RequestSpec, alone, assert_clean};
use std::path::PathBuf;
use trtserver_plugin_api::abi::BACKEND_MAIN;
use trtserver_plugin_api::abi::backend::{BackendMain, BackendModuleRef, BackendTable};
use trtserver_plugin_api::abi_stable::library::lib_header_from_path;

fn library() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    // Beside the tests, where cargo puts what they depend on; `cargo build` alone fills the folder above.
    let library = exe.with_file_name("libtrtserver_probe.so");
    assert!(library.exists(), "{} is not built", library.display());
    library
}

fn table() -> &'static BackendTable {
    let header = lib_header_from_path(&library()).unwrap();
    let module = header.init_root_module::<BackendModuleRef>().unwrap();
    unsafe { &*module.main()(&raw const HOST.0) }
}

/// Runs one request with these parameters; the end, and the sent.
fn run(params: &[(&'static str, &'static str)]) -> (Result<(), Failure>, Vec<fake::SentResponse>) {
    let bench = Bench::open(table(), &[]).unwrap();
    let request = RequestSpec { params: params.to_vec(), ..RequestSpec::new(&[1.0, 2.0]) };
    let request = RequestSpec { requested: vec!["OUT", "BATCH"], ..request };
    let (requests, _) = bench.run(&[request]);
    bench.close(); // joins the threads that answer later
    let state = requests[0].state.lock().unwrap();
    assert_clean();
    (state.end.clone().unwrap(), state.sent.clone())
}

#[test]
fn both_doors_lead_to_the_same_table() {
    let checked: *const BackendTable = table();
    let library = Box::leak(Box::new(unsafe { libloading::Library::new(library()) }.unwrap()));
    let main = unsafe { library.get::<BackendMain>(BACKEND_MAIN.as_bytes()) }.unwrap();
    assert_eq!(unsafe { main(&raw const HOST.0) }, checked);
    let info = unsafe { &*((*checked).backend_info)(std::ptr::null_mut()) };
    assert_eq!(fake::read(info.name), "probe");
}

#[test]
fn echoes_by_every_way_of_answering() {
    let _guard = alone();
    for params in [&[][..], &[("adopt", "true")], &[("detach", "true")], &[("delay_ms", "1")]] {
        let (end, sent) = run(params);
        assert_eq!(end, Ok(()), "{params:?}");
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].floats("OUT"), [1.0, 2.0], "{params:?}");
    }
    assert_eq!(run(&[("responses", "3")]).1.len(), 3);
    assert_eq!(run(&[("responses", "3"), ("detach", "1")]).1.len(), 3);
    assert_eq!(run(&[("responses", "0")]), (Ok(()), vec![]));
    let (_, sent) = run(&[("report_batch", "true")]);
    assert_eq!(sent[0].outputs["BATCH"], (8, vec![2], vec![1, 0, 0, 0, 1, 0, 0, 0]));
}

#[test]
fn fails_as_told() {
    let _guard = alone();
    let error = run(&[("fail", "no"), ("fail_code", "4")]).0.unwrap_err();
    assert_eq!((error.code, &*error.text), (4, "no"));
    let error = run(&[("panic_in", "execute")]).0.unwrap_err();
    assert_eq!(error.text, "backend 'probe' panicked in execute: told to panic in execute");
    let error = run(&[("fail_in", "execute"), ("broken", "true")]).0.unwrap_err();
    assert_eq!((&*error.text, error.flags), ("told to fail in execute", 8));
    for entry in ["model_open", "instance_open"] {
        for (how, word) in [("panic_in", "panicked"), ("fail_in", "told to fail")] {
            let error = Bench::open(table(), &[(how, entry)]).err().unwrap();
            assert!(error.text.contains(word) && error.text.contains(entry), "{}", error.text);
        }
    }
    let scope = Bench::open(table(), &[("panic_in", "close")]).unwrap().close();
    assert!(scope.said("told to panic in close"));
}

#[test]
fn garbage_as_told() {
    let _guard = alone();
    let out = |how| run(&[("garbage", how)]).1[0].outputs.get("OUT").cloned();
    assert_eq!(out("wrong_dtype").unwrap().0, 8);
    assert_eq!(out("wrong_shape").unwrap().1, [2, 1]);
    assert_eq!(out("short").unwrap().2.len(), 7);
    assert_eq!(out("missing_output"), None);
    assert!(out("unknown_output").is_some());
    assert_eq!(run(&[("garbage", "twice")]).1.len(), 1);
    assert_eq!(run(&[("garbage", "never")]).0.unwrap_err().text, "not finished");
    let never = run(&[("garbage", "never"), ("detach", "true")]).0.unwrap_err();
    assert!(never.text.contains("dropped a detached request"));
}

#[test]
fn waits_for_the_cancellation() {
    let _guard = alone();
    let bench = Bench::open(table(), &[("until_cancelled", "true")]).unwrap();
    let cancelled = RequestSpec { cancelled: true, ..RequestSpec::new(&[1.0]) };
    let (requests, _) = bench.run(&[cancelled]);
    bench.close();
    let state = requests[0].state.lock().unwrap();
    assert!(matches!(&state.end, Some(Err(error)) if error.code == 7));
}

/// Runs batches of INT32 requests on one instance; OUT and STATE_OUT of each request, -1 where there is none.
fn sums(mode: &'static str, batches: &[&[&[(&'static str, i32)]]]) -> Vec<Vec<(i32, i32)>> {
    let bench = Bench::open(table(), &[("accumulate", mode)]).unwrap();
    let one = |inputs: &&[(&'static str, i32)]| RequestSpec {
        ints: inputs.iter().map(|(name, value)| (*name, vec![*value])).collect(),
        requested: vec!["OUT", "STATE_OUT"],
        ..RequestSpec::default()
    };
    let run = |batch: &&[&[(&'static str, i32)]]| {
        let (requests, _) = bench.run(&batch.iter().map(one).collect::<Vec<_>>());
        let of = |request: &&'static fake::FakeRequest| {
            let state = request.state.lock().unwrap();
            assert_eq!(state.end, Some(Ok(())));
            let int = |name| {
                let output = state.sent[0].outputs.get(name);
                output.map_or(-1, |o| i32::from_le_bytes(o.2[..].try_into().unwrap()))
            };
            (int("OUT"), int("STATE_OUT"))
        };
        requests.iter().map(of).collect()
    };
    let all = batches.iter().map(run).collect();
    bench.close();
    assert_clean();
    all
}

#[test]
fn sums_by_slot_by_id_and_by_state() {
    let _guard = alone();
    let in_slot = |value, start, ready| [("INPUT0", value), ("START", start), ("READY", ready)];
    let batches = sums(
        "slot",
        &[
            &[&in_slot(1, 1, 1), &in_slot(10, 1, 1)],
            &[&in_slot(2, 0, 1), &in_slot(99, 1, 0)],
            &[&in_slot(3, 0, 1), &in_slot(20, 0, 1)],
            &[&in_slot(4, 1, 1)],
        ],
    );
    let outputs: Vec<Vec<i32>> =
        batches.iter().map(|batch| batch.iter().map(|o| o.0).collect()).collect();
    assert_eq!(outputs, [vec![1, 10], vec![3, 0], vec![6, 30], vec![4]]);

    let of = |value, id, end| [("INPUT0", value), ("CORRID", id), ("END", end)];
    let batches = sums(
        "corrid",
        &[&[&of(1, 7, 0), &of(10, 8, 0)], &[&of(20, 8, 1), &of(2, 7, 0)], &[&of(5, 8, 0)]],
    );
    let outputs: Vec<i32> = batches.iter().flatten().map(|o| o.0).collect();
    assert_eq!(outputs, [1, 10, 30, 3, 5]);

    let batches = sums("state", &[&[&[("INPUT0", 1), ("STATE_IN", 41)]]]);
    assert_eq!(batches, [[(42, 42)]]);
}

#[test]
fn one_answer_for_all_calls() {
    let _guard = alone();
    for adopt in ["true", "false"] {
        let params = [("merge", "true"), ("adopt", adopt), ("spin_us", "10")];
        let bench = Bench::open(table(), &params).unwrap();
        let failing = RequestSpec { params: vec![("fail", "no")], ..RequestSpec::new(&[2.0]) };
        let requests = [RequestSpec::new(&[1.0]), failing, RequestSpec::new(&[3.0])];
        let (requests, _) = bench.run(&requests);
        bench.close();
        let states: Vec<_> = requests.iter().map(|request| request.state.lock().unwrap()).collect();
        assert_eq!(states[0].sent[0].floats("OUT"), [1.0]);
        assert_eq!(states[2].sent[0].floats("OUT"), [3.0]);
        assert_eq!(states[1].end.as_ref().unwrap().as_ref().unwrap_err().text, "no");
    }
    let error = run(&[("record", "fail")]).0.unwrap_err();
    assert_eq!(error.text, "id:1");
    assert_clean();
}
