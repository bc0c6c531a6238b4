//! The backend `caffe2`: NetDef files, translated at load into an ONNX graph and run by ONNX
//! Runtime through `plugins/onnx-engine`.
//!
//! ```text
//! files.rs ── netdef.rs         the two files of a model; probe.rs: recognised by their names
//! config.rs                     the configuration: inputs and their types
//! translate/ ── onnx.rs         the nets as an ONNX model
//! ```

mod config;
mod files;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod netdef;
mod onnx;
mod probe;
mod translate;

use files::{DEFAULT_FILE, NetFiles};
use prost::Message;
use translate::{NetInputs, NetOutputs, NetPart};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::model_files;
use trtserver_onnx_engine::{Engine, ModelFormat, ModelGraph};
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::author::{BackendInfo, Error, ModelContext, ModelProbe, Platform};

struct Caffe2;

trtserver_plugin_api::export_backend!(Engine<Caffe2>);

impl ModelFormat for Caffe2 {
    const INFO: BackendInfo = BackendInfo {
        platforms: &[Platform { name: "caffe2_netdef", default_file: DEFAULT_FILE }],
        flags: backend_flags::DATA_MODELS,
        ..BackendInfo::new("caffe2", env!("CARGO_PKG_VERSION"))
    };

    fn probe(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
        probe::probe_files(probe)
    }

    fn graph(context: &ModelContext, config: &Config) -> Result<ModelGraph, PluginFault> {
        let in_version_dir = |name: &str| model_files::in_version_dir(context, name);
        let files = NetFiles::find(context.name(), context.file(), in_version_dir)?;
        config::check_types(config)?;
        let (init, predict) = files.read(context.name())?;
        let configured: Vec<String> =
            config.outputs.iter().map(|output| output.name.clone()).collect();
        let outputs = NetOutputs::from_net(&predict, &configured, &config.facts.host_outputs);
        let inputs = config::net_inputs(
            config,
            context.config_pb(),
            &NetInputs::from_nets(&init, &predict, &outputs),
        )?;
        let model =
            translate::translate_nets(init, predict, &inputs, &outputs, translate::MAX_BYTES);
        let model = model.map_err(|refusal| {
            let file = match refusal.net {
                NetPart::Init => &files.init,
                NetPart::Predict => &files.predict,
            };
            let text = refusal.text;
            PluginFault::invalid(format!(
                "unable to load model '{}' from {}: {text}",
                config.model,
                file.display()
            ))
        })?;
        Ok(ModelGraph { file: files.predict, bytes: Some(model.encode_to_vec()) })
    }

    /// The files do not say which types and shapes inputs have.
    fn can_complete(config: &Config) -> bool {
        !config.inputs.is_empty()
    }
}

#[cfg(test)]
mod tests;
