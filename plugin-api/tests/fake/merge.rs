//! The fake host's entries for a whole batch. Gathered blocks are leaked.

use super::table::{peek, refuse};
use super::{Data, Failure, FakeRequest, SentResponse, read};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use trtserver_plugin_api::abi::host::Release;
use trtserver_plugin_api::abi::request::{Batch, Request};
use trtserver_plugin_api::abi::types::{Buf, Error, Event, Memory, Str, code, dtype};

struct Block {
    name: String,
    dtype: u32,
    shape: Vec<i64>,
    data: Data,
}

/// Of the one batch that is being executed.
static SCATTERED: Mutex<Vec<Block>> = Mutex::new(Vec::new());

unsafe fn requests<'a>(batch: *const Batch) -> &'a [&'a Request] {
    unsafe { std::slice::from_raw_parts((*batch).requests.cast(), (*batch).n_requests as usize) }
}

fn fake(request: &Request) -> &FakeRequest {
    unsafe { &*request.responder.cast::<FakeRequest>() }
}

pub unsafe extern "C" fn gather(
    batch: *const Batch,
    input: u32,
    memory: Memory,
    mode: u32,
    _: *mut u8,
    out: *mut Buf,
) -> *mut Error {
    assert_eq!((memory, mode), (Memory::CPU, 0));
    let mut all = Vec::new();
    let mut item = None;
    for request in unsafe { requests(batch) } {
        if input >= request.n_inputs {
            return refuse("there is no such input");
        }
        let tensor = unsafe { &*request.inputs.add(input as usize) };
        let shape = unsafe { std::slice::from_raw_parts(tensor.shape, tensor.rank as usize) };
        if *item.get_or_insert(&shape[1..]) != &shape[1..] {
            return refuse("shapes differ");
        }
        for part in unsafe { std::slice::from_raw_parts(tensor.parts, tensor.n_parts as usize) } {
            all.extend(unsafe { std::slice::from_raw_parts(part.ptr, part.bytes as usize) });
        }
    }
    let mut block = vec![0u64; all.len().div_ceil(8)];
    let ptr = block.as_mut_ptr().cast::<u8>();
    unsafe { ptr::copy_nonoverlapping(all.as_ptr(), ptr, all.len()) };
    block.leak();
    let bytes = all.len() as u64;
    unsafe { out.write(Buf { ptr, bytes, memory, ready: ptr::null_mut(), memory_handle: 0 }) };
    ptr::null_mut()
}

unsafe fn requested(batch: *const Batch, name: &str) -> bool {
    let wants = |request: &&Request| {
        fake(request).state.lock().unwrap().requested.iter().any(|w| w == name)
    };
    unsafe { requests(batch) }.iter().any(wants)
}

unsafe fn block(
    batch: *const Batch,
    name: Str,
    dtype: u32,
    rank: u32,
    shape: *const i64,
) -> Result<Option<Block>, *mut Error> {
    let name = read(name);
    let shape = unsafe { std::slice::from_raw_parts(shape, rank as usize) }.to_vec();
    if name == "REFUSED" || SCATTERED.lock().unwrap().iter().any(|block| block.name == name) {
        return Err(refuse("this output is refused"));
    }
    let data = Data::Donated(Vec::new());
    Ok(unsafe { requested(batch, &name) }.then_some(Block { name, dtype, shape, data }))
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
    let mut buf =
        Buf { ptr: ptr::null_mut(), bytes: 0, memory, ready: ptr::null_mut(), memory_handle: 0 };
    match unsafe { block(batch, name, dtype, rank, shape) } {
        Err(error) => return error,
        Ok(None) => {}
        Ok(Some(mut block)) => {
            let mut block_memory = vec![u64::MAX; (bytes as usize).div_ceil(8)];
            (buf.ptr, buf.bytes) = (block_memory.as_mut_ptr().cast(), bytes);
            block.data = Data::Host(block_memory, bytes as usize);
            SCATTERED.lock().unwrap().push(block);
        }
    }
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
    let buf = unsafe { &*buf };
    let mut bytes = Vec::new();
    if buf.bytes > 0 {
        bytes.extend(unsafe { std::slice::from_raw_parts(buf.ptr, buf.bytes as usize) });
    }
    release.func.into_iter().for_each(|f| unsafe { f(ctx) });
    match unsafe { block(batch, name, dtype, rank, shape) } {
        Err(error) => return error,
        Ok(None) => {}
        Ok(Some(mut block)) => {
            block.data = Data::Donated(bytes);
            SCATTERED.lock().unwrap().push(block);
        }
    }
    ptr::null_mut()
}

/// Cuts `rows` rows off the front.
fn rows(block: &Block, rest: &mut Vec<u8>, rows: u32) -> (u32, Vec<i64>, Vec<u8>) {
    let mut shape = block.shape.clone();
    shape[0] = rows.into();
    let elements = shape.iter().product::<i64>() as usize;
    let n = if block.dtype == dtype::STRING {
        let length = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        (0..elements).fold(0, |at, _| at + 4 + length(at) as usize)
    } else {
        elements * 4
    };
    (block.dtype, shape, rest.drain(..n).collect())
}

pub unsafe extern "C" fn batch_finish(
    batch: *const Batch,
    error: *const Error,
    _: *mut Event,
) -> *mut Error {
    let blocks = std::mem::take(&mut *SCATTERED.lock().unwrap());
    let mut rests: Vec<Vec<u8>> = blocks.iter().map(|block| block.data.bytes()).collect();
    for request in unsafe { requests(batch) } {
        let outputs = blocks.iter().zip(&mut rests);
        let outputs = outputs.map(|(b, rest)| (b.name.clone(), rows(b, rest, request.batch_size)));
        let outputs: Vec<_> = outputs.collect();
        let fake = fake(request);
        if fake.references.load(Ordering::SeqCst) > 1 {
            continue;
        }
        let mut state = fake.state.lock().unwrap();
        if state.end.is_none() {
            let given = unsafe { peek(error) }.cloned().map(Err);
            let end = given.unwrap_or_else(|| match blocks.is_empty() {
                true => {
                    Err(Failure { code: code::INTERNAL, flags: 0, text: "not finished".to_owned() })
                }
                false => Ok(()),
            });
            if end.is_ok() {
                let asked = |(name, _): &(String, _)| state.requested.contains(name);
                let outputs = outputs.into_iter().filter(asked).collect();
                state.sent.push(SentResponse { outputs, params: Vec::new() });
            }
            state.end = Some(end);
            state.ends += 1;
        }
        if fake.releases.load(Ordering::SeqCst) == 0 {
            fake.releases.store(1, Ordering::SeqCst);
        }
    }
    ptr::null_mut()
}
