//! What the configuration says of a model's inputs: the files give their names alone.

use crate::translate::tensor::element;
use crate::translate::{NetInput, NetInputs};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::types::type_name;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_proto_wire::{Fields, WireValue};

/// # Errors
/// A type that Caffe2 lacks.
pub fn check_types(config: &Config) -> Result<(), PluginFault> {
    let inputs = config.inputs.iter().map(|decl| ("input", decl));
    for (kind, decl) in inputs.chain(config.outputs.iter().map(|decl| ("output", decl))) {
        if to_onnx_element(decl.dtype).is_none() {
            return Err(PluginFault::invalid(format!(
                "unsupported datatype {} for {kind} '{}' for model '{}'",
                type_name(decl.dtype),
                decl.name,
                config.model
            )));
        }
    }
    Ok(())
}

/// The inputs of the graph: the configured ones, and the sequence controls that the host adds.
///
/// # Errors
/// Configuration and net have different inputs.
pub fn net_inputs(
    config: &Config,
    config_pb: &[u8],
    net: &NetInputs,
) -> Result<Vec<NetInput>, PluginFault> {
    let is_input = |name: &String| net.required.contains(name) || net.optional.contains(name);
    if let Some(decl) = config.inputs.iter().find(|decl| !is_input(&decl.name)) {
        let (expected, provided) = (config.inputs.len(), net.required.len() + net.optional.len());
        let count = match expected > provided {
            true => {
                format!(", configuration expects {expected} inputs, model provides {provided};")
            }
            false => ":".to_owned(),
        };
        return Err(PluginFault::invalid(format!(
            "unable to load model '{}'{count} unexpected inference input '{}', allowed inputs are: {}",
            config.model,
            decl.name,
            net.required.join(", ")
        )));
    }
    let lead: &[i64] = if config.max_batch_size > 0 { &[-1] } else { &[] };
    let configured = config.inputs.iter().map(|decl| NetInput {
        name: decl.name.clone(),
        element: to_onnx_element(decl.dtype).unwrap_or(0),
        dims: [lead, &decl.model_dims].concat(),
    });
    let mut inputs: Vec<NetInput> = configured.collect();
    for control in sequence_controls(config_pb) {
        if is_input(&control.name) && !inputs.iter().any(|input| input.name == control.name) {
            inputs.push(NetInput { dims: [lead, &control.dims].concat(), ..control });
        }
    }
    let missing: Vec<&str> = net.required.iter().map(String::as_str).collect();
    let missing: Vec<&str> = missing
        .into_iter()
        .filter(|name| !inputs.iter().any(|input| input.name == *name))
        .collect();
    if missing.is_empty() {
        return Ok(inputs);
    }
    Err(PluginFault::invalid(format!(
        "unable to load model '{}', configuration expects {} inputs, model provides {}; not \
         configured: {}",
        config.model,
        config.inputs.len(),
        net.required.len(),
        missing.join(", ")
    )))
}

/// ONNX's number of a type; `None` for types that Caffe2 lacks.
pub fn to_onnx_element(kind: u32) -> Option<i32> {
    Some(match kind {
        dtype::BOOL => element::BOOL,
        dtype::UINT8 => element::UINT8,
        dtype::UINT16 => element::UINT16,
        dtype::INT8 => element::INT8,
        dtype::INT16 => element::INT16,
        dtype::INT32 => element::INT32,
        dtype::INT64 => element::INT64,
        dtype::FP16 => element::FLOAT16,
        dtype::FP32 => element::FLOAT,
        dtype::FP64 => element::DOUBLE,
        _ => return None,
    })
}

/// Inputs that the host adds: sequence controls, one element per row, and states.
fn sequence_controls(config_pb: &[u8]) -> Vec<NetInput> {
    let mut inputs = Vec::new();
    let mut add = |name: String, kind: u64, dims: Vec<i64>| {
        // The numbers of a configuration's types are the interface's.
        let element = u32::try_from(kind).ok().and_then(to_onnx_element);
        inputs.extend(element.map(|element| NetInput { name, element, dims }));
    };
    for sequence in Fields::new(config_pb).bytes(13) {
        for control in Fields::new(sequence).bytes(2) {
            for kind in Fields::new(control).bytes(2) {
                let has = |number| Fields::new(kind).flatten().any(|field| field.number == number);
                let dtype = match Fields::new(kind).varint(4) {
                    0 if has(2) => dtype::INT32.into(),
                    0 if has(5) => dtype::BOOL.into(),
                    0 => dtype::FP32.into(),
                    other => other,
                };
                add(Fields::new(control).text(1), dtype, vec![1]);
            }
        }
        for state in Fields::new(sequence).bytes(5) {
            let dims = Fields::new(state).flatten().filter(|field| field.number == 4);
            let dims = dims.flat_map(|field| read_integers(field.value)).collect();
            add(Fields::new(state).text(1), Fields::new(state).varint(3), dims);
        }
    }
    inputs
}

/// One integer, or a packed list.
fn read_integers(value: WireValue<'_>) -> Vec<i64> {
    match value {
        WireValue::Varint(one) => vec![one.cast_signed()],
        WireValue::Bytes(mut packed) => {
            let mut list = Vec::new();
            while let Ok(one) = trtserver_proto_wire::read_varint(&mut packed) {
                list.push(one.cast_signed());
            }
            list
        }
        _ => Vec::new(),
    }
}
