//! The entries of the fake host.

use super::{Data, Failure, FakeRequest, FakeResponse, FakeScope, SentResponse, merge, read, text};
use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::{AtomicIsize, AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex};
use trtserver_plugin_api::abi::extensions::{METRICS, METRICS_VERSION, Metric, MetricsExtension};
use trtserver_plugin_api::abi::host::{HostTable, Release};
use trtserver_plugin_api::abi::types::{
    Buf, Error, Event, Extension, Memory, Param, RequestHandle, Responder, Response, Scope, Str,
    code, level,
};
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR};

/// Errors and responses alive.
pub static ERRORS: AtomicIsize = AtomicIsize::new(0);
pub static RESPONSES: AtomicIsize = AtomicIsize::new(0);
pub static VERBOSITY: AtomicU32 = AtomicU32::new(level::INFO);

unsafe extern "C" fn error_new(code: u32, flags: u32, text: Str) -> *mut Error {
    ERRORS.fetch_add(1, Ordering::SeqCst);
    Box::into_raw(Box::new(Failure { code, flags, text: read(text) })).cast()
}

pub unsafe fn peek<'a>(error: *const Error) -> Option<&'a Failure> {
    unsafe { error.cast::<Failure>().as_ref() }
}

unsafe extern "C" fn error_code(error: *const Error) -> u32 {
    unsafe { peek(error) }.map_or(0, |e| e.code)
}

unsafe extern "C" fn error_text(error: *const Error) -> Str {
    let Some(error) = (unsafe { peek(error) }) else { return text("") };
    Str { p: error.text.as_ptr(), n: error.text.len() as u64 }
}

unsafe extern "C" fn error_free(error: *mut Error) {
    let _ = super::failure(error);
}

pub fn refuse(text: &str) -> *mut Error {
    ERRORS.fetch_add(1, Ordering::SeqCst);
    let failure = Failure { code: code::INTERNAL, flags: 0, text: text.to_owned() };
    Box::into_raw(Box::new(failure)).cast()
}

unsafe extern "C" fn log_level(_: *const Scope) -> *const u32 {
    VERBOSITY.as_ptr()
}

unsafe extern "C" fn log(scope: *const Scope, level: u32, file: Str, line: u32, text: Str) {
    assert!(!read(file).is_empty() && line > 0);
    let scope = unsafe { &*scope.cast::<FakeScope>() };
    scope.records.lock().unwrap().push((level, read(text)));
}

unsafe extern "C" fn now_ns() -> u64 {
    42
}

unsafe extern "C" fn config_patch(s: *mut Scope, format: u32, p: *const u8, n: u64) -> *mut Error {
    let bytes = unsafe { std::slice::from_raw_parts(p, n as usize) }.to_vec();
    let scope = unsafe { &*s.cast::<FakeScope>() };
    scope.patches.lock().unwrap().push((format, bytes));
    ptr::null_mut()
}

unsafe extern "C" fn progress(_: *mut Scope, stage: Str, permille: u32) -> u32 {
    u32::from(read(stage) == "hopeless" || permille > 1000)
}

