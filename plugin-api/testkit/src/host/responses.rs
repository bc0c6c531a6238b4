//! Entries for requests, responders, responses and their outputs.

use super::{
    Adopted, CHANGED, Failure, OpenOutput, OpenResponse, OutputMemory, REQUEST, RESPONDER,
    RESPONSE, Refusal, Response as SentResponse, State, buf, copy_parts, entry, handle, id_of,
    misuse, put, text, void_entry,
};
use crate::memory::Block;
use crate::model::element_count;
use crate::report::{exercised, violation};
use crate::request::forbid_inputs;
use trtserver_plugin_api::abi::host::{Release, send_flags};
use trtserver_plugin_api::abi::types::{
    Buf, Error, Event, Memory, Param, RequestHandle, Responder, Response, Str, code,
    dtype as dtypes, memory_type, param,
};

fn finished<T>(text: String) -> Result<T, Refusal> {
    Err(Refusal { promise: Some("request.once"), code: code::INTERNAL, text })
}

pub(super) unsafe extern "C" fn request_release(request: *mut RequestHandle, _after: *mut Event) {
    void_entry("request_release", |state| {
        let id = id_of(REQUEST, request, "request")?;
        let request = state.request(id)?;
        if request.released {
            let text = format!("{} was released twice", request.label);
            return Err(Refusal { promise: Some("request.release"), code: code::INTERNAL, text });
        }
        request.released = true;
        exercised("request.release");
        forbid_inputs(id);
        CHANGED.notify_all();
        Ok(())
    });
}

pub(super) unsafe extern "C" fn responder_detach(responder: *mut Responder) {
    void_entry("responder_detach", |state| {
        state.request(id_of(RESPONDER, responder, "responder")?)?.detached += 1;
        exercised("host.responders");
        Ok(())
    });
}

pub(super) unsafe extern "C" fn responder_release(responder: *mut Responder) {
    void_entry("responder_release", |state| {
        let id = id_of(RESPONDER, responder, "responder")?;
        let request = state.request(id)?;
        let Some(left) = request.detached.checked_sub(1) else {
            let label = request.label.clone();
            return misuse(format!("the responder of {label} was released but not detached"));
        };
        request.detached = left;
        let unsent =
            if left == 0 && request.returned { request.open_response.take() } else { None };
        let label = request.label.clone();
        if let Some(response) = unsent {
            state.discard_unsent(response, &label);
        }
        CHANGED.notify_all();
        Ok(())
    });
}

pub(super) unsafe extern "C" fn response_new(
    responder: *mut Responder,
    out: *mut *mut Response,
) -> *mut Error {
    entry("response_new", |state| {
        let id = id_of(RESPONDER, responder, "responder")?;
        let response = state.id();
        let request = state.request(id)?;
        if request.result.is_some() {
            return finished(format!("{} is finished already", request.label));
        }
        if request.open_response.is_some() {
            return misuse(format!("a response to {} exists already", request.label));
        }
        // SAFETY: null or valid for one handle.
        unsafe { put(out, handle(RESPONSE, response)) }?;
        request.open_response = Some(OpenResponse {
            id: response,
            outputs: Vec::new(),
            params: Vec::new(),
            incomplete: false,
        });
        state.responses.insert(response, id);
        exercised("host.responses");
        Ok(())
    })
}

const GONE: &str = "a response was used after it was sent or freed";

/// The request of an open response.
fn request_of(state: &State, response: *const Response) -> Result<u64, Refusal> {
    let id = id_of(RESPONSE, response, "response")?;
    state.responses.get(&id).copied().map_or_else(|| misuse(GONE), Ok)
}

fn open(state: &mut State, response: *const Response) -> Result<(u64, &mut OpenResponse), Refusal> {
    let id = request_of(state, response)?;
    let found = state.requests.get_mut(&id).and_then(|request| request.open_response.as_mut());
    found.map_or_else(|| misuse(GONE), |response| Ok((id, response)))
}

fn take(state: &mut State, response: *const Response) -> Result<(u64, OpenResponse), Refusal> {
    let id = request_of(state, response)?;
    let found = state.requests.get_mut(&id).and_then(|request| request.open_response.take());
    let Some(response) = found else { return misuse(GONE) };
    state.responses.remove(&response.id);
    Ok((id, response))
}

pub(super) unsafe extern "C" fn response_free(response: *mut Response) {
    if response.is_null() {
        return;
    }
    void_entry("response_free", |state| {
        let (_, response) = take(state, response)?;
        state.discard(response);
        Ok(())
    });
}

