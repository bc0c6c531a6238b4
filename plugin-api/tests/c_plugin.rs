//! A backend in C, written from the headers alone, built with one command, loaded and run.

#![allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)] // a test plays the host, and keeps its promises on purpose

mod fake;

use fake::{Bench, HOST, RequestSpec, alone, assert_clean};
use std::path::{Path, PathBuf};
use std::process::Command;
use trtserver_plugin_api::abi::BACKEND_MAIN;
use trtserver_plugin_api::abi::backend::{BackendMain, BackendTable};

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

fn load(library: &Path) -> Option<*const BackendTable> {
    let library = Box::leak(Box::new(unsafe { libloading::Library::new(library) }.unwrap()));
    let main = unsafe { library.get::<BackendMain>(BACKEND_MAIN.as_bytes()) }.ok()?;
    Some(unsafe { main(&raw const HOST.0) })
}

fn request(a: &[f32], b: &[f32]) -> RequestSpec {
    RequestSpec {
        inputs: vec![("INPUT0", vec![a.to_vec()]), ("INPUT1", vec![b.to_vec()])],
        requested: vec!["OUTPUT0", "OUTPUT1"],
        ..RequestSpec::default()
    }
}

#[test]
fn c_backend_adds_and_subtracts() {
    let _guard = alone();
    let table = unsafe { &*load(&build("c-addsub/addsub.c")).unwrap() };
    let info = unsafe { &*(table.backend_info)(std::ptr::null_mut()) };
    assert_eq!(fake::read(info.name), "c_addsub");
    let bench = Bench::open(table, &[]).unwrap();
    let mut one_output = request(&[3.0], &[1.0]);
    one_output.requested = vec!["OUTPUT1"];
    let uneven = request(&[1.0, 2.0], &[1.0]);
    let (requests, result) = bench.run(&[request(&[1.0, 2.0], &[10.0, 20.0]), one_output, uneven]);
    assert_eq!(result, Ok(()));
    bench.close();
    let states: Vec<_> = requests.iter().map(|request| request.state.lock().unwrap()).collect();
    assert_eq!(states[0].sent[0].floats("OUTPUT0"), [11.0, 22.0]);
    assert_eq!(states[0].sent[0].floats("OUTPUT1"), [-9.0, -18.0]);
    assert_eq!(states[1].sent[0].floats("OUTPUT1"), [2.0]);
    assert_eq!(states[1].sent[0].outputs.len(), 1);
    assert!(matches!(&states[2].end, Some(Err(error)) if error.text.contains("one size")));
    assert_clean();
}

#[test]
fn c_backend_gathers_and_scatters() {
    let _guard = alone();
    let table = unsafe { &*load(&build("c-merge/merge.c")).unwrap() };
    let bench = Bench::open(table, &[]).unwrap();
    let (requests, result) = bench.run(&[RequestSpec::new(&[1.0]), RequestSpec::new(&[2.0])]);
    let (refused, _) = bench.run(&[RequestSpec::new(&[]), RequestSpec::default()]);
    assert_eq!(result, Ok(()));
    bench.close();
    for (request, value) in requests.iter().zip([1.0, 2.0]) {
        assert_eq!(request.state.lock().unwrap().sent[0].floats("OUT"), [value]);
    }
    for request in refused {
        let end = request.state.lock().unwrap().end.clone();
        assert_eq!(end.unwrap().unwrap_err().text, "there is no such input");
    }
    assert_clean();
}

#[test]
fn broken_libraries_have_the_documented_defects() {
    let _guard = alone();
    let table = |source| unsafe { &*load(&build(source)).unwrap() };
    assert_eq!(table("broken/wrong_major.c").abi_major, 99);
    assert!(table("broken/old_size.c").size < size_of::<BackendTable>() as u64);
    assert!(load(&build("broken/null_table.c")).unwrap().is_null());
    assert!(load(&build("broken/no_symbol.c")).is_none());
    // The table of missing_entry.c must not be read as a `BackendTable`: its null is not a function.
    assert!(!load(&build("broken/missing_entry.c")).unwrap().is_null());
}
