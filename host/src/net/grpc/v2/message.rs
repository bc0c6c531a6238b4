//! ModelInferRequest into a request, a response into ModelInferResponse.

use super::input::{Source, shared_memory};
use crate::error::{Error, Result};
use crate::net::v2::{Draft, RequestParameters, classes, parameters};
use crate::repository::Served;
use crate::request::check::{self, IdPrefix};
use crate::request::{DType, InferResponse, InputTensor};
use bytes::Bytes;
use smallvec::SmallVec;
use trtserver_proto::v2::{
    InferParameter, ModelInferRequest, ModelInferResponse, infer_parameter::ParameterChoice,
    model_infer_response::InferOutputTensor,
};

/// What the answer needs of the request.
#[derive(Default)]
pub struct Asked {
    pub id: String,
    /// Outputs wanted as classes, and how many.
    pub classes: SmallVec<[(String, u32); 2]>,
}

/// Reads a request for the model that `served` serves.
pub fn read(served: &Served, request: ModelInferRequest) -> Result<(Draft, Asked)> {
    let signature = &served.signature;
    let mut draft = Draft {
        id: request.id,
        parameters: RequestParameters::from_grpc(request.parameters)?,
        ..Default::default()
    };
    let mut source = Source::new(&served.name, request.raw_input_contents);
    let mut indexes = SmallVec::<[usize; 4]>::new();
    for tensor in &request.inputs {
        let Some(index) = signature.input(&tensor.name) else {
            let names: Vec<String> = request.inputs.iter().map(|t| t.name.clone()).collect();
            return Err(check::unknown_input(signature, &draft.id, &tensor.name, &names));
        };
        indexes.push(index);
    }
    for (index, mut tensor) in indexes.into_iter().zip(request.inputs) {
        let Some(dtype) = DType::from_v2_name(&tensor.datatype) else {
            return Err(Error::invalid(format!(
                "{}inference input '{}' data-type is '<invalid>', but model '{}' expects '{}'",
                IdPrefix(&draft.id),
                tensor.name,
                served.name,
                signature.inputs[index].dtype.v2_name()
            )));
        };
        let shape = SmallVec::from_vec(std::mem::take(&mut tensor.shape));
        let data = source.take(tensor, dtype)?;
        draft.inputs.push(InputTensor { index, dtype, shape, data });
    }
    let mut asked = Asked { id: draft.id.clone(), ..Default::default() };
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
        if classes > 0 && output.parameters.contains_key("shared_memory_region") {
            return Err(Error::invalid(
                "output can't set both 'shared_memory_region' and 'classification'",
            ));
        }
        shared_memory(&output.name, &output.parameters)?;
        draft.want(signature, &output.name, classes)?;
        if classes > 0 {
            asked.classes.push((output.name, classes));
        }
    }
    Ok((draft, asked))
}

/// The response without its tensors, and the tensors.
pub fn write(
    served: &Served,
    asked: &Asked,
    response: InferResponse,
) -> Result<(ModelInferResponse, Vec<Bytes>)> {
    let mut outputs = Vec::with_capacity(response.outputs.len());
    let mut payloads = Vec::with_capacity(response.outputs.len());
    for mut output in response.outputs {
        if let Some((_, k)) = asked.classes.iter().find(|(name, _)| **name == *output.name) {
            output = classes::of(&served.signature, &output, *k)?;
        }
        outputs.push(InferOutputTensor {
            name: output.name.to_string(),
            datatype: output.dtype.v2_name().to_owned(),
            shape: output.shape.into_vec(),
            ..Default::default()
        });
        payloads.push(output.data);
    }
    let parameters =
        response.parameters.iter().map(|(k, v)| (k.clone(), parameters::to_grpc(v))).collect();
    let head = ModelInferResponse {
        model_name: served.name.to_string(),
        model_version: served.version_text.to_string(),
        id: asked.id.clone(),
        parameters,
        outputs,
        raw_output_contents: Vec::new(),
    };
    Ok((head, payloads))
}

/// Says on a stream whether this response is the last of its request.
pub fn mark_final(head: &mut ModelInferResponse, last: bool) {
    let value = InferParameter { parameter_choice: Some(ParameterChoice::BoolParam(last)) };
    head.parameters.insert("triton_final_response".to_owned(), value);
}