/// # Safety
/// `shape` is null or valid for `rank` numbers.
pub(super) unsafe fn dims(rank: u32, shape: *const i64) -> Result<Vec<i64>, Refusal> {
    match rank {
        0 => Ok(Vec::new()),
        _ if shape.is_null() => misuse("the shape of an output is null"),
        // SAFETY: by the caller's promise.
        1..=64 => Ok(unsafe { std::slice::from_raw_parts(shape, rank as usize) }.to_vec()),
        _ => misuse(format!("an output has {rank} dimensions")),
    }
}

/// Checks an output against the model. Returns whether it was requested.
fn check(
    state: &mut State,
    id: u64,
    name: &str,
    dtype: u32,
    shape: &[i64],
    bytes: u64,
) -> Result<bool, Refusal> {
    let Some(request) = state.requests.get_mut(&id) else { return misuse(GONE) };
    exercised("output.declared");
    let open = request.open_response.as_ref();
    let twice = open.is_some_and(|r| r.outputs.iter().any(|output| output.name == name));
    let fault = match request.model.check_output(name, dtype, shape, bytes, request.rows) {
        Err(fault) => Some(fault),
        Ok(_) if twice => Some(format!("output '{name}' of {} was added twice", request.label)),
        Ok(_) => None,
    };
    if let Some(text) = fault {
        if let Some(response) = &mut request.open_response {
            response.incomplete = true;
        }
        let promise = (!request.unchecked).then_some("output.declared");
        let declared = request.model.outputs.iter().find(|output| output.name == name);
        if promise.is_none() && declared.is_some_and(|output| output.dtype == dtype) {
            state.suspect = Some(("output.declared", text.clone()));
        }
        return Err(Refusal { promise, code: code::INTERNAL, text });
    }
    Ok(request.requested.iter().any(|requested| requested == name))
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
        // SAFETY: name and shape are valid during the call.
        let (name, shape) = unsafe { (text(name, "the name of an output")?, dims(rank, shape)?) };
        let id = request_of(state, response)?;
        if !check(state, id, &name, dtype, &shape, bytes)? {
            // SAFETY: null or valid for one buffer.
            return unsafe { put(out, buf(std::ptr::null_mut(), 0, 0)) };
        }
        let block = output_block(&name, bytes)?;
        // SAFETY: as above.
        unsafe { put(out, buf(block.ptr(), block.bytes, 0)) }?;
        let memory = OutputMemory::Host(block);
        open(state, response)?.1.outputs.push(OpenOutput { name, dtype, shape, memory });
        Ok(())
    })
}

pub(super) fn output_block(name: &str, bytes: u64) -> Result<Block, Refusal> {
    let bytes_here = usize::try_from(bytes).ok().filter(|n| *n <= 1 << 40);
    match bytes_here.and_then(|n| Block::new(n, 0)) {
        Some(block) => Ok(block),
        None => misuse(format!("output '{name}': no memory for {bytes} bytes")),
    }
}

