//! The plugin with one model and one instance, on the test host.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use trtserver_plugin_api::abi::request::request_flags;
use trtserver_plugin_api::abi::types::{dtype, tensor_flags};
use trtserver_plugin_testkit::{
    Backend, Failure, Input, Instance, InstanceSpec, ModelSpec, Outcome, Request, bytes, table,
    values,
};

/// Compiles `source` to `folder/1/libcustom.so`.
pub fn compile(source: &str, flags: &[&str], folder: &Path) -> PathBuf {
    let version = folder.join("1");
    std::fs::create_dir_all(&version).unwrap();
    let library = version.join("libcustom.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(source);
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]).args(flags);
    let done = command.arg("-o").arg(&library).arg(source).output().unwrap();
    assert!(done.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&done.stderr));
    library
}

/// A model of a test.
#[derive(Default)]
pub struct Model {
    pub name: &'static str,
    pub max_batch_size: i32,
    pub inputs: Vec<(&'static str, &'static [i64])>,
    pub outputs: Vec<(&'static str, &'static [i64])>,
    pub parameters: Vec<(&'static str, &'static str)>,
    pub settings: Vec<(&'static str, &'static str)>,
    /// Beside name and platform.
    pub config: Vec<u8>,
    pub device_id: i32,
}

pub struct Harness {
    instance: Instance,
    pub folder: TempDir,
}

impl Harness {
    pub fn open(folder: TempDir, model: &Model) -> Result<Harness, Failure> {
        let mut config = Vec::new();
        trtserver_proto_wire::put_bytes(&mut config, 1, model.name.as_bytes());
        trtserver_proto_wire::put_bytes(&mut config, 2, b"custom");
        config.extend(&model.config);
        let path = folder.path().to_str().unwrap();
        let mut spec = ModelSpec {
            dir: path.to_owned(),
            version_dir: format!("{path}/1"),
            file: "libcustom.so".to_owned(),
            config_pb: config,
            ..ModelSpec::new(model.name).max_batch_size(model.max_batch_size)
        };
        for (name, dims) in &model.inputs {
            spec = spec.input(name, dtype::INT32, dims);
        }
        for (name, dims) in &model.outputs {
            spec = spec.output(name, dtype::INT32, dims);
        }
        for (key, value) in &model.parameters {
            spec = spec.parameter(key, value);
        }
        let table = table::<crate::backend::Custom>();
        let opened =
            Backend::open(table, "custom", "/plugins", &model.settings)?.open_model(&spec)?;
        let instance = InstanceSpec { device_id: model.device_id, ..InstanceSpec::default() };
        Ok(Harness { instance: opened.open_instance(&instance)?, folder })
    }

    pub fn run(&self, requests: &[Request]) -> Vec<Outcome> {
        self.instance.execute(requests)
    }
}

/// Requests with INT32 inputs.
pub trait RequestExt {
    fn ints(self, name: &str, shape: &[i64], parts: &[&[i32]]) -> Self;
    fn control(self, name: &str, value: i32) -> Self;
    fn with_sequence(self, id: u64) -> Self;
    fn warmup(self) -> Self;
}

impl RequestExt for Request {
    fn ints(self, name: &str, shape: &[i64], parts: &[&[i32]]) -> Self {
        let parts: Vec<Vec<u8>> = parts.iter().map(|part| bytes(part)).collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        self.input_parts(name, dtype::INT32, shape, &parts)
    }

    fn control(mut self, name: &str, value: i32) -> Self {
        let (name, parts) = (name.to_owned(), vec![bytes(&[value])]);
        let (dtype, shape, flags) = (dtype::INT32, vec![1, 1], tensor_flags::CONTROL);
        self.inputs.push(Input { name, dtype, shape, parts, flags });
        self
    }

    fn with_sequence(self, id: u64) -> Self {
        Self { correlation_id: id, ..self }
    }

    fn warmup(self) -> Self {
        Self { flags: request_flags::WARMUP, ..self }
    }
}

/// Shape and elements of an INT32 output.
pub fn ints(outcome: &Outcome, name: &str) -> (Vec<i64>, Vec<i32>) {
    assert_eq!(outcome.result, Ok(()));
    let output = outcome.responses[0].output(name).unwrap();
    assert_eq!(output.dtype, dtype::INT32);
    (output.shape.clone(), values(&output.data))
}

pub fn error(outcome: &Outcome) -> &Failure {
    assert_eq!(outcome.responses.len(), 0);
    outcome.result.as_ref().unwrap_err()
}
