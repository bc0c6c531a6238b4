//! The model configuration: its tensors, and the fields that the model descriptor lacks.
//!
//! Sequence controls, states, batch inputs, accelerators and operator libraries are read from the
//! serialized `ModelConfig`, whose field numbers never change, by iterating over its fields: a
//! protobuf library would be most of the plugin's size.

use crate::fault::PluginFault;
use std::collections::BTreeMap;
use trtserver_plugin_api::abi::descriptors::instance_kind::{GPU as KIND_GPU, MODEL as KIND_MODEL};
use trtserver_plugin_api::author::{ModelContext, TensorDecl};
use trtserver_proto_wire::{Fields, WireValue, read_varint};

/// One declared tensor.
#[derive(Debug, Clone, Default)]
pub struct ConfiguredTensor {
    pub name: String,
    /// One of the interface's types.
    pub dtype: u32,
    /// Shape for clients, without the batch dimension.
    pub dims: Vec<i64>,
    /// Shape for the model.
    pub model_dims: Vec<i64>,
    pub optional: bool,
    /// `is_shape_tensor`: its values are a shape.
    pub shape_tensor: bool,
    /// `allow_ragged_batch`: the requests of a batch may have different shapes.
    pub ragged: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Config {
    pub model: String,
    /// 0 = the model does not batch.
    pub max_batch_size: usize,
    pub inputs: Vec<ConfiguredTensor>,
    pub outputs: Vec<ConfiguredTensor>,
    pub facts: ConfigFacts,
}

/// An entry of `optimization.execution_accelerators`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accelerator {
    /// True for an entry of `gpu_execution_accelerator`, false for `cpu_execution_accelerator`.
    pub gpu: bool,
    pub name: String,
    /// In ascending order of the keys.
    pub parameters: BTreeMap<String, String>,
}

impl Accelerator {
    /// The field of the configuration, for messages.
    pub fn field(&self) -> &'static str {
        if self.gpu { "gpu_execution_accelerator" } else { "cpu_execution_accelerator" }
    }
}

/// What the model descriptor lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFacts {
    pub platform: String,
    pub has_scheduler: bool,
    /// `sequence_batching`: requests depend on their place in a batch.
    pub has_sequences: bool,
    /// `dynamic_batching.preferred_batch_size`.
    pub preferred_sizes: Vec<u32>,
    /// Inputs added by the host: sequence controls, states, batch inputs.
    pub host_inputs: Vec<String>,
    /// Batch inputs and their types, which are among the `host_inputs`.
    pub batch_inputs: Vec<(String, u32)>,
    /// Outputs that `batch_output` cuts.
    pub batch_outputs: Vec<String>,
    /// Outputs stored by the host: states.
    pub host_outputs: Vec<String>,
    /// Requested execution accelerators: those of GPUs, then those of CPUs. Without those for which
    /// the model has no instance: the host says in the log that they have no effect.
    pub accelerators: Vec<Accelerator>,
    /// Some instances are of KIND_GPU; some are of another kind.
    pub gpu_instances: bool,
    pub other_instances: bool,
    /// Some instances are of KIND_MODEL: the framework chooses their devices.
    pub model_instances: bool,
    /// `model_operations.op_library_filename`.
    pub operator_libraries: Vec<String>,
}

impl Config {
    pub fn from_context(context: &ModelContext) -> Self {
        Self {
            model: context.name().to_owned(),
            max_batch_size: context.max_batch_size(),
            inputs: context.inputs().map(ConfiguredTensor::from_tensor).collect(),
            outputs: context.outputs().map(ConfiguredTensor::from_tensor).collect(),
            facts: ConfigFacts::read(context.config_pb()),
        }
    }
}

impl Config {
    /// For a backend that executes requests one by one, or merges those of equal shapes.
    ///
    /// # Errors
    /// An input is ragged, or `batch_output` cuts an output.
    pub fn refuse_ragged(&self, backend: &str) -> Result<(), PluginFault> {
        let refused = |tensor: &str, field| {
            Err(PluginFault::unsupported(format!(
                "model '{}', tensor '{tensor}': backend '{backend}' does not support {field}",
                self.model
            )))
        };
        match (self.inputs.iter().find(|input| input.ragged), self.facts.batch_outputs.first()) {
            (Some(input), _) => refused(&input.name, "allow_ragged_batch"),
            (None, Some(output)) => refused(output, "batch_output"),
            (None, None) => Ok(()),
        }
    }
}

