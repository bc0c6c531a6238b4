//! A stream of v2 inference requests and responses over gRPC, for sequences and decoupled models.

use super::encode;
use super::request::InferRequest;
use super::response::InferResponse;
use crate::error::{Error, Kind, Result};
use crate::message::decode_message;
use crate::shared::stream_types;
use crate::transport::body::Segments;
use bytes::Bytes;
use trtserver_proto::v2::ModelStreamInferResponse;

stream_types!(InferRequest, InferResponse, encoded, receive);

fn encoded(request: &InferRequest) -> Segments {
    encode::encode_request(request, true)
}

fn receive(message: Result<Option<Bytes>>) -> Result<Option<InferResponse>> {
    message?.map(|message| decode_message(message).and_then(response)).transpose()
}

fn response(message: ModelStreamInferResponse) -> Result<InferResponse> {
    let mut response = encode::decode_response(message.infer_response.unwrap_or_default())?;
    if message.error_message.is_empty() {
        response.check_streamed()?;
        return Ok(response);
    }
    // The code is not sent on streams.
    Err(Error::new(Kind::Unknown, message.error_message)
        .refused_by_server(Kind::Unknown.grpc_code())
        .with_id(response.id))
}