/// Checks and copies adopted memory. Returns its size, too.
///
/// # Safety
/// `parts` is null or valid for `n` buffers of readable memory.
pub(super) unsafe fn adopt(
    name: &str,
    parts: *const Buf,
    n: u32,
    adopted: Adopted,
    state: &mut State,
) -> Result<(OutputMemory, u64), Refusal> {
    let mut places = Vec::new();
    let mut total = 0u64;
    for at in 0..if parts.is_null() { 0 } else { n as usize } {
        // SAFETY: by the caller's promise.
        let part = unsafe { &*parts.add(at) };
        let sum = total.checked_add(part.bytes).filter(|t| *t <= 1 << 40);
        let fault = match sum {
            _ if !matches!(part.memory.memory_type, memory_type::CPU | memory_type::PINNED) => {
                Some("is not in CPU memory")
            }
            None => Some("has an impossible size"),
            Some(_) if part.ptr.is_null() && part.bytes > 0 => Some("is null"),
            Some(_) => None,
        };
        if let Some(fault) = fault {
            state.done.push(adopted);
            return misuse(format!("adopted memory of output '{name}' {fault}"));
        }
        total = sum.unwrap_or(0);
        places.push((part.ptr.expose_provenance(), part.bytes as usize));
    }
    // SAFETY: by the caller's promise; the size was checked.
    let contents = unsafe { copy_parts(&places) };
    state.counts.adopted += 1;
    Ok((OutputMemory::Adopted { parts: places, contents, adopted }, total))
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
        // Whatever is wrong, the memory is released once.
        let adopted = Adopted { release, ctx };
        // SAFETY: name and shape are valid during the call.
        let (name, shape) =
            match unsafe { (text(name, "the name of an output"), dims(rank, shape)) } {
                (Ok(name), Ok(shape)) => (name, shape),
                (Err(refusal), _) | (_, Err(refusal)) => {
                    state.done.push(adopted);
                    return Err(refusal);
                }
            };
        // SAFETY: the backend passes `n_parts` buffers.
        let (memory, bytes) = unsafe { adopt(&name, parts, n_parts, adopted, state) }?;
        let requested = request_of(state, response)
            .and_then(|id| check(state, id, &name, dtype, &shape, bytes));
        let output = OpenOutput { name, dtype, shape, memory };
        match requested {
            Ok(true) => open(state, response)?.1.outputs.push(output),
            Ok(false) => drop(state.retire_output(output)),
            Err(refusal) => {
                state.retire_output(output);
                return Err(refusal);
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
        let (_, response) = open(state, response)?;
        // SAFETY: null or a parameter that is valid during the call.
        let Some(given) = (unsafe { given.as_ref() }) else {
            return misuse("null passed as parameter");
        };
        // SAFETY: as above.
        let key = unsafe { text(given.key, "the key of a parameter") }?;
        let value = match given.kind {
            // SAFETY: as above.
            param::STRING => unsafe { text(given.text, "the value of a parameter") }?,
            param::INT | param::BOOL | param::DOUBLE | param::UINT => String::new(),
            kind => return misuse(format!("parameter '{key}' has kind {kind}")),
        };
        response.params.push((key, given.kind, value, given.bits));
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
        let error = state.error(error)?;
        if flags & !send_flags::FINAL != 0 {
            violation("host.calls", format!("response_send: unknown flags {flags:#x}"));
        }
        let (id, response) = take(state, response)?;
        if state.requests.get(&id).is_some_and(|request| request.result.is_some()) {
            state.discard(response);
            return finished("the request is finished already".to_owned());
        }
        send(state, id, response, error, flags & send_flags::FINAL != 0);
        Ok(())
    })
}

fn send(
    state: &mut State,
    id: u64,
    response: OpenResponse,
    error: Option<Failure>,
    is_final: bool,
) {
    let incomplete = response.incomplete;
    let outputs = response.outputs.into_iter().map(|output| state.retire_output(output)).collect();
    let sent = SentResponse { outputs, params: response.params };
    if error.is_none() {
        deliver(state, id, sent, incomplete);
    }
    if error.is_some() || is_final {
        state.finish(id, error.map_or(Ok(()), Err));
    }
}

/// Records a response and checks what it contains.
pub(super) fn deliver(state: &mut State, id: u64, sent: SentResponse, incomplete: bool) {
    let Some(request) = state.requests.get_mut(&id) else { return };
    let lacking = request.requested.iter().find(|name| sent.output(name).is_none());
    let lacking = lacking.map(|name| format!("output '{name}'"));
    for output in sent.outputs.iter().filter(|o| o.dtype == dtypes::STRING && !request.unchecked) {
        let count = element_count(&output.shape).unwrap_or(0);
        if strings(&output.data).is_none_or(|elements| elements != count) {
            let text = format!("output '{}' is not {count} valid strings", output.name);
            violation("output.declared", text);
        }
    }
    let refused =
        (incomplete && lacking.is_none()).then(|| "an output that was refused".to_owned());
    request.missing = request.missing.take().or(lacking).or(refused);
    request.responses.push(sent);
}

/// The number of elements of a string tensor; `None` if it is malformed.
fn strings(mut data: &[u8]) -> Option<usize> {
    let mut n = 0;
    while !data.is_empty() {
        let (length, rest) = data.split_first_chunk::<4>()?;
        data = rest.get(u32::from_le_bytes(*length) as usize..)?;
        n += 1;
    }
    Some(n)
}

pub(super) unsafe extern "C" fn responder_finish(
    responder: *mut Responder,
    error: *const Error,
) -> *mut Error {
    entry("responder_finish", |state| {
        let error = state.error(error)?;
        let id = id_of(RESPONDER, responder, "responder")?;
        let request = state.request(id)?;
        if request.result.is_some() {
            return finished(format!("{} was finished twice", request.label));
        }
        state.finish(id, error.map_or(Ok(()), Err));
        Ok(())
    })
}
