//! Entries for requests, replies, responses and their outputs.

use super::{
    Building, Donation, Made, Output, REPLY, REQUEST, RESPONSE, State, Wrong, buf, entry, gathered,
    handle, misuse, number, put, tell, text,
};
use crate::plugin::batch::declared::{Declared, Rows};
use crate::request::strings;
use crate::request::tensor::element_count;
use crate::tool::check::child::{breach, seen};
use crate::tool::check::memory::Block;
use trtserver_plugin_api::abi::host::{Release, send_flags};
use trtserver_plugin_api::abi::types::{
    Buf, Error, Event, Memory, Param, RequestHandle, Responder, Response, Str, code,
    dtype as dtypes, memory_type, param,
};

pub(super) unsafe extern "C" fn request_release(request: *mut RequestHandle, _after: *mut Event) {
    tell("request_release", |state| {
        let id = number(REQUEST, request, "request")?;
        let call = state.call(id)?;
        if call.released {
            let text = format!("the request of {} was released twice", call.label);
            return Err(Wrong { promise: Some("call.release"), code: code::INTERNAL, text });
        }
        call.released = true;
        seen("call.release");
        super::super::bench::released(id);
        super::HOST.changed.notify_all();
        Ok(())
    });
}

pub(super) unsafe extern "C" fn responder_detach(reply: *mut Responder) {
    tell("responder_detach", |state| {
        state.call(number(REPLY, reply, "reply")?)?.retained += 1;
        seen("host.replies");
        Ok(())
    });
}

pub(super) unsafe extern "C" fn responder_release(reply: *mut Responder) {
    tell("responder_release", |state| {
        let id = number(REPLY, reply, "reply")?;
        let call = state.call(id)?;
        let Some(less) = call.retained.checked_sub(1) else {
            let label = call.label.clone();
            return misuse(format!(
                "the reply of {label} was released more often than it was retained"
            ));
        };
        call.retained = less;
        let forgotten = if less == 0 && call.returned { call.building.take() } else { None };
        if let Some(building) = forgotten {
            breach(
                "host.responses",
                format!("a response of {} was neither sent nor dropped", call.label),
            );
            state.responses.remove(&building.id);
            state.drop_building(building);
        }
        super::HOST.changed.notify_all();
        Ok(())
    });
}

pub(super) unsafe extern "C" fn response_new(
    reply: *mut Responder,
    out: *mut *mut Response,
) -> *mut Error {
    entry("response_new", |state| {
        let call = number(REPLY, reply, "reply")?;
        let id = state.id();
        let held = state.call(call)?;
        if held.end.is_some() {
            let text = format!("a response was begun for {}, which had ended", held.label);
            return Err(Wrong { promise: Some("call.once"), code: code::INTERNAL, text });
        }
        if held.building.is_some() {
            return misuse(format!(
                "a second response of {} was begun before the first was finished",
                held.label
            ));
        }
        // SAFETY: null or room for one handle.
        unsafe { put(out, handle(RESPONSE, id)) }?;
        held.building = Some(Building { id, outputs: Vec::new(), spoilt: false });
        state.responses.insert(id, call);
        seen("host.responses");
        Ok(())
    })
}

/// The call of a response that is being built.
fn building(state: &mut State, response: *const Response) -> Result<u64, Wrong> {
    let id = number(RESPONSE, response, "response")?;
    match state.responses.get(&id) {
        Some(call) => Ok(*call),
        None => misuse("a response was used after it had been sent or dropped"),
    }
}

fn take(state: &mut State, response: *const Response) -> Result<(u64, Building), Wrong> {
    let call = building(state, response)?;
    let found = state.calls.get_mut(&call).and_then(|call| call.building.take());
    match found {
        Some(building) => {
            state.responses.remove(&building.id);
            Ok((call, building))
        }
        None => misuse("a response was used after it had been sent or dropped"),
    }
}

pub(super) unsafe extern "C" fn response_free(response: *mut Response) {
    if response.is_null() {
        return;
    }
    tell("response_free", |state| {
        let (_, building) = take(state, response)?;
        state.drop_building(building);
        Ok(())
    });
}

/// # Safety
/// `shape` is null or valid for `rank` numbers.
pub(super) unsafe fn dims(rank: u32, shape: *const i64) -> Result<Vec<i64>, Wrong> {
    match rank {
        0 => Ok(Vec::new()),
        _ if shape.is_null() => misuse("an output was given without its shape"),
        // SAFETY: by the caller's promise.
        1..=64 => Ok(unsafe { std::slice::from_raw_parts(shape, rank as usize) }.to_vec()),
        _ => misuse(format!("an output was given with {rank} dimensions")),
    }
}

