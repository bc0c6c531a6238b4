//! An inference request of v1 and its response, as they are sent.

use crate::error::{Error, Result};
use crate::percent::encode_path;
use crate::settings::Protocol;
use crate::transport::CallTiming;
use crate::transport::body::Segments;
use bytes::Bytes;
use http::HeaderValue;
use prost::Message;
use std::ops::Range;
use std::time::Duration;
use trtserver_proto::text;
use trtserver_proto::v1::{InferRequestHeader, InferResponseHeader};
use trtserver_proto_wire::{put_bytes, put_number};

/// A request whose header the caller made.
#[derive(Clone, Debug, Default)]
pub struct InferRequest {
    /// Name of the model.
    pub model: String,
    /// Negative: the latest.
    pub version: i64,
    /// As it is sent.
    pub header: InferRequestHeader,
    /// The slices of each input that is not in shared memory, in the order of the header.
    pub inputs: Vec<Vec<Bytes>>,
    /// Instead of the deadline of the settings. Not on streams.
    pub deadline: Option<Duration>,
}

impl InferRequest {
    pub(super) fn check(&self) -> Result<()> {
        let sent = self.header.input.iter().filter(|input| input.shared_memory.is_none()).count();
        if sent == self.inputs.len() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the header for model '{}' has {sent} inputs outside shared memory, the request the data of {}",
            self.model,
            self.inputs.len()
        )))
    }

    /// Whether the server writes this output to shared memory.
    pub(super) fn is_shared_output(&self, name: &str) -> bool {
        self.header.output.iter().any(|o| o.name == name && o.shared_memory.is_some())
    }
}

/// What precedes the tensors of a request.
#[derive(Debug)]
pub(super) enum EncodedRequest {
    Http {
        path: String,
        header: HeaderValue,
    },
    /// The message without its inputs.
    Grpc(Vec<u8>),
}

impl EncodedRequest {
    pub fn new(protocol: Protocol, request: &InferRequest) -> Result<Self> {
        match protocol {
            Protocol::Http => Self::http(request),
            Protocol::Grpc => Ok(Self::grpc(request)),
        }
    }

    fn http(request: &InferRequest) -> Result<Self> {
        let version = match request.version {
            0.. => format!("/{}", request.version),
            _ => String::new(),
        };
        let path = format!("/api/infer/{}{version}?format=binary", encode_path(&request.model));
        let header = text::print_line(&request.header);
        let header = HeaderValue::from_str(&header).map_err(|_| {
            Error::invalid(format!("`{header}` cannot be sent in the header nv-inferrequest"))
        })?;
        Ok(Self::Http { path, header })
    }

    pub fn grpc(request: &InferRequest) -> Self {
        let header = request.header.encode_to_vec();
        let mut head = Vec::with_capacity(header.len() + request.model.len() + 32);
        put_bytes(&mut head, 1, request.model.as_bytes());
        put_number(&mut head, 2, request.version as u64);
        put_bytes(&mut head, 3, &header);
        Self::Grpc(head)
    }
}

/// The tensors of a request.
#[derive(Clone, Copy)]
pub(super) enum RequestTensors<'a> {
    Slices(&'a [Vec<Bytes>]),
    /// In one block, with the place of each.
    Joined {
        data: &'a [u8],
        places: &'a [Range<usize>],
    },
}

impl RequestTensors<'_> {
    /// Appends all of them, each behind what `head` writes for its size.
    pub fn put(self, body: &mut Segments, head: impl Fn(&mut Segments, usize)) {
        match self {
            RequestTensors::Slices(inputs) => {
                for slices in inputs {
                    head(body, slices.iter().map(Bytes::len).sum());
                    slices.iter().for_each(|slice| body.put_shared(slice));
                }
            }
            RequestTensors::Joined { data, places } => {
                for place in places {
                    head(body, place.len());
                    body.put(&data[place.clone()]);
                }
            }
        }
    }
}

/// A request as it is sent.
#[derive(Clone, Copy)]
pub(super) struct OutgoingRequest<'a> {
    /// Its inputs are in `tensors`.
    pub request: &'a InferRequest,
    pub encoded: &'a EncodedRequest,
    pub tensors: RequestTensors<'a>,
}

/// A response.
#[derive(Clone, Debug, Default)]
pub struct InferResponse {
    /// The server's id.
    pub server_id: String,
    /// The server's number of the request.
    pub request_id: u64,
    /// As it was received.
    pub header: InferResponseHeader,
    /// The bytes of each output of the header, slices of the received response. Empty for classes
    /// and outputs in shared memory.
    pub outputs: Vec<Bytes>,
    pub(super) timing: Option<CallTiming>,
}
