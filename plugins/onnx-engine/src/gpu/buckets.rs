//! Batch sizes ("buckets") that an instance on a GPU is prepared for: which they are, and which
//! models can have them.
//!
//! The CUDA provider keeps the plan of a convolution for the last batch size only, so that each
//! change of it stalls the GPU. A session for each size has no such changes. Batches are padded with
//! rows of zeros to the next size.

use crate::check::TensorSlot;
use crate::provider::ExecutionProvider;
use trtserver_framework::config::{Config, ConfiguredTensor};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::types::shape_text;
use trtserver_plugin_api::abi::types::dtype;

/// Parameter of a model: whether its instances are prepared for some batch sizes.
pub const BUCKETS: &str = "batch_buckets";
/// Parameter of a model, and option of the CUDA provider: whether runs are replays of CUDA graphs.
pub const GRAPHS: &str = "enable_cuda_graph";
/// Parameter of a model: whether the graphs of all sizes belong to one session, so that weights are
/// in memory once.
pub const SHARED: &str = "batch_buckets_share_weights";
/// Settings of the backend: the same for all models that do not say.
pub const BUCKETS_SETTING: &str = "batch-buckets";
pub const GRAPHS_SETTING: &str = "enable-cuda-graph";
pub const SHARED_SETTING: &str = "batch-buckets-share-weights";

/// Whether something is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Switch {
    /// Where it is possible; else a line of the log says why not.
    #[default]
    Automatic,
    Off,
    /// Where it is not possible the model is refused.
    On,
}

impl Switch {
    /// `subject` names the parameter or setting.
    pub fn parse(subject: &str, value: &str) -> Result<Self, PluginFault> {
        match value.trim() {
            "0" | "false" => Ok(Self::Off),
            "1" | "true" => Ok(Self::On),
            "auto" => Ok(Self::Automatic),
            _ => {
                Err(PluginFault::invalid(format!("{subject} must be 0, 1 or auto, not '{value}'")))
            }
        }
    }
}

/// What configuration and settings say of both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BucketSwitches {
    pub buckets: Switch,
    pub graphs: Switch,
    /// Automatic is off: it is not yet known from a GPU that no operator frees memory that an
    /// earlier graph of its session uses.
    pub shared: Switch,
}

impl BucketSwitches {
    /// Those of the settings of the backend.
    pub fn from_settings<'a>(
        setting: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, PluginFault> {
        let read = |key: &str| match setting(key) {
            None => Ok(Switch::Automatic),
            Some(value) => Switch::parse(&format!("setting '{key}'"), value),
        };
        Ok(Self {
            buckets: read(BUCKETS_SETTING)?,
            graphs: read(GRAPHS_SETTING)?,
            shared: read(SHARED_SETTING)?,
        })
    }

    /// These, as far as a model's parameters say nothing else.
    pub fn with_parameters<'a>(
        mut self,
        params: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, PluginFault> {
        for (key, value) in params {
            let switch = match key {
                BUCKETS => &mut self.buckets,
                GRAPHS => &mut self.graphs,
                SHARED => &mut self.shared,
                _ => continue,
            };
            *switch = Switch::parse(&format!("parameter '{key}'"), value)?;
        }
        Ok(self)
    }
}

/// The sizes for batches of up to `max` rows, ascending: the preferred ones below the maximum, else
/// powers of two; and the maximum. A host completes a configuration without preferred sizes by the
/// maximum.
pub fn bucket_sizes(preferred: &[u32], max: usize) -> Vec<usize> {
    let max = max.max(1);
    let below = preferred.iter().map(|&size| size as usize).filter(|size| (1..max).contains(size));
    let mut sizes: Vec<usize> = below.collect();
    if sizes.is_empty() {
        let powers = (0..usize::BITS).map(|power| 1 << power);
        sizes.extend(powers.take_while(|&size| size < max));
    }
    sizes.push(max);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Position of the size to which a batch of this many rows is padded.
pub fn find_bucket(mut sizes: impl Iterator<Item = usize>, rows: usize) -> Option<usize> {
    sizes.position(|size| size >= rows)
}

/// Shape of a row of an input, or of a whole input of a model that does not batch: what file and
/// configuration fix together; `None` if a dimension stays variable.
pub fn fixed_dims(
    slot: &TensorSlot,
    configured: Option<&ConfiguredTensor>,
    batching: bool,
) -> Option<Vec<i64>> {
    let given = configured.map(|tensor| tensor.model_dims.as_slice());
    if slot.scalar {
        return Some(Vec::new());
    }
    let own = match (slot.unranked, given) {
        (true, given) => given?.to_vec(),
        (false, _) => slot.dims.get(usize::from(batching)..)?.to_vec(),
    };
    let given = given.filter(|given| given.len() == own.len());
    let dim = |(at, own): (usize, i64)| match own {
        -1 => given.and_then(|given| given.get(at)).copied().filter(|&dim| dim >= 0),
        fixed => Some(fixed),
    };
    own.into_iter().enumerate().map(dim).collect()
}

/// Decided by the configuration, so that no session is opened in vain.
///
/// # Errors
/// Why instances cannot have sessions with fixed memory.
pub fn expect_fixed_inputs(
    config: &Config,
    mut providers: impl Iterator<Item = ExecutionProvider>,
) -> Result<(), String> {
    let facts = &config.facts;
    if let Some(other) = providers.find(|used| *used != ExecutionProvider::Cuda) {
        return Err(format!("the model uses the {}", other.name()));
    }
    if config.inputs.iter().any(|input| input.ragged)
        || !facts.batch_inputs.is_empty()
        || !facts.batch_outputs.is_empty()
    {
        return Err("the model has ragged inputs, batch inputs or batch outputs".to_owned());
    }
    if facts.has_sequences {
        return Err("the model has sequences, whose requests have positions in a batch".to_owned());
    }
    for input in &config.inputs {
        let name = &input.name;
        if input.optional {
            return Err(format!("requests may omit the input '{name}'"));
        }
        if input.dtype == dtype::STRING {
            return Err(format!("input '{name}' has strings"));
        }
        if input.shape_tensor {
            return Err(format!("the values of input '{name}' are a shape"));
        }
        if let Some(shape) = variable_shape(input) {
            return Err(format!("input '{name}' of shape {shape} has a variable dimension"));
        }
    }
    match config.outputs.iter().find(|output| output.dtype == dtype::STRING) {
        Some(output) => Err(format!("output '{}' has strings", output.name)),
        None => Ok(()),
    }
}

/// # Errors
/// Why the outputs cannot be those of a CUDA graph.
pub fn expect_fixed_outputs(config: &Config) -> Result<(), String> {
    let mut outputs = config.outputs.iter();
    match outputs.find_map(|output| Some((&output.name, variable_shape(output)?))) {
        Some((name, shape)) => {
            Err(format!("output '{name}' of shape {shape} has a variable dimension"))
        }
        None => Ok(()),
    }
}

fn variable_shape(tensor: &ConfiguredTensor) -> Option<String> {
    tensor.model_dims.contains(&-1).then(|| shape_text(&tensor.model_dims))
}

#[cfg(test)]
#[path = "buckets_tests.rs"]
mod tests;
