//! Holders: what memory is used for.

/// What memory is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LedgerHolder {
    /// Open gRPC calls with their headers, and heads of HTTP/1 requests.
    OpenCall,
    /// Messages being received, before their model is known.
    RequestBody,
    /// Inputs of requests, with the bodies that they are slices of.
    Input,
    /// Messages that a decode worker decodes or decompresses.
    Decode,
    /// Inputs that were copied to be contiguous in a batch.
    GatheredInput,
    /// Outputs, also of responses that the client has not read.
    Output,
    /// Implicit states of sequences.
    State,
    /// Responses as JSON text, and compressed ones.
    Encode,
    /// Drawn by connections for responses that the client has not read.
    UnreadResponse,
    /// Tensors of warm-up samples.
    WarmUp,
    /// Sequence controls, initial states, zeros of null requests.
    Control,
    /// Memory that a backend has asked the host for.
    Backend,
    /// Regions of clients' shared memory: mapped bytes.
    ClientSharedMemory,
    /// Parts of models on their way from an object store to the disk.
    Download,
    /// Responses in the response cache.
    ResponseCache,
}

/// In the order of their numbers.
pub const HOLDERS: [LedgerHolder; 15] = [
    LedgerHolder::OpenCall,
    LedgerHolder::RequestBody,
    LedgerHolder::Input,
    LedgerHolder::Decode,
    LedgerHolder::GatheredInput,
    LedgerHolder::Output,
    LedgerHolder::State,
    LedgerHolder::Encode,
    LedgerHolder::UnreadResponse,
    LedgerHolder::WarmUp,
    LedgerHolder::Control,
    LedgerHolder::Backend,
    LedgerHolder::ClientSharedMemory,
    LedgerHolder::Download,
    LedgerHolder::ResponseCache,
];

impl LedgerHolder {
    /// As `/v2/trtserver/memory` and the metrics name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenCall => "open_calls",
            Self::RequestBody => "request_bodies",
            Self::Input => "inputs",
            Self::Decode => "decoding",
            Self::GatheredInput => "gathered_inputs",
            Self::Output => "outputs",
            Self::State => "sequence_states",
            Self::Encode => "encoding",
            Self::UnreadResponse => "unread_responses",
            Self::WarmUp => "warm_up",
            Self::Control => "controls",
            Self::Backend => "backend",
            Self::ClientSharedMemory => "client_shared_memory",
            Self::Download => "downloads",
            Self::ResponseCache => "response_cache",
        }
    }

    /// Held before a request is accepted, or for no request. Such memory may not use the last
    /// eighth of the memory budget, which is kept for responses to accepted requests.
    pub fn is_request(self) -> bool {
        matches!(
            self,
            Self::OpenCall | Self::RequestBody | Self::Input | Self::Decode | Self::Download
        )
    }

    /// Drawn from the memory budget; the rest is not of requests.
    pub fn is_budgeted(self) -> bool {
        !matches!(
            self,
            Self::WarmUp
                | Self::Control
                | Self::Backend
                | Self::ClientSharedMemory
                | Self::ResponseCache
        )
    }
}
