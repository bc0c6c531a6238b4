//! A response in the store: copies of the outputs in memory of the cache.
//!
//! Outputs are copied because they may be slices of a whole batch's tensor, memory of a backend, or
//! of the child process of an isolated model; and they are paid for by the budget of requests.

use bytes::Bytes;
use smallvec::SmallVec;
use trtserver_base::ledger::MemoryTag;
use trtserver_request::buffer::{ALIGN, AlignedBuf};
use trtserver_request::{InferResponse, OutputTensor, ParameterValue};

/// What an entry is counted as beside the bytes of its tensors, and what each tensor is.
pub const ENTRY_BYTES: u64 = 256;
pub const OUTPUT_BYTES: u64 = 128;

/// Between tensors, so that each is aligned.
const PADDING: &[u8; ALIGN] = &[0; ALIGN];

/// Outputs and parameters of a response.
#[derive(Clone, Debug, Default)]
pub struct ResponseParts {
    pub outputs: SmallVec<[OutputTensor; 2]>,
    pub parameters: Vec<(String, ParameterValue)>,
}

impl ResponseParts {
    /// Those of `response`, by reference.
    pub fn from_response(response: &InferResponse) -> Self {
        Self { outputs: response.outputs.clone(), parameters: response.parameters.clone() }
    }

    pub fn response(&self) -> InferResponse {
        let Self { outputs, parameters } = self.clone();
        InferResponse { outputs, parameters, unread: None }
    }

    /// What an entry with them is counted as.
    pub fn weight(&self) -> u64 {
        let outputs = self.outputs.iter().map(|o| {
            OUTPUT_BYTES + (8 * o.shape.len()) as u64 + o.data.len().next_multiple_of(ALIGN) as u64
        });
        let text = |value: &ParameterValue| match value {
            ParameterValue::String(text) => text.len(),
            _ => 0,
        };
        let parameters = self.parameters.iter().map(|(name, value)| {
            (size_of::<(String, ParameterValue)>() + name.len() + text(value)) as u64
        });
        ENTRY_BYTES + outputs.sum::<u64>() + parameters.sum::<u64>()
    }

    /// A copy in memory that is entered under `tag`. `None` without memory for it, or if an output is
    /// not in memory of the host.
    fn copied(&self, tag: MemoryTag) -> Option<Self> {
        let mut parts: SmallVec<[&[u8]; 4]> = SmallVec::new();
        let (mut starts, mut at): (SmallVec<[usize; 2]>, usize) = (SmallVec::new(), 0);
        for output in &self.outputs {
            let data = output.data.cpu()?;
            starts.push(at);
            let padding = data.len().next_multiple_of(ALIGN) - data.len();
            parts.push(data);
            parts.push(&PADDING[..padding]);
            at += data.len() + padding;
        }
        // The last one needs no padding.
        parts.pop();
        let memory = AlignedBuf::try_copy_parts(&parts, tag)?.into_bytes();
        let mut copy = self.clone();
        for (output, start) in copy.outputs.iter_mut().zip(starts) {
            let len = output.data.len();
            let data = if len == 0 { Bytes::new() } else { memory.slice(start..start + len) };
            output.data = data.into();
        }
        Some(copy)
    }
}

/// One entry of the store.
pub struct CachedResponse {
    /// The open version that it is a response of.
    pub version: u64,
    /// When it may be used no more, `u64::MAX` = never.
    pub expires_ns: u64,
    pub weight: u64,
    parts: ResponseParts,
}

impl CachedResponse {
    /// A copy of `parts`. `None`: see [`ResponseParts::copied`].
    pub fn copy(
        parts: &ResponseParts,
        version: u64,
        expires_ns: u64,
        tag: MemoryTag,
    ) -> Option<Self> {
        let weight = parts.weight();
        Some(Self { version, expires_ns, weight, parts: parts.copied(tag)? })
    }

    /// The response, which refers to the memory of the entry.
    pub fn response(&self) -> InferResponse {
        self.parts.response()
    }
}
