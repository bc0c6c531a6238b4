//! Whether a model keeps tensors or changes state between runs, from the operations that its
//! outputs need.
//!
//! Such a model gets copies of its inputs, because a variable shares the memory of the tensor that
//! is assigned to it, and its outputs are copied, because the next run may write to their memory.
//! Each of its instances has a session of its own, because state belongs to an instance, as the
//! sequence batcher assumes.

use crate::function_library::FunctionLibrary;
use crate::graph_def::tensor_name;
use crate::proto::{MalformedProto, read_fields, read_text};
use std::collections::{HashMap, HashSet};
use trtserver_proto_wire::WireValue;

/// Stateful operations that neither keep an input nor write to memory that another tensor shares. A
/// call is followed.
const HARMLESS: [&str; 37] = [
    "Assert",
    "AnonymousHashTable",
    "Case",
    "DebugNumericSummaryV2",
    "HashTable",
    "HashTableV2",
    "If",
    "LookupTableExport",
    "LookupTableExportV2",
    "LookupTableFind",
    "LookupTableFindV2",
    "LookupTableSize",
    "LookupTableSizeV2",
    "Multinomial",
    "NoOp",
    "NonDeterministicInts",
    "ParameterizedTruncatedNormal",
    "PartitionedCall",
    "Print",
    "PrintV2",
    "RandomGamma",
    "RandomPoisson",
    "RandomPoissonV2",
    "RandomShuffle",
    "RandomStandardNormal",
    "RandomUniform",
    "RandomUniformInt",
    "ReadVariableOp",
    "ResourceGather",
    "ResourceGatherNd",
    "StatefulPartitionedCall",
    "Timestamp",
    "TruncatedNormal",
    "VarHandleOp",
    "VarIsInitializedOp",
    "VariableShape",
    "While",
];
/// Operations whose tensors end with the run.
const OF_ONE_RUN: [&str; 2] = ["TensorArray", "Stack"];
/// Variables of TF1: state only if an operation assigns them.
const VARIABLES: [&str; 2] = ["Variable", "VariableV2"];

/// Operations that take a string for NUL-terminated, at least in their error texts.
const NEED_NUL: [&str; 1] = ["StringToNumber"];

/// What is known of the operations that a model's outputs need.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StateFindings {
    /// Operations that keep tensors or change state; sorted. Unknown operations are assumed to.
    pub keeping: Vec<String>,
    /// There is one that reads beyond a string that is not NUL-terminated.
    pub needs_nul: bool,
}

/// Encoded `OpList` of the library: whether each operation is stateful.
pub fn stateful_operations(list: &[u8]) -> Result<HashMap<String, bool>, MalformedProto> {
    let mut all = HashMap::new();
    for field in read_fields(list) {
        let (1, WireValue::Bytes(operation)) = field? else { continue };
        let (mut name, mut stateful) = ("", false);
        for field in read_fields(operation) {
            match field? {
                (1, WireValue::Bytes(bytes)) => name = read_text(bytes, "name of an operation")?,
                (17, WireValue::Varint(value)) => stateful = value != 0,
                _ => {}
            }
        }
        all.insert(name.to_owned(), stateful);
    }
    Ok(all)
}

/// Looks at the operations that `outputs` need. `graph` is an encoded `GraphDef`.
pub fn find_state(
    graph: &[u8],
    outputs: &[&str],
    stateful: &HashMap<String, bool>,
) -> Result<StateFindings, MalformedProto> {
    let keeps = |kind: &str| {
        *stateful.get(kind).unwrap_or(&true)
            && !HARMLESS.contains(&kind)
            && !VARIABLES.contains(&kind)
            && !OF_ONE_RUN.iter().any(|prefix| kind.starts_with(prefix))
    };
    let library = FunctionLibrary::read(graph)?;
    let mut kinds: HashSet<&str> = HashSet::new();
    let mut functions = Vec::new();
    let nodes = read_nodes(graph)?;
    let mut rest: Vec<&str> = outputs.to_vec();
    let mut seen = HashSet::new();
    while let Some(name) = rest.pop() {
        if !seen.insert(name) {
            continue;
        }
        let Some(node) = nodes.get(name) else { continue };
        kinds.insert(node.kind);
        library.calls(node.message, &mut functions)?;
        rest.extend(node.inputs.iter().map(|input| operation_name(input)));
    }
    let mut seen = HashSet::new();
    while let Some(function) = functions.pop() {
        if seen.insert(function) {
            for node in library.nodes(function)? {
                kinds.insert(GraphNode::read(node)?.kind);
                library.calls(node, &mut functions)?;
            }
        }
    }
    let called = kinds.iter().filter(|kind| !library.contains(kind));
    let mut keeping: Vec<String> =
        called.filter(|kind| keeps(kind)).map(|kind| (*kind).to_owned()).collect();
    keeping.sort_unstable();
    let needs_nul = NEED_NUL.iter().any(|kind| kinds.contains(kind));
    Ok(StateFindings { keeping, needs_nul })
}

/// The encoded `GraphDef` in an encoded `MetaGraphDef`.
pub fn find_graph_def(meta_graph: &[u8]) -> Result<&[u8], MalformedProto> {
    let mut graph: &[u8] = &[];
    for field in read_fields(meta_graph) {
        if let (2, WireValue::Bytes(bytes)) = field? {
            graph = bytes;
        }
    }
    Ok(graph)
}

/// A `NodeDef`.
pub struct GraphNode<'a> {
    pub name: &'a str,
    pub kind: &'a str,
    pub inputs: Vec<&'a str>,
    pub message: &'a [u8],
}

impl<'a> GraphNode<'a> {
    fn read(message: &'a [u8]) -> Result<Self, MalformedProto> {
        let mut node = Self { name: "", kind: "", inputs: Vec::new(), message };
        for field in read_fields(message) {
            match field? {
                (1, WireValue::Bytes(bytes)) => {
                    node.name = read_text(bytes, "name of an operation")?
                }
                (2, WireValue::Bytes(bytes)) => {
                    node.kind = read_text(bytes, "type of an operation")?
                }
                (3, WireValue::Bytes(bytes)) => {
                    node.inputs.push(read_text(bytes, "input of an operation")?)
                }
                _ => {}
            }
        }
        Ok(node)
    }
}

/// The operations of an encoded `GraphDef` by name.
pub fn read_nodes(graph: &[u8]) -> Result<HashMap<&str, GraphNode<'_>>, MalformedProto> {
    let mut nodes = HashMap::new();
    for field in read_fields(graph) {
        if let (1, WireValue::Bytes(message)) = field? {
            let node = GraphNode::read(message)?;
            nodes.insert(node.name, node);
        }
    }
    Ok(nodes)
}

/// The operation of an input, which is a tensor's name or `^operation`.
pub fn operation_name(input: &str) -> &str {
    tensor_name(input.strip_prefix('^').unwrap_or(input)).0
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