/// An output held against the declaration; `false` = nobody wants it.
fn wanted(
    state: &mut State,
    id: u64,
    name: &str,
    dtype: u32,
    shape: &[i64],
    bytes: u64,
) -> Result<bool, Wrong> {
    let Some(call) = state.calls.get_mut(&id) else {
        return misuse("a call is not there any more");
    };
    seen("output.declared");
    let twice = call.building.as_ref().is_some_and(|b| b.outputs.iter().any(|o| o.0 == name));
    let rows = Rows::Request(call.rows);
    let checked = Declared::check(&call.signature, name, dtype, shape, bytes, rows);
    let fault = match checked {
        Err(e) => Some(e.message),
        Ok(_) if twice => Some(format!("output '{name}' of {} was given twice", call.label)),
        Ok(_) => None,
    };
    if let Some(text) = fault {
        if let Some(building) = &mut call.building {
            building.spoilt = true;
        }
        let promise = (!call.lenient).then_some("output.declared");
        let spec = call.signature.output(name).map(|i| &call.signature.outputs[i]);
        if promise.is_none() && spec.is_some_and(|s| s.dtype.number() == dtype) {
            state.suspect = Some(("output.declared", text.clone()));
        }
        return Err(Wrong { promise, code: code::INTERNAL, text });
    }
    Ok(call.wanted.iter().any(|w| w == name))
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
        // SAFETY: text and shape are valid during the call.
        let (name, shape) = unsafe { (text(name, "the name of an output")?, dims(rank, shape)?) };
        let call = building(state, response)?;
        if !wanted(state, call, &name, dtype, &shape, bytes)? {
            // SAFETY: null or room for one buffer.
            return unsafe { put(out, buf(std::ptr::null_mut(), 0, 0)) };
        }
        let block = block(&name, bytes)?;
        // SAFETY: as above.
        unsafe { put(out, buf(block.ptr(), block.bytes, 0)) }?;
        add(state, call, name, shape, Made::Ours(block));
        Ok(())
    })
}

pub(super) fn block(name: &str, bytes: u64) -> Result<Block, Wrong> {
    let room = usize::try_from(bytes).ok().filter(|n| *n <= 1 << 40);
    match room.and_then(|n| Block::new(n, 0)) {
        Some(block) => Ok(block),
        None => misuse(format!("output '{name}': {bytes} bytes are not there")),
    }
}

fn add(state: &mut State, call: u64, name: String, shape: Vec<i64>, made: Made) {
    if let Some(building) = state.calls.get_mut(&call).and_then(|c| c.building.as_mut()) {
        building.outputs.push((name, shape, made));
    }
}

/// Donated memory, checked and copied.
///
/// # Safety
/// `parts` is null or valid for `n` buffers of readable memory.
pub(super) unsafe fn donated(
    name: &str,
    parts: *const Buf,
    n: u32,
    donation: Donation,
    state: &mut State,
) -> Result<(Made, u64), Wrong> {
    let mut places = Vec::new();
    let mut total = 0u64;
    for at in 0..if parts.is_null() { 0 } else { n as usize } {
        // SAFETY: by the caller's promise.
        let part = unsafe { &*parts.add(at) };
        let sum = total.checked_add(part.bytes).filter(|t| *t <= 1 << 40);
        let fault = match sum {
            _ if !matches!(part.memory.memory_type, memory_type::CPU | memory_type::PINNED) => {
                Some("in memory that is not the CPU's")
            }
            None => Some("in an impossible size"),
            Some(_) if part.ptr.is_null() && part.bytes > 0 => Some("as a null pointer"),
            Some(_) => None,
        };
        if let Some(fault) = fault {
            state.done.push(donation);
            return misuse(format!("output '{name}' was donated {fault}"));
        }
        total = sum.unwrap_or(0);
        places.push((part.ptr.expose_provenance(), part.bytes as usize));
    }
    // SAFETY: by the caller's promise, and of a size that can be.
    let was = unsafe { gathered(&places) };
    state.donated += 1;
    Ok((Made::Donated { parts: places, was, donation }, total))
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
        // Whatever comes, the memory goes back once.
        let donation = Donation { release, ctx };
        // SAFETY: text and shape are valid during the call.
        let (name, shape) =
            match unsafe { (text(name, "the name of an output"), dims(rank, shape)) } {
                (Ok(name), Ok(shape)) => (name, shape),
                (Err(wrong), _) | (_, Err(wrong)) => {
                    state.done.push(donation);
                    return Err(wrong);
                }
            };
        // SAFETY: the plugin passes `n_parts` buffers.
        let (made, bytes) = unsafe { donated(&name, parts, n_parts, donation, state) }?;
        let found = building(state, response)
            .and_then(|call| Ok((call, wanted(state, call, &name, dtype, &shape, bytes)?)));
        match found {
            Ok((call, true)) => add(state, call, name, shape, made),
            Ok((_, false)) => drop(state.finish(&name, made)),
            Err(wrong) => {
                state.finish(&name, made);
                return Err(wrong);
            }
        }
        Ok(())
    })
}

