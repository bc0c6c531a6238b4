//! Entries for a batch as a whole.

use super::answers::{answer, block, dims, donated};
use super::{
    Building, Donation, Failure, Made, Scattered, State, Wrong, buf, entry, misuse, put, text,
};
use crate::plugin::batch::declared::{Declared, Rows};
use crate::request::strings;
use crate::request::tensor::element_count;
use crate::tool::check::bench;
use crate::tool::check::child::{breach, seen};
use crate::tool::check::memory::Block;
use std::collections::hash_map::Entry;
use trtserver_plugin_api::abi::host::{Release, gather_mode};
use trtserver_plugin_api::abi::request::Batch;
use trtserver_plugin_api::abi::types::{
    Buf, Error, Event, Memory, Str, code, dtype as dtypes, memory_type,
};

fn running(state: &mut State, batch: *const Batch) -> Result<&mut super::Batch, Wrong> {
    match state.batches.get_mut(&batch.addr()) {
        Some(found) if found.running => Ok(found),
        Some(_) => misuse("a batch was used after its execute had returned"),
        None if batch.is_null() => misuse("null was passed where a batch belongs"),
        None => misuse("something else was passed where a batch belongs"),
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
        let calls = running(state, batch)?.calls.clone();
        let unsupported =
            |text: String| Err(Wrong { promise: None, code: code::UNSUPPORTED, text });
        if mode != gather_mode::ROWS {
            return misuse(format!("mode {mode} is none of the interface's"));
        }
        if !matches!(preferred_memory.memory_type, memory_type::CPU | memory_type::PINNED) {
            return unsupported(format!(
                "nothing is gathered in memory of kind {}",
                preferred_memory.memory_type
            ));
        }
        if calls.iter().any(|id| state.calls.get(id).is_none_or(|c| c.released)) {
            return misuse("an input was gathered after a request of the batch had been released");
        }
        let found = running(state, batch)?;
        let (block, _) = match found.gathered.entry(input) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(room) => {
                let data = bench::gather(&calls, input as usize).map_err(|text| Wrong {
                    promise: None,
                    code: code::INVALID,
                    text,
                })?;
                let Some(block) = Block::of(&data, 0) else {
                    return unsupported("no memory".to_owned());
                };
                room.insert((block, data))
            }
        };
        // SAFETY: null or room for one buffer.
        unsafe { put(out, buf(block.ptr(), block.bytes, 0)) }
    })
}

/// Checks an output of all calls; `None` = nobody wants it.
fn room(
    state: &mut State,
    batch: *const Batch,
    name: &str,
    dtype: u32,
    shape: &[i64],
    bytes: u64,
) -> Result<Option<bool>, Wrong> {
    let found = running(state, batch)?;
    found.scatter_begun = true;
    let ids = found.calls.clone();
    if found.scattered.iter().any(|s| s.name == name) {
        return misuse(format!("output '{name}' was scattered twice"));
    }
    let calls: Vec<_> = ids.iter().filter_map(|id| state.calls.get(id)).collect();
    let Some(first) = calls.first() else { return misuse("the batch has no calls") };
    seen("output.declared");
    if calls.iter().any(|c| c.building.is_some()) {
        return misuse(format!(
            "output '{name}' was scattered while a response of the batch was being built"
        ));
    }
    let lenient = calls.iter().any(|c| c.lenient);
    let rows = Rows::Batch(calls.iter().map(|c| c.rows).sum());
    match Declared::check(&first.signature, name, dtype, shape, bytes, rows) {
        Err(e) => {
            let promise = (!lenient).then_some("output.declared");
            Err(Wrong { promise, code: code::INTERNAL, text: e.message })
        }
        Ok(declared) => {
            let wanted =
                calls.iter().any(|c| c.end.is_none() && c.wanted.iter().any(|w| w == name));
            Ok(wanted.then_some(declared.batched))
        }
    }
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
        // SAFETY: text and shape are valid during the call.
        let (name, shape) = unsafe { (text(name, "the name of an output")?, dims(rank, shape)?) };
        if out.is_null() {
            return misuse("null was passed where the result was to go");
        }
        let Some(batched) = room(state, batch, &name, dtype, &shape, bytes)? else {
            // SAFETY: room for one buffer.
            return unsafe { put(out, buf(std::ptr::null_mut(), 0, 0)) };
        };
        let block = block(&name, bytes)?;
        // SAFETY: as above.
        unsafe { put(out, buf(block.ptr(), block.bytes, 0)) }?;
        running(state, batch)?.scattered.push(Scattered {
            name,
            dtype,
            shape,
            batched,
            made: Made::Ours(block),
        });
        Ok(())
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
        let donation = Donation { release, ctx };
        // SAFETY: text and shape are valid during the call.
        let (name, shape) =
            match unsafe { (text(name, "the name of an output"), dims(rank, shape)) } {
                (Ok(name), Ok(shape)) if !given.is_null() => (name, shape),
                (name, shape) => {
                    state.done.push(donation);
                    name?;
                    shape?;
                    return misuse("an output was donated as nothing");
                }
            };
        // SAFETY: not null: one buffer.
        let (made, bytes) = unsafe { donated(&name, given, 1, donation, state) }?;
        match room(state, batch, &name, dtype, &shape, bytes) {
            Ok(Some(batched)) => {
                running(state, batch)?.scattered.push(Scattered {
                    name,
                    dtype,
                    shape,
                    batched,
                    made,
                });
                Ok(())
            }
            Ok(None) => {
                state.finish(&name, made);
                Ok(())
            }
            Err(wrong) => {
                state.finish(&name, made);
                Err(wrong)
            }
        }
    })
}

