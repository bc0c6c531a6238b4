//! Entries for outputs, which belong to one response or, when scattered, to all requests of a
//! batch.

use super::batches::{self, executing_batch};
use super::responses::{self, open_response, response_request};
use super::{
    AdoptedMemory, CallRefusal, HostState, OpenOutput, OutputMemory, ScatteredOutput, buf,
    copy_parts, entry, put, refuse_misuse, text,
};
use crate::memory::GuardedBlock;
use trtserver_plugin_api::abi::host::Release;
use trtserver_plugin_api::abi::request::Batch;
use trtserver_plugin_api::abi::types::{Buf, Error, MAX_RANK, Memory, Response, Str, memory_type};

/// More bytes than any output has.
const MAX_BYTES: u64 = 1 << 40;

/// An output as the backend describes it.
pub(super) struct OutputHeader {
    pub name: String,
    pub dtype: u32,
    pub shape: Vec<i64>,
}

impl OutputHeader {
    /// # Safety
    /// `name` is valid; `shape` is null or valid for `rank` numbers.
    unsafe fn read(
        name: Str,
        dtype: u32,
        rank: u32,
        shape: *const i64,
    ) -> Result<Self, CallRefusal> {
        // SAFETY: by the caller's promise.
        let name = unsafe { text(name, "the name of an output") }?;
        let shape = match rank {
            0 => Vec::new(),
            _ if shape.is_null() => return refuse_misuse("the shape of an output is null"),
            // SAFETY: by the caller's promise.
            1..=MAX_RANK => unsafe { std::slice::from_raw_parts(shape, rank as usize) }.to_vec(),
            _ => return refuse_misuse(format!("an output has {rank} dimensions")),
        };
        Ok(Self { name, dtype, shape })
    }

    fn with(self, memory: OutputMemory) -> OpenOutput {
        let Self { name, dtype, shape } = self;
        OpenOutput { name, dtype, shape, memory }
    }
}

/// What an output is added to.
#[derive(Clone, Copy)]
enum OutputTarget {
    Response(*const Response),
    Batch(*const Batch),
}

impl OutputTarget {
    /// Checks an output against the model. Returns whether it is batched; `None` if it was not
    /// requested.
    fn check(
        self,
        state: &mut HostState,
        output: &OutputHeader,
        bytes: u64,
    ) -> Result<Option<bool>, CallRefusal> {
        match self {
            Self::Response(response) => {
                let id = response_request(state, response)?;
                responses::check_output(state, id, output, bytes)
            }
            Self::Batch(batch) => batches::check_output(state, batch, output, bytes),
        }
    }

    fn add(
        self,
        state: &mut HostState,
        output: OpenOutput,
        batched: bool,
    ) -> Result<(), CallRefusal> {
        match self {
            Self::Response(response) => open_response(state, response)?.1.outputs.push(output),
            Self::Batch(batch) => {
                executing_batch(state, batch)?.scattered.push(ScatteredOutput { output, batched });
            }
        }
        Ok(())
    }

    /// # Safety
    /// `head` is valid or not an output; `out` is null or valid for one buffer.
    unsafe fn alloc(
        self,
        state: &mut HostState,
        head: OutputHeader,
        bytes: u64,
        out: *mut Buf,
    ) -> Result<(), CallRefusal> {
        let Some(batched) = self.check(state, &head, bytes)? else {
            // SAFETY: by the caller's promise.
            return unsafe { put(out, buf(std::ptr::null_mut(), 0, 0)) };
        };
        let size = usize::try_from(bytes).ok().filter(|_| bytes <= MAX_BYTES);
        let Some(block) = size.and_then(|size| GuardedBlock::new(size, 0)) else {
            return refuse_misuse(format!("output '{}': no memory for {bytes} bytes", head.name));
        };
        // SAFETY: by the caller's promise.
        unsafe { put(out, buf(block.ptr(), block.bytes, 0)) }?;
        self.add(state, head.with(OutputMemory::Host(block)), batched)
    }

