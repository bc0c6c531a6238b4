//! Which fields of a message are set, by path: for checks that concern every field of a message type.

use crate::encoded::{Node, Value};
use crate::schema::{Described, Kind, Message};
use std::collections::BTreeSet;

/// Paths of the fields that are not messages and have another value than their default, such as `instance_group.count`. Entries of
/// maps have the fields `key` and `value`.
pub fn set_fields<M: Described>(message: &M) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let bytes = message.encode_to_vec();
    collect(&Node::read(M::schema(), &bytes), "", &mut paths);
    paths
}

fn collect(node: &Node, path: &str, paths: &mut BTreeSet<String>) {
    for (index, value) in &node.values {
        let path = join(path, node.message.fields[*index].name);
        match value {
            Value::Message(inner) => collect(inner, &path, paths),
            _ => drop(paths.insert(path)),
        }
    }
}

/// The paths that [`set_fields`] may return for a message type.
pub fn all_fields(message: &'static Message) -> Vec<String> {
    let mut paths = Vec::new();
    describe(message, "", &mut paths);
    paths
}

fn describe(message: &'static Message, path: &str, paths: &mut Vec<String>) {
    for field in message.fields {
        let path = join(path, field.name);
        match field.kind {
            Kind::Message(inner) => describe(inner, &path, paths),
            _ => paths.push(path),
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
#[path = "set_fields_tests.rs"]
mod tests;
