//! Looks up the names of a configuration in a GraphDef: their tensors, and errors for names that
//! the graph lacks.

use crate::graph_def::{GraphDefView, GraphOperation, tensor_name};
use crate::signature::{GraphTensor, Signature};
use std::collections::HashSet;
use std::path::Path;
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;

/// Names listed in an error.
const LISTED: usize = 16;
const SIMILAR: usize = 4;
/// A name from a configuration may have any length; a longer one is not compared.
const COMPARED: usize = 256;

/// The tensors that the configuration and the host name, in the configuration's order.
///
/// # Errors
/// An empty graph, more inputs than placeholders, an input that is not a placeholder, an output
/// that does not exist, or a placeholder that an output needs and no input feeds.
pub fn configured_signature(
    graph: &GraphDefView,
    config: &Config,
    file: &Path,
) -> Result<Signature, PluginFault> {
    let names = Names { graph, model: &config.model, file };
    names.expect_operations()?;
    let wanted = || input_names(config).chain(config.facts.host_inputs.iter().map(String::as_str));
    let (n_wanted, n_provided) = (wanted().count(), graph.placeholders().count());
    if n_wanted > n_provided {
        return Err(PluginFault::invalid(format!(
            "unable to load model '{}', configuration expects {n_wanted} inputs, model provides at \
             most {n_provided}; {}",
            config.model,
            names.allowed("inputs")
        )));
    }
    let inputs: Vec<GraphTensor> =
        wanted().map(|name| names.input(name)).collect::<Result<_, _>>()?;
    let mut fed = HashSet::new();
    for input in &inputs {
        if !fed.insert(input.operation.as_str()) {
            return Err(names.fault(&format_args!(
                "two inputs of the configuration are the placeholder '{}'",
                input.operation
            )));
        }
    }
    let outputs = output_names(config).chain(config.facts.host_outputs.iter().map(String::as_str));
    let outputs: Vec<GraphTensor> =
        outputs.map(|name| names.output(name)).collect::<Result<_, _>>()?;
    for output in &outputs {
        let missing = graph.unfed(&output.operation, &fed);
        if !missing.is_empty() {
            return Err(PluginFault::invalid(format!(
                "unable to load model '{}', configuration expects {n_wanted} inputs, model provides \
                 at most {n_provided}; output '{}' needs inputs that are not configured: {}",
                config.model,
                output.name,
                list(missing.into_iter())
            )));
        }
    }
    Ok(Signature { inputs, outputs, method: String::new() })
}

/// The tensors of an incomplete configuration: the named ones, and for an empty list the
/// placeholders or ends of the graph.
///
/// # Errors
/// An empty graph, or a name that it lacks.
pub fn to_complete(
    graph: &GraphDefView,
    config: &Config,
    file: &Path,
) -> Result<Signature, PluginFault> {
    let names = Names { graph, model: &config.model, file };
    names.expect_operations()?;
    let mut signature = graph.ends();
    let of_host: HashSet<&str> =
        config.facts.host_inputs.iter().map(|name| tensor_name(name).0).collect();
    signature.inputs.retain(|input| !of_host.contains(input.operation.as_str()));
    if !config.inputs.is_empty() {
        let named = input_names(config).map(|name| names.input(name));
        signature.inputs = named.collect::<Result<_, _>>()?;
    }
    if !config.outputs.is_empty() {
        let named = output_names(config).map(|name| names.output(name));
        signature.outputs = named.collect::<Result<_, _>>()?;
    }
    Ok(signature)
}

fn input_names(config: &Config) -> impl Iterator<Item = &str> {
    config.inputs.iter().map(|input| input.name.as_str())
}

fn output_names(config: &Config) -> impl Iterator<Item = &str> {
    config.outputs.iter().map(|output| output.name.as_str())
}

struct Names<'a> {
    graph: &'a GraphDefView<'a>,
    model: &'a str,
    file: &'a Path,
}

