//! Entries for requests, responders and responses.

use super::outputs::OutputHeader;
use super::{
    CHANGED, CallRefusal, Failure, HostState, OpenResponse, REQUEST, RESPONDER, RESPONSE,
    Response as SentResponse, entry, handle, handle_id, put, refuse_misuse, text, void_entry,
};
use crate::model::element_count;
use crate::report::{report_exercised, report_violation};
use crate::request::forbid_inputs;
use trtserver_plugin_api::abi::host::send_flags;
use trtserver_plugin_api::abi::types::{
    Backlog, Error, Event, Param, RequestHandle, Responder, Response, code, dtype as dtypes, param,
};

fn refuse_finished<T>(text: String) -> Result<T, CallRefusal> {
    Err(CallRefusal { promise: Some("request.once"), code: code::INTERNAL, text })
}

pub(super) unsafe extern "C" fn request_release(request: *mut RequestHandle, after: *mut Event) {
    void_entry("request_release", |state| {
        state.take_event(after)?;
        let id = handle_id(REQUEST, request, "request")?;
        let request = state.request(id)?;
        if request.released {
            let text = format!("{} was released twice", request.label);
            return Err(CallRefusal {
                promise: Some("request.release"),
                code: code::INTERNAL,
                text,
            });
        }
        request.released = true;
        report_exercised("request.release");
        forbid_inputs(id);
        CHANGED.notify_all();
        Ok(())
    });
}

pub(super) unsafe extern "C" fn responder_detach(responder: *mut Responder) {
    void_entry("responder_detach", |state| {
        state.request(handle_id(RESPONDER, responder, "responder")?)?.detached += 1;
        report_exercised("host.responders");
        Ok(())
    });
}

