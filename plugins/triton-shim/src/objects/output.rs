//! `TRITONBACKEND_Output`, and responses built in memory of this library.

use super::attributes::BufferAttributes;
use super::parameter::ParameterValue;
use crate::fault::{Result, TritonFault};
use crate::handles::{self, LiveObject, ObjectKind, TypedObject};
use crate::host::{self, as_str, host_table};
use smallvec::SmallVec;
use std::ffi::CString;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use trtserver_plugin_api::abi::host::Release;
use trtserver_plugin_api::abi::types::{self, Buf, Memory, Str};

/// Name of an output, with a NUL at its end.
pub struct Name(SmallVec<[u8; 48]>);

impl Name {
    pub fn new(text: &std::ffi::CStr) -> Name {
        Name(SmallVec::from_slice(text.to_bytes_with_nul()))
    }

    pub fn view(&self) -> Str {
        Str { p: self.0.as_ptr(), n: self.0.len() as u64 - 1 }
    }

    pub fn bytes(&self) -> &[u8] {
        self.0.split_last().map_or(&[], |(_, text)| text)
    }
}

pub struct OutputObject {
    pub name: Name,
    pub dtype: u32,
    pub shape: SmallVec<[i64; 6]>,
    /// The host's response that it belongs to; null if it is built in memory of this library.
    pub response: *mut types::Response,
    buffer: Mutex<OutputBuffer>,
    pub attributes: OnceLock<LiveObject<BufferAttributes>>,
}

// SAFETY: the host accepts calls with a response from any thread; the rest is owned.
unsafe impl Send for OutputObject {}
// SAFETY: the host accepts calls with one response from several threads at once; the buffer is
// behind a lock.
unsafe impl Sync for OutputObject {}

impl TypedObject for OutputObject {
    const KIND: ObjectKind = ObjectKind::Output;
}

/// Memory of an output.
pub enum OutputBuffer {
    None,
    /// Memory of the host.
    Host(Buf),
    /// Memory of this library, for a buffered response or an output that was not requested.
    Own(Box<[u64]>, u64),
}

impl OutputObject {
    pub fn new(
        response: *mut types::Response,
        name: &std::ffi::CStr,
        dtype: u32,
        shape: &[i64],
    ) -> OutputObject {
        OutputObject {
            name: Name::new(name),
            dtype,
            shape: SmallVec::from_slice(shape),
            response,
            buffer: Mutex::new(OutputBuffer::None),
            attributes: OnceLock::new(),
        }
    }

    pub fn buffer(&self) -> MutexGuard<'_, OutputBuffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates the memory of the output, once.
    ///
    /// # Errors
    /// It was allocated before, or the host refuses name, type, shape or size.
    pub fn allocate(&self, bytes: u64, preferred: Memory) -> Result<(*mut u8, Memory)> {
        let mut buffer = self.buffer();
        if !matches!(*buffer, OutputBuffer::None) {
            let name = String::from_utf8_lossy(self.name.bytes()).into_owned();
            return Err(TritonFault::misuse(format_args!(
                "the buffer of output '{name}' was allocated before"
            )));
        }
        if !self.response.is_null() {
            let buf = self.allocate_host(bytes, preferred)?;
            if !buf.ptr.is_null() || bytes == 0 {
                *buffer = OutputBuffer::Host(buf);
                return Ok((buf.ptr, buf.memory));
            }
        }
        let mut own = own_memory(bytes)?;
        let p = own.as_mut_ptr().cast();
        *buffer = OutputBuffer::Own(own, bytes);
        Ok((p, Memory::CPU))
    }

    /// Memory of this library of another size, in place of what was allocated before, whose
    /// contents are lost.
    ///
    /// # Errors
    /// The system has no memory; what was allocated stays.
    pub fn reallocate(&self, bytes: u64) -> Result<*mut u8> {
        let mut own = own_memory(bytes)?;
        let p = own.as_mut_ptr().cast();
        *self.buffer() = OutputBuffer::Own(own, bytes);
        if let Some(attributes) = self.attributes.get() {
            attributes.bytes.store(bytes, Ordering::Relaxed);
        }
        Ok(p)
    }