impl Names<'_> {
    fn fault(&self, why: &dyn std::fmt::Display) -> PluginFault {
        let file = self.file.display();
        PluginFault::invalid(format!("unable to load model '{}' from {file}: {why}", self.model))
    }

    fn expect_operations(&self) -> Result<(), PluginFault> {
        if self.graph.is_empty() {
            return Err(self.fault(&format_args!("model {} has an empty network", self.model)));
        }
        Ok(())
    }

    /// The operation and index that a name stands for.
    fn find(&self, name: &str) -> Option<(&GraphOperation<'_>, i32)> {
        let (operation, index) = tensor_name(name);
        Some((self.graph.operation(operation)?, index))
    }

    fn input(&self, name: &str) -> Result<GraphTensor, PluginFault> {
        let unexpected = |why: &dyn std::fmt::Display| {
            let allowed = self.allowed("inputs");
            self.fault(&format_args!("unexpected inference input '{name}', {allowed}{why}"))
        };
        let (operation, index) = self.find(name).ok_or_else(|| unexpected(&self.similar(name)))?;
        if !operation.is_placeholder() {
            let kind = operation.kind;
            return Err(unexpected(&format_args!("; '{name}' is an operation of type {kind}")));
        }
        if index != 0 {
            return Err(unexpected(&"; a placeholder has output 0 alone"));
        }
        Ok(operation.tensor(name, index))
    }

    fn output(&self, name: &str) -> Result<GraphTensor, PluginFault> {
        let unexpected = |why: &dyn std::fmt::Display| {
            let allowed = self.allowed("outputs");
            self.fault(&format_args!("unexpected inference output '{name}', {allowed}{why}"))
        };
        let (operation, index) = self.find(name).ok_or_else(|| unexpected(&self.similar(name)))?;
        match operation.n_outputs {
            Some(n) if !usize::try_from(index).is_ok_and(|index| index < n) => {
                Err(unexpected(&format_args!(
                    "; operation '{}' ({}) has {n} outputs",
                    operation.name, operation.kind
                )))
            }
            _ => Ok(operation.tensor(name, index)),
        }
    }

    /// `allowed inputs are: a, b`: the placeholders, or the outputs that no operation consumes.
    fn allowed(&self, kind: &str) -> String {
        match kind {
            "inputs" => {
                let names = list(self.graph.placeholders().map(|operation| operation.name));
                format!("allowed inputs are: {names}")
            }
            _ => {
                let ends = self.graph.ends().outputs;
                let names = list(ends.iter().map(|tensor| tensor.name.as_str()));
                format!("allowed outputs are: {names} and the outputs of all other operations")
            }
        }
    }

    /// `; similar names: a, b`: the same name in another scope, or with a typing error.
    fn similar(&self, name: &str) -> String {
        let (wanted, _) = tensor_name(name);
        if wanted.len() > COMPARED {
            return String::new();
        }
        let last = |name: &str| name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let limit = 1 + wanted.len() / 4;
        let distance = |known: &str| match last(known) == last(wanted) {
            true => Some(0),
            false if known.len().abs_diff(wanted.len()) > limit => None,
            false => Some(strsim::levenshtein(known, wanted)).filter(|&distance| distance <= limit),
        };
        let mut similar: Vec<(usize, &str)> = self
            .graph
            .operation_names()
            .filter_map(|known| Some((distance(known)?, known)))
            .collect();
        similar.sort_unstable();
        similar.truncate(SIMILAR);
        match similar.is_empty() {
            true => String::new(),
            false => format!("; similar names: {}", list(similar.iter().map(|(_, name)| *name))),
        }
    }
}

/// `a, b, ...`
fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.take(LISTED + 1).collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    if names.len() > LISTED {
        names[LISTED] = "...";
    }
    names.join(", ")
}

#[cfg(test)]
#[path = "graph_names_tests.rs"]
mod tests;
