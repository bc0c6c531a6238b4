//! Entries for a batch as a whole.

use super::outputs::OutputHeader;
use super::responses::deliver_response;
use super::{
    BatchRecord, CallRefusal, Failure, HostState, Output, Response, ScatteredOutput, buf, entry,
    put, refuse_misuse,
};
use crate::memory::GuardedBlock;
use crate::model::{element_count, element_size};
use crate::report::{report_exercised, report_violation};
use crate::request::{forbid_inputs, gather_input};
use std::collections::hash_map::Entry;
use trtserver_plugin_api::abi::host::gather_mode;
use trtserver_plugin_api::abi::request::Batch;
use trtserver_plugin_api::abi::types::{
    Buf, Error, Event, Memory, code, dtype as dtypes, memory_type,
};

pub(super) fn executing_batch(
    state: &mut HostState,
    batch: *const Batch,
) -> Result<&mut BatchRecord, CallRefusal> {
    match state.batches.get_mut(&batch.addr()) {
        Some(record) => Ok(record),
        None if batch.is_null() => refuse_misuse("null passed as batch"),
        None => refuse_misuse("a batch that is not executing was passed"),
    }
}

pub(super) unsafe extern "C" fn gather(
    batch: *const Batch,
    input: u32,
    preferred_memory: Memory,
    mode: u32,
    _stream: *mut u8,
    out: *mut Buf,
) -> *mut Error {
    entry("gather", |state| {
        let ids = executing_batch(state, batch)?.requests.clone();
        let refuse = |code, text| Err(CallRefusal { promise: None, code, text });
        if mode != gather_mode::ROWS {
            return refuse_misuse(format!("unknown mode {mode}"));
        }
        if !matches!(preferred_memory.memory_type, memory_type::CPU | memory_type::PINNED) {
            let text = format!("memory type {}", preferred_memory.memory_type);
            return refuse(code::UNSUPPORTED, text);
        }
        if ids.iter().any(|id| state.requests.get(id).is_none_or(|r| r.released)) {
            return refuse_misuse(
                "an input was gathered after a request of the batch was released",
            );
        }
        state.counts.gathered += 1;
        let (block, _) = match executing_batch(state, batch)?.gathered.entry(input) {
            Entry::Occupied(gathered) => gathered.into_mut(),
            Entry::Vacant(vacant) => {
                let data = match gather_input(&ids, input as usize) {
                    Ok(data) => data,
                    Err(text) => return refuse(code::INVALID, text),
                };
                let Some(block) = GuardedBlock::from_bytes(&data, 0) else {
                    return refuse(code::EXHAUSTED, "no memory".to_owned());
                };
                vacant.insert((block, data))
            }
        };
        // SAFETY: null or valid for one buffer.
        unsafe { put(out, buf(block.ptr(), block.bytes, 0)) }
    })
}

/// Checks an output of the batch. Returns whether it is batched; `None` if no request requested it.
pub(super) fn check_output(
    state: &mut HostState,
    batch: *const Batch,
    output: &OutputHeader,
    bytes: u64,
) -> Result<Option<bool>, CallRefusal> {
    let OutputHeader { name, dtype, shape } = output;
    state.counts.scattered += 1;
    let record = executing_batch(state, batch)?;
    record.scatter_called = true;
    let ids = record.requests.clone();
    if record.scattered.iter().any(|scattered| scattered.output.name == *name) {
        return refuse_misuse(format!("output '{name}' was scattered twice"));
    }
    let requests: Vec<_> = ids.iter().filter_map(|id| state.requests.get(id)).collect();
    let Some(first) = requests.first() else { return refuse_misuse("the batch has no requests") };
    report_exercised("output.declared");
    if requests.iter().any(|request| request.open_response.is_some()) {
        return refuse_misuse(format!("output '{name}' was scattered while a response existed"));
    }
    let rows = requests.iter().map(|request| request.rows).sum();
    match first.model.check_output(name, *dtype, shape, bytes, rows) {
        Err(text) => {
            let unchecked = requests.iter().any(|request| request.unchecked);
            let promise = (!unchecked).then_some("output.declared");
            Err(CallRefusal { promise, code: code::INTERNAL, text })
        }
        Ok(batched) => {
            let open = requests.iter().filter(|request| request.result.is_none());
            let mut requested = open.flat_map(|request| &request.requested);
            Ok(requested.any(|requested| requested == name).then_some(batched))
        }
    }
}

pub(super) unsafe extern "C" fn batch_finish(
    batch: *const Batch,
    error: *const Error,
    after: *mut Event,
) -> *mut Error {
    entry("batch_finish", |state| {
        state.take_event(after)?;
        let error = state.error(error)?;
        let record = executing_batch(state, batch)?;
        let (ids, called) = (record.requests.clone(), std::mem::take(&mut record.scatter_called));
        let scattered = std::mem::take(&mut record.scattered);
        let mut whole: Vec<(Output, bool, usize)> = Vec::new();
        for ScatteredOutput { output, batched } in scattered {
            whole.push((state.retire_output(output), batched, 0));
        }
        for id in ids {
            let Some(request) = state.requests.get_mut(&id) else { continue };
            let (open, rows) = (request.detached == 0 && request.result.is_none(), request.rows);
            // Every request takes its rows, so that those behind it get theirs.
            let mut outputs: Vec<Output> = whole
                .iter_mut()
                .map(|(output, batched, at)| cut_output(output, *batched, at, rows))
                .collect();
            outputs.retain(|output| request.requested.contains(&output.name));
            if open {
                let unsent = request.open_response.take();
                let omitted = error.is_none() && (!called || unsent.is_some() || request.released);
                let (label, unchecked) = (request.label.clone(), request.unchecked);
                if let Some(response) = unsent {
                    state.discard_unsent(response, &label);
                }
                if omitted {
                    let text = format!("batch_finish: {label} has no response");
                    if unchecked {
                        state.suspect = Some(("request.once", text.clone()));
                    } else {
                        report_violation("request.once", &text);
                    }
                    state.finish(id, Err(Failure::internal(text)));
                } else if let Some(error) = &error {
                    state.finish(id, Err(error.clone()));
                } else {
                    deliver_response(state, id, Response { outputs, params: Vec::new() }, false);
                    state.finish(id, Ok(()));
                }
            }
            if let Some(request) = state.requests.get_mut(&id)
                && request.detached == 0
                && !request.released
            {
                request.released = true;
                report_exercised("request.release");
                forbid_inputs(id);
            }
        }
        Ok(())
    })
}

/// The rows of one request, which begin at `at`.
fn cut_output(whole: &Output, batched: bool, at: &mut usize, rows: u32) -> Output {
    let mut shape = whole.shape.clone();
    if batched && let Some(first) = shape.first_mut() {
        *first = i64::from(rows);
    }
    let count = element_count(&shape).unwrap_or(0);
    let begin = *at;
    if whole.dtype == dtypes::STRING {
        for _ in 0..count {
            let length = whole.data.get(*at..*at + 4).and_then(|b| b.try_into().ok());
            *at += length.map_or(0, |b| 4 + u32::from_le_bytes(b) as usize);
        }
    } else {
        *at += count * element_size(whole.dtype).unwrap_or(0);
    }
    let data = whole.data.get(begin..*at).unwrap_or_default().to_vec();
    Output { shape, data, name: whole.name.clone(), ..*whole }
}
