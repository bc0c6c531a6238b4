//! A backend in C, written from the headers alone, built with one command, loaded and run.

#![allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)] // a test plays the host, and keeps its promises on purpose

use std::path::{Path, PathBuf};
use std::process::Command;
use trtserver_plugin_api::abi::BACKEND_MAIN;
use trtserver_plugin_api::abi::backend::{BackendMain, BackendTable};
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_testkit::{
    Backend, Instance, InstanceSpec, ModelSpec, Outcome, Request, Session, bytes, host_table,
    values,
};

fn build(source: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = here.join("../tests/plugins").join(source);
    let name = format!("lib{}.so", source.file_stem().unwrap().to_str().unwrap());
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I"]);
    let status = cc.arg(here.join("include")).arg("-o").arg(&library).arg(source).status();
    assert!(status.unwrap().success());
    library
}

/// The table of a library that may be broken: it must not be read as a `BackendTable` yet.
fn load(library: &Path) -> Option<*const BackendTable> {
    let library = Box::leak(Box::new(unsafe { libloading::Library::new(library) }.unwrap()));
    let main = unsafe { library.get::<BackendMain>(BACKEND_MAIN.as_bytes()) }.ok()?;
    Some(unsafe { main(host_table()) })
}

fn open(source: &str, model: &ModelSpec) -> Instance {
    let table = trtserver_plugin_testkit::load(&build(source)).unwrap();
    let backend = Backend::open(table, "c", "", &[]).unwrap();
    backend.open_model(model).unwrap().open_instance(&InstanceSpec::default()).unwrap()
}

fn floats(outcome: &Outcome, output: &str) -> Vec<f32> {
    values(&outcome.response().unwrap().output(output).unwrap().data)
}

#[test]
fn c_backend_adds_and_subtracts() {
    let _session = Session::start();
    let floats_of = |model: ModelSpec, name: &str| model.input(name, dtype::FP32, &[-1]);
    let model = floats_of(floats_of(ModelSpec::new("m"), "INPUT0"), "INPUT1");
    let outputs = ["OUTPUT0", "OUTPUT1"];
    let model = outputs.iter().fold(model, |model, name| model.output(name, dtype::FP32, &[-1]));
    let request = |a: &[f32], b: &[f32]| {
        let (m, n) = ([a.len() as i64], [b.len() as i64]);
        Request::new(1).input("INPUT0", dtype::FP32, &m, &bytes(a)).input(
            "INPUT1",
            dtype::FP32,
            &n,
            &bytes(b),
        )
    };
    let instance = open("c-addsub/addsub.c", &model);
    let both = request(&[1.0, 2.0], &[10.0, 20.0]).request_output("OUTPUT0");
    let outcomes = instance.execute(&[
        both.request_output("OUTPUT1"),
        request(&[3.0], &[1.0]).request_output("OUTPUT1"),
        request(&[1.0, 2.0], &[1.0]).request_output("OUTPUT0"),
    ]);
    assert_eq!(floats(&outcomes[0], "OUTPUT0"), [11.0, 22.0]);
    assert_eq!(floats(&outcomes[0], "OUTPUT1"), [-9.0, -18.0]);
    assert_eq!(floats(&outcomes[1], "OUTPUT1"), [2.0]);
    assert_eq!(outcomes[1].responses[0].outputs.len(), 1);
    let error = outcomes[2].result.as_ref().unwrap_err();
    assert!(error.text.contains("one size"), "{error}");
}

#[test]
fn c_backend_scatters_one_output_to_all_requests() {
    let _session = Session::start();
    let model = ModelSpec::new("m").max_batch_size(8);
    let model = model.input("IN", dtype::FP32, &[]).output("OUT", dtype::FP32, &[]);
    let request = |value: f32| {
        Request::new(1).input("IN", dtype::FP32, &[1], &bytes(&[value])).request_output("OUT")
    };
    let instance = open("c-merge/merge.c", &model);
    let outcomes = instance.execute(&[request(1.0), request(2.0)]);
    assert_eq!((floats(&outcomes[0], "OUT"), floats(&outcomes[1], "OUT")), (vec![1.0], vec![2.0]));
    for outcome in instance.execute(&[request(1.0), Request::new(1)]) {
        assert_eq!(outcome.result.unwrap_err().text, "gather: a request has no input 0");
    }
}

#[test]
fn broken_libraries_have_the_documented_defects() {
    let _session = Session::start();
    let table = |source| unsafe { &*load(&build(source)).unwrap() };
    assert_eq!(table("broken/wrong_major.c").abi_major, 99);
    assert!(table("broken/old_size.c").size < size_of::<BackendTable>() as u64);
    assert!(load(&build("broken/null_table.c")).unwrap().is_null());
    assert!(load(&build("broken/no_symbol.c")).is_none());
    // The table of missing_entry.c must not be read as a `BackendTable`: its null is not a
    // function.
    assert!(!load(&build("broken/missing_entry.c")).unwrap().is_null());
}
