//! Outputs of a whole batch: one block each, of which every call gets its rows by reference.

use super::declared::{Declared, Rows};
use super::memory::{Donation, Memory, size_of_parts};
use super::outputs::Building;
use super::requests::BatchRequests;
use super::slot::Standing;
use crate::error::{Error, Result};
use crate::request::buffer::AlignedBuf;
use crate::request::strings::{self, StringFault};
use crate::request::{DType, Responder, Shape, ShapeText};
use crate::sync::{Mutex, MutexGuard};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use trtserver_plugin_api::abi::types::Buf;

/// What was scattered and not sent yet.
#[derive(Default)]
pub struct Scattered {
    /// What nobody wants is not among them.
    blocks: Vec<Block>,
    begun: bool,
}

struct Block {
    name: String,
    declared: Declared,
    shape: Shape,
    memory: Memory,
}

/// The scattered outputs of one batch.
#[derive(Clone, Copy)]
pub struct Scatter<'a> {
    pub requests: &'a BatchRequests,
    pub scattered: &'a Mutex<Scattered>,
}

impl<'a> Scatter<'a> {
    /// Memory for an output of all calls; `None` when nobody wants it. The plugin writes there until
    /// the batch is sent: until then nothing here looks into it.
    pub fn alloc(
        self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        bytes: u64,
    ) -> Result<Option<*mut u8>> {
        let Some(room) = self.room(name, dtype, shape, bytes)? else { return Ok(None) };
        let Some(mut memory) = AlignedBuf::try_new(bytes as usize) else {
            return Err(Error::internal(format!(
                "the backend asked for {bytes} bytes for output '{name}', which are not there"
            )));
        };
        let ptr = memory.as_mut_ptr();
        room.fill(Memory::Ours(memory));
        Ok(Some(ptr))
    }

    /// Takes donated memory as an output of all calls.
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
        // What is dropped on the way out calls the plugin: only after the lock is gone, and so it is,
        // because the donation was here first.
        let mut donation = Some(donation);
        if let Some(room) = self.room(name, dtype, shape, bytes)? {
            let Some(data) = Donation::bytes(&mut donation, parts) else {
                return Err(Error::internal(format!(
                    "{bytes} bytes for output '{name}' are not there"
                )));
            };
            room.fill(Memory::Donated(data));
        }
        Ok(())
    }

    /// Checks an output of the batch; `None` = nobody wants it.
    fn room(self, name: &str, dtype: u32, shape: &[i64], bytes: u64) -> Result<Option<Room<'a>>> {
        let signature = self.requests.signature()?;
        let rows = Rows::Batch(self.requests.views.rows().sum());
        let declared = Declared::check(&signature, name, dtype, shape, bytes, rows)?;
        let fault = |what: &str| {
            Err(Error::internal(format!("model '{}': output '{name}' {what}", signature.model)))
        };
        if !declared.batched && self.requests.slots().len() > 1 {
            return fault("has no batch dimension and cannot answer several requests");
        }
        let mut wanted = false;
        for slot in self.requests.slots() {
            match slot.standing() {
                Standing::Over => {}
                Standing::Responding => {
                    return fault("was scattered while a response of the batch was being built");
                }
                Standing::Open(reply) => wanted |= wants(&reply, &declared),
            }
        }
        let mut scattered = self.scattered.lock();
        scattered.begun = true;
        if !wanted {
            return Ok(None);
        }
        if scattered.blocks.iter().any(|block| block.name == name) {
            return fault("was scattered twice");
        }
        Ok(Some(Room { scattered, name: name.to_owned(), declared, shape: shape.into() }))
    }

    /// Drops what was scattered.
    pub fn discard(self) {
        let scattered = std::mem::take(&mut *self.scattered.lock());
        drop(scattered);
    }

    /// Answers every call that is still open with its rows of what was scattered, if anything was.
    pub fn send(self) {
        let Scattered { blocks, begun } = std::mem::take(&mut *self.scattered.lock());
        if !begun {
            return;
        }
        let rows: Vec<u32> = self.requests.views.rows().collect();
        let cut: Vec<Cut> = blocks.into_iter().map(|block| Cut::new(block, &rows)).collect();
        for (call, (slot, &rows)) in self.requests.slots().iter().zip(&rows).enumerate() {
            let Standing::Open(reply) = slot.standing() else { continue };
            let mut fault = None;
            let mut answer = Building::new(Arc::clone(&reply));
            for block in cut.iter().filter(|block| wants(&reply, &block.declared)) {
                match &block.pieces {
                    Ok(pieces) => {
                        let data = block.data.slice(pieces[call].clone());
                        answer.take_rows(block.declared.with_rows(rows), data);
                    }
                    Err(what) => fault = Some(block.malformed(&reply, what)),
                }
            }
            // Refused only if the plugin ended the reply on another thread in this moment.
            let _ = answer.send(true, fault);
        }
    }
}

