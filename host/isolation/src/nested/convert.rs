//! Nested requests and responses of a child, from and to messages.

use crate::messages::{NamedTensor, NestedData, NestedInfer};
use crate::params;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerHolder;
use trtserver_plugin_host::nested::{NestedInput, NestedRequest};
use trtserver_request::buffer::AlignedBuf;
use trtserver_request::dtype::DType;
use trtserver_request::{CorrelationId, InferResponse, RequestSequence};

/// `sender`: the model version of the child.
///
/// # Errors
/// A data type is unknown, or there is no memory for an input.
pub fn nested_request(
    infer: NestedInfer,
    sender: Option<(Arc<str>, i64)>,
) -> Result<NestedRequest> {
    let NestedInfer { model, version, id, sequence, sequence_text, .. } = infer;
    let sequence_id = match (sequence_text.is_empty(), sequence) {
        (false, _) => CorrelationId::Text(sequence_text),
        (true, 0) => CorrelationId::None,
        (true, number) => CorrelationId::Number(number),
    };
    let inputs = infer.inputs.into_iter().map(|input| {
        let (dtype, shape, bytes) = (DType::from_number(input.dtype), input.shape, input.data);
        let dtype = dtype.ok_or_else(|| {
            let (name, number) = (&input.name, input.dtype);
            Error::invalid(format!(
                "input '{name}' for model '{model}': {number} is not a data type"
            ))
        })?;
        let data = AlignedBuf::try_copy(None, &[&bytes], LedgerHolder::Backend);
        let data = data.map_err(|e| e.refuse("an input of a nested request"))?;
        Ok(NestedInput {
            dtype,
            shape: shape[..].into(),
            data: data.into_bytes().into(),
            name: input.name,
        })
    });
    let inputs = inputs.collect::<Result<_>>()?;
    Ok(NestedRequest {
        sender,
        model,
        version,
        id,
        sequence: RequestSequence {
            id: sequence_id,
            start: infer.sequence_start,
            end: infer.sequence_end,
        },
        priority: infer.priority,
        timeout_us: infer.timeout_us,
        deadline_ns: infer.deadline_ns,
        parameters: infer.params.into_iter().filter_map(params::decode_parameter).collect(),
        inputs,
        outputs: infer.outputs,
    })
}

/// # Errors
/// An output is in memory that cannot be read.
pub fn nested_data(response: InferResponse) -> Result<NestedData> {
    let outputs = response.outputs.iter().map(|output| {
        let data = output.data.to_cpu()?;
        Ok(NamedTensor {
            name: output.name.to_string(),
            dtype: output.dtype.number(),
            shape: output.shape.to_vec(),
            data,
        })
    });
    Ok(NestedData {
        outputs: outputs.collect::<Result<_>>()?,
        params: response.parameters.into_iter().map(params::encode_parameter).collect(),
    })
}
