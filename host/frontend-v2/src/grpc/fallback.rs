//! The fallback for messages that the fast path does not parse: converts a ModelInferRequest
//! decoded by prost into a request, or returns the error for the client.

use super::input::InputContents;
use super::response::ResponseSpec;
use super::shared_memory;
use crate::{RequestParameters, RequestRegions, UncheckedRequest};
use smallvec::SmallVec;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerOwner;
use trtserver_models::OpenVersion;
use trtserver_proto::v2::model_infer_request::InferInputTensor;
use trtserver_proto::v2::{ModelInferRequest, infer_parameter::ParameterChoice};
use trtserver_request::check;
use trtserver_request::check::IdPrefix;
use trtserver_request::{DType, InputTensor};
use trtserver_wire::context::FrontendContext;
use trtserver_wire::decode_workers::MAX_INLINE;

/// Replaces typed contents by raw tensors, which [`read_request`] takes as they are. A message with
/// an input that cannot be converted is left as it is, for `read` to return the error.
pub fn convert_contents(request: &mut ModelInferRequest) {
    if !request.raw_input_contents.is_empty() {
        return;
    }
    let mut source = InputContents::new(&request.model_name, Vec::new(), LedgerOwner::SERVER);
    let sent = |tensor: &&InferInputTensor| !tensor.parameters.contains_key(shared_memory::REGION);
    let raw = request.inputs.iter().filter(sent).map(|tensor| {
        let dtype = DType::from_v2_name(&tensor.datatype)?;
        source.take(tensor, dtype).ok()
    });
    let Some(raw) = raw.collect::<Option<Vec<_>>>() else { return };
    request.raw_input_contents = raw;
    let converted = request.inputs.iter_mut().filter(|tensor| sent(&&**tensor));
    converted.for_each(|tensor| tensor.contents = None);
}

/// Submitting the request of the message takes long: it copies much, or the response cache hashes
/// much.
pub fn takes_long(ctx: &FrontendContext, request: &ModelInferRequest) -> bool {
    if copies_much(request) {
        return true;
    }
    if ctx.models.response_store().is_none() {
        return false;
    }
    let region_bytes =
        |tensor: &InferInputTensor| match shared_memory::parse_region_slice("", &tensor.parameters)
        {
            Ok(Some(slice)) => usize::try_from(slice.byte_size).unwrap_or(usize::MAX),
            _ => 0,
        };
    let regions = request.inputs.iter().map(region_bytes);
    let raw = request.raw_input_contents.iter().map(|data| data.len());
    let bytes = regions.chain(raw).fold(0, usize::saturating_add);
    ctx.models.hashes_long(&request.model_name, bytes)
}

/// Reading the message copies much: strings in shared memory, which are copied before they are
/// checked, or misaligned tensors there.
fn copies_much(request: &ModelInferRequest) -> bool {
    request.inputs.iter().any(|tensor| {
        match shared_memory::parse_region_slice("", &tensor.parameters) {
            Ok(Some(slice)) => {
                let copied = tensor.datatype == "BYTES" || !slice.offset.is_multiple_of(8);
                copied && slice.byte_size > MAX_INLINE as u64
            }
            _ => false,
        }
    })
}

/// Converts a message for the model version `served`.
pub fn read_request(
    served: &OpenVersion,
    request: ModelInferRequest,
    regions: RequestRegions<'_>,
) -> Result<(UncheckedRequest, ResponseSpec)> {
    let signature = &served.signature;
    let mut unchecked = UncheckedRequest {
        id: request.id,
        parameters: RequestParameters::from_grpc(request.parameters)?,
        ..Default::default()
    };
    let mut source =
        InputContents::new(&served.name, request.raw_input_contents, served.signature.owner);
    let mut indexes = SmallVec::<[usize; 4]>::new();
    for tensor in &request.inputs {
        let Some(index) = signature.input(&tensor.name) else {
            let names: Vec<String> = request.inputs.iter().map(|t| t.name.clone()).collect();
            return Err(check::unknown_input(signature, &unchecked.id, &tensor.name, &names));
        };
        indexes.push(index);
    }
    for (index, mut tensor) in indexes.into_iter().zip(request.inputs) {
        let Some(dtype) = DType::from_v2_name(&tensor.datatype) else {
            return Err(Error::invalid(format!(
                "{}inference input '{}' data-type is '<invalid>', but model '{}' expects '{}'",
                IdPrefix::new(&unchecked.id),
                tensor.name,
                served.name,
                signature.inputs[index].dtype.v2_name()
            )));
        };
        let shape = SmallVec::from_vec(std::mem::take(&mut tensor.shape));
        let data = match shared_memory::parse_region_slice(&tensor.name, &tensor.parameters)? {
            Some(_) if tensor.contents.is_some() => {
                return Err(Error::invalid(format!(
                    "unexpected 'content' provided when using shared memory for input tensor '{}' for model \
                     '{}'",
                    tensor.name, served.name
                )));
            }
            Some(slice) => regions.input(&slice)?,
            None => source.take(&tensor, dtype)?.into(),
        };
        unchecked.inputs.push(InputTensor { index, dtype, shape, data });
    }
    let mut spec = ResponseSpec { id: unchecked.id.clone(), ..Default::default() };
    for output in request.outputs {
        let classes = match output.parameters.get("classification").map(|p| &p.parameter_choice) {
            None => 0,
            Some(Some(ParameterChoice::Int64Param(k))) if *k > 0 => {
                u32::try_from(*k).unwrap_or(u32::MAX)
            }
            Some(Some(ParameterChoice::Int64Param(_))) => {
                return Err(Error::invalid(
                    "invalid value for 'classification' parameter, expected >= 0",
                ));
            }
            Some(_) => {
                return Err(Error::invalid(
                    "invalid value type for 'classification' parameter, expected int64_param",
                ));
            }
        };
        if classes > 0 && output.parameters.contains_key(shared_memory::REGION) {
            return Err(Error::invalid(
                "output can't set both 'shared_memory_region' and 'classification'",
            ));
        }
        let slice = shared_memory::parse_region_slice(&output.name, &output.parameters)?;
        let destination = slice.map(|slice| regions.output(&slice)).transpose()?;
        let added = unchecked.request_output(signature, &output.name, classes, destination)?;
        if classes > 0 && added.is_some() {
            spec.classes.push((output.name, classes));
        }
    }
    Ok((unchecked, spec))
}
