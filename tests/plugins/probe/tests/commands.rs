//! The probe through both entry points, and its commands on the test host.

#![allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)] // a test loads the library

use std::path::PathBuf;
use trtserver_plugin_api::abi::BACKEND_MAIN;
use trtserver_plugin_api::abi::backend::{BackendMain, BackendModuleRef, BackendTable};
use trtserver_plugin_api::abi::types::{code, dtype, error_flags, tensor_flags};
use trtserver_plugin_api::abi_stable::library::lib_header_from_path;
use trtserver_plugin_testkit::{
    Backend, Failure, Input, Instance, InstanceSpec, ModelSpec, Output, Request, Response, Session,
    bytes, host_table, take_violations, values,
};

fn library() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    // Beside the tests, where cargo puts what they depend on; `cargo build` alone fills the folder
    // above.
    let library = exe.with_file_name("libtrtserver_probe.so");
    assert!(library.exists(), "{} is not built", library.display());
    library
}

fn table() -> &'static BackendTable {
    let header = lib_header_from_path(&library()).unwrap();
    let module = header.init_root_module::<BackendModuleRef>().unwrap();
    unsafe { &*module.main()(host_table()) }
}

fn model(params: &[(&str, &str)]) -> ModelSpec {
    let spec =
        ModelSpec::new("m").input("IN", dtype::FP32, &[-1]).output("OUT", dtype::FP32, &[-1]);
    let spec = spec.output("BATCH", dtype::INT32, &[-1]);
    params.iter().fold(spec, |spec, (key, value)| spec.parameter(key, value))
}

fn open(spec: &ModelSpec) -> Result<Instance, Failure> {
    let backend = Backend::open(table(), "x", "/plugins", &[])?;
    backend.open_model(spec)?.open_instance(&InstanceSpec::default())
}

fn request(floats: &[f32]) -> Request {
    let shape = [floats.len() as i64];
    Request::new(1).input("IN", dtype::FP32, &shape, &bytes(floats)).request_output("OUT")
}

fn floats(response: &Response) -> Vec<f32> {
    values(&response.output("OUT").unwrap().data)
}

/// Runs one request with these parameters; its result and responses.
fn run(params: &[(&str, &str)]) -> (Result<(), Failure>, Vec<Response>) {
    let request = request(&[1.0, 2.0]).request_output("BATCH");
    let request = params.iter().fold(request, |request, (key, value)| request.param(key, value));
    let outcome = open(&model(&[])).unwrap().execute(&[request]).pop().unwrap();
    (outcome.result, outcome.responses)
}

/// Runs one request that breaks a promise.
fn broken(params: &[(&str, &str)], promise: &str) -> (Result<(), Failure>, Vec<Response>) {
    let ran = run(params);
    let promises: Vec<_> = take_violations().into_iter().map(|v| v.promise).collect();
    assert!(promises.contains(&promise), "{params:?}: {promises:?}");
    ran
}

#[test]
fn both_entry_points_return_the_same_table() {
    let checked: *const BackendTable = table();
    let library = Box::leak(Box::new(unsafe { libloading::Library::new(library()) }.unwrap()));
    let main = unsafe { library.get::<BackendMain>(BACKEND_MAIN.as_bytes()) }.unwrap();
    assert_eq!(unsafe { main(host_table()) }, checked);
}

#[test]
fn echoes_in_every_way_of_responding() {
    let _session = Session::start();
    for params in [&[][..], &[("adopt", "true")], &[("detach", "true")], &[("delay_ms", "1")]] {
        let (result, responses) = run(params);
        assert_eq!((result, responses.len()), (Ok(()), 1), "{params:?}");
        assert_eq!(floats(&responses[0]), [1.0, 2.0], "{params:?}");
    }
    assert_eq!(run(&[("responses", "3")]).1.len(), 3);
    assert_eq!(run(&[("responses", "3"), ("detach", "1")]).1.len(), 3);
    assert_eq!(run(&[("responses", "0")]), (Ok(()), vec![]));
    let (_, responses) = run(&[("report_batch", "true")]);
    let batch: &Output = responses[0].output("BATCH").unwrap();
    assert_eq!((batch.dtype, &batch.shape[..]), (dtype::INT32, &[2][..]));
    assert_eq!(values::<i32>(&batch.data), [1, 1]);
}

