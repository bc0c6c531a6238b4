//! A backend in C, written from the headers alone, built with one command, loaded and run.

#![allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)] // a test plays the host, and keeps its promises on purpose

mod fake;

use fake::{Bench, HOST, Request, alone, assert_clean};
use std::path::{Path, PathBuf};
use std::process::Command;
use trtserver_plugin_api::abi::PLUGIN_MAIN;
use trtserver_plugin_api::abi::plugin::{PluginMain, PluginTable};

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

fn load(library: &Path) -> Option<*const PluginTable> {
    let library = Box::leak(Box::new(unsafe { libloading::Library::new(library) }.unwrap()));
    let main = unsafe { library.get::<PluginMain>(PLUGIN_MAIN.as_bytes()) }.ok()?;
    Some(unsafe { main(&raw const HOST.0) })
}

fn request(a: &[f32], b: &[f32]) -> Request {
    Request {
        inputs: vec![("INPUT0", vec![a.to_vec()]), ("INPUT1", vec![b.to_vec()])],
        wanted: vec!["OUTPUT0", "OUTPUT1"],
        ..Request::default()
    }
}

#[test]
fn adds_and_subtracts() {
    let _turn = alone();
    let table = unsafe { &*load(&build("c-addsub/addsub.c")).unwrap() };
    let about = unsafe { &*(table.describe)(std::ptr::null_mut()) };
    assert_eq!(fake::read(about.name), "c_addsub");
    let bench = Bench::open(table, &[]).unwrap();
    let mut one_output = request(&[3.0], &[1.0]);
    one_output.wanted = vec!["OUTPUT1"];
    let uneven = request(&[1.0, 2.0], &[1.0]);
    let (calls, result) = bench.run(&[request(&[1.0, 2.0], &[10.0, 20.0]), one_output, uneven]);
    assert_eq!(result, Ok(()));
    bench.close();
    let states: Vec<_> = calls.iter().map(|call| call.state.lock().unwrap()).collect();
    assert_eq!(states[0].answers[0].floats("OUTPUT0"), [11.0, 22.0]);
    assert_eq!(states[0].answers[0].floats("OUTPUT1"), [-9.0, -18.0]);
    assert_eq!(states[1].answers[0].floats("OUTPUT1"), [2.0]);
    assert_eq!(states[1].answers[0].outputs.len(), 1);
    assert!(matches!(&states[2].end, Some(Err(error)) if error.text.contains("one size")));
    assert_clean();
}

#[test]
fn answers_all_calls_at_once() {
    let _turn = alone();
    let table = unsafe { &*load(&build("c-merge/merge.c")).unwrap() };
    let bench = Bench::open(table, &[]).unwrap();
    let (calls, result) = bench.run(&[Request::new(&[1.0]), Request::new(&[2.0])]);
    let (refused, _) = bench.run(&[Request::new(&[]), Request::default()]);
    assert_eq!(result, Ok(()));
    bench.close();
    for (call, value) in calls.iter().zip([1.0, 2.0]) {
        assert_eq!(call.state.lock().unwrap().answers[0].floats("OUT"), [value]);
    }
    for call in refused {
        let end = call.state.lock().unwrap().end.clone();
        assert_eq!(end.unwrap().unwrap_err().text, "there is no such input");
    }
    assert_clean();
}

#[test]
fn broken_libraries_are_broken_as_they_say() {
    let _turn = alone();
    let table = |source| unsafe { &*load(&build(source)).unwrap() };
    assert_eq!(table("broken/wrong_major.c").abi_major, 99);
    assert!(table("broken/old_size.c").size < size_of::<PluginTable>() as u64);
    assert!(load(&build("broken/null_table.c")).unwrap().is_null());
    assert!(load(&build("broken/no_symbol.c")).is_none());
    // The table of missing_entry.c must not be read as a `PluginTable`: its null is not a function.
    assert!(!load(&build("broken/missing_entry.c")).unwrap().is_null());
}
