//! The kinds of gRPC calls, and the memory that a call holds as soon as it is open.

use crate::connections::CallClass;
use http::{HeaderValue, Request};

/// The inference RPCs bypass tonic, which serves all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    InferV1,
    InferV2,
    /// The streams: their clients send messages at any time, and their responses are counted as
    /// unread one by one.
    StreamV1,
    Stream2018,
    StreamV2,
    Other,
}

/// What a unary call holds before its message has arrived, without its headers: its HTTP/2 stream
/// and its future.
const UNARY_BYTES: usize = 4 << 10;
/// What a stream holds once its first message has arrived, without its messages. Before, it is a
/// tenth.
const STREAM_BYTES: usize = 16 << 10;
/// Bytes of the table of headers for each header that it has place for, and for each further value
/// of a header.
const HEADER_BYTES: usize = 112;
const VALUE_BYTES: usize = 72;

impl CallKind {
    pub fn from_path(path: &str) -> Self {
        match path {
            "/inference.GRPCInferenceService/ModelInfer" => Self::InferV2,
            "/nvidia.inferenceserver.GRPCService/Infer" => Self::InferV1,
            "/inference.GRPCInferenceService/ModelStreamInfer" => Self::StreamV2,
            "/nvidia.inferenceserver.GRPCService/StreamInfer" => Self::StreamV1,
            "/nvidia.inferenceserver.GRPCService/InferStream" => Self::Stream2018,
            _ => Self::Other,
        }
    }

    pub fn is_inference(self) -> bool {
        self != Self::Other
    }

    pub fn class(self) -> CallClass {
        if self.is_inference() { CallClass::Inference } else { CallClass::Other }
    }

    /// Bytes that a call of this kind holds with its headers.
    pub fn held_bytes<B>(self, request: &Request<B>) -> usize {
        let fixed = match self {
            Self::InferV1 | Self::InferV2 | Self::Other => UNARY_BYTES,
            Self::StreamV1 | Self::Stream2018 | Self::StreamV2 => STREAM_BYTES,
        };
        let (uri, headers) = (request.uri(), request.headers());
        let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
        let table =
            headers.capacity() * HEADER_BYTES + (headers.len() - headers.keys_len()) * VALUE_BYTES;
        let values: usize = headers.values().map(HeaderValue::len).sum();
        fixed + table + values + uri.path().len() + authority
    }
}

#[cfg(test)]
#[path = "call_kind_tests.rs"]
mod tests;
