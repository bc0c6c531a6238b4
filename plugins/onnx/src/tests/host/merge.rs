//! The entries for a whole batch: one batch at a time, as the tests take turns.

use super::table::{Answer, Failure, Output, own};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use trtserver_plugin_api::abi::host::Release;
use trtserver_plugin_api::abi::request::{Batch, Request};
use trtserver_plugin_api::abi::types::*;

/// Inputs that were gathered, and outputs that were scattered, since the tests began.
pub static GATHERED: AtomicUsize = AtomicUsize::new(0);
pub static SCATTERED: AtomicUsize = AtomicUsize::new(0);

/// Of the batch that is being executed.
static BLOCKS: Mutex<Vec<Output>> = Mutex::new(Vec::new());
static GATHERINGS: Mutex<Vec<Vec<u128>>> = Mutex::new(Vec::new());

unsafe fn requests<'a>(batch: *const Batch) -> &'a [&'a Request] {
    // SAFETY: the batch of this call.
    unsafe { std::slice::from_raw_parts((*batch).requests.cast(), (*batch).n_requests as usize) }
}

unsafe fn slice<'a, T>(p: *const T, n: u32) -> &'a [T] {
    // SAFETY: a list of the batch.
    if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(p, n as usize) } }
}

fn failure(text: &str) -> *mut Error {
    Box::into_raw(Box::new((code::INVALID, text.to_owned()))).cast()
}

pub unsafe extern "C" fn gather(
    batch: *const Batch,
    input: u32,
    memory: Memory,
    _: u32,
    _: *mut u8,
    out: *mut Buf,
) -> *mut Error {
    let mut all = Vec::new();
    // SAFETY: the batch of this call.
    for request in unsafe { requests(batch) } {
        // SAFETY: as above.
        let tensor = unsafe { &slice(request.inputs, request.n_inputs)[input as usize] };
        // SAFETY: as above.
        for part in unsafe { slice(tensor.parts, tensor.n_parts) } {
            // SAFETY: as above.
            all.extend(unsafe { slice(part.ptr.cast_const(), part.bytes as u32) });
        }
    }
    let mut block = vec![0u128; all.len().div_ceil(16)];
    let ptr = block.as_mut_ptr().cast();
    let bytes = all.len() as u64;
    // SAFETY: the block is large enough; the plugin's out pointer.
    unsafe {
        ptr::copy_nonoverlapping(all.as_ptr(), ptr, all.len());
        out.write(Buf { ptr, bytes, memory, ready: ptr::null_mut(), memory_handle: 0 });
    }
    GATHERINGS.lock().unwrap().push(block);
    GATHERED.fetch_add(1, Ordering::Relaxed);
    ptr::null_mut()
}

/// An output that was not scattered before, and whether any call wants it.
unsafe fn begin(
    batch: *const Batch,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
) -> Result<(Output, bool), *mut Error> {
    // SAFETY: arguments are valid during the call.
    let (name, shape, requests) =
        unsafe { (own(name), slice(shape, rank).to_vec(), requests(batch)) };
    // SAFETY: the batch of this call.
    if shape[0] != i64::from(unsafe { (*batch).rows }) {
        return Err(failure("another number of rows"));
    }
    if BLOCKS.lock().unwrap().iter().any(|block| block.name == name) {
        return Err(failure("scattered twice"));
    }
    let requested = requests.iter().any(|request| wants(request, &name));
    SCATTERED.fetch_add(1, Ordering::Relaxed);
    let (bytes, block) = (Vec::new(), Vec::new());
    Ok((Output { name, dtype, shape, adopted: false, bytes, block }, requested))
}

fn wants(request: &Request, name: &str) -> bool {
    // SAFETY: the batch of this call.
    unsafe {
        slice(request.requested_outputs, request.n_requested_outputs)
            .iter()
            .any(|w| own(w.name) == name)
    }
}

