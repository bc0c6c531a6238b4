//! What the check of a file's signature against the model configuration needs to know of
//! TensorFlow's tensors.

use crate::plan::{GraphEndpoint, TensorPlan};
use crate::signature::{GraphTensor, Signature};
use crate::types;
use trtserver_framework::check::{self, Dims, Element, ModelTensors, TensorDeclaration};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::types::shape_text;
use trtserver_plugin_api::abi::types::dtype;

/// The plan for execution.
///
/// # Errors
/// A tensor that is missing or not in the file, or another type or shape than the file's.
pub fn check_signature(config: &Config, signature: &Signature) -> Result<TensorPlan, PluginFault> {
    check::check_tensors(config, &signature.tensors())
}

/// Puts configured shapes in place of those of a GraphDef that contradict them: TensorFlow does not
/// compare what placeholders declare with what a run gives them. Returns what the log says of it.
pub fn prefer_configured_shapes(config: &Config, signature: &mut Signature) -> Vec<String> {
    let batching = config.max_batch_size > 0;
    let mut notes = Vec::new();
    let inputs = config.inputs.iter().map(|decl| ("input", decl, false));
    let outputs = config.outputs.iter().map(|decl| {
        let cut = config.facts.batch_outputs.contains(&decl.name);
        ("output", decl, cut)
    });
    for (kind, decl, cut) in inputs.chain(outputs) {
        let tensors = if kind == "input" { &mut signature.inputs } else { &mut signature.outputs };
        let found = tensors.iter_mut().find(|tensor| tensor.name == decl.name);
        let Some(GraphTensor { dims: Some(known), .. }) = found else { continue };
        let batch: &[i64] = if batching { &[-1] } else { &[] };
        let full = [batch, &decl.model_dims].concat();
        if decl.ragged || cut || shapes_agree(known, &full, batching) {
            continue;
        }
        notes.push(format!(
            "{kind} '{}': the graph declares shape {}, the model configuration specifies {}, which is used",
            decl.name,
            shape_text(known),
            shape_text(&full)
        ));
        *known = full;
    }
    notes
}

/// Whether the check of a shape accepts it.
fn shapes_agree(known: &[i64], full: &[i64], batching: bool) -> bool {
    // A scalar is configured as `dims: [ 1 ]`.
    let is_scalar = known.is_empty() && !batching && full == [1];
    let alike =
        |(&known, &own): (&i64, &i64)| known == -1 || known == own || (known, own) == (0, -1);
    is_scalar
        || (!batching || known.first() == Some(&-1))
            && known.len() == full.len()
            && known.iter().zip(full).all(alike)
}

impl Signature {
    pub fn tensors(&self) -> ModelTensors<'_, GraphTensor> {
        ModelTensors { inputs: &self.inputs, defaulted: &[], outputs: &self.outputs }
    }
}

impl TensorDeclaration for GraphTensor {
    type Handle = GraphEndpoint;

    fn name(&self) -> &str {
        &self.name
    }

    fn element(&self) -> Element {
        match (self.data_type, types::to_dtype(self.data_type)) {
            _ if self.operation.is_empty() => Element::NotDense("a sparse or composite tensor"),
            (types::UNKNOWN, _) => Element::Unknown,
            (data_type, dtype::INVALID) => Element::Foreign(types::element_name(data_type)),
            (_, dtype) => Element::Known(dtype),
        }
    }

    fn dims(&self) -> Dims<'_> {
        self.dims.as_deref().map_or(Dims::Unknown, Dims::Known)
    }

    fn handle(&self, dtype: u32) -> Option<GraphEndpoint> {
        let data_type = types::to_element(dtype)?;
        Some(GraphEndpoint { operation: self.operation.clone(), index: self.index, data_type })
    }

    fn shape_error(&self, model: &str, kind: &str, full: &[i64]) -> String {
        let (name, known) = (&self.name, shape_text(self.dims.as_deref().unwrap_or_default()));
        format!(
            "unable to load model '{model}', {kind} '{name}' dims {known} don't match configuration dims \
             {}: model '{model}', tensor '{name}'",
            shape_text(full)
        )
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
pub mod tests;