#[test]
fn fails_as_commanded() {
    let session = Session::start();
    let error = run(&[("fail", "no"), ("fail_code", "4")]).0.unwrap_err();
    assert_eq!((error.code, &*error.text), (code::UNAVAILABLE, "no"));
    let error = run(&[("panic_in", "execute")]).0.unwrap_err();
    assert_eq!(error.text, "backend 'probe' panicked in execute: told to panic in execute");
    let error = run(&[("fail_in", "execute"), ("broken", "true")]).0.unwrap_err();
    assert_eq!((&*error.text, error.flags), ("told to fail in execute", error_flags::MODEL_BROKEN));
    for entry in ["model_open", "instance_open"] {
        for (how, word) in [("panic_in", "panicked"), ("fail_in", "told to fail")] {
            let error = open(&model(&[(how, entry)])).err().unwrap();
            assert!(error.text.contains(word) && error.text.contains(entry), "{}", error.text);
        }
    }
    drop(open(&model(&[("panic_in", "close")])).unwrap());
    assert!(session.logged("told to panic in close"));
}

#[test]
fn misbehaves_as_commanded() {
    let _session = Session::start();
    for how in ["wrong_dtype", "short", "unknown_output"] {
        let _ = broken(&[("garbage", how)], "output.declared");
    }
    assert_eq!(run(&[("garbage", "missing_output")]).1[0].output("OUT"), None);
    assert_eq!(broken(&[("garbage", "twice")], "request.once").1.len(), 1);
    assert!(broken(&[("garbage", "never")], "request.once").0.is_err());
    let never = run(&[("garbage", "never"), ("detach", "true")]).0.unwrap_err();
    assert!(never.text.contains("dropped a detached request"));
}

#[test]
fn waits_for_the_cancellation() {
    let _session = Session::start();
    let instance = open(&model(&[("until_cancelled", "true")])).unwrap();
    let outcome = instance.execute(&[request(&[1.0]).cancelled()]).pop().unwrap();
    assert_eq!(outcome.result.unwrap_err().code, code::CANCELLED);
}

/// Runs batches of INT32 requests on one instance; OUT and STATE_OUT of each request, -1 where
/// there is none.
fn sums(mode: &str, batches: &[&[&[(&str, i32)]]]) -> Vec<Vec<(i32, i32)>> {
    let mut spec = ModelSpec::new("m").input("INPUT0", dtype::INT32, &[-1]);
    spec = spec.output("OUT", dtype::INT32, &[-1]).parameter("accumulate", mode);
    spec.states = vec![trtserver_plugin_testkit::TensorSpec::new("STATE_OUT", dtype::INT32, &[-1])];
    let instance = open(&spec).unwrap();
    let one = |inputs: &&[(&str, i32)]| {
        let mut request = Request::new(1).request_output("OUT").request_output("STATE_OUT");
        for (name, value) in *inputs {
            request.inputs.push(Input {
                name: (*name).to_owned(),
                dtype: dtype::INT32,
                shape: vec![1],
                parts: vec![bytes(&[*value])],
                flags: if name.starts_with("STATE") { tensor_flags::STATE } else { 0 },
            });
        }
        request
    };
    let run = |batch: &&[&[(&str, i32)]]| {
        let outcomes = instance.execute(&batch.iter().map(one).collect::<Vec<_>>());
        let of = |outcome: &trtserver_plugin_testkit::Outcome| {
            assert_eq!(outcome.result, Ok(()));
            let int = |name| {
                let output = outcome.responses[0].output(name);
                output.map_or(-1, |output| values(&output.data)[0])
            };
            (int("OUT"), int("STATE_OUT"))
        };
        outcomes.iter().map(of).collect()
    };
    batches.iter().map(run).collect()
}

#[test]
fn sums_by_slot_by_id_and_by_state() {
    let _session = Session::start();
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
fn one_scattered_output_for_all_requests() {
    let _session = Session::start();
    for adopt in ["true", "false"] {
        let mut spec = model(&[("merge", "true"), ("adopt", adopt), ("spin_us", "10")]);
        spec.max_batch_size = 8;
        let tensors = spec.inputs.iter_mut().chain(&mut spec.outputs);
        tensors.for_each(|tensor| (tensor.dims, tensor.model_dims) = (vec![], vec![]));
        let failing = request(&[2.0]).param("fail", "no");
        let outcomes = open(&spec).unwrap().execute(&[request(&[1.0]), failing, request(&[3.0])]);
        assert_eq!(floats(&outcomes[0].responses[0]), [1.0]);
        assert_eq!(floats(&outcomes[2].responses[0]), [3.0]);
        assert_eq!(outcomes[1].result.as_ref().unwrap_err().text, "no");
    }
}
