//! A stream of v1 inference requests and responses over gRPC.

use super::grpc::{client_failed, encode_request, read_response};
use super::infer::{InferRequest, InferResponse};
use crate::error::Result;
use crate::shared::stream_types;
use bytes::Bytes;

stream_types!(InferRequest, InferResponse, encode_request, receive);

fn receive(message: Result<Option<Bytes>>) -> Result<Option<InferResponse>> {
    message.map_err(client_failed)?.map(read_response).transpose()
}