pub(super) unsafe extern "C" fn responder_release(responder: *mut Responder) {
    void_entry("responder_release", |state| {
        let id = handle_id(RESPONDER, responder, "responder")?;
        let request = state.request(id)?;
        let Some(left) = request.detached.checked_sub(1) else {
            let label = request.label.clone();
            return refuse_misuse(format!(
                "the responder of {label} was released but not detached"
            ));
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
        let id = handle_id(RESPONDER, responder, "responder")?;
        let response = state.id();
        let request = state.request(id)?;
        if request.result.is_some() {
            return refuse_finished(format!("{} is finished already", request.label));
        }
        if request.open_response.is_some() {
            return refuse_misuse(format!("a response to {} exists already", request.label));
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
        report_exercised("host.responses");
        Ok(())
    })
}

const GONE: &str = "a response was used after it was sent or freed";

/// The request of an open response.
pub(super) fn response_request(
    state: &HostState,
    response: *const Response,
) -> Result<u64, CallRefusal> {
    let id = handle_id(RESPONSE, response, "response")?;
    state.responses.get(&id).copied().map_or_else(|| refuse_misuse(GONE), Ok)
}

pub(super) fn open_response(
    state: &mut HostState,
    response: *const Response,
) -> Result<(u64, &mut OpenResponse), CallRefusal> {
    let id = response_request(state, response)?;
    let found = state.requests.get_mut(&id).and_then(|request| request.open_response.as_mut());
    found.map_or_else(|| refuse_misuse(GONE), |response| Ok((id, response)))
}

fn take_response(
    state: &mut HostState,
    response: *const Response,
) -> Result<(u64, OpenResponse), CallRefusal> {
    let id = response_request(state, response)?;
    let found = state.requests.get_mut(&id).and_then(|request| request.open_response.take());
    let Some(response) = found else { return refuse_misuse(GONE) };
    state.responses.remove(&response.id);
    Ok((id, response))
}

pub(super) unsafe extern "C" fn response_free(response: *mut Response) {
    if response.is_null() {
        return;
    }
    void_entry("response_free", |state| {
        let (_, response) = take_response(state, response)?;
        state.discard(response);
        Ok(())
    });
}

/// Checks an output against the model. Returns whether it is batched; `None` if it was not
/// requested.
pub(super) fn check_output(
    state: &mut HostState,
    id: u64,
    output: &OutputHeader,
    bytes: u64,
) -> Result<Option<bool>, CallRefusal> {
    let OutputHeader { name, dtype, shape } = output;
    let Some(request) = state.requests.get_mut(&id) else { return refuse_misuse(GONE) };
    report_exercised("output.declared");
    let open = request.open_response.as_ref();
    let twice = open.is_some_and(|r| r.outputs.iter().any(|output| output.name == *name));
    let checked = match request.model.check_output(name, *dtype, shape, bytes, request.rows) {
        Ok(_) if twice => Err(format!("output '{name}' of {} was added twice", request.label)),
        checked => checked,
    };
    checked.map(|batched| request.requested.contains(name).then_some(batched)).map_err(|text| {
        if let Some(response) = &mut request.open_response {
            response.incomplete = true;
        }
        let promise = (!request.unchecked).then_some("output.declared");
        let declared = request.model.outputs.iter().find(|output| output.name == *name);
        if promise.is_none() && declared.is_some_and(|output| output.dtype == *dtype) {
            state.suspect = Some(("output.declared", text.clone()));
        }
        CallRefusal { promise, code: code::INTERNAL, text }
    })
}

pub(super) unsafe extern "C" fn response_param(
    response: *mut Response,
    given: *const Param,
) -> *mut Error {
    entry("response_param", |state| {
        let (_, response) = open_response(state, response)?;
        // SAFETY: null or a parameter that is valid during the call.
        let Some(given) = (unsafe { given.as_ref() }) else {
            return refuse_misuse("null passed as parameter");
        };
        // SAFETY: the backend keeps the key of the parameter valid during the call.
        let key = unsafe { text(given.key, "the key of a parameter") }?;
        let value = match given.kind {
            // SAFETY: the parameter is a string, which the backend keeps valid during the call.
            param::STRING => unsafe { text(given.text, "the value of a parameter") }?,
            param::INT | param::BOOL | param::DOUBLE | param::UINT => String::new(),
            kind => return refuse_misuse(format!("parameter '{key}' has kind {kind}")),
        };
        response.params.push((key, given.kind, value, given.bits));
        Ok(())
    })
}

pub(super) unsafe extern "C" fn response_send(
    response: *mut Response,
    flags: u32,
    error: *const Error,
    after: *mut Event,
) -> *mut Error {
    entry("response_send", |state| {
        state.take_event(after)?;
        let error = state.error(error)?;
        if flags & !(send_flags::FINAL | send_flags::NO_WAIT) != 0 {
            report_violation("host.calls", format!("response_send: unknown flags {flags:#x}"));
        }
        let (id, response) = take_response(state, response)?;
        if state.requests.get(&id).is_some_and(|request| request.result.is_some()) {
            state.discard(response);
            return refuse_finished("the request is finished already".to_owned());
        }
        send(state, id, response, error, flags & send_flags::FINAL != 0);
        Ok(())
    })
}

fn send(
    state: &mut HostState,
    id: u64,
    response: OpenResponse,
    error: Option<Failure>,
    is_final: bool,
) {
    let incomplete = response.incomplete;
    let outputs = response.outputs.into_iter().map(|output| state.retire_output(output)).collect();
    let sent = SentResponse { outputs, params: response.params };
    if error.is_none() {
        deliver_response(state, id, sent, incomplete);
    }
    if error.is_some() || is_final {
        state.finish(id, error.map_or(Ok(()), Err));
    }
}

/// Records a response and checks what it contains.
pub(super) fn deliver_response(
    state: &mut HostState,
    id: u64,
    sent: SentResponse,
    incomplete: bool,
) {
    let Some(request) = state.requests.get_mut(&id) else { return };
    let lacking = request.requested.iter().find(|name| sent.output(name).is_none());
    let lacking = lacking.map(|name| format!("output '{name}'"));
    for output in sent.outputs.iter().filter(|o| o.dtype == dtypes::STRING && !request.unchecked) {
        let count = element_count(&output.shape).unwrap_or(0);
        if strings(&output.data).is_none_or(|elements| elements != count) {
            let text = format!("output '{}' is not {count} valid strings", output.name);
            report_violation("output.declared", text);
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
        let id = handle_id(RESPONDER, responder, "responder")?;
        let request = state.request(id)?;
        if request.result.is_some() {
            return refuse_finished(format!("{} was finished twice", request.label));
        }
        state.finish(id, error.map_or(Ok(()), Err));
        Ok(())
    })
}

/// This host takes every response at once.
pub(super) unsafe extern "C" fn responder_backlog(
    responder: *mut Responder,
    out: *mut Backlog,
) -> *mut Error {
    entry("responder_backlog", |state| {
        state.request(handle_id(RESPONDER, responder, "responder")?)?;
        report_exercised("host.responders");
        // SAFETY: null or valid for one backlog.
        unsafe { put(out, Backlog::default()) }
    })
}
