//! What is written down: calls, batches, outputs and donations as the backend has handled them so far.

use crate::request::Signature;
use crate::tool::check::memory::Block;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;
use trtserver_plugin_api::abi::host::Release;
use trtserver_plugin_api::abi::types::code;

/// What became of one of the things that a host call stands for.
pub struct Wrong {
    /// The promise that this breaks; `None` = an ordinary failure.
    pub promise: Option<&'static str>,
    pub code: u32,
    pub text: String,
}

/// A call of an entry that the interface does not allow.
pub fn misuse<T>(text: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { promise: Some("host.calls"), code: code::INVALID, text: text.into() })
}

#[derive(Clone, Debug)]
pub struct Failure {
    pub code: u32,
    pub text: String,
}

pub struct HeldError {
    pub code: u32,
    pub text: CString,
}

/// An output as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub name: String,
    pub shape: Vec<i64>,
    pub data: Vec<u8>,
}

pub type Answer = Vec<Output>;

/// Donated memory until the host is done with it.
pub struct Donation {
    pub release: Release,
    pub ctx: *mut u8,
}

// SAFETY: by the interface the release may come on any thread.
unsafe impl Send for Donation {}

/// Memory of an output while it is built.
pub enum Made {
    Ours(Block),
    /// What it was when it was donated, and where it lies.
    Donated {
        parts: Vec<(usize, usize)>,
        was: Vec<u8>,
        donation: Donation,
    },
}

pub struct Building {
    pub id: u64,
    pub outputs: Vec<(String, Vec<i64>, Made)>,
    /// An output could not be given: the answer is spoilt, whatever the plugin says.
    pub spoilt: bool,
}

/// One call, from `execute` to its end.
pub struct Call {
    /// `call 2 of 3`.
    pub label: String,
    pub rows: u32,
    pub wanted: Vec<String>,
    pub signature: Arc<Signature>,
    /// What it was given does not fit the model, or the model may not fit the backend: outputs are not held against
    /// the declaration.
    pub lenient: bool,
    pub released: bool,
    pub retained: u32,
    pub building: Option<Building>,
    pub answers: Vec<Answer>,
    pub end: Option<Result<(), Failure>>,
    /// `execute` has returned.
    pub returned: bool,
    /// A wanted output that was missing in an answer.
    pub missing: Option<String>,
}

pub struct Scattered {
    pub name: String,
    pub dtype: u32,
    pub shape: Vec<i64>,
    pub batched: bool,
    pub made: Made,
}

pub struct Batch {
    pub calls: Vec<u64>,
    pub running: bool,
    pub scattered: Vec<Scattered>,
    pub scatter_begun: bool,
    pub gathered: HashMap<u32, (Block, Vec<u8>)>,
}

pub struct Lease {
    pub scope: usize,
    pub block: Block,
}
