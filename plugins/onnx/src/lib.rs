//! The backend `onnxruntime`: ONNX files, run by ONNX Runtime through `plugins/onnx-engine`.

mod probe;

use std::path::PathBuf;
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::model_files;
use trtserver_onnx_engine::{Engine, ModelFormat, ModelGraph};
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::author::{BackendInfo, Error, ModelContext, ModelProbe, Platform};

/// Name of a model's file when its configuration gives none.
const DEFAULT_FILE: &str = "model.onnx";

struct Onnx;

trtserver_plugin_api::export_backend!(Engine<Onnx>);

impl ModelFormat for Onnx {
    const INFO: BackendInfo = BackendInfo {
        platforms: &[Platform { name: "onnxruntime_onnx", default_file: DEFAULT_FILE }],
        flags: backend_flags::ACCELERATORS
            | backend_flags::BATCH_INPUTS
            | backend_flags::DATA_MODELS
            | backend_flags::V1_BATCH_SIZE,
        ..BackendInfo::new("onnxruntime", env!("CARGO_PKG_VERSION"))
    };

    fn probe(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
        probe::probe_files(probe)
    }

    fn graph(context: &ModelContext, _: &Config) -> Result<ModelGraph, PluginFault> {
        Ok(ModelGraph { file: find_model_file(context)?, bytes: None })
    }
}

/// The model's file. A directory holds it under the default name.
fn find_model_file(context: &ModelContext) -> Result<PathBuf, PluginFault> {
    let name = if context.file().is_empty() { DEFAULT_FILE } else { context.file() };
    let mut path = model_files::in_version_dir(context, name)?;
    if path.is_dir() {
        path = model_files::in_version_dir(context, &format!("{name}/{DEFAULT_FILE}"))?;
    }
    if path.is_file() {
        return Ok(path);
    }
    Err(PluginFault::internal(format!(
        "unable to find ONNX model '{name}' for {}: there is no file {}",
        context.name(),
        path.display()
    )))
}

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
