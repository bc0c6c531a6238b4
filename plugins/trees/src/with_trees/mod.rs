//! The whole plugin with LightGBM and XGBoost, on the test host.
//!
//! Without the libraries (see [`library`]) these tests fail; `cargo xtask test --without trees`
//! leaves them out by the name of this module.

mod loading;
mod mutations;
mod requests;

use crate::backend::Fil;
use serde_json::Value;
use std::path::{Path, PathBuf};
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_testkit::{
    Backend, Failure, Instance, InstanceSpec, Model, ModelSpec, Outcome, Request, Session,
    TensorSpec, bytes, table,
};

/// The models of the wire tests.
const MODELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/models/trees");

fn library(variable: &str, file: &str) -> String {
    let built = Path::new(MODELS).join("../../../target/dist/lib").join(file);
    let found = std::env::var_os(variable).map_or(built, PathBuf::from);
    let found = found.canonicalize().unwrap_or_else(|e| {
        panic!(
            "{}: {e}: `cargo xtask runtimes --trees` installs it, `cargo xtask test --without trees` leaves out the \
             tests that need it",
            found.display()
        )
    });
    found.to_str().unwrap().to_owned()
}

/// The test host, and the backend with the libraries.
fn start() -> (Session, Backend) {
    let session = Session::start();
    let lightgbm = library("TRTSERVER_LIGHTGBM_LIBRARY", "lib_lightgbm.so");
    let xgboost = library("TRTSERVER_XGBOOST_LIBRARY", "libxgboost.so");
    let settings = [("lightgbm-library", lightgbm.as_str()), ("xgboost-library", &xgboost)];
    (session, backend(&settings))
}

fn backend(settings: &[(&str, &str)]) -> Backend {
    Backend::open(table::<Fil>(), "fil", "/nowhere/backends/fil", settings).unwrap()
}

/// The file of a model in this folder.
fn file_of(name: &str) -> PathBuf {
    let dir = Path::new(MODELS).join(name).join("1");
    let mut files = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    files.next().unwrap()
}

fn tensor(name: &str, dtype: u32, dims: &[i64]) -> TensorSpec {
    TensorSpec::new(name, dtype, dims)
}

/// A model of 6 features.
fn spec(path: &Path, input: u32, outputs: Vec<TensorSpec>) -> ModelSpec {
    ModelSpec {
        dir: path.parent().unwrap().to_str().unwrap().to_owned(),
        version_dir: path.parent().unwrap().to_str().unwrap().to_owned(),
        file: path.file_name().unwrap().to_str().unwrap().to_owned(),
        max_batch_size: 200_000,
        inputs: vec![tensor("input__0", input, &[6])],
        outputs,
        threads: 2,
        ..ModelSpec::new("M")
    }
}

/// One instance of a model.
struct Loaded {
    instance: Instance,
    _model: Model,
}

fn load(backend: &Backend, spec: &ModelSpec) -> Result<Loaded, Failure> {
    let model = backend.open_model(spec)?;
    let instance = model.open_instance(&InstanceSpec { threads: 2, ..InstanceSpec::default() })?;
    Ok(Loaded { instance, _model: model })
}

impl Loaded {
    fn run(&self, requests: &[Request]) -> Vec<Outcome> {
        self.instance.execute(requests)
    }
}

/// What the Python packages predict.
struct Expected {
    rows: Vec<f32>,
    models: Value,
}

impl Expected {
    fn read() -> Self {
        let text = std::fs::read_to_string(Path::new(MODELS).join("expected.json")).unwrap();
        let all: Value = serde_json::from_str(&text).unwrap();
        let rows = flatten(&all["rows"]).into_iter().map(|number| number as f32).collect();
        Self { rows, models: all["models"].clone() }
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.models.as_object().unwrap().keys()
    }

    /// `scores`, `leaves` or `shap` of the rows.
    fn values(&self, model: &str, of: &str) -> Vec<f64> {
        flatten(&self.models[model][of])
    }
}

/// The numbers of nested lists: texts, which the parser of JSON does not round.
fn flatten(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(all) => all.iter().flat_map(flatten).collect(),
        value => vec![value.as_str().unwrap().parse().unwrap()],
    }
}

/// Rows of 6 features in FP32.
fn request(rows: &[f32]) -> Request {
    let count = (rows.len() / 6) as i64;
    Request::new(count as u32).input("input__0", dtype::FP32, &[count, 6], &bytes(rows))
}