    fn allocate_host(&self, bytes: u64, preferred: Memory) -> Result<Buf> {
        let host = host_table()?;
        let mut buf = Buf {
            ptr: ptr::null_mut(),
            bytes: 0,
            memory: Memory::CPU,
            ready: ptr::null_mut(),
            memory_handle: 0,
        };
        let (rank, shape) = (self.shape.len() as u32, self.shape.as_ptr());
        let (name, out) = (self.name.view(), &raw mut buf);
        let alloc = host.output_alloc;
        // SAFETY: the response is valid until it is sent or freed, which frees this object; the
        // rest during the call.
        unsafe {
            let error = alloc(self.response, name, self.dtype, rank, shape, bytes, preferred, out);
            host::take_error(host, error)?;
        }
        Ok(buf)
    }

    /// Moves the output, whose memory is of this library, into a response of the host.
    pub fn adopt(&self, target: *mut types::Response) -> Result<()> {
        let host = host_table()?;
        let buffer = std::mem::replace(&mut *self.buffer(), OutputBuffer::None);
        let (memory, bytes) = match buffer {
            OutputBuffer::Own(memory, bytes) => (memory, bytes),
            OutputBuffer::None | OutputBuffer::Host(_) => (Box::default(), 0),
        };
        let ctx = Box::into_raw(Box::new(memory));
        // SAFETY: the box lives until its release, which comes after the call at the earliest.
        let first = unsafe { (*ctx).as_mut_ptr() };
        let (ready, memory_handle) = (ptr::null_mut(), 0);
        let part = Buf { ptr: first.cast(), bytes, memory: Memory::CPU, ready, memory_handle };
        let (rank, shape) = (self.shape.len() as u32, self.shape.as_ptr());
        let release = Release { func: Some(release) };
        // SAFETY: the response is the caller's; the host calls the release exactly once, whatever
        // happens.
        unsafe {
            let error = (host.output_adopt)(
                target,
                self.name.view(),
                self.dtype,
                rank,
                shape,
                &raw const part,
                1,
                release,
                ctx.cast(),
            );
            host::take_error(host, error)
        }
    }

    /// Ends the life of the attributes' handle.
    pub fn free_attributes(&self) {
        if let Some(attributes) = self.attributes.get() {
            let _ = handles::free_object(attributes.raw());
        }
    }

    /// Before the response is sent: an output whose buffer was never asked for is empty.
    pub fn complete(&self) -> Result<()> {
        if matches!(*self.buffer(), OutputBuffer::None) {
            self.allocate(0, Memory::CPU)?;
        }
        Ok(())
    }
}

/// Memory aligned for any element.
fn own_memory(bytes: u64) -> Result<Box<[u64]>> {
    let words = usize::try_from(bytes.div_ceil(8)).unwrap_or(usize::MAX);
    let mut memory = Vec::new();
    memory.try_reserve_exact(words).map_err(|_| {
        TritonFault::unavailable(format_args!("{bytes} bytes for an output cannot be allocated"))
    })?;
    memory.resize(words, 0);
    Ok(memory.into_boxed_slice())
}

/// A response in memory of this library.
pub struct BufferedResponse {
    pub outputs: Vec<OutputObject>,
    pub params: Vec<(CString, ParameterValue)>,
    pub last: bool,
    pub fault: Option<TritonFault>,
}

impl BufferedResponse {
    /// Moves outputs and parameters into a response of the host.
    pub fn put(&self, target: *mut types::Response) -> Result<()> {
        self.outputs.iter().try_for_each(|output| output.adopt(target))?;
        self.params.iter().try_for_each(|(key, value)| set_param(target, key, value))
    }
}

/// Adds a parameter to a response of the host.
pub fn set_param(
    target: *mut types::Response,
    key: &std::ffi::CStr,
    value: &ParameterValue,
) -> Result<()> {
    let host = host_table()?;
    let param = value.param(as_str(key));
    // SAFETY: the response is the caller's; the parameter is valid during the call, which copies
    // it.
    unsafe { host::take_error(host, (host.response_param)(target, &raw const param)) }
}

/// # Safety
/// `ctx` is a box of memory, released once.
unsafe extern "C" fn release(ctx: *mut u8) {
    // SAFETY: by the caller's promise.
    drop(unsafe { Box::from_raw(ctx.cast::<Box<[u64]>>()) });
}
