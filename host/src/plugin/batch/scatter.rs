//! Scatters outputs of a whole batch: one block each, of which every request gets its rows by reference.

use super::declared::{Declared, Rows};
use super::memory::{Donation, Memory, size_of_parts};
use super::outputs::ResponseBuilder;
use super::requests::BatchRequests;
use super::slot::BatchStatus;
use crate::error::{Error, Result};
use crate::ledger::{Holder, MemoryTag};
use crate::request::strings::{self, StringFault};
use crate::request::{DType, Responder, Shape, ShapeText};
use crate::sync::{Mutex, MutexGuard};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use trtserver_plugin_api::abi::types::Buf;

/// The outputs scattered and not sent yet.
#[derive(Default)]
pub struct ScatteredOutputs {
    /// Only outputs that a request asked for.
    blocks: Vec<Block>,
    /// Something was scattered, even if no request asked for it.
    used: bool,
}

struct Block {
    name: String,
    declared: Declared,
    shape: Shape,
    memory: Memory,
}

/// The operations on the scattered outputs of a batch.
#[derive(Clone, Copy)]
pub struct Scatter<'a> {
    pub requests: &'a BatchRequests,
    pub scattered: &'a Mutex<ScatteredOutputs>,
}

impl<'a> Scatter<'a> {
    /// Memory for an output of all requests; `None` when none requested it. The backend may write it until the batch is
    /// sent; it is not read before.
    pub fn alloc(
        self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        bytes: u64,
    ) -> Result<Option<*mut u8>> {
        let Some(output) = self.check(name, dtype, shape, bytes)? else { return Ok(None) };
        let (memory, ptr) = Memory::allocate(name, bytes, output.tag)?;
        output.add(memory);
        Ok(Some(ptr))
    }

    /// Adopts donated memory as an output of all requests.
    pub fn adopt(
        self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        memory: &Buf,
        donation: Donation,
    ) -> Result<()> {
        let parts = std::slice::from_ref(memory);
        let bytes = size_of_parts(name, parts)?;
        // Declared before the lock is taken, so dropped after it is released: dropping a donation calls the backend.
        let mut donation = Some(donation);
        if let Some(output) = self.check(name, dtype, shape, bytes)? {
            let memory = Memory::adopt(name, &mut donation, parts, output.tag)?;
            output.add(memory);
        }
        Ok(())
    }

    /// Checks an output of the batch; `None` when no request asked for it.
    fn check(
        self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        bytes: u64,
    ) -> Result<Option<CheckedOutput<'a>>> {
        let signature = self.requests.signature()?;
        let rows = Rows::Batch(self.requests.views.rows().sum());
        let declared = Declared::check(&signature, name, dtype, shape, bytes, rows)?;
        let fault = |what: &str| {
            Err(Error::internal(format!("model '{}': output '{name}' {what}", signature.model)))
        };
        if !declared.batched && self.requests.slots().len() > 1 {
            return fault("has no batch dimension and cannot be split among several requests");
        }
        let mut requested = false;
        for slot in self.requests.slots() {
            match slot.batch_status() {
                BatchStatus::Done => {}
                BatchStatus::Responding => {
                    return fault("was scattered while a response of the batch was being built");
                }
                BatchStatus::Open(responder) => requested |= is_requested(&responder, &declared),
            }
        }
        let mut scattered = self.scattered.lock();
        scattered.used = true;
        if !requested {
            return Ok(None);
        }
        if scattered.blocks.iter().any(|block| block.name == name) {
            return fault("was scattered twice");
        }
        let holder = if declared.state.is_some() { Holder::State } else { Holder::Output };
        let (name, tag) = (name.to_owned(), signature.owner.tag(holder));
        Ok(Some(CheckedOutput { scattered, name, declared, shape: shape.into(), tag }))
    }

    /// Drops the scattered outputs.
    pub fn discard(self) {
        let scattered = std::mem::take(&mut *self.scattered.lock());
        drop(scattered);
    }

    /// Sends every open request its rows of the scattered outputs, if there are any.
    pub fn send(self) {
        let ScatteredOutputs { blocks, used } = std::mem::take(&mut *self.scattered.lock());
        if !used {
            return;
        }
        let rows: Vec<u32> = self.requests.views.rows().collect();
        let split: Vec<SplitOutput> =
            blocks.into_iter().map(|block| SplitOutput::new(block, &rows)).collect();
        for (position, (slot, &rows)) in self.requests.slots().iter().zip(&rows).enumerate() {
            let BatchStatus::Open(responder) = slot.batch_status() else { continue };
            let mut fault = None;
            let mut response = ResponseBuilder::new(Arc::clone(&responder));
            for output in split.iter().filter(|output| is_requested(&responder, &output.declared)) {
                match &output.ranges {
                    Ok(ranges) => {
                        let data = output.data.slice(ranges[position].clone());
                        response.add_rows(output.declared.with_rows(rows), data);
                    }
                    Err(what) => fault = Some(output.malformed(&responder, what)),
                }
            }
            // Fails only if the backend has just ended the request on another thread.
            let _ = response.send(true, fault);
        }
    }
}

