//! The plugin's models on the test host.

use trtserver_plugin_api::abi::descriptors::instance_kind;
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