    /// Adopts memory, or records it to be released if a check fails.
    ///
    /// # Safety
    /// The parts of `memory` are readable.
    unsafe fn adopt(
        self,
        state: &mut HostState,
        memory: Result<(OutputHeader, OutputParts), CallRefusal>,
        adopted: AdoptedMemory,
    ) -> Result<(), CallRefusal> {
        let (head, OutputParts { parts, bytes }) = match memory {
            Ok(memory) => memory,
            Err(refusal) => {
                state.done.push(adopted);
                return Err(refusal);
            }
        };
        // SAFETY: by the caller's promise.
        let contents = unsafe { copy_parts(&parts) };
        state.counts.adopted += 1;
        let checked = self.check(state, &head, bytes);
        let output = head.with(OutputMemory::AdoptedMemory { parts, contents, adopted });
        match checked {
            Ok(Some(batched)) => self.add(state, output, batched),
            Ok(None) => {
                state.retire_output(output);
                Ok(())
            }
            Err(refusal) => {
                state.retire_output(output);
                Err(refusal)
            }
        }
    }
}

/// Addresses and lengths of adopted memory, and its size.
struct OutputParts {
    parts: Vec<(usize, usize)>,
    bytes: u64,
}

impl OutputParts {
    /// # Safety
    /// `parts` is null or valid for `n` buffers.
    unsafe fn read(name: &str, parts: *const Buf, n: u32) -> Result<Self, CallRefusal> {
        let mut read = Self { parts: Vec::new(), bytes: 0 };
        for at in 0..if parts.is_null() { 0 } else { n as usize } {
            // SAFETY: by the caller's promise.
            let part = unsafe { &*parts.add(at) };
            let sum = read.bytes.checked_add(part.bytes).filter(|sum| *sum <= MAX_BYTES);
            let fault = match sum {
                _ if !matches!(part.memory.memory_type, memory_type::CPU | memory_type::PINNED) => {
                    "is not in CPU memory"
                }
                None => "has an impossible size",
                Some(_) if part.ptr.is_null() && part.bytes > 0 => "is null",
                Some(sum) => {
                    read.bytes = sum;
                    read.parts.push((part.ptr.expose_provenance(), part.bytes as usize));
                    continue;
                }
            };
            return refuse_misuse(format!("adopted memory of output '{name}' {fault}"));
        }
        Ok(read)
    }
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
pub(super) unsafe extern "C" fn output_alloc(
    response: *mut Response,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    bytes: u64,
    _preferred_memory: Memory,
    out: *mut Buf,
) -> *mut Error {
    entry("output_alloc", |state| {
        // SAFETY: name and shape are valid during the call; null or valid for one buffer.
        unsafe {
            let head = OutputHeader::read(name, dtype, rank, shape)?;
            OutputTarget::Response(response).alloc(state, head, bytes, out)
        }
    })
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
pub(super) unsafe extern "C" fn output_adopt(
    response: *mut Response,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    parts: *const Buf,
    n_parts: u32,
    release: Release,
    ctx: *mut u8,
) -> *mut Error {
    entry("output_adopt", |state| {
        // SAFETY: name and shape are valid during the call; the backend passes `n_parts` readable
        // buffers.
        unsafe {
            let memory = OutputHeader::read(name, dtype, rank, shape).and_then(|head| {
                let parts = OutputParts::read(&head.name, parts, n_parts)?;
                Ok((head, parts))
            });
            OutputTarget::Response(response).adopt(state, memory, AdoptedMemory { release, ctx })
        }
    })
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
pub(super) unsafe extern "C" fn scatter_alloc(
    batch: *const Batch,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    bytes: u64,
    _preferred_memory: Memory,
    out: *mut Buf,
) -> *mut Error {
    entry("scatter_alloc", |state| {
        // SAFETY: name and shape are valid during the call; null or valid for one buffer.
        unsafe {
            let head = OutputHeader::read(name, dtype, rank, shape)?;
            OutputTarget::Batch(batch).alloc(state, head, bytes, out)
        }
    })
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
pub(super) unsafe extern "C" fn scatter_adopt(
    batch: *const Batch,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    given: *const Buf,
    release: Release,
    ctx: *mut u8,
) -> *mut Error {
    entry("scatter_adopt", |state| {
        // SAFETY: name and shape are valid during the call; null or one readable buffer.
        unsafe {
            let memory = OutputHeader::read(name, dtype, rank, shape).and_then(|head| {
                if given.is_null() {
                    return refuse_misuse("null passed as adopted memory");
                }
                let parts = OutputParts::read(&head.name, given, 1)?;
                Ok((head, parts))
            });
            OutputTarget::Batch(batch).adopt(state, memory, AdoptedMemory { release, ctx })
        }
    })
}
