//! Builds the response header and the raw outputs, in the order in which outputs were requested.
//!
//! Clients up to v0.10 assume the requested order, later ones follow the header. `data_type` is
//! never set, because the text parsers of clients before v1.12 refuse the field.

use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_models::OpenVersion;
use trtserver_proto::v1::InferResponseHeader;
use trtserver_proto::v1::infer_response_header::{Output, output};
use trtserver_request::classes;
use trtserver_request::classes::TopClass;
use trtserver_request::{
    DType, InferResponse, ModelSignature, OutputTensor, RequestedOutput, ShapeText, TensorSpec,
};
use trtserver_wire::decode_workers::MAX_INLINE;

/// What the response needs of the request.
pub struct ResponseSpec {
    pub served: Arc<OpenVersion>,
    pub batch: u32,
    pub id: u64,
    pub outputs: SmallVec<[RequestedOutput; 2]>,
    pub per_item: bool,
}

impl ResponseSpec {
    /// Building the response takes long: large outputs are ranked.
    pub fn is_heavy(&self, response: &InferResponse) -> bool {
        self.outputs.iter().any(|o| o.classes > 0)
            && response.outputs.iter().map(|o| o.data.payload().len()).sum::<usize>() > MAX_INLINE
    }
}

/// A response, before it is encoded for HTTP or gRPC.
pub struct BuiltResponse {
    pub header: InferResponseHeader,
    /// One for each output of the header; empty for classes.
    pub raw: SmallVec<[Bytes; 2]>,
}

/// Builds the response. Outputs that the model did not return are omitted.
pub fn build_response(spec: &ResponseSpec, response: InferResponse) -> Result<BuiltResponse> {
    let signature = &spec.served.signature;
    let mut outputs = Vec::with_capacity(spec.outputs.len());
    let mut raw = SmallVec::with_capacity(spec.outputs.len());
    for (position, requested) in spec.outputs.iter().enumerate() {
        let tensor_spec = &signature.outputs[requested.index()];
        let expected = response.outputs.get(position).filter(|o| o.name == tensor_spec.name);
        let tensor =
            expected.or_else(|| response.outputs.iter().find(|o| o.name == tensor_spec.name));
        let Some(tensor) = tensor else { continue };
        check_output(signature, tensor_spec, tensor, spec.batch)?;
        if requested.classes == 0 {
            let batched = signature.batching() && !tensor_spec.shape_tensor;
            outputs.push(raw_output(tensor, batched));
            raw.push(tensor.data.payload().clone());
        } else {
            outputs.push(class_output(tensor_spec, tensor, spec.batch, requested.classes)?);
            raw.push(Bytes::new());
        }
    }
    let header = InferResponseHeader {
        model_name: spec.served.name.to_string(),
        model_version: spec.served.version,
        batch_size: spec.batch,
        output: outputs,
        id: spec.id,
    };
    Ok(BuiltResponse { header, raw })
}

/// A v1 response has neither a data type nor a number of rows: clients take those of the
/// configuration and of their request.
fn check_output(
    signature: &ModelSignature,
    spec: &TensorSpec,
    tensor: &OutputTensor,
    batch: u32,
) -> Result<()> {
    let batched = signature.batching() && !spec.shape_tensor;
    if tensor.dtype == spec.dtype && (!batched || tensor.shape.first() == Some(&i64::from(batch))) {
        return Ok(());
    }
    Err(Error::internal(format!(
        "output '{}' of model '{}' is {} of shape {}, but a v1 response can only carry {} with batch size {batch}",
        spec.name,
        signature.model,
        tensor.dtype.config_name(),
        ShapeText(&tensor.shape),
        spec.dtype.config_name(),
    )))
}

fn raw_output(tensor: &OutputTensor, batched: bool) -> Output {
    let dims = tensor.shape.get(usize::from(batched)..).unwrap_or_default().to_vec();
    let batch_byte_size = tensor.data.len() as u64;
    let raw = output::Raw { dims, batch_byte_size, byte_size: 0 };
    Output { name: tensor.name.to_string(), raw: Some(raw), ..Output::default() }
}

fn class_output(spec: &TensorSpec, tensor: &OutputTensor, batch: u32, k: u32) -> Result<Output> {
    let items = classes::find_top_classes(tensor, batch as usize, k as usize)
        .ok_or_else(|| no_classes(&tensor.name, tensor.dtype))?;
    let class = |c: &TopClass| output::Class {
        idx: c.index as i32,
        value: c.value as f32,
        label: spec.labels.as_ref().and_then(|l| l.get(c.index)).unwrap_or_default().to_owned(),
    };
    let batch_classes = items
        .iter()
        .map(|item| output::Classes { cls: item.iter().map(class).collect() })
        .collect();
    Ok(Output { name: tensor.name.to_string(), batch_classes, ..Output::default() })
}

/// The error for classes of a datatype that cannot be ranked.
pub fn no_classes(name: &str, dtype: DType) -> Error {
    Error::invalid(format!(
        "class result not available for output '{name}' due to unsupported type '{}'",
        dtype.config_name()
    ))
}

/// The header for NV-InferResponse: without the classes, which would make it very long.
pub fn without_classes(mut header: InferResponseHeader) -> InferResponseHeader {
    header.output.iter_mut().for_each(|o| o.batch_classes.clear());
    header
}

/// The header with sizes per batch item, for clients up to v0.10 that read text; [`super::legacy`]
/// has the binary form. The field exists in text only.
pub fn per_item(mut header: InferResponseHeader) -> InferResponseHeader {
    let batch = u64::from(header.batch_size.max(1));
    for raw in header.output.iter_mut().filter_map(|o| o.raw.as_mut()) {
        let byte_size = raw.batch_byte_size / batch;
        *raw = output::Raw { dims: Vec::new(), batch_byte_size: 0, byte_size };
    }
    header
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
