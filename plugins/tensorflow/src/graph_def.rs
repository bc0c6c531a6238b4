//! GraphDef: operations by name, placeholders, and which tensors a configuration can name.
//!
//! Inputs are placeholders; outputs are outputs of any operation. Both are named by operation (`x`,
//! its output 0) or by tensor (`x:0`, `scope/x:1`). The file states types and shapes of
//! placeholders alone; those of outputs are known once TensorFlow has imported the graph.

use crate::function_library::{self, GraphRefusal};
use crate::proto::{self, MalformedProto, read_entry, read_fields, read_text};
use crate::signature::{GraphTensor, Signature};
use crate::types;
use std::collections::{HashMap, HashSet};
use trtserver_proto_wire::WireValue;

const PLACEHOLDERS: [&str; 3] = ["Placeholder", "PlaceholderV2", "PlaceholderWithDefault"];
/// Operations that have no output.
const WITHOUT_OUTPUT: [&str; 3] = ["NoOp", "Assert", "SaveV2"];
/// Graphs of this version and older write "unknown shape" of a placeholder as a shape without
/// dimensions.
const LEGACY_SHAPES: i32 = 21;

/// Operation and output index of a tensor's name. Without an index it is output 0.
pub fn tensor_name(name: &str) -> (&str, i32) {
    match name.rsplit_once(':').map(|(operation, index)| (operation, index.parse::<u16>())) {
        Some((operation, Ok(index))) => (operation, index.into()),
        _ => (name, 0),
    }
}

/// A graph; names borrow from the file's bytes.
#[derive(Debug, Default)]
pub struct GraphDefView<'a> {
    operations: Vec<GraphOperation<'a>>,
    by_name: HashMap<&'a str, usize>,
}

#[derive(Debug, Default)]
pub struct GraphOperation<'a> {
    pub name: &'a str,
    /// Its type, for example `MatMul`.
    pub kind: &'a str,
    /// Tensor names; `^operation` orders operations and passes no tensor.
    inputs: Vec<&'a str>,
    /// Data type of a placeholder; [`types::UNKNOWN`] = not stated.
    data_type: i32,
    dims: Option<Vec<i64>>,
    /// Number of outputs, where the file states it.
    pub n_outputs: Option<usize>,
}

impl<'a> GraphDefView<'a> {
    /// Reads an encoded `GraphDef`.
    ///
    /// # Errors
    /// It is malformed, or its functions call themselves.
    pub fn read(graph: &'a [u8]) -> Result<Self, GraphRefusal> {
        function_library::check_functions(graph)?;
        let mut read = Self::default();
        let mut producer = 0;
        for field in read_fields(graph) {
            match field.map_err(GraphRefusal::from)? {
                (1, WireValue::Bytes(node)) => read.add(GraphOperation::read(node)?)?,
                (4, WireValue::Bytes(versions)) => producer = proto::last_number(versions, 1)?,
                _ => {}
            }
        }
        if producer <= LEGACY_SHAPES {
            for operation in &mut read.operations {
                operation.dims.take_if(|dims| dims.is_empty());
            }
        }
        Ok(read)
    }

    fn add(&mut self, operation: GraphOperation<'a>) -> Result<(), MalformedProto> {
        if self.by_name.insert(operation.name, self.operations.len()).is_some() {
            return Err(MalformedProto::Twice(operation.name.to_owned()));
        }
        self.operations.push(operation);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    pub fn operation(&self, name: &str) -> Option<&GraphOperation<'a>> {
        self.by_name.get(name).map(|&at| &self.operations[at])
    }