/// An output that passed its checks and has no memory yet.
struct CheckedOutput<'a> {
    scattered: MutexGuard<'a, ScatteredOutputs>,
    name: String,
    declared: Declared,
    shape: Shape,
    /// What its memory is entered under in the ledger.
    tag: MemoryTag,
}

impl CheckedOutput<'_> {
    fn add(self, memory: Memory) {
        let Self { mut scattered, name, declared, shape, .. } = self;
        scattered.blocks.push(Block { name, declared, shape, memory });
    }
}

fn is_requested(responder: &Responder, declared: &Declared) -> bool {
    let output = declared
        .output
        .as_ref()
        .is_some_and(|(index, _)| responder.context.position(*index).is_some());
    output || (declared.state.is_some() && responder.implicit_state().is_some())
}

/// A finished output, and the byte range of each request in it.
struct SplitOutput {
    name: String,
    shape: Shape,
    declared: Declared,
    data: Bytes,
    /// By position of the request in the batch.
    ranges: Result<Vec<Range<usize>>, StringFault>,
}

impl SplitOutput {
    fn new(block: Block, rows: &[u32]) -> Self {
        let Block { name, declared, shape, memory } = block;
        let data = memory.into_bytes();
        let elements = Declared::row_elements(&shape, declared.batched);
        // Without a batch dimension there is one request, which gets the whole tensor.
        let counts =
            rows.iter().map(|&n| if declared.batched { n as usize * elements } else { elements });
        let ranges = match declared.dtype {
            DType::String => split_strings(&data, counts),
            other => Ok(split_elements(counts, other.size().unwrap_or(0))),
        };
        Self { name, shape, declared, data, ranges }
    }

    fn malformed(&self, responder: &Responder, fault: &StringFault) -> Error {
        Error::internal(format!(
            "model '{}': the backend produced malformed strings in output '{}' of shape {}: {fault:?}",
            responder.context.signature.model,
            self.name,
            ShapeText(&self.shape)
        ))
    }
}

fn split_elements(counts: impl Iterator<Item = usize>, size: usize) -> Vec<Range<usize>> {
    let range = |at: &mut usize, count: usize| {
        let begin = std::mem::replace(at, *at + count * size);
        Some(begin..*at)
    };
    counts.scan(0, range).collect()
}

/// Splits by the string lengths. Up to three trailing bytes are ignored.
fn split_strings(
    data: &[u8],
    counts: impl Iterator<Item = usize>,
) -> Result<Vec<Range<usize>>, StringFault> {
    let (mut at, mut total) = (0, 0);
    let mut ranges = Vec::new();
    let mut complete = true;
    for count in counts {
        let begin = at;
        let mut found = 0;
        for element in strings::elements(&data[at..]).take(count) {
            at += 4 + element.len();
            found += 1;
        }
        complete &= found == count;
        total += count;
        ranges.push(begin..at);
    }
    if complete && data.len() - at < 4 {
        return Ok(ranges);
    }
    // Walked again only for the error.
    strings::check(data, total).map(|_| ranges)
}

#[cfg(test)]
#[path = "scatter_tests.rs"]
mod tests;