impl ConfiguredTensor {
    fn from_tensor(tensor: TensorDecl<'_>) -> Self {
        Self {
            name: tensor.name().to_owned(),
            dtype: tensor.dtype().to_abi(),
            dims: tensor.dims().to_vec(),
            model_dims: tensor.model_dims().to_vec(),
            optional: tensor.optional(),
            shape_tensor: tensor.shape_tensor(),
            ragged: tensor.ragged(),
        }
    }
}

impl ConfigFacts {
    /// Reads a serialized `ModelConfig`. Stops at malformed bytes; the host has already parsed it.
    pub fn read(config: &[u8]) -> Self {
        let mut facts = ConfigFacts::default();
        for field in Fields::new(config).map_while(Result::ok) {
            match (field.number, field.value) {
                (2, WireValue::Bytes(name)) => {
                    facts.platform = String::from_utf8_lossy(name).into_owned();
                }
                (7, WireValue::Bytes(group)) => facts.read_group(group),
                (11, WireValue::Bytes(dynamic)) => facts.read_dynamic(dynamic),
                (11 | 15, _) => facts.has_scheduler = true,
                (13, WireValue::Bytes(sequence)) => facts.read_sequence(sequence),
                (12, WireValue::Bytes(optimization)) => facts.read_optimization(optimization),
                (18, WireValue::Bytes(operations)) => {
                    facts.operator_libraries.extend(read_texts(operations, 1));
                }
                (20, WireValue::Bytes(batch_input)) => {
                    let dtype = Fields::new(batch_input).varint(3) as u32;
                    let targets = read_texts(batch_input, 2);
                    facts.batch_inputs.extend(targets.map(|target| (target, dtype)));
                    facts.host_inputs.extend(read_texts(batch_input, 2));
                }
                (21, WireValue::Bytes(batch_output)) => {
                    facts.batch_outputs.extend(read_texts(batch_output, 1));
                }
                _ => {}
            }
        }
        facts.drop_idle_accelerators();
        facts
    }

    fn drop_idle_accelerators(&mut self) {
        let unknown = self.model_instances || !(self.gpu_instances || self.other_instances);
        let (gpu, other) = (self.gpu_instances || unknown, self.other_instances || unknown);
        self.accelerators.retain(|accelerator| if accelerator.gpu { gpu } else { other });
    }

    fn read_dynamic(&mut self, dynamic: &[u8]) {
        self.has_scheduler = true;
        for field in Fields::new(dynamic).map_while(Result::ok) {
            match (field.number, field.value) {
                (1, WireValue::Varint(size)) => self.preferred_sizes.extend(u32::try_from(size)),
                (1, WireValue::Bytes(mut packed)) => {
                    while let Ok(size) = read_varint(&mut packed) {
                        self.preferred_sizes.extend(u32::try_from(size));
                    }
                }
                _ => {}
            }
        }
    }

    fn read_sequence(&mut self, sequence: &[u8]) {
        self.has_scheduler = true;
        self.has_sequences = true;
        for field in Fields::new(sequence).map_while(Result::ok) {
            match (field.number, field.value) {
                (2, WireValue::Bytes(control)) => self.host_inputs.extend(read_texts(control, 1)),
                (5, WireValue::Bytes(state)) => {
                    self.host_inputs.extend(read_texts(state, 1));
                    self.host_outputs.extend(read_texts(state, 2));
                }
                _ => {}
            }
        }
    }

    fn read_group(&mut self, group: &[u8]) {
        let kind = Fields::new(group).varint(4);
        self.gpu_instances |= kind == u64::from(KIND_GPU);
        self.other_instances |= kind != u64::from(KIND_GPU);
        self.model_instances |= kind == u64::from(KIND_MODEL);
    }

    fn read_optimization(&mut self, optimization: &[u8]) {
        for accelerators in Fields::new(optimization).bytes(4) {
            for field in Fields::new(accelerators).map_while(Result::ok) {
                if let WireValue::Bytes(accelerator) = field.value {
                    self.accelerators.push(Accelerator {
                        gpu: field.number == 1,
                        name: read_texts(accelerator, 1).next().unwrap_or_default(),
                        parameters: Fields::new(accelerator).bytes(2).map(read_entry).collect(),
                    });
                }
            }
        }
        self.accelerators.sort_by_key(|accelerator| !accelerator.gpu);
    }
}

/// An entry of a map from text to text.
fn read_entry(entry: &[u8]) -> (String, String) {
    let field = |number| read_texts(entry, number).last().unwrap_or_default();
    (field(1), field(2))
}

/// All values of a text field.
fn read_texts(message: &[u8], number: u32) -> impl Iterator<Item = String> {
    Fields::new(message).bytes(number).map(|text| String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