    pub fn operation_names(&self) -> impl Iterator<Item = &'a str> {
        self.operations.iter().map(|operation| operation.name)
    }

    pub fn placeholders(&self) -> impl Iterator<Item = &GraphOperation<'a>> {
        self.operations.iter().filter(|operation| operation.is_placeholder())
    }

    /// Placeholders without a default, and the first output of operations whose outputs no
    /// operation consumes. Operations without any output may be among them; the file does not state
    /// it of most.
    pub fn ends(&self) -> Signature {
        let inputs = self.operations.iter().flat_map(|operation| &operation.inputs);
        let consumed: HashSet<&str> = inputs
            .filter(|input| !input.starts_with('^'))
            .map(|input| tensor_name(input).0)
            .collect();
        let is_end = |operation: &&GraphOperation| {
            !consumed.contains(operation.name)
                && !operation.is_placeholder()
                && operation.n_outputs != Some(0)
        };
        let tensor = |operation: &GraphOperation| operation.tensor(operation.name, 0);
        Signature {
            inputs: self.placeholders().filter(|input| !input.has_default()).map(tensor).collect(),
            outputs: self.operations.iter().filter(is_end).map(tensor).collect(),
            method: String::new(),
        }
    }

    /// Placeholders without a default that are executed for the output `operation`, except those in
    /// `fed`.
    ///
    /// The search ends at `Merge`, which needs only one of its inputs.
    pub fn unfed(&self, operation: &str, fed: &HashSet<&str>) -> Vec<&'a str> {
        let mut missing = Vec::new();
        let mut seen: HashSet<usize> = HashSet::new();
        let mut rest: Vec<usize> = self.by_name.get(operation).copied().into_iter().collect();
        while let Some(at) = rest.pop() {
            let operation = &self.operations[at];
            if !seen.insert(at) || fed.contains(operation.name) || operation.kind == "Merge" {
                continue;
            }
            if operation.is_placeholder() && !operation.has_default() {
                missing.push(operation.name);
            }
            let inputs = operation.inputs.iter();
            let names = inputs.map(|input| tensor_name(input.strip_prefix('^').unwrap_or(input)).0);
            rest.extend(names.filter_map(|name| self.by_name.get(name)));
        }
        missing.sort_unstable();
        missing
    }
}

impl<'a> GraphOperation<'a> {
    fn read(node: &'a [u8]) -> Result<Self, MalformedProto> {
        let mut operation = Self::default();
        for field in read_fields(node) {
            match field? {
                (1, WireValue::Bytes(bytes)) => {
                    operation.name = read_text(bytes, "name of an operation")?
                }
                (2, WireValue::Bytes(bytes)) => {
                    operation.kind = read_text(bytes, "type of an operation")?
                }
                (3, WireValue::Bytes(bytes)) => {
                    operation.inputs.push(read_text(bytes, "input of an operation")?);
                }
                (5, WireValue::Bytes(bytes)) => {
                    let (name, value) = read_entry(bytes, "name of an attribute")?;
                    operation.attribute(name, value)?;
                }
                _ => {}
            }
        }
        if operation.name.is_empty() {
            return Err(MalformedProto::Unnamed("an operation"));
        }
        // The attributes were read before the type was known.
        if operation.is_placeholder() {
            operation.n_outputs = Some(1);
        } else {
            (operation.data_type, operation.dims) = (types::UNKNOWN, None);
        }
        if WITHOUT_OUTPUT.contains(&operation.kind) {
            operation.n_outputs = Some(0);
        }
        Ok(operation)
    }

    fn attribute(&mut self, name: &str, value: &[u8]) -> Result<(), MalformedProto> {
        match name {
            "dtype" => self.data_type = proto::last_number(value, 6)?,
            "shape" => {
                for field in read_fields(value) {
                    if let (7, WireValue::Bytes(shape)) = field? {
                        self.dims = proto::read_shape(shape)?;
                    }
                }
            }
            // `num_split` is an attribute of Split and SplitV.
            "num_split" => {
                self.n_outputs = usize::try_from(proto::last_number(value, 3)?).ok();
            }
            _ => {}
        }
        Ok(())
    }

    pub fn is_placeholder(&self) -> bool {
        PLACEHOLDERS.contains(&self.kind)
    }

    pub fn has_default(&self) -> bool {
        self.kind == "PlaceholderWithDefault"
    }

    /// Output `index`, under the name that a configuration uses.
    pub fn tensor(&self, name: &str, index: i32) -> GraphTensor {
        GraphTensor {
            name: name.to_owned(),
            operation: self.name.to_owned(),
            index,
            data_type: self.data_type,
            dims: self.dims.clone(),
        }
    }
}

#[cfg(test)]
#[path = "graph_def_tests.rs"]
mod tests;
