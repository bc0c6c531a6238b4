//! The whole plugin with OpenVINO, on the test host.
//!
//! Without the library (see [`library`]) these tests fail; `cargo xtask test --without openvino`
//! leaves them out by the name of this module.

mod loading;
mod mutations;
mod requests;

use crate::backend::OpenVinoBackend;
use crate::library::OPENVINO;
use std::path::{Path, PathBuf};
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_testkit::{
    Backend, Failure, Instance, InstanceSpec, Model, ModelSpec, Outcome, Request, Session, bytes,
    table, values,
};

/// The models of the wire tests.
const MODELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/models");

fn library() -> String {
    let built = Path::new(MODELS).join("../../target/dist/lib/libopenvino_c.so");
    let found = std::env::var_os(OPENVINO.variable).map_or(built, PathBuf::from);
    let found = found.canonicalize().unwrap_or_else(|e| {
        panic!(
            "{}: {e}: `cargo xtask runtimes --openvino` installs it, `cargo xtask test --without openvino` leaves out \
             the tests that need it",
            found.display()
        )
    });
    found.to_str().unwrap().to_owned()
}

/// The test host, and the backend with the library.
fn start(settings: &[(&str, &str)]) -> (Session, Backend) {
    let session = Session::start();
    let library = library();
    let settings = [&[("library", library.as_str())], settings].concat();
    (session, backend(&settings))
}

fn backend(settings: &[(&str, &str)]) -> Backend {
    let dir = "/nowhere/backends/openvino";
    Backend::open(table::<OpenVinoBackend>(), "openvino", dir, settings).unwrap()
}

/// A model of this folder of tests/models, without tensors.
fn model(folder: &str, file: &str) -> ModelSpec {
    let dir = Path::new(MODELS).join(folder);
    at(&dir, &dir.join("1"), file)
}

fn at(dir: &Path, version_dir: &Path, file: &str) -> ModelSpec {
    ModelSpec {
        dir: dir.to_str().unwrap().to_owned(),
        version_dir: version_dir.to_str().unwrap().to_owned(),
        file: file.to_owned(),
        ..ModelSpec::new("M")
    }
}

/// Sum and difference of two rows of 16.
fn addsub() -> ModelSpec {
    model("addsub_fp32", "model.onnx")
        .max_batch_size(8)
        .input("INPUT0", dtype::FP32, &[16])
        .input("INPUT1", dtype::FP32, &[16])
        .output("OUTPUT0", dtype::FP32, &[16])
        .output("OUTPUT1", dtype::FP32, &[16])
}

/// The product with a matrix, of 4 numbers: exported for one row.
fn one_row() -> ModelSpec {
    model("openvino/one_row", "model.xml").max_batch_size(8).input("x", dtype::FP32, &[4]).output(
        "y",
        dtype::FP32,
        &[3],
    )
}

/// One instance of a model.
struct Loaded {
    instance: Instance,
    _model: Model,
}

fn load(backend: &Backend, spec: &ModelSpec) -> Result<Loaded, Failure> {
    let model = backend.open_model(spec)?;
    let instance = model.open_instance(&InstanceSpec::default())?;
    Ok(Loaded { instance, _model: model })
}

impl Loaded {
    fn run(&self, requests: &[Request]) -> Vec<Outcome> {
        self.instance.execute(requests)
    }

    fn one(&self, request: Request) -> Outcome {
        self.run(&[request]).remove(0)
    }
}

#[track_caller]
fn floats(outcome: &Outcome, name: &str) -> Vec<f32> {
    assert_eq!(outcome.result, Ok(()));
    let found = outcome.responses[0].output(name).unwrap_or_else(|| panic!("no {name}"));
    values(&found.data)
}

/// Rows of 16 numbers from `first` on, and their halves.
fn rows(first: f32, count: usize) -> (Request, Vec<f32>) {
    let all: Vec<f32> = (0..count * 16).map(|at| first + at as f32).collect();
    let halves: Vec<f32> = all.iter().map(|own| own / 2.0).collect();
    let shape = [count as i64, 16];
    let request = Request::new(count as u32)
        .input("INPUT0", dtype::FP32, &shape, &bytes(&all))
        .input("INPUT1", dtype::FP32, &shape, &bytes(&halves));
    (request, all)
}
