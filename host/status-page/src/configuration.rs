//! The complete configuration of a model, field by field: which line of its file a value comes
//! from, and which values the server or the backend has added.

use crate::recent::write_json;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use trtserver_base::error::{Error, Result};
use trtserver_models::{ConfigOrigin, ConfigSource};
use trtserver_proto::text::{TextPlaces, parse_with_places};
use trtserver_proto::v2::ModelConfig;

/// The configuration with its source, as JSON.
#[derive(Serialize)]
struct ConfigurationReport<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<SourceReport<'a>>,
    fields: Vec<FieldReport>,
    config: &'a Value,
}

#[derive(Serialize)]
struct SourceReport<'a> {
    /// `load request`, or a file in the directory of the model.
    origin: &'a str,
    text: &'a str,
}

/// One value.
#[derive(Debug, PartialEq, Serialize)]
pub struct FieldReport {
    /// Such as `input[0].dims[1]`.
    path: String,
    value: Value,
    /// Its line in the source; `None` for a value that is not in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// The source has this value, which was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<Value>,
}

/// The report on the complete configuration `config`, whose author wrote `source`.
///
/// # Errors
/// It cannot be written, which does not happen.
pub fn configuration_json(config: &ModelConfig, source: Option<&ConfigSource>) -> Result<Vec<u8>> {
    let complete = config_value(config)?;
    let fields = trace_fields(&complete, source)?;
    let source = source.map(|source| SourceReport {
        origin: match &source.origin {
            ConfigOrigin::File(file) => file,
            ConfigOrigin::LoadRequest => "load request",
        },
        text: &source.text,
    });
    write_json(&ConfigurationReport { name: &config.name, source, fields, config: &complete })
}

fn config_value(config: &ModelConfig) -> Result<Value> {
    let text = trtserver_proto::json::model_config(config);
    serde_json::from_str(&text)
        .map_err(|e| Error::internal(format!("the configuration as JSON cannot be read: {e}")))
}

/// The values of `complete` with their lines in `source`. Values that are empty and not in the
/// source are left out.
fn trace_fields(complete: &Value, source: Option<&ConfigSource>) -> Result<Vec<FieldReport>> {
    let parsed = source.and_then(|source| {
        let text = source.text.strip_prefix('\u{feff}').unwrap_or(&source.text);
        parse_with_places::<ModelConfig>(text).ok()
    });
    let (written, lines) = match parsed {
        None => (Value::Null, HashMap::new()),
        Some((config, places)) => {
            let written = config_value(&config)?;
            let lines = lines_by_path(&places, &written);
            (written, lines)
        }
    };
    let mut walk = FieldWalk { lines: &lines, fields: Vec::new() };
    walk.visit(complete, "", Some(&written), "");
    Ok(walk.fields)
}

struct FieldWalk<'a> {
    /// By path in the source.
    lines: &'a HashMap<String, usize>,
    fields: Vec<FieldReport>,
}

impl FieldWalk<'_> {
    /// A value at `path`; `written` is what the source has there, at the path `from`.
    fn visit(&mut self, value: &Value, path: &str, written: Option<&Value>, from: &str) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (name, member) in members {
                    let written = written.and_then(|written| written.get(name));
                    self.visit(member, &below(path, name), written, &below(from, name));
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (at, item) in items.iter().enumerate() {
                    let found = find_item(written, item, at);
                    let (written, from_at) = found.unzip();
                    let from = format!("{from}[{}]", from_at.unwrap_or(usize::MAX));
                    self.visit(item, &format!("{path}[{at}]"), written, &from);
                }
            }
            leaf => {
                let line = self.lines.get(from).copied();
                if line.is_none() && is_empty(leaf) {
                    return;
                }
                let differs = |written: &&Value| line.is_some() && *written != leaf;
                let written = written.filter(differs).cloned();
                let (path, value) = (path.to_owned(), leaf.clone());
                self.fields.push(FieldReport { path, value, line, written });
            }
        }
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The item of the list `written` that `item` was made of, and its place: that with the same name,
/// or without names the one at the same place.
fn find_item<'v>(
    written: Option<&'v Value>,
    item: &Value,
    at: usize,
) -> Option<(&'v Value, usize)> {
    let written = written?.as_array()?;
    let named = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
    match named(item).filter(|name| !name.is_empty()) {
        Some(name) => {
            let same = |of: &&Value| named(of).as_deref() == Some(&name);
            let found = written.iter().position(|of| same(&of));
            // The name of an instance group may be left out.
            let unnamed = || Some(at).filter(|at| written.get(*at).is_some_and(is_unnamed));
            found.or_else(unnamed).map(|found| (&written[found], found))
        }
        None => written.get(at).map(|found| (found, at)),
    }
}

fn is_unnamed(value: &Value) -> bool {
    value.get("name").and_then(Value::as_str).is_none_or(str::is_empty)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => matches!(text.as_str(), "" | "0"),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// The lines of all values by path, with the places of list items in brackets and the keys of maps
/// as names. `written` is the same text as JSON, which tells lists from maps.
fn lines_by_path(places: &TextPlaces, written: &Value) -> HashMap<String, usize> {
    let all: Vec<_> = places.all().collect();
    let key_of = |message: usize| {
        all.iter().find_map(|(place, parent)| {
            let is_key = *parent == Some(message) && place.path.ends_with(".key");
            place.text.as_deref().filter(|_| is_key)
        })
    };
    let mut known: Vec<(String, Option<&Value>)> = Vec::with_capacity(all.len());
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut lines = HashMap::new();
    for (index, (place, parent)) in all.iter().enumerate() {
        let name = place.path.rsplit('.').next().unwrap_or_default();
        let (path, around) = match parent {
            Some(parent) => known[*parent].clone(),
            None => (String::new(), Some(written)),
        };
        let member = around.and_then(|around| around.get(name));
        let (path, member) = match (member, key_of(index)) {
            // The value of a map's entry stands for the entry.
            (None, _) if name == "value" => (path, around),
            (Some(Value::Object(entries)), Some(key)) => {
                (below(&below(&path, name), key), entries.get(key))
            }
            (Some(Value::Array(items)), _) => {
                let path = below(&path, name);
                let at = counts.entry(path.clone()).or_default();
                *at += 1;
                (format!("{path}[{}]", *at - 1), items.get(*at - 1))
            }
            _ => (below(&path, name), member),
        };
        lines.entry(path.clone()).or_insert(place.line);
        known.push((path, member));
    }
    lines
}

#[cfg(test)]
#[path = "configuration_tests.rs"]
mod tests;
