//! Request context: what is known when a request is built. Immutable, so backends and schedulers read it without a lock.

use super::signature::Signature;
use super::tensor::RequestedOutput;
use super::unread::StreamLimit;
use crate::stats::VersionStats;
use smallvec::SmallVec;
use std::sync::Arc;

pub struct RequestContext {
    pub signature: Arc<Signature>,
    /// `None` for requests that the host makes itself (null requests, warm-up, the child's side of an isolated model):
    /// they are not counted.
    pub stats: Option<Arc<VersionStats>>,
    /// When the first byte of the request was read.
    pub received_ns: u64,
    /// Batch size: the first dimension of every tensor of a batching model, else 1.
    pub batch: u32,
    /// In the order in which the client named them. v2 fills in all outputs when none is named; v1 may request none.
    pub outputs: SmallVec<[RequestedOutput; 2]>,
    /// The stream that the request came from, if it is one of v2.
    pub stream: Option<RequestStream>,
}

/// The stream of a request.
#[derive(Clone)]
pub struct RequestStream {
    pub limit: Arc<dyn StreamLimit>,
    /// The model is decoupled: a backend that sends a response waits while the limit is reached.
    pub waits: bool,
}

impl RequestContext {
    /// The request came from a client and is part of the statistics.
    pub fn is_counted(&self) -> bool {
        self.stats.is_some()
    }

    /// Sending a response may block.
    pub fn may_wait(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.waits)
    }

    /// Position of the signature's output number `index` among the requested outputs.
    pub fn position(&self, index: usize) -> Option<usize> {
        self.outputs.iter().position(|output| output.index() == index)
    }
}