/// An output that passed its checks and has no memory yet.
struct Room<'a> {
    scattered: MutexGuard<'a, Scattered>,
    name: String,
    declared: Declared,
    shape: Shape,
}

impl Room<'_> {
    fn fill(self, memory: Memory) {
        let Self { mut scattered, name, declared, shape } = self;
        scattered.blocks.push(Block { name, declared, shape, memory });
    }
}

fn wants(reply: &Responder, declared: &Declared) -> bool {
    let output =
        declared.output.as_ref().is_some_and(|(index, _)| reply.context.position(*index).is_some());
    output || (declared.state.is_some() && reply.implicit_state().is_some())
}

/// A block that nobody writes any more, and which part of it is whose.
struct Cut {
    name: String,
    shape: Shape,
    declared: Declared,
    data: Bytes,
    /// By call.
    pieces: Result<Vec<Range<usize>>, StringFault>,
}

impl Cut {
    fn new(block: Block, rows: &[u32]) -> Self {
        let Block { name, declared, shape, memory } = block;
        let data = memory.into_bytes();
        let elements = Declared::row_elements(&shape, declared.batched);
        // Without rows there is one call, and the whole tensor is its.
        let counts =
            rows.iter().map(|&n| if declared.batched { n as usize * elements } else { elements });
        let pieces = match declared.dtype {
            DType::String => cut_strings(&data, counts),
            other => Ok(cut_elements(counts, other.size().unwrap_or(0))),
        };
        Self { name, shape, declared, data, pieces }
    }

    fn malformed(&self, reply: &Responder, fault: &StringFault) -> Error {
        Error::internal(format!(
            "model '{}': the backend produced malformed strings in output '{}' of shape {}: {fault:?}",
            reply.context.signature.model,
            self.name,
            ShapeText(&self.shape)
        ))
    }
}

fn cut_elements(counts: impl Iterator<Item = usize>, size: usize) -> Vec<Range<usize>> {
    let piece = |at: &mut usize, count: usize| {
        let begin = std::mem::replace(at, *at + count * size);
        Some(begin..*at)
    };
    counts.scan(0, piece).collect()
}

/// Strings end where their lengths say. Up to three stray bytes belong to nobody.
fn cut_strings(
    data: &[u8],
    counts: impl Iterator<Item = usize>,
) -> Result<Vec<Range<usize>>, StringFault> {
    let (mut at, mut total) = (0, 0);
    let mut pieces = Vec::new();
    let mut whole = true;
    for count in counts {
        let begin = at;
        let mut found = 0;
        for element in strings::elements(&data[at..]).take(count) {
            at += 4 + element.len();
            found += 1;
        }
        whole &= found == count;
        total += count;
        pieces.push(begin..at);
    }
    if whole && data.len() - at < 4 {
        return Ok(pieces);
    }
    // Walked again only to say what is wrong.
    strings::check(data, total).map(|_| pieces)
}

#[cfg(test)]
#[path = "scatter_tests.rs"]
mod tests;
