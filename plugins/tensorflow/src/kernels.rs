//! Whether the library has a kernel for each operation that a model's outputs need.
//!
//! TensorFlow looks for kernels when a graph is run for the first time, so that such a model would
//! fail each request. Functions are not searched: a model for several devices contains some that
//! are never called.

use crate::function_library::FunctionLibrary;
use crate::proto::{MalformedProto, last_number, read_entry, read_fields, read_text};
use crate::state::{operation_name, read_nodes};
use crate::types::element_name;
use std::collections::{HashMap, HashSet};
use trtserver_proto_wire::{Fields, WireValue, read_varint};

/// For every device.
const ANY_DEVICE: &str = "DEFAULT";
/// Attributes with this prefix leave the choice of kernels to XLA or name one.
const SPECIAL: [&str; 3] = ["_xla", "_Xla", "_kernel"];

/// An operation without a kernel: name, type, and the attribute that no kernel accepts.
#[derive(Debug, PartialEq, Eq)]
pub struct MissingKernel {
    pub operation: String,
    pub kind: String,
    /// Name and value, if there are kernels for other types.
    pub attribute: Option<(String, i32)>,
}

impl std::fmt::Display for MissingKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let MissingKernel { operation, kind, attribute } = self;
        write!(f, "no kernel for operation '{operation}' of type '{kind}'")?;
        match attribute {
            Some((name, value)) => write!(f, " with {name} = {}", element_name(*value)),
            None => Ok(()),
        }
    }
}

/// Looks at the operations that `outputs` need when the operations `fed` are fed. `graph` is an
/// encoded `GraphDef`; `registered_kernels` returns the encoded `KernelList` of an operation's
/// type.
pub fn find_missing(
    graph: &[u8],
    outputs: &[&str],
    fed: &HashSet<&str>,
    devices: &[String],
    mut registered_kernels: impl FnMut(&str) -> Option<Vec<u8>>,
) -> Result<Option<MissingKernel>, MalformedProto> {
    let library = FunctionLibrary::read(graph)?;
    let nodes = read_nodes(graph)?;
    let mut known: HashMap<&str, Vec<Kernel>> = HashMap::new();
    let mut rest: Vec<&str> = outputs.to_vec();
    let mut seen = HashSet::new();
    while let Some(name) = rest.pop() {
        if fed.contains(name) || !seen.insert(name) {
            continue;
        }
        let Some(node) = nodes.get(name) else { continue };
        rest.extend(node.inputs.iter().map(|input| operation_name(input)));
        let types = attribute_types(node.message)?;
        if library.contains(node.kind) || types.is_special {
            continue;
        }
        if !known.contains_key(node.kind) {
            // What cannot be asked is left to TensorFlow.
            let Some(list) = registered_kernels(node.kind) else { continue };
            known.insert(node.kind, read_kernels(&list, devices)?);
        }
        let kernels = &known[node.kind];
        if kernels.iter().any(|kernel| kernel.refused(&types).is_none()) {
            continue;
        }
        let attribute = kernels.iter().find_map(|kernel| kernel.refused(&types));
        return Ok(Some(MissingKernel {
            operation: name.to_owned(),
            kind: node.kind.to_owned(),
            attribute: attribute.map(|(name, value)| (name.to_owned(), value)),
        }));
    }
    Ok(None)
}

/// Attributes of an operation that are types.
#[derive(Default)]
struct Types<'a> {
    values: Vec<(&'a str, i32)>,
    is_special: bool,
}

fn attribute_types(node: &[u8]) -> Result<Types<'_>, MalformedProto> {
    let mut types = Types::default();
    for field in read_fields(node) {
        let (5, WireValue::Bytes(attribute)) = field? else { continue };
        let (name, value) = read_entry(attribute, "name of an attribute")?;
        types.is_special |= SPECIAL.iter().any(|prefix| name.starts_with(prefix));
        let value = last_number(value, 6)?;
        if value != 0 {
            types.values.push((name, value));
        }
    }
    Ok(types)
}

/// A kernel for one of the devices: attributes and the types that it accepts for them.
#[derive(Default)]
struct Kernel {
    constraints: Vec<(String, Vec<i32>)>,
}

impl Kernel {
    /// The attribute for which it does not accept the operation's type.
    fn refused<'a>(&self, types: &Types<'a>) -> Option<(&'a str, i32)> {
        types.values.iter().copied().find(|(name, value)| {
            let accepted = self.constraints.iter().find(|(constrained, _)| constrained == name);
            accepted.is_some_and(|(_, accepted)| !accepted.contains(value))
        })
    }
}

fn read_kernels(list: &[u8], devices: &[String]) -> Result<Vec<Kernel>, MalformedProto> {
    let mut kernels = Vec::new();
    for field in read_fields(list) {
        let (1, WireValue::Bytes(message)) = field? else { continue };
        let (mut kernel, mut device, mut label): (_, _, &[u8]) = (Kernel::default(), "", &[]);
        for field in read_fields(message) {
            match field? {
                (2, WireValue::Bytes(bytes)) => device = read_text(bytes, "device of a kernel")?,
                (3, WireValue::Bytes(constraint)) => {
                    kernel.constraints.push(self::constraint(constraint)?)
                }
                (5, WireValue::Bytes(bytes)) => label = bytes,
                _ => {}
            }
        }
        let is_ours = device == ANY_DEVICE || devices.iter().any(|own| own == device);
        // A kernel with a label is for operations that name it.
        if is_ours && label.is_empty() {
            kernels.push(kernel);
        }
    }
    Ok(kernels)
}

fn constraint(message: &[u8]) -> Result<(String, Vec<i32>), MalformedProto> {
    let (mut name, mut accepted) = ("", Vec::new());
    for field in read_fields(message) {
        match field? {
            (1, WireValue::Bytes(bytes)) => name = read_text(bytes, "name of an attribute")?,
            (2, WireValue::Bytes(value)) => {
                for list in Fields::new(value).bytes(1) {
                    read_types(list, &mut accepted)?;
                }
            }
            _ => {}
        }
    }
    Ok((name.to_owned(), accepted))
}

/// The types of an `AttrValue.ListValue`, packed or not.
fn read_types(list: &[u8], to: &mut Vec<i32>) -> Result<(), MalformedProto> {
    for field in read_fields(list) {
        match field? {
            (6, WireValue::Bytes(mut packed)) => {
                while !packed.is_empty() {
                    to.push(read_varint(&mut packed)? as i32);
                }
            }
            (6, WireValue::Varint(value)) => to.push(value as i32),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "kernels_tests.rs"]
mod tests;