unsafe extern "C" fn request_release(request: *mut RequestHandle, _: *mut Event) {
    let request = unsafe { &*request.cast::<FakeRequest>() };
    request.releases.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn responder_detach(responder: *mut Responder) {
    let request = unsafe { &*responder.cast::<FakeRequest>() };
    request.references.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn responder_release(responder: *mut Responder) {
    let request = unsafe { &*responder.cast::<FakeRequest>() };
    request.references.fetch_sub(1, Ordering::SeqCst);
}

unsafe extern "C" fn response_new(
    responder: *mut Responder,
    out: *mut *mut Response,
) -> *mut Error {
    let request = responder.cast_const().cast::<FakeRequest>();
    RESPONSES.fetch_add(1, Ordering::SeqCst);
    let response = FakeResponse { request, outputs: BTreeMap::new(), params: Vec::new() };
    unsafe { out.write(Box::into_raw(Box::new(response)).cast()) };
    ptr::null_mut()
}

unsafe extern "C" fn response_free(response: *mut Response) {
    RESPONSES.fetch_sub(1, Ordering::SeqCst);
    drop(unsafe { Box::from_raw(response.cast::<FakeResponse>()) });
}

unsafe fn requested(response: &FakeResponse, name: &str) -> bool {
    unsafe { &*response.request }.state.lock().unwrap().requested.iter().any(|w| w == name)
}

unsafe extern "C" fn output_alloc(
    response: *mut Response,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    bytes: u64,
    preferred_memory: Memory,
    out: *mut Buf,
) -> *mut Error {
    let response = unsafe { &mut *response.cast::<FakeResponse>() };
    let name = read(name);
    let mut buf = Buf {
        ptr: ptr::null_mut(),
        bytes: 0,
        memory: preferred_memory,
        ready: ptr::null_mut(),
        memory_handle: 0,
    };
    if unsafe { requested(response, &name) } {
        let shape = unsafe { std::slice::from_raw_parts(shape, rank as usize) }.to_vec();
        let mut block = vec![u64::MAX; (bytes as usize).div_ceil(8)];
        buf.ptr = block.as_mut_ptr().cast();
        buf.bytes = bytes;
        response.outputs.insert(name, (dtype, shape, Data::Host(block, bytes as usize)));
    }
    unsafe { out.write(buf) };
    ptr::null_mut()
}

unsafe extern "C" fn output_adopt(
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
    let response = unsafe { &mut *response.cast::<FakeResponse>() };
    let name = read(name);
    let shape = unsafe { std::slice::from_raw_parts(shape, rank as usize) }.to_vec();
    let mut all = Vec::new();
    for part in unsafe { std::slice::from_raw_parts(parts, n_parts as usize) } {
        if part.bytes > 0 {
            all.extend_from_slice(unsafe {
                std::slice::from_raw_parts(part.ptr, part.bytes as usize)
            });
        }
    }
    release.func.into_iter().for_each(|f| unsafe { f(ctx) });
    if name == "REFUSED" {
        return refuse("this output is refused");
    }
    if unsafe { requested(response, &name) } {
        response.outputs.insert(name, (dtype, shape, Data::Donated(all)));
    }
    ptr::null_mut()
}

unsafe extern "C" fn response_param(response: *mut Response, param: *const Param) -> *mut Error {
    let response = unsafe { &mut *response.cast::<FakeResponse>() };
    let param = unsafe { &*param };
    response.params.push((read(param.key), param.kind, param.bits));
    ptr::null_mut()
}

unsafe extern "C" fn response_send(
    response: *mut Response,
    flags: u32,
    error: *const Error,
    _: *mut Event,
) -> *mut Error {
    RESPONSES.fetch_sub(1, Ordering::SeqCst);
    let response = unsafe { Box::from_raw(response.cast::<FakeResponse>()) };
    let request = unsafe { &*response.request };
    let mut state = request.state.lock().unwrap();
    if state.end.is_some() {
        return refuse("sent after the end");
    }
    match unsafe { peek(error) } {
        None => {
            let outputs = response
                .outputs
                .into_iter()
                .map(|(name, (dtype, shape, data))| (name, (dtype, shape, data.bytes())));
            let answer = SentResponse { outputs: outputs.collect(), params: response.params };
            state.sent.push(answer);
            if flags & 1 != 0 {
                state.end = Some(Ok(()));
                state.ends += 1;
            }
        }
        Some(error) => {
            state.end = Some(Err(error.clone()));
            state.ends += 1;
        }
    }
    ptr::null_mut()
}

unsafe extern "C" fn responder_finish(
    responder: *mut Responder,
    error: *const Error,
) -> *mut Error {
    let request = unsafe { &*responder.cast::<FakeRequest>() };
    let mut state = request.state.lock().unwrap();
    state.ends += 1;
    if state.end.is_some() {
        return refuse("ended twice");
    }
    state.end = Some(unsafe { peek(error) }.map_or(Ok(()), |e| Err(e.clone())));
    ptr::null_mut()
}

unsafe extern "C" fn metric_new(
    scope: *mut Scope,
    _: u32,
    name: Str,
    _: Str,
    labels: *const Param,
    n_labels: u32,
    out: *mut *mut Metric,
) -> *mut Error {
    let scope = unsafe { &*scope.cast::<FakeScope>() };
    let labels = unsafe { std::slice::from_raw_parts(labels, n_labels as usize) };
    let labels = labels.iter().map(|l| (read(l.key), read(l.text))).collect();
    let mut metrics = scope.metrics.lock().unwrap();
    metrics.push((read(name), labels, 0.0));
    let metric = (ptr::from_ref(scope), metrics.len() - 1);
    unsafe { out.write(Box::into_raw(Box::new(metric)).cast()) };
    ptr::null_mut()
}

type FakeMetric = (*const FakeScope, usize);

unsafe extern "C" fn metric_put(metric: *mut Metric, value: f64) -> *mut Error {
    let (scope, i) = unsafe { *metric.cast::<FakeMetric>() };
    unsafe { &*scope }.metrics.lock().unwrap()[i].2 += value;
    ptr::null_mut()
}

unsafe extern "C" fn metric_get(metric: *const Metric) -> f64 {
    let (scope, i) = unsafe { *metric.cast::<FakeMetric>() };
    unsafe { &*scope }.metrics.lock().unwrap()[i].2
}

unsafe extern "C" fn metric_free(_: *mut Metric) {}

/// What `get_extension` was asked for, in order.
pub static ASKED: Mutex<Vec<(String, u32)>> = Mutex::new(Vec::new());

unsafe extern "C" fn get_extension(name: Str, version: u32) -> *const u8 {
    let name = read(name);
    ASKED.lock().unwrap().push((name.clone(), version));
    if name == METRICS && version <= METRICS_VERSION {
        return (&raw const METRICS_TABLE).cast();
    }
    ptr::null()
}

static METRICS_TABLE: MetricsExtension = MetricsExtension {
    size: size_of::<MetricsExtension>() as u64,
    metric_new,
    metric_put,
    metric_get,
    metric_free,
};

struct Extensions([Extension; 1]);
// SAFETY: read-only.
unsafe impl Sync for Extensions {}

static EXTENSIONS: Extensions = Extensions([Extension {
    name: Str { p: METRICS.as_ptr(), n: METRICS.len() as u64 },
    version: METRICS_VERSION,
    pad: 0,
}]);

pub struct Table(pub HostTable);
// SAFETY: read-only.
unsafe impl Send for Table {}
// SAFETY: read-only.
unsafe impl Sync for Table {}

pub static HOST: LazyLock<Table> = LazyLock::new(|| {
    Table(HostTable {
        size: size_of::<HostTable>() as u64,
        abi_major: ABI_MAJOR,
        abi_minor: ABI_MINOR,
        name: text("fake"),
        version: text("0"),
        flags: 0,
        n_extensions: EXTENSIONS.0.len() as u32,
        extensions: EXTENSIONS.0.as_ptr(),
        get_extension,
        error_new,
        error_code,
        error_text,
        error_free,
        log_level,
        log,
        now_ns,
        config_patch,
        progress,
        gather: merge::gather,
        request_release,
        responder_detach,
        responder_release,
        response_new,
        response_free,
        output_alloc,
        output_adopt,
        response_param,
        response_send,
        responder_finish,
        scatter_alloc: merge::scatter_alloc,
        scatter_adopt: merge::scatter_adopt,
        batch_finish: merge::batch_finish,
    })
});
