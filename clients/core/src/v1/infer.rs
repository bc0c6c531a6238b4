//! An inference request of v1 and its response, as they are sent.

use crate::error::{Error, Result};
use crate::transport::Timing;
use bytes::Bytes;
use std::time::Duration;
use trtserver_proto::v1::{InferRequestHeader, InferResponseHeader};

/// A request whose header the caller made.
#[derive(Clone, Debug, Default)]
pub struct InferRequest {
    pub model: String,
    /// Negative: the latest.
    pub version: i64,
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

/// A response.
#[derive(Clone, Debug, Default)]
pub struct InferResponse {
    pub server_id: String,
    pub request_id: u64,
    pub header: InferResponseHeader,
    /// The bytes of each output of the header, slices of the received response. Empty for classes and outputs in shared memory.
    pub outputs: Vec<Bytes>,
    pub(super) timing: Option<Timing>,
}
