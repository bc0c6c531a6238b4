//! Scatters outputs of a whole batch: one block each, of which every request gets its rows by
//! reference.

use super::gpu::GpuInstance;
use super::memory::{Donation, OutputStorage, preferred_gpu, size_of_parts};
use super::output_declaration::{OutputDeclaration, OutputRows};
use super::outputs::ResponseBuilder;
use super::requests::BatchRequests;
use super::slot::{BatchStatus, DeferredResponses};
use parking_lot::{Mutex, MutexGuard};
use std::ops::Range;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::{LedgerHolder, MemoryTag};
use trtserver_device::CudaEvent;
use trtserver_plugin_api::abi::types::{self, Buf};
use trtserver_request::memory::{MemoryLocation, PlacedSlice};
use trtserver_request::strings;
use trtserver_request::strings::StringFault;
use trtserver_request::tensor::element_count;
use trtserver_request::{DType, Responder, Shape, ShapeText, TensorData};

/// The outputs scattered and not sent yet.
#[derive(Default)]
pub struct ScatteredOutputs {
    /// Only outputs that a request asked for.
    blocks: Vec<ScatteredBlock>,
    /// Something was scattered, even if no request asked for it.
    used: bool,
}

struct ScatteredBlock {
    name: String,
    declared: OutputDeclaration,
    shape: Shape,
    memory: OutputStorage,
}

/// The operations on the scattered outputs of a batch.
#[derive(Clone, Copy)]
pub struct Scatter<'a> {
    pub requests: &'a BatchRequests,
    pub scattered: &'a Mutex<ScatteredOutputs>,
    /// The GPU of the instance.
    pub gpu: Option<&'a Arc<GpuInstance>>,
}

impl<'a> Scatter<'a> {
    /// Memory for an output of all requests; `None` when none requested it. The backend may write
    /// it until the batch is sent; it is not read before.
    pub fn alloc(
        self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        bytes: u64,
        preferred: types::Memory,
    ) -> Result<Option<Buf>> {
        let gpu = preferred_gpu(preferred, self.gpu).map(|gpu| gpu.location());
        let output = self.check(name, dtype, shape, bytes, gpu)?;
        let Some(output) = output else { return Ok(None) };
        let (memory, buf) = match output.direct.clone() {
            Some(slice) => OutputStorage::destination(slice, output.tag),
            None => OutputStorage::allocate(name, bytes, preferred, self.gpu, output.tag)?,
        };
        output.add(memory);
        Ok(Some(buf))
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
        // Declared before the lock is taken, so dropped after it is released: dropping a donation
        // calls the backend.
        let mut donation = Some(donation);
        if let Some(output) = self.check(name, dtype, shape, bytes, None)? {
            let memory = OutputStorage::adopt(name, &mut donation, parts, self.gpu, output.tag)?;
            output.add(memory);
        }
        Ok(())
    }

