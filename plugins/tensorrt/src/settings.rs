//! What the configuration says beside tensors: CUDA graphs, the first GPU; and the backend's
//! settings.

use crate::library_places::{self, LibraryPlaces};
use std::path::{Path, PathBuf};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::search::dirs_beside;
use trtserver_proto_wire::{Fields, WireValue, read_varint};

/// Settings, `--backend-config=tensorrt,KEY=VALUE`.
pub const PLUGINS: &str = "plugins";
pub const VERSION_COMPATIBLE: &str = "version-compatible";
/// Parameter of a model: the major version that its plan needs.
pub const VERSION_PARAMETER: &str = "tensorrt_version";
/// Parameter of a model: its plan may contain host code.
pub const HOST_CODE_PARAMETER: &str = "allow_host_code";
/// Parameter of a model: the file with the weights of a plan without weights.
pub const WEIGHTS_PARAMETER: &str = "weights";

#[derive(Clone, Debug)]
pub struct TensorRtSettings {
    pub places: LibraryPlaces,
    /// Libraries of TensorRT plugins.
    pub plugins: Vec<PathBuf>,
    /// All plans may contain host code, as version-compatible ones do.
    pub version_compatible: bool,
}

impl TensorRtSettings {
    /// # Errors
    /// A value that the setting does not allow.
    pub fn new<'a>(
        setting: impl Fn(&str) -> Option<&'a str>,
        plugin_dir: &Path,
    ) -> Result<TensorRtSettings, PluginFault> {
        let version_compatible = match setting(VERSION_COMPATIBLE) {
            None | Some("false") => false,
            Some("true") => true,
            Some(other) => {
                return Err(PluginFault::invalid(format!(
                    "setting '{VERSION_COMPATIBLE}' must be true or false, not '{other}'"
                )));
            }
        };
        let plugins = setting(PLUGINS).unwrap_or_default().split(';');
        Ok(TensorRtSettings {
            places: LibraryPlaces::new(setting(library_places::SETTING), dirs_beside(plugin_dir)),
            plugins: plugins.map(str::trim).filter(|p| !p.is_empty()).map(PathBuf::from).collect(),
            version_compatible,
        })
    }
}

/// `optimization.cuda` of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CudaOptions {
    pub graphs: bool,
    pub specs: Vec<GraphSpec>,
}

/// `graph_spec`: shapes for which a graph is captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphSpec {
    /// 0 = the model does not batch.
    pub batch: i64,
    /// Shapes without batch dimension, by name of the input.
    pub inputs: Vec<(String, Vec<i64>)>,
    /// Batches from these shapes on use the graph, padded.
    pub lower: Option<Box<GraphSpec>>,
}

impl CudaOptions {
    /// Reads a serialized `ModelConfig`, which the host has parsed before.
    pub fn read(config: &[u8]) -> CudaOptions {
        let mut options = CudaOptions::default();
        let cuda = Fields::new(config).bytes(12).flat_map(|o| Fields::new(o).bytes(3));
        for cuda in cuda {
            for field in Fields::new(cuda).map_while(Result::ok) {
                match (field.number, field.value) {
                    (1, WireValue::Varint(on)) => options.graphs = on != 0,
                    (3, WireValue::Bytes(spec)) => options.specs.push(GraphSpec::read(spec)),
                    _ => {}
                }
            }
        }
        options
    }
}

impl GraphSpec {
    fn read(message: &[u8]) -> GraphSpec {
        let mut spec = GraphSpec::default();
        for field in Fields::new(message).map_while(Result::ok) {
            match (field.number, field.value) {
                (1, WireValue::Varint(batch)) => spec.batch = batch as i64,
                (2, WireValue::Bytes(entry)) => {
                    let name = Fields::new(entry).bytes(1).next().unwrap_or_default();
                    let shape = Fields::new(entry).bytes(2).next().unwrap_or_default();
                    let name = String::from_utf8_lossy(name).into_owned();
                    spec.inputs.push((name, read_numbers(shape, 1)));
                }
                (3, WireValue::Bytes(lower)) => spec.lower = Some(Box::new(GraphSpec::read(lower))),
                _ => {}
            }
        }
        spec
    }
}

/// The first GPU that an instance group of a serialized `ModelConfig` names, else 0.
pub fn first_gpu(config: &[u8]) -> i32 {
    let groups = Fields::new(config).bytes(7);
    let mut gpus = groups.flat_map(|group| read_numbers(group, 3));
    gpus.next().and_then(|gpu| i32::try_from(gpu).ok()).unwrap_or(0)
}

/// A repeated field of numbers, packed or not.
fn read_numbers(message: &[u8], number: u32) -> Vec<i64> {
    let mut all = Vec::new();
    for field in Fields::new(message).map_while(Result::ok).filter(|field| field.number == number) {
        match field.value {
            WireValue::Varint(n) => all.push(n as i64),
            WireValue::Bytes(packed) => {
                let mut rest = packed;
                while let Ok(n) = read_varint(&mut rest) {
                    all.push(n as i64);
                }
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
