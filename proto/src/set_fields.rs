//! Which fields of a message are set, by path: for checks that concern every field of a message
//! type.

use crate::message_tree::{EncodedNode, EncodedValue};
use crate::schema::{Described, FieldKind, MessageSchema};
use std::collections::BTreeSet;

/// Paths of the fields that are not messages and have another value than their default, such as
/// `instance_group.count`. Entries of maps have the fields `key` and `value`.
pub fn set_fields<M: Described>(message: &M) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let bytes = message.encode_to_vec();
    collect_set(&EncodedNode::read(M::schema(), &bytes), "", &mut paths);
    paths
}

fn collect_set(node: &EncodedNode, path: &str, paths: &mut BTreeSet<String>) {
    for (index, value) in &node.values {
        let path = join_path(path, node.message.fields[*index].name);
        match value {
            EncodedValue::Message(inner) => collect_set(inner, &path, paths),
            _ => drop(paths.insert(path)),
        }
    }
}

/// The paths that [`set_fields`] may return for a message type.
pub fn all_fields(message: &'static MessageSchema) -> Vec<String> {
    let mut paths = Vec::new();
    describe_fields(message, "", &mut paths);
    paths
}

fn describe_fields(message: &'static MessageSchema, path: &str, paths: &mut Vec<String>) {
    for field in message.fields {
        let path = join_path(path, field.name);
        match field.kind {
            FieldKind::Message(inner) => describe_fields(inner, &path, paths),
            _ => paths.push(path),
        }
    }
}

fn join_path(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
#[path = "set_fields_tests.rs"]
mod tests;