    /// Checks an output of the batch, which the backend writes on `gpu` or to CPU memory; `None`
    /// when no request asked for it.
    fn check(
        self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        bytes: u64,
        gpu: Option<MemoryLocation>,
    ) -> Result<Option<CheckedOutput<'a>>> {
        let signature = self.requests.signature()?;
        let rows = OutputRows::Batch(self.requests.views.rows().sum());
        let cut = signature.output(name);
        let declared = match cut.and_then(|at| Some((at, signature.outputs[at].cut_like?))) {
            Some((at, source)) => {
                let sources = self.requests.views.input_shapes(source);
                OutputDeclaration::check_cut(&signature, at, dtype, shape, bytes, sources)?
            }
            None => OutputDeclaration::check(&signature, name, dtype, shape, bytes, rows)?,
        };
        let fault = |what: &str| {
            Err(Error::internal(format!("model '{}': output '{name}' {what}", signature.model)))
        };
        if !declared.batched && self.requests.slots().len() > 1 {
            return fault("has no batch dimension and cannot be split among several requests");
        }
        let (mut requested, mut direct) = (false, None);
        let alone = self.requests.slots().len() == 1;
        for slot in self.requests.slots() {
            match slot.batch_status() {
                BatchStatus::Done => {}
                BatchStatus::Responding => {
                    return fault("was scattered while a response of the batch was being built");
                }
                BatchStatus::Open(responder) => {
                    requested |= is_requested(&responder, &declared);
                    if alone {
                        direct = direct_memory(&responder, &declared, bytes, gpu);
                    }
                }
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
        let holder =
            if declared.state.is_some() { LedgerHolder::State } else { LedgerHolder::Output };
        let (name, tag) = (name.to_owned(), signature.owner.tag(holder));
        let shape = shape.into();
        Ok(Some(CheckedOutput { scattered, name, declared, shape, tag, direct }))
    }

    /// Drops the scattered outputs.
    pub fn discard(self) {
        let scattered = std::mem::take(&mut *self.scattered.lock());
        drop(scattered);
    }

    /// Sends every open request its rows of the scattered outputs, if there are any; with a GPU
    /// perhaps later, once `after` is reached.
    pub fn send(self, after: Option<&CudaEvent>) {
        let ScatteredOutputs { blocks, used } = std::mem::take(&mut *self.scattered.lock());
        if !used {
            return;
        }
        let rows: Vec<u32> = self.requests.views.rows().collect();
        match self.gpu {
            Some(gpu) if after.is_some() || self.waits_for_device(&blocks) => {
                self.send_after_event(gpu, after, blocks, rows);
            }
            _ => {
                let slots = self.requests.slots().iter().enumerate();
                let open = slots.filter_map(|(position, slot)| match slot.batch_status() {
                    BatchStatus::Open(responder) => Some((position, responder)),
                    _ => None,
                });
                send_rows(blocks, &rows, open);
            }
        }
    }

    fn waits_for_device(self, blocks: &[ScatteredBlock]) -> bool {
        blocks.iter().any(|block| block.memory.is_on_device())
            || self.requests.slots().iter().any(|slot| slot.deferred() != DeferredResponses::None)
    }

    fn send_after_event(
        self,
        gpu: &Arc<GpuInstance>,
        after: Option<&CudaEvent>,
        mut blocks: Vec<ScatteredBlock>,
        rows: Vec<u32>,
    ) {
        let mut open = Vec::with_capacity(rows.len());
        for (position, slot) in self.requests.slots().iter().enumerate() {
            if let BatchStatus::Open(responder) = slot.batch_status() {
                slot.defer_final();
                open.push((position, responder));
            }
        }
        if let Some(execution) =
            open.first().and_then(|(_, responder)| responder.counted_execution())
        {
            super::timing::note_times(&execution);
        }
        let outputs = blocks.iter_mut().filter_map(|block| {
            let mut output = block.memory.take_device_output()?;
            if open.iter().all(|(_, responder)| is_unread_by_cpu(responder, &block.declared)) {
                output.stay();
            }
            Some(output)
        });
        gpu.download(after, outputs.collect(), move |written| match written {
            Ok(written) => {
                let mut written = written.into_iter();
                blocks.iter_mut().for_each(|block| block.memory.put_written(&mut written));
                send_rows(blocks, &rows, open.into_iter());
            }
            Err(e) => fail_open(open.into_iter(), &e),
        });
    }
}

/// Sends the requests at these positions of the batch their rows.
fn send_rows(
    blocks: Vec<ScatteredBlock>,
    rows: &[u32],
    open: impl Iterator<Item = (usize, Arc<Responder>)>,
) {
    let split = blocks.into_iter().map(|block| SplitOutput::new(block, rows));
    let split: Vec<SplitOutput> = match split.collect() {
        Ok(split) => split,
        Err(e) => return fail_open(open, &e),
    };
    for (position, responder) in open {
        let mut fault = None;
        let mut response = ResponseBuilder::new(Arc::clone(&responder), None);
        for output in split.iter().filter(|output| is_requested(&responder, &output.declared)) {
            match &output.ranges {
                Ok(ranges) => {
                    let data = output.data.slice(ranges[position].clone());
                    response.add_rows(output.declared.for_request(position, rows[position]), data);
                }
                Err(what) => fault = Some(output.malformed(&responder, what)),
            }
        }
        // Fails only if the backend has just ended the request on another thread.
        let _ = response.send(true, fault);
    }
}

fn fail_open(open: impl Iterator<Item = (usize, Arc<Responder>)>, error: &Error) {
    for (_, responder) in open {
        let _ = responder.finish(Err(error.clone()));
    }
}

/// An output that passed its checks and has no memory yet.
struct CheckedOutput<'a> {
    scattered: MutexGuard<'a, ScatteredOutputs>,
    name: String,
    declared: OutputDeclaration,
    shape: Shape,
    /// What its memory is entered under in the ledger.
    tag: MemoryTag,
    /// Memory of the client that the backend may write directly.
    direct: Option<PlacedSlice>,
}

