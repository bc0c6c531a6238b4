//! Names of inputs and outputs, as Triton makes them of the module's call: `ARGS[0]`,
//! `KWARGS[mask]`, `RESULT`, `RESULT[boxes][1]`.
//!
//! Torch describes the call as trees in JSON: `[1, {"type": "builtins.tuple", "context": "null",
//! "children_spec": [...]}]`. A node without a type is a value.

use serde_json::Value;

/// Trees are not deeper; the parser's own limit is higher.
const MAX_DEPTH: usize = 64;

/// Names of the inputs in their order; `None` if the tree has not `count` values, as with arguments
/// that are constants.
pub fn input_names(spec: &str, count: usize) -> Option<Vec<String>> {
    let tree = read_tree(spec)?;
    let [args, kwargs] = children(&tree)? else { return None };
    let mut names = Vec::new();
    add_names(args, "ARGS", &mut names, 0)?;
    add_names(kwargs, "KWARGS", &mut names, 0)?;
    (names.len() == count).then_some(names)
}

/// As [`input_names`].
pub fn output_names(spec: &str, count: usize) -> Option<Vec<String>> {
    let mut names = Vec::new();
    add_names(&read_tree(spec)?, "RESULT", &mut names, 0)?;
    (names.len() == count).then_some(names)
}

fn read_tree(spec: &str) -> Option<Value> {
    match serde_json::from_str(spec).ok()? {
        Value::Array(mut parts) if parts.len() == 2 => parts.pop(),
        _ => None,
    }
}

fn children(node: &Value) -> Option<&[Value]> {
    Some(node.get("children_spec")?.as_array()?.as_slice())
}

fn add_names(node: &Value, prefix: &str, names: &mut Vec<String>, depth: usize) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    if node.get("type").is_none_or(Value::is_null) {
        names.push(prefix.to_owned());
        return Some(());
    }
    let children = children(node)?;
    let keys = dictionary_keys(node, children.len());
    for (at, child) in children.iter().enumerate() {
        let key = keys.as_ref().map_or_else(|| at.to_string(), |keys| keys[at].clone());
        add_names(child, &format!("{prefix}[{key}]"), names, depth + 1)?;
    }
    Some(())
}

/// The keys of a dictionary: its context is a list, or the text of one.
fn dictionary_keys(node: &Value, count: usize) -> Option<Vec<String>> {
    let context = match node.get("context")? {
        Value::String(text) => serde_json::from_str(text).ok()?,
        other => other.clone(),
    };
    let key = |key: &Value| match key {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let keys: Option<Vec<String>> = context.as_array()?.iter().map(key).collect();
    keys.filter(|keys| keys.len() == count)
}

#[cfg(test)]
#[path = "call_spec_tests.rs"]
mod tests;
