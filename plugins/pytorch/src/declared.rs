//! The tensors of a compiled model against the configuration.

use crate::links::SizeLinks;
use crate::source::CodeInput;
use crate::types::DtypeNumbers;
use trtserver_framework::check::{Dims, Element, ModelTensors, TensorDeclaration, check_tensors};
use trtserver_framework::config::{Config, ConfiguredTensor};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::slot::{self, TensorPlan};

/// A tensor in a run: its position among the model's, and torch's number of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTensor {
    pub position: usize,
    pub dtype: i32,
}

pub type TensorSlot = slot::TensorSlot<RunTensor>;

/// An input or output as the model has it.
#[derive(Clone, Debug)]
pub struct DeclaredTensor {
    pub name: String,
    pub element: Element,
    /// `None`: the package does not say.
    pub dims: Option<Vec<i64>>,
    pub position: usize,
    /// Torch's numbers of the interface's types.
    pub numbers: Vec<(u32, i32)>,
}

impl TensorDeclaration for DeclaredTensor {
    type Handle = RunTensor;

    /// What runs with zeros have shown of the outputs, if there were any.
    const OUTPUT_SHAPES_ARE_HINTS: bool = true;

    fn name(&self) -> &str {
        &self.name
    }

    fn element(&self) -> Element {
        self.element.clone()
    }

    fn dims(&self) -> Dims<'_> {
        self.dims.as_deref().map_or(Dims::ScalarOrUnknown, Dims::Known)
    }

    fn handle(&self, dtype: u32) -> Option<RunTensor> {
        let (_, number) = self.numbers.iter().find(|(own, _)| *own == dtype)?;
        Some(RunTensor { position: self.position, dtype: *number })
    }
}

/// Inputs and outputs of a model, before a configuration is compared with them.
#[derive(Clone, Debug)]
pub struct Signature {
    pub inputs: Vec<DeclaredTensor>,
    pub outputs: Vec<DeclaredTensor>,
}

impl Signature {
    /// `code`: what the generated code says of the inputs.
    pub fn new(names: [Vec<String>; 2], code: Option<&[CodeInput]>, dtypes: &DtypeNumbers) -> Self {
        let numbers = dtypes.list();
        let [inputs, outputs] = names;
        let declare = |(position, name): (usize, String)| {
            let own = code.and_then(|code| code.get(position));
            DeclaredTensor {
                name,
                element: own.map_or(Element::Unknown, |own| own.element.clone()),
                dims: own.map(|own| own.dims.iter().map(|dim| dim.size).collect()),
                position,
                numbers: numbers.clone(),
            }
        };
        let unknown = |(position, name)| DeclaredTensor {
            name,
            element: Element::Unknown,
            dims: None,
            position,
            numbers: numbers.clone(),
        };
        Self {
            inputs: inputs.into_iter().enumerate().map(declare).collect(),
            outputs: outputs.into_iter().enumerate().map(unknown).collect(),
        }
    }

    /// The names of a configuration that numbers its tensors, as Triton requires of TorchScript:
    /// `INPUT__0`, of any name before the number.
    pub fn adopt_numbered_names(&mut self, config: &Config) {
        adopt_names(&mut self.inputs, &config.inputs);
        adopt_names(&mut self.outputs, &config.outputs);
    }

    pub fn tensors(&self) -> ModelTensors<'_, DeclaredTensor> {
        ModelTensors { inputs: &self.inputs, defaulted: &[], outputs: &self.outputs }
    }

    /// # Errors
    /// Names the tensor, what was expected and what the configuration says.
    pub fn plan(&self, config: &Config) -> Result<TensorPlan<RunTensor>, PluginFault> {
        check_tensors(config, &self.tensors())
    }
}

fn adopt_names(declared: &mut [DeclaredTensor], configured: &[ConfiguredTensor]) {
    for own in configured {
        if declared.iter().any(|tensor| tensor.name == own.name) {
            continue;
        }
        let Some((_, number)) = own.name.rsplit_once("__") else { continue };
        let position = number.parse::<usize>().ok();
        if let Some(tensor) = position.and_then(|at| declared.get_mut(at)) {
            tensor.name.clone_from(&own.name);
        }
    }
}

/// # Errors
/// The configuration's batch is larger than the model was compiled for.
pub fn expect_batch(config: &Config, code: &[CodeInput]) -> Result<(), PluginFault> {
    let first = code.iter().filter_map(|input| input.dims.first());
    let Some(largest) = first.map(|dim| dim.bounds.upper).min() else { return Ok(()) };
    let rows = i64::try_from(config.max_batch_size).unwrap_or(i64::MAX);
    if rows <= largest {
        return Ok(());
    }
    Err(PluginFault::invalid(format!(
        "unable to load model '{}': max_batch_size is {rows}, and the model was compiled for at most {largest} rows",
        config.model
    )))
}

/// Log line about input sizes that are not compared with each other.
pub fn unchecked_sizes(links: &SizeLinks, signature: &Signature) -> Option<String> {
    let places: Vec<String> = links
        .unknown
        .iter()
        .map(|(input, dim)| format!("dimension {dim} of '{}'", signature.inputs[*input].name))
        .collect();
    (!places.is_empty()).then(|| {
        format!(
            "{} follows other dimensions in a way that the package does not say: a request with another size makes the \
             compiled model read beyond its input",
            places.join(", ")
        )
    })
}

#[cfg(test)]
#[path = "declared_tests.rs"]
mod tests;
