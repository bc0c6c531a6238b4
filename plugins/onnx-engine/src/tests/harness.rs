//! The plugin's models on the test host.

use trtserver_plugin_api::abi::descriptors::instance_kind;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_testkit::{
    Backend, Failure, Instance, InstanceSpec, Model, ModelSpec, Outcome, Request, TensorSpec,
};

pub fn decl(name: &str, dtype: u32, dims: &[i64]) -> TensorSpec {
    TensorSpec::new(name, dtype, dims)
}

/// One of the test models. Some of them produce what they do not declare.
pub fn model(
    file: &str,
    max_batch_size: i32,
    inputs: Vec<TensorSpec>,
    outputs: Vec<TensorSpec>,
) -> ModelSpec {
    ModelSpec {
        version_dir: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data").to_owned(),
        file: file.to_owned(),
        max_batch_size,
        inputs,
        outputs,
        accepts_any_output: true,
        ..ModelSpec::new("M")
    }
}

/// All types, in the order of their numbers, which begin with 1.
pub const TYPES: [&str; 14] = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "fp16",
    "fp32", "fp64", "string", "bf16",
];

/// Passes `in_T` on as `out_T` for each type T.
pub fn types_model(max_batch_size: i32, dims: &[i64]) -> ModelSpec {
    let of = |prefix: &str| {
        let tensors = TYPES.iter().zip(1..);
        tensors.map(|(name, kind)| decl(&format!("{prefix}_{name}"), kind, dims)).collect()
    };
    model("types.onnx", max_batch_size, of("in"), of("out"))
}

/// Fails requests for places that it does not have.
pub fn lookup_model() -> ModelSpec {
    let (places, found) = (decl("places", dtype::INT64, &[1]), decl("found", dtype::FP32, &[1]));
    model("lookup.onnx", 8, vec![places], vec![found])
}

pub fn lookup_request(place: i64) -> Request {
    Request::new(1)
        .input("places", dtype::INT64, &[1, 1], &place.to_le_bytes())
        .request_output("found")
}

pub fn complete(backend: &Backend, model: &ModelSpec) -> Result<String, Failure> {
    let patches = backend.autocomplete(model).unwrap()?;
    Ok(patches.into_iter().map(|(_, patch)| String::from_utf8(patch).unwrap()).collect())
}

/// One instance of a model; the model is closed with the last one.
pub struct Loaded {
    instance: Instance,
    model: Model,
}

pub fn load(backend: &Backend, spec: ModelSpec) -> Result<Loaded, Failure> {
    load_on(backend, &spec, instance_kind::CPU)
}

pub fn load_on(backend: &Backend, spec: &ModelSpec, kind: u32) -> Result<Loaded, Failure> {
    let model = backend.open_model(spec)?;
    let instance = model.open_instance(&InstanceSpec { kind, ..InstanceSpec::default() })?;
    Ok(Loaded { instance, model })
}

impl Loaded {
    /// Another instance of the same model.
    pub fn sibling(&self) -> Loaded {
        let instance = self.model.open_instance(&InstanceSpec::default()).unwrap();
        Loaded { instance, model: self.model.clone() }
    }

    /// Executes the requests as one batch.
    pub fn run(&self, requests: &[Request]) -> Vec<Outcome> {
        self.instance.execute(requests)
    }
}
