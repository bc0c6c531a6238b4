//! TF-TRT: `gpu_execution_accelerator` 'tensorrt' as an addition to the encoded `ConfigProto` of a
//! session.

use crate::session::GraphSession;
use std::collections::BTreeMap;
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_plugin_api::author::Scope;
use trtserver_proto_wire::{put_bytes, put_number};

/// A parameter of the accelerator: its name, that of TensorFlow's optimiser, and the type of the
/// value.
const PARAMETERS: [(&str, &str, AttributeKind); 5] = [
    ("is_dynamic_op", "is_dynamic_op", AttributeKind::Bool),
    ("max_cached_engines", "maximum_cached_engines", AttributeKind::Int),
    ("max_workspace_size_bytes", "max_workspace_size_bytes", AttributeKind::Int),
    ("minimum_segment_size", "minimum_segment_size", AttributeKind::Int),
    ("precision_mode", "precision_mode", AttributeKind::Text),
];

#[derive(Clone, Copy)]
enum AttributeKind {
    Bool,
    Int,
    Text,
}

/// What the accelerators that the configuration requests add; `None` if it requests none. Only
/// TF-TRT is passed on, and only to a library with a GPU.
pub fn config_addition(
    config: &Config,
    session: &GraphSession,
    log: &Scope,
) -> Result<Option<Vec<u8>>, PluginFault> {
    let mut all = config.facts.accelerators.iter();
    let Some(first) = all.next() else { return Ok(None) };
    let (model, runtime) = (&config.model, session.runtime);
    let unusable = |name: &str, gpu: bool| !gpu || name != "tensorrt" || !session.has_gpu();
    let refused = std::iter::once(first).chain(all.clone()).find(|a| unusable(&a.name, a.gpu));
    if let Some(accelerator) = refused {
        return Err(PluginFault::unsupported(format!(
            "{} '{}' requested for model '{model}': TensorFlow {} from {} offers {}; only the \
             gpu_execution_accelerator 'tensorrt' is passed on, to a library with a GPU",
            accelerator.field(),
            accelerator.name,
            runtime.version,
            runtime.origin,
            session.device_types().join(", ")
        )));
    }
    let within = |why| {
        PluginFault::invalid(format!(
            "gpu_execution_accelerator 'tensorrt' requested for model '{model}': {why}"
        ))
    };
    if all.next().is_some() {
        return Err(within("it is requested twice".to_owned()));
    }
    let options = encode_node(&first.parameters).map_err(within)?;
    log.warning(format_args!(
        "model '{model}': accelerator 'tensorrt' is passed on to TensorFlow {}; this has not been tested",
        runtime.version
    ));
    Ok(Some(options))
}

/// `graph_options.rewrite_options.custom_optimizers`; messages that follow each other are merged.
fn encode_node(parameters: &BTreeMap<String, String>) -> Result<Vec<u8>, String> {
    let mut optimizer = Vec::new();
    put_bytes(&mut optimizer, 1, b"TensorRTOptimizer");
    for (key, value) in parameters {
        let Some((_, name, kind)) = PARAMETERS.iter().find(|(known, ..)| known == key) else {
            let known: Vec<_> = PARAMETERS.iter().map(|(known, ..)| *known).collect();
            return Err(format!("unknown parameter '{key}'; known are: {}", known.join(", ")));
        };
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, name.as_bytes());
        put_bytes(
            &mut entry,
            2,
            &encode_attribute(*kind, value.trim()).map_err(|expected| {
                format!("parameter '{key}' must be {expected}, not '{value}'")
            })?,
        );
        put_bytes(&mut optimizer, 2, &entry);
    }
    let nest = |inner: Vec<u8>, number| {
        let mut outer = Vec::new();
        put_bytes(&mut outer, number, &inner);
        outer
    };
    Ok([200, 10, 10].into_iter().fold(optimizer, nest))
}

/// An `AttrValue`; the error says what is expected.
fn encode_attribute(kind: AttributeKind, value: &str) -> Result<Vec<u8>, &'static str> {
    let mut encoded = Vec::new();
    match (kind, value) {
        (AttributeKind::Text, "FP32" | "FP16" | "INT8") => {
            put_bytes(&mut encoded, 2, value.as_bytes())
        }
        (AttributeKind::Text, _) => return Err("FP32, FP16 or INT8"),
        (AttributeKind::Bool, "true" | "1") => put_number(&mut encoded, 5, 1),
        (AttributeKind::Bool, "false" | "0") => put_number(&mut encoded, 5, 0),
        (AttributeKind::Bool, _) => return Err("true or false"),
        (AttributeKind::Int, _) => {
            let number: u32 = value.parse().map_err(|_| "a number")?;
            put_number(&mut encoded, 3, number.into());
        }
    }
    Ok(encoded)
}

#[cfg(test)]
#[path = "accelerator_tests.rs"]
mod tests;
