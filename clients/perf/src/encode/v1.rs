//! v1 requests: `NV-InferRequest` and raw tensors, or `InferRequest`.

use super::http::{escape_name, http_request};
use super::{
    BatchTensors, EncodeTarget, EncodedMessage, ID_BYTES, ID_DIGITS, RegionSlice, SequenceField,
    grpc_message, varint,
};
use crate::model::MeasuredModel;
use prost::Message as _;
use trtserver_proto::{text, v1};

fn request_header(
    model: &MeasuredModel,
    tensors: &BatchTensors,
    target: &EncodeTarget<'_>,
) -> v1::InferRequestHeader {
    let shared = |region: &RegionSlice| v1::InferSharedMemory {
        name: region.name.clone(),
        offset: region.offset,
        byte_size: region.byte_size,
    };
    let input = |(input, payload): (&crate::model::ModelTensor, &super::TensorPayload)| {
        v1::infer_request_header::Input {
            name: input.name.clone(),
            dims: payload.shape.clone(),
            // Fixed types have the size that the shape says.
            batch_byte_size: if input.datatype == "BYTES" { payload.bytes.len() as u64 } else { 0 },
            shared_memory: payload.region.as_ref().map(shared),
            ..Default::default()
        }
    };
    let output =
        |(index, output): (usize, &crate::model::ModelTensor)| v1::infer_request_header::Output {
            name: output.name.clone(),
            shared_memory: tensors.outputs.get(index).map(shared),
            ..Default::default()
        };
    v1::InferRequestHeader {
        batch_size: target.batch as u32,
        input: model.inputs.iter().zip(&tensors.inputs).map(input).collect(),
        output: model.outputs.iter().enumerate().map(output).collect(),
        ..Default::default()
    }
}

pub fn encode_http(
    model: &MeasuredModel,
    tensors: &BatchTensors,
    target: &EncodeTarget<'_>,
) -> EncodedMessage {
    let mut line =
        format!("NV-InferRequest: {}", text::print_line(&request_header(model, tensors, target)));
    line.truncate(line.trim_end().len());
    let mut fields = Vec::new();
    if target.sequences {
        line += " correlation_id: ";
        fields.push((line.len(), SequenceField::IdText));
        line += &" ".repeat(ID_DIGITS);
        line += " flags: ";
        fields.push((line.len(), SequenceField::FlagsText));
        line.push('0');
    }
    line += "\r\n";
    let mut path = format!("/api/infer/{}", escape_name(&model.name));
    if !model.version.is_empty() {
        path += &format!("/{}", model.version);
    }
    path += "?format=binary";
    http_request(target, &path, (&line, fields), ("", Vec::new()), tensors)
}

pub fn encode_grpc(
    model: &MeasuredModel,
    tensors: &BatchTensors,
    target: &EncodeTarget<'_>,
) -> EncodedMessage {
    let mut header = request_header(model, tensors, target).encode_to_vec();
    let mut fields = Vec::new();
    if target.sequences {
        // correlation_id and flags.
        header.push(4 << 3);
        fields.push((header.len(), SequenceField::IdVarint));
        header.extend([0x80; ID_BYTES]);
        header.push(6 << 3);
        fields.push((header.len(), SequenceField::FlagsByte));
        header.push(0);
    }
    let mut head = v1::InferRequest {
        model_name: model.name.clone(),
        model_version: model.version.parse().unwrap_or(-1),
        ..Default::default()
    }
    .encode_to_vec();
    // meta_data
    head.push(3 << 3 | 2);
    varint(header.len() as u64, &mut head);
    let fields = fields.into_iter().map(|(at, field)| (at + head.len(), field)).collect();
    head.extend(header);
    grpc_message(&head, fields, 4, tensors)
}