pub unsafe extern "C" fn scatter_alloc(
    batch: *const Batch,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    bytes: u64,
    memory: Memory,
    out: *mut Buf,
) -> *mut Error {
    // SAFETY: arguments are valid during the call.
    let (mut output, requested) = match unsafe { begin(batch, name, dtype, rank, shape) } {
        Ok(begun) => begun,
        Err(error) => return error,
    };
    let mut buf =
        Buf { ptr: ptr::null_mut(), bytes: 0, memory, ready: ptr::null_mut(), memory_handle: 0 };
    if requested {
        output.block = vec![0u128; (bytes as usize).div_ceil(16)];
        output.bytes = vec![0; bytes as usize];
        (buf.ptr, buf.bytes) = (output.block.as_mut_ptr().cast(), bytes);
        BLOCKS.lock().unwrap().push(output);
    }
    // SAFETY: the plugin's out pointer.
    unsafe { out.write(buf) };
    ptr::null_mut()
}

pub unsafe extern "C" fn scatter_adopt(
    batch: *const Batch,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
    buf: *const Buf,
    release: Release,
    ctx: *mut u8,
) -> *mut Error {
    // SAFETY: arguments are valid during the call, donated memory until the release.
    let bytes = unsafe { slice((*buf).ptr.cast_const(), (*buf).bytes as u32).to_vec() };
    // SAFETY: once.
    release.func.into_iter().for_each(|f| unsafe { f(ctx) });
    super::RELEASED.fetch_add(1, Ordering::Relaxed);
    // SAFETY: arguments are valid during the call.
    match unsafe { begin(batch, name, dtype, rank, shape) } {
        Ok((_, false)) => {}
        Ok((output, true)) => {
            BLOCKS.lock().unwrap().push(Output { adopted: true, bytes, ..output });
        }
        Err(error) => return error,
    }
    ptr::null_mut()
}

/// The rows of one call, cut off the front.
fn cut(block: &mut Output, rows: u32) -> Output {
    let mut shape = block.shape.clone();
    shape[0] = rows.into();
    let count = shape.iter().product::<i64>() as usize;
    let at = |at: usize| u32::from_le_bytes(block.bytes[at..at + 4].try_into().unwrap()) as usize;
    let n = match block.dtype {
        dtype::STRING => (0..count).fold(0, |end, _| end + 4 + at(end)),
        kind => count * crate::types::size(kind),
    };
    Output {
        name: block.name.clone(),
        dtype: block.dtype,
        shape,
        adopted: block.adopted,
        bytes: block.bytes.drain(..n).collect(),
        block: Vec::new(),
    }
}

pub unsafe extern "C" fn batch_finish(
    batch: *const Batch,
    error: *const Error,
    _: *mut Event,
) -> *mut Error {
    let mut blocks = std::mem::take(&mut *BLOCKS.lock().unwrap());
    for output in blocks.iter_mut().filter(|output| !output.adopted) {
        let n = output.bytes.len() as u32;
        // SAFETY: the block has at least `n` bytes.
        output.bytes.copy_from_slice(unsafe { slice(output.block.as_ptr().cast(), n) });
    }
    // SAFETY: the batch of this call; the error is valid during the call.
    let (requests, error) = unsafe { (requests(batch), error.cast::<Failure>().as_ref()) };
    for request in requests {
        let rows: Vec<Output> =
            blocks.iter_mut().map(|block| cut(block, request.batch_size)).collect();
        // SAFETY: the call is alive.
        let answer = unsafe { &mut *request.responder.cast::<Answer>() };
        if answer.ended > 0 {
            continue;
        }
        answer.ended += 1;
        answer.error = error.cloned();
        assert!(error.is_some() || !blocks.is_empty(), "a request without an answer");
        if error.is_none() {
            answer.outputs.extend(rows.into_iter().filter(|output| wants(request, &output.name)));
        }
    }
    GATHERINGS.lock().unwrap().clear();
    // SAFETY: the batch of this call.
    assert!(error.is_some() || unsafe { (*batch).exec_end_ns > 0 });
    ptr::null_mut()
}
