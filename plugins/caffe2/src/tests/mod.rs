//! The whole plugin with ONNX Runtime on the test host: every golden case of Caffe2, and models
//! that cannot be loaded.
//!
//! Without a library these tests fail.

mod golden;
mod models;

use crate::netdef::NetDef;
use prost::Message;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trtserver_onnx_engine::{Engine, VARIABLE};
use trtserver_plugin_testkit::{
    Backend, InstanceSpec, ModelSpec, Outcome, Output, Request, Session, table,
};

fn library() -> PathBuf {
    if let Some(path) = std::env::var_os(VARIABLE) {
        return path.into();
    }
    let built =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/dist/lib/libonnxruntime.so.1");
    assert!(
        built.exists(),
        "no ONNX Runtime in target/dist/lib: `cargo xtask runtimes` installs it, {VARIABLE} names another"
    );
    built
}

fn start() -> (Session, Backend) {
    let (session, path) = (Session::start(), library());
    let settings = [("library", path.to_str().unwrap())];
    let table = table::<Engine<crate::Caffe2>>();
    let backend = Backend::open(table, "caffe2", "/nowhere/backends/caffe2", &settings);
    (session, backend.unwrap())
}

/// A version directory with a model's files.
fn version(init: &NetDef, predict: &NetDef) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("init_model.netdef"), init.encode_to_vec()).unwrap();
    std::fs::write(dir.path().join("model.netdef"), predict.encode_to_vec()).unwrap();
    dir
}

fn spec(dir: &TempDir) -> ModelSpec {
    ModelSpec {
        version_dir: dir.path().to_str().unwrap().to_owned(),
        accepts_any_output: true,
        ..ModelSpec::new("M")
    }
}

fn outputs(outcome: &Outcome) -> &[Output] {
    outcome.responses.first().map_or(&[], |response| &response.outputs)
}

/// Runs a case; the error says what differs.
fn check(backend: &Backend, case: &golden::Case, variable: bool) -> Result<(), String> {
    let (init, predict) = case.nets();
    let dir = version(&init, &predict);
    let tensors = |tensors: &[golden::Tensor], variable| {
        tensors.iter().map(|tensor| tensor.spec(variable)).collect()
    };
    let spec = ModelSpec {
        inputs: tensors(&case.inputs, variable),
        outputs: tensors(&case.outputs, false),
        ..spec(&dir)
    };
    let model = backend.open_model(&spec).map_err(|failure| failure.text)?;
    let instance = model.open_instance(&InstanceSpec::default()).map_err(|failure| failure.text)?;
    let request = case.inputs.iter().fold(Request::new(1), |request, tensor| {
        request.input(&tensor.name, tensor.dtype, &tensor.dims, &tensor.data)
    });
    let names = case.outputs.iter().map(|tensor| &tensor.name);
    let request = names.fold(request, |request, name| request.request_output(name));
    let outcome = instance.execute(&[request]).remove(0);
    outcome.result.as_ref().map_err(|failure| failure.text.clone())?;
    case.outputs.iter().try_for_each(|expected| {
        let output = outputs(&outcome).iter().find(|output| output.name == expected.name);
        let output = output.ok_or("an output is missing")?;
        let shape = if expected.dims.is_empty() { &[1][..] } else { &expected.dims };
        if (output.dtype, &output.shape[..]) != (expected.dtype, shape) {
            let (kind, dims) = (output.dtype, &output.shape);
            return Err(format!(
                "type {kind} and shape {dims:?} instead of {} and {shape:?}",
                expected.dtype
            ));
        }
        compare(expected.dtype, &output.data, &expected.data)
            .map_err(|text| format!("'{}': {text}", output.name))
    })
}

/// Floating-point numbers may differ by 1e-4, of larger ones relative to their size; all others are
/// equal.
fn compare(dtype: u32, found: &[u8], expected: &[u8]) -> Result<(), String> {
    if dtype != trtserver_plugin_api::abi::types::dtype::FP32 {
        return if found == expected {
            Ok(())
        } else {
            Err(format!("{found:?} instead of {expected:?}"))
        };
    }
    let numbers = |bytes: &[u8]| -> Vec<f32> { trtserver_plugin_testkit::values(bytes) };
    let (found, expected) = (numbers(found), numbers(expected));
    let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4 * b.abs().max(1.0);
    if found.len() == expected.len() && found.iter().zip(&expected).all(near) {
        return Ok(());
    }
    Err(format!("{found:?} instead of {expected:?}"))
}

fn check_all(variable: bool) {
    let (_session, backend) = start();
    let mut wrong = Vec::new();
    for (file, cases) in golden::all() {
        for case in cases {
            if let Err(text) = check(&backend, &case, variable) {
                wrong.push(format!("{file}, {}: {text}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn results_equal_those_of_caffe2() {
    check_all(false);
}

#[test]
fn results_equal_those_of_caffe2_with_variable_shapes() {
    check_all(true);
}

#[test]
fn every_operator_has_a_golden_case() {
    let mut covered = std::collections::HashSet::new();
    for (_, cases) in golden::all() {
        for case in cases {
            let (init, predict) = case.nets();
            covered.extend(init.op.into_iter().chain(predict.op).map(|op| op.r#type().to_owned()));
        }
    }
    // These need a GPU, or are not in the release that made the cases.
    let unavailable = [
        "CopyCPUToGPU",
        "CopyGPUToCPU",
        "GivenTensorByteStringToUInt8Fill",
        "GivenTensorStringFill",
    ];
    let table = crate::translate::operators::TABLE.iter().map(|(name, _)| *name);
    let missing: Vec<&str> =
        table.filter(|name| !covered.contains(*name) && !unavailable.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