pub(super) unsafe extern "C" fn response_param(
    response: *mut Response,
    given: *const Param,
) -> *mut Error {
    entry("response_param", |state| {
        building(state, response)?;
        // SAFETY: null or a parameter that is valid during the call.
        let Some(given) = (unsafe { given.as_ref() }) else {
            return misuse("null was passed where a parameter belongs");
        };
        // SAFETY: as above.
        let key = unsafe { text(given.key, "the key of a parameter") }?;
        if given.kind == param::STRING {
            // SAFETY: as above.
            unsafe { text(given.text, "the value of a parameter") }?;
        }
        if given.kind >= param::BYTES {
            return misuse(format!(
                "parameter '{key}' has kind {}, which no response has",
                given.kind
            ));
        }
        Ok(())
    })
}

pub(super) unsafe extern "C" fn response_send(
    response: *mut Response,
    flags: u32,
    error: *const Error,
    _after: *mut Event,
) -> *mut Error {
    entry("response_send", |state| {
        let error = state.peek(error)?;
        if flags & !send_flags::FINAL != 0 {
            breach(
                "host.calls",
                format!("response_send: flags {flags:#x} are none of the interface's"),
            );
        }
        let (id, building) = take(state, response)?;
        let ended = state.calls.get(&id).is_some_and(|call| call.end.is_some());
        if ended {
            state.drop_building(building);
            let text = "a response was sent after its reply had ended".to_owned();
            return Err(Wrong { promise: Some("call.once"), code: code::INTERNAL, text });
        }
        answer(state, id, building, error, flags & send_flags::FINAL != 0);
        Ok(())
    })
}

/// One answer of a call; with an error, or as the last one, its end.
pub(super) fn answer(
    state: &mut State,
    id: u64,
    building: Building,
    error: Option<super::Failure>,
    last: bool,
) {
    let spoilt = building.spoilt;
    let mut outputs = Vec::new();
    for (name, shape, made) in building.outputs {
        let data = state.finish(&name, made);
        outputs.push(Output { name, shape, data });
    }
    let Some(call) = state.calls.get_mut(&id) else { return };
    if error.is_none() {
        let lacks = |w: &&String| !outputs.iter().any(|o| o.name == **w);
        let missing = call.wanted.iter().find(lacks).cloned();
        for output in &outputs {
            let spec = call.signature.output(&output.name).map(|i| &call.signature.outputs[i]);
            let strings = spec.is_some_and(|s| s.dtype.number() == dtypes::STRING);
            let count = element_count(&output.shape).unwrap_or(0);
            if let Err(fault) = strings::check(&output.data, if strings { count } else { 0 })
                && strings
                && !call.lenient
            {
                breach(
                    "output.declared",
                    format!("output '{}' holds malformed strings: {fault:?}", output.name),
                );
            }
        }
        if spoilt && missing.is_none() {
            call.missing = Some("an output that was refused".to_owned());
        }
        call.missing = call.missing.take().or(missing);
        call.answers.push(outputs);
    }
    if error.is_some() || last {
        state.end(id, error.map_or(Ok(()), Err));
    }
}

pub(super) unsafe extern "C" fn responder_finish(
    reply: *mut Responder,
    error: *const Error,
) -> *mut Error {
    entry("responder_finish", |state| {
        let error = state.peek(error)?;
        let id = number(REPLY, reply, "reply")?;
        let call = state.call(id)?;
        if call.end.is_some() {
            let text = format!("{} was ended a second time", call.label);
            return Err(Wrong { promise: Some("call.once"), code: code::INTERNAL, text });
        }
        state.end(id, error.map_or(Ok(()), Err));
        Ok(())
    })
}
