//! What the host remembers: scopes, requests, batches, outputs and adopted memory.

use crate::memory::GuardedBlock;
use crate::model::ModelSpec;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;
use trtserver_plugin_api::abi::host::Release;
use trtserver_plugin_api::abi::types::{Memory, code};

/// An error as the backend or the host created it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One of `abi::types::code`.
    pub code: u32,
    /// Bits of `abi::types::error_flags`.
    pub flags: u32,
    /// What clients see.
    pub text: String,
}

impl Failure {
    pub(crate) fn internal(text: impl Into<String>) -> Self {
        Self { code: code::INTERNAL, flags: 0, text: text.into() }
    }
}

/// An output as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// As the backend called it.
    pub name: String,
    /// One of `abi::types::dtype`.
    pub dtype: u32,
    /// With the batch dimension, if the model has one.
    pub shape: Vec<i64>,
    /// The bytes of the tensor.
    pub data: Vec<u8>,
    /// In memory of the backend.
    pub adopted: bool,
}

/// Key, kind (one of `abi::types::param`), text and bits of a response parameter.
pub type SentParam = (String, u32, String, u64);

/// A response as it was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// In the order in which they were added.
    pub outputs: Vec<Output>,
    /// In the order in which they were added.
    pub params: Vec<SentParam>,
}

impl Response {
    /// The output of that name.
    pub fn output(&self, name: &str) -> Option<&Output> {
        self.outputs.iter().find(|output| output.name == name)
    }
}

/// What the backend did with a scope.
#[derive(Clone, Debug, Default)]
pub struct ScopeRecord {
    pub label: String,
    /// Level and text.
    pub log: Vec<(u32, String)>,
    /// Format and contents of `config_patch`.
    pub patches: Vec<(u32, Vec<u8>)>,
    pub metrics: Vec<Metric>,
    /// Memory and bytes of `memory_report`, where not 0.
    pub reported: Vec<(Memory, u64)>,
    pub(crate) open: bool,
}

/// A metric as the backend created it.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Of its family.
    pub name: String,
    /// Names and values.
    pub labels: Vec<(String, String)>,
    /// Of a histogram, the sum of its observations.
    pub value: f64,
}

/// A call of an entry that failed.
pub(crate) struct CallRefusal {
    /// The promise that the call broke; `None` = an ordinary failure.
    pub promise: Option<&'static str>,
    pub code: u32,
    pub text: String,
}

/// A call that the interface does not allow.
pub(crate) fn refuse_misuse<T>(text: impl Into<String>) -> Result<T, CallRefusal> {
    Err(CallRefusal { promise: Some("host.calls"), code: code::INVALID, text: text.into() })
}

pub(crate) struct ErrorRecord {
    pub code: u32,
    pub flags: u32,
    pub text: CString,
}

impl ErrorRecord {
    pub fn failure(&self) -> Failure {
        let text = self.text.to_string_lossy().into_owned();
        Failure { code: self.code, flags: self.flags, text }
    }
}

/// The release of adopted memory, called exactly once.
pub(crate) struct AdoptedMemory {
    pub release: Release,
    pub ctx: *mut u8,
}

// SAFETY: by the interface the release may be called on any thread.
unsafe impl Send for AdoptedMemory {}

/// Memory of an output under construction.
pub(crate) enum OutputMemory {
    Host(GuardedBlock),
    /// Addresses and lengths, and the contents at the adoption.
    AdoptedMemory {
        parts: Vec<(usize, usize)>,
        contents: Vec<u8>,
        adopted: AdoptedMemory,
    },
}

pub(crate) struct OpenOutput {
    pub name: String,
    pub dtype: u32,
    pub shape: Vec<i64>,
    pub memory: OutputMemory,
}

pub(crate) struct OpenResponse {
    pub id: u64,
    pub outputs: Vec<OpenOutput>,
    pub params: Vec<SentParam>,
    /// An output was refused.
    pub incomplete: bool,
}

/// One request, from `execute` until it is finished.
pub(crate) struct RequestRecord {
    /// `request 2 of 3`.
    pub label: String,
    pub rows: u32,
    pub requested: Vec<String>,
    pub model: Arc<ModelSpec>,
    /// Outputs are not checked against the model.
    pub unchecked: bool,
    pub released: bool,
    /// Detachments that were not undone.
    pub detached: u32,
    pub open_response: Option<OpenResponse>,
    pub responses: Vec<Response>,
    pub result: Option<Result<(), Failure>>,
    /// `execute` has returned.
    pub returned: bool,
    /// A requested output that a response lacked.
    pub missing: Option<String>,
}

pub(crate) struct ScatteredOutput {
    pub output: OpenOutput,
    pub batched: bool,
}

pub(crate) struct BatchRecord {
    pub requests: Vec<u64>,
    pub scattered: Vec<ScatteredOutput>,
    pub scatter_called: bool,
    pub gathered: HashMap<u32, (GuardedBlock, Vec<u8>)>,
}

pub(crate) struct Allocation {
    pub scope: u64,
    pub block: GuardedBlock,
}
