//! The whole plugin with TensorFlow and small models, on the test host.
//!
//! Without a library (see [`library`]) these tests fail; `cargo xtask test --without tensorflow`
//! leaves them out by the name of this module.

mod batches;
mod custom_operations;
mod loading;
mod memory;
mod requests;

use crate::backend::TensorFlow;
use std::path::{Path, PathBuf};
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_testkit::{
    Backend, Failure, Instance, InstanceSpec, Model, ModelSpec, Outcome, Output, Request, Session,
    TensorSpec, bytes, table, values,
};
use trtserver_proto_wire::put_bytes;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
/// The models of the wire tests.
const MODELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/models");

fn library() -> PathBuf {
    if let Some(named) = std::env::var_os(crate::runtime::VARIABLE) {
        return named.into();
    }
    let built = Path::new(MODELS).join("../../target/dist/lib/libtensorflow_cc.so.2");
    built.canonicalize().expect(
        "no TensorFlow in target/dist/lib: `cargo xtask runtimes --tensorflow` installs it, \
         `cargo xtask test --without tensorflow` leaves out the tests that need it",
    )
}

/// The test host, and the backend with TensorFlow.
fn start() -> (Session, Backend) {
    let session = Session::start();
    (session, backend(&[("library", library().to_str().unwrap())]))
}

fn backend(settings: &[(&str, &str)]) -> Backend {
    let dir = "/nowhere/backends/tensorflow";
    Backend::open(table::<TensorFlow>(), "tensorflow", dir, settings).unwrap()
}

/// `("X", FP32, [16])` for each tensor; outputs are not checked by the test host.
type Tensors<'a> = &'a [(&'a str, u32, &'a [i64])];

fn spec(platform: &str, path: &Path, max: i32, inputs: Tensors, outputs: Tensors) -> ModelSpec {
    let decl = |&(name, dtype, dims): &(&str, u32, &[i64])| TensorSpec::new(name, dtype, dims);
    let mut config_pb = Vec::new();
    put_bytes(&mut config_pb, 2, platform.as_bytes());
    ModelSpec {
        version_dir: path.parent().unwrap().to_str().unwrap().to_owned(),
        file: path.file_name().unwrap().to_str().unwrap().to_owned(),
        config_pb,
        max_batch_size: max,
        inputs: inputs.iter().map(decl).collect(),
        outputs: outputs.iter().map(decl).collect(),
        accepts_any_output: true,
        ..ModelSpec::new("M")
    }
}

/// A file of this crate's models.
fn graph_def(file: &str, max: i32, inputs: Tensors, outputs: Tensors) -> ModelSpec {
    spec(crate::GRAPH_DEF, &Path::new(DATA).join(file), max, inputs, outputs)
}

fn saved_model(dir: &str, max: i32, inputs: Tensors, outputs: Tensors) -> ModelSpec {
    let path = Path::new(MODELS).join(dir).join("1/model.savedmodel");
    spec(crate::SAVED_MODEL, &path, max, inputs, outputs)
}

/// OUTPUT0 is the sum, OUTPUT1 the difference of INPUT0 and INPUT1.
fn addsub(platform: &str, max: i32) -> ModelSpec {
    let inputs: Tensors = &[("INPUT0", dtype::FP32, &[16]), ("INPUT1", dtype::FP32, &[16])];
    let outputs: Tensors = &[("OUTPUT0", dtype::FP32, &[16]), ("OUTPUT1", dtype::FP32, &[16])];
    let path = match platform {
        crate::GRAPH_DEF => "graphdef/addsub_fp32/1/model.graphdef",
        _ => "savedmodel/addsub_fp32/1/model.savedmodel",
    };
    spec(platform, &Path::new(MODELS).join(path), max, inputs, outputs)
}

fn addsub_request(rows: usize) -> Request {
    let ramp: Vec<f32> = (0..rows * 16).map(|i| i as f32).collect();
    Request::new(rows as u32)
        .input("INPUT0", dtype::FP32, &[rows as i64, 16], &bytes(&ramp))
        .input("INPUT1", dtype::FP32, &[rows as i64, 16], &bytes(&vec![1f32; rows * 16]))
        .request_output("OUTPUT0")
        .request_output("OUTPUT1")
}

/// A model and one instance.
struct Loaded {
    instance: Instance,
    model: Model,
}

fn load(backend: &Backend, spec: &ModelSpec) -> Result<Loaded, Failure> {
    let model = backend.open_model(spec)?;
    let instance = model.open_instance(&InstanceSpec::default())?;
    Ok(Loaded { instance, model })
}

impl Loaded {
    fn run(&self, request: Request) -> Outcome {
        self.instance.execute(&[request]).remove(0)
    }
}

fn output<'a>(outcome: &'a Outcome, name: &str) -> &'a Output {
    assert_eq!(outcome.result, Ok(()));
    let outputs = &outcome.responses[0].outputs;
    outputs.iter().find(|output| output.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn floats(outcome: &Outcome, name: &str) -> Vec<f32> {
    values(&output(outcome, name).data)
}

fn failure(outcome: &Outcome) -> &Failure {
    assert!(outcome.responses.iter().all(|response| response.outputs.is_empty()));
    outcome.result.as_ref().unwrap_err()
}

fn text(strings: &[&str]) -> Vec<u8> {
    strings
        .iter()
        .flat_map(|s| [&(s.len() as u32).to_le_bytes()[..], s.as_bytes()].concat())
        .collect()
}