impl CheckedOutput<'_> {
    fn add(self, memory: OutputStorage) {
        let Self { mut scattered, name, declared, shape, .. } = self;
        scattered.blocks.push(ScatteredBlock { name, declared, shape, memory });
    }
}

fn is_requested(responder: &Responder, declared: &OutputDeclaration) -> bool {
    let output = declared
        .output
        .as_ref()
        .is_some_and(|(index, _)| responder.context.position(*index).is_some());
    output || is_kept(responder, declared)
}

/// The output is a state that the request's sequence keeps.
fn is_kept(responder: &Responder, declared: &OutputDeclaration) -> bool {
    declared.state.is_some() && responder.implicit_state().is_some()
}

/// The request does not need the output in CPU memory: it does not ask for it, or wants it in GPU
/// memory.
fn is_unread_by_cpu(responder: &Responder, declared: &OutputDeclaration) -> bool {
    if declared.dtype == DType::String || is_kept(responder, declared) {
        return false;
    }
    let position = declared.output.as_ref().and_then(|(at, _)| responder.context.position(*at));
    position.is_none_or(|position| responder.context.is_wanted_on_device(position))
}

/// The memory in which the client of the batch's only request wants the output. Strings are split
/// and states are kept first, in memory that the client cannot change.
fn direct_memory(
    responder: &Responder,
    declared: &OutputDeclaration,
    bytes: u64,
    gpu: Option<MemoryLocation>,
) -> Option<PlacedSlice> {
    if declared.dtype == DType::String || is_kept(responder, declared) {
        return None;
    }
    let (index, _) = declared.output.as_ref()?;
    let position = responder.context.position(*index)?;
    responder.context.direct_memory(position, usize::try_from(bytes).ok()?, gpu)
}

/// A finished output, and the byte range of each request in it.
struct SplitOutput {
    name: String,
    shape: Shape,
    declared: OutputDeclaration,
    data: TensorData,
    /// By position of the request in the batch.
    ranges: Result<Vec<Range<usize>>, StringFault>,
}

impl SplitOutput {
    fn new(block: ScatteredBlock, rows: &[u32]) -> Result<Self> {
        let ScatteredBlock { name, declared, shape, memory } = block;
        let data = memory.into_data()?;
        let elements = OutputDeclaration::row_elements(&shape, declared.batched);
        let counts = rows.iter().enumerate().map(|(position, &n)| match &declared.cut {
            Some(cut) => element_count(&cut[position]).unwrap_or(0),
            None if declared.batched => n as usize * elements,
            // Without a batch dimension there is one request, which gets the whole tensor.
            None => elements,
        });
        let ranges = match declared.dtype {
            DType::String => split_strings(data.readable().unwrap_or_default(), counts),
            other => Ok(split_elements(counts, other.size().unwrap_or(0))),
        };
        Ok(Self { name, shape, declared, data, ranges })
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
        for element in strings::string_elements(&data[at..]).take(count) {
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
    strings::check_strings(data, total).map(|_| ranges)
}

#[cfg(test)]
#[path = "scatter_tests.rs"]
mod tests;
