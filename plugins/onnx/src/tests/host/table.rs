//! The entries of the host's table.

use super::{merge, text};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use trtserver_plugin_api::abi::host::{HostTable, Release};
use trtserver_plugin_api::abi::types::*;

pub unsafe fn own(text: Str) -> String {
    if text.p.is_null() {
        return String::new();
    }
    // SAFETY: texts of the plugin are valid during the call.
    let bytes = unsafe { std::slice::from_raw_parts(text.p, text.n as usize) };
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub type Failure = (u32, String);

/// The answer side of one call.
#[derive(Default)]
pub struct Answer {
    pub outputs: Vec<Output>,
    pub error: Option<Failure>,
    pub ended: u32,
}

pub struct Output {
    pub name: String,
    pub dtype: u32,
    pub shape: Vec<i64>,
    pub adopted: bool,
    pub bytes: Vec<u8>,
    /// The block that the host lent, until the answer is sent.
    pub block: Vec<u128>,
}

pub struct Pending {
    answer: *mut Answer,
    outputs: Vec<Output>,
}

pub static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());
pub static PATCH: Mutex<String> = Mutex::new(String::new());
pub static RELEASED: AtomicUsize = AtomicUsize::new(0);
static LEVEL: u32 = 5;

unsafe extern "C" fn error_new(code: u32, _: u32, text: Str) -> *mut Error {
    // SAFETY: valid during the call.
    Box::into_raw(Box::new((code, unsafe { own(text) }))).cast()
}
unsafe extern "C" fn error_code(error: *const Error) -> u32 {
    // SAFETY: of `error_new`.
    unsafe { (*error.cast::<Failure>()).0 }
}
unsafe extern "C" fn error_text(error: *const Error) -> Str {
    // SAFETY: of `error_new`.
    let text = unsafe { &(*error.cast::<Failure>()).1 };
    Str { p: text.as_ptr(), n: text.len() as u64 }
}
unsafe extern "C" fn error_free(error: *mut Error) {
    if !error.is_null() {
        // SAFETY: of `error_new`, freed once.
        drop(unsafe { Box::from_raw(error.cast::<Failure>()) });
    }
}
unsafe extern "C" fn log_level(_: *const Scope) -> *const u32 {
    &raw const LEVEL
}
unsafe extern "C" fn log(_: *const Scope, level: u32, _: Str, _: u32, text: Str) {
    // SAFETY: valid during the call.
    LOG.lock().unwrap().push(format!("{level} {}", unsafe { own(text) }));
}
unsafe extern "C" fn now_ns() -> u64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64 + 1
}
unsafe extern "C" fn config_patch(_: *mut Scope, _: u32, p: *const u8, n: u64) -> *mut Error {
    // SAFETY: valid during the call.
    *PATCH.lock().unwrap() = unsafe { own(Str { p, n }) };
    ptr::null_mut()
}
unsafe extern "C" fn progress(_: *mut Scope, _: Str, _: u32) -> u32 {
    0
}
unsafe extern "C" fn request_release(_: *mut RequestHandle, _: *mut Event) {}
unsafe extern "C" fn ignore(_: *mut Responder) {}
unsafe extern "C" fn response_new(
    responder: *mut Responder,
    out: *mut *mut Response,
) -> *mut Error {
    let pending = Pending { answer: responder.cast(), outputs: Vec::new() };
    // SAFETY: the plugin's out pointer.
    unsafe { out.write(Box::into_raw(Box::new(pending)).cast()) };
    ptr::null_mut()
}
unsafe extern "C" fn response_free(response: *mut Response) {
    // SAFETY: of `response_new`, dropped once.
    drop(unsafe { Box::from_raw(response.cast::<Pending>()) });
}
unsafe extern "C" fn output_alloc(
    response: *mut Response,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    bytes: u64,
    _: Memory,
    out: *mut Buf,
) -> *mut Error {
    // SAFETY: arguments are valid during the call.
    unsafe {
        let mut block = vec![0u128; (bytes as usize).div_ceil(16)];
        let ptr = block.as_mut_ptr().cast();
        out.write(Buf {
            ptr,
            bytes,
            memory: Memory::CPU,
            ready: ptr::null_mut(),
            memory_handle: 0,
        });
        (*response.cast::<Pending>()).outputs.push(Output {
            name: own(name),
            dtype,
            shape: std::slice::from_raw_parts(shape, rank as usize).to_vec(),
            adopted: false,
            bytes: vec![0; bytes as usize],
            block,
        });
    }
    ptr::null_mut()
}
unsafe extern "C" fn output_adopt(
    response: *mut Response,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    parts: *const Buf,
    n: u32,
    release: Release,
    ctx: *mut u8,
) -> *mut Error {
    // SAFETY: arguments are valid during the call, donated memory until the release.
    unsafe {
        let mut bytes = Vec::new();
        for part in std::slice::from_raw_parts(parts, n as usize) {
            if part.bytes > 0 {
                bytes.extend_from_slice(std::slice::from_raw_parts(part.ptr, part.bytes as usize));
            }
        }
        (*response.cast::<Pending>()).outputs.push(Output {
            name: own(name),
            dtype,
            shape: std::slice::from_raw_parts(shape, rank as usize).to_vec(),
            adopted: true,
            bytes,
            block: Vec::new(),
        });
        release.func.into_iter().for_each(|f| f(ctx));
    }
    RELEASED.fetch_add(1, Ordering::Relaxed);
    ptr::null_mut()
}
unsafe extern "C" fn response_param(_: *mut Response, _: *const Param) -> *mut Error {
    ptr::null_mut()
}
unsafe extern "C" fn response_send(
    response: *mut Response,
    flags: u32,
    error: *const Error,
    _: *mut Event,
) -> *mut Error {
    // SAFETY: of `response_new`, sent once.
    let mut pending = unsafe { Box::from_raw(response.cast::<Pending>()) };
    assert!(error.is_null());
    for output in pending.outputs.iter_mut().filter(|output| !output.adopted) {
        let n = output.bytes.len();
        // SAFETY: the block has at least `n` bytes.
        let block = unsafe { std::slice::from_raw_parts(output.block.as_ptr().cast::<u8>(), n) };
        output.bytes.copy_from_slice(block);
    }
    // SAFETY: the call is alive.
    let answer = unsafe { &mut *pending.answer };
    answer.outputs.append(&mut pending.outputs);
    answer.ended += flags;
    ptr::null_mut()
}
unsafe extern "C" fn responder_finish(
    responder: *mut Responder,
    error: *const Error,
) -> *mut Error {
    // SAFETY: the call is alive; the error is valid during the call.
    unsafe {
        let answer = &mut *responder.cast::<Answer>();
        answer.ended += 1;
        answer.error = error.cast::<Failure>().as_ref().cloned();
    }
    ptr::null_mut()
}
unsafe extern "C" fn get_extension(_: Str, _: u32) -> *const u8 {
    ptr::null()
}

pub fn table() -> HostTable {
    HostTable {
        size: size_of::<HostTable>() as u64,
        abi_major: trtserver_plugin_api::abi::ABI_MAJOR,
        abi_minor: trtserver_plugin_api::abi::ABI_MINOR,
        name: text("test"),
        version: text("0"),
        flags: 0,
        n_extensions: 0,
        extensions: ptr::null(),
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
        responder_detach: ignore,
        responder_release: ignore,
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
    }
}