pub(super) unsafe extern "C" fn batch_finish(
    batch: *const Batch,
    error: *const Error,
    _after: *mut Event,
) -> *mut Error {
    entry("batch_finish", |state| {
        let error = state.peek(error)?;
        let found = running(state, batch)?;
        let (ids, begun) = (found.calls.clone(), std::mem::take(&mut found.scatter_begun));
        let scattered = std::mem::take(&mut found.scattered);
        let mut cut: Vec<(Scattered, Vec<u8>, usize)> = Vec::new();
        for mut block in scattered {
            let none = Made::Donated {
                parts: Vec::new(),
                was: Vec::new(),
                donation: Donation { release: Release { func: None }, ctx: std::ptr::null_mut() },
            };
            let data = state.finish(&block.name, std::mem::replace(&mut block.made, none));
            cut.push((block, data, 0));
        }
        for id in ids {
            let Some(call) = state.calls.get_mut(&id) else { continue };
            let (open, rows) = (call.retained == 0 && call.end.is_none(), call.rows);
            let mut outputs = Vec::new();
            for (block, data, at) in &mut cut {
                let piece = slice(block, data, at, rows);
                let mut shape = block.shape.clone();
                if block.batched
                    && let Some(first) = shape.first_mut()
                {
                    *first = i64::from(rows);
                }
                if call.wanted.contains(&block.name) {
                    outputs.push((block.name.clone(), shape, piece));
                }
            }
            if open {
                let unfinished = call.building.take();
                let omitted = error.is_none() && (!begun || unfinished.is_some() || call.released);
                let (label, lenient) = (call.label.clone(), call.lenient);
                if let Some(building) = unfinished {
                    breach(
                        "host.responses",
                        format!("a response of {label} was neither sent nor dropped"),
                    );
                    state.responses.remove(&building.id);
                    state.drop_building(building);
                }
                if omitted {
                    let text = format!("batch_finish: {label} was not answered");
                    if lenient {
                        state.suspect = Some(("call.once", text.clone()));
                    } else {
                        breach("call.once", &text);
                    }
                    state.end(id, Err(Failure { code: code::INTERNAL, text }));
                } else if let Some(error) = &error {
                    state.end(id, Err(error.clone()));
                } else {
                    deliver(state, id, outputs);
                }
            }
            if let Some(call) = state.calls.get_mut(&id)
                && call.retained == 0
                && !call.released
            {
                call.released = true;
                seen("call.release");
                bench::released(id);
            }
        }
        Ok(())
    })
}

/// The rows of one call, cut off behind those of the calls before it.
fn slice(block: &Scattered, data: &[u8], at: &mut usize, rows: u32) -> Vec<u8> {
    let per_row = element_count(&block.shape[usize::from(block.batched).min(block.shape.len())..]);
    let count = per_row.unwrap_or(0) * if block.batched { rows as usize } else { 1 };
    let begin = *at;
    if block.dtype == dtypes::STRING {
        for element in strings::elements(data.get(begin..).unwrap_or_default()).take(count) {
            *at += 4 + element.len();
        }
    } else {
        let size =
            crate::request::DType::from_number(block.dtype).and_then(crate::request::DType::size);
        *at += count * size.unwrap_or(0);
    }
    data.get(begin..*at).unwrap_or_default().to_vec()
}

fn deliver(state: &mut State, id: u64, outputs: Vec<(String, Vec<i64>, Vec<u8>)>) {
    let made = |(name, shape, was): (String, Vec<i64>, Vec<u8>)| {
        // The bytes were copied already: what is left to donate is nothing.
        let none = Donation { release: Release { func: None }, ctx: std::ptr::null_mut() };
        let parts = vec![(was.as_ptr().expose_provenance(), was.len())];
        (name, shape, Made::Donated { parts, was, donation: none })
    };
    let outputs = outputs.into_iter().map(made).collect();
    answer(state, id, Building { id: 0, outputs, spoilt: false }, None, true);
}
