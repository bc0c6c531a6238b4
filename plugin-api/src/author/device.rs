//! GPUs for Rust authors: the device of an instance, its streams, events, copies, and memory of the
//! host.

use super::context::InstanceContext;
use super::error::Error;
use super::host::{Host, with_str};
use super::response::cpu_buffer;
use super::scope::Scope;
use crate::abi;
use crate::abi::extensions::{self, DeviceExtension, MemoryExtension, device_verdict};
use crate::abi::types::{Buf, Memory};
use std::ptr;

/// A CUDA stream: a driver handle (`CUstream`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream(*mut u8);

// SAFETY: a driver handle may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: the driver accepts calls with one stream from several threads at once.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream of the backend's own.
    ///
    /// # Safety
    /// `raw` is a stream of a device's primary context, and outlives its uses.
    pub unsafe fn from_raw(raw: *mut u8) -> Stream {
        Stream(raw)
    }

    /// The driver's handle, a `CUstream`.
    pub fn as_raw(self) -> *mut u8 {
        self.0
    }
}

/// The GPU of an instance, with the streams that the host created for it. Clone it and store it; it
/// may be sent to other threads. See [`crate::abi::extensions::DeviceExtension`] for when memory of
/// the host is ready.
#[derive(Clone)]
pub struct Device {
    host: Host,
    extension: &'static DeviceExtension,
    scope: Scope,
    id: i32,
    context: Stream,
    streams: [Stream; 3],
}

impl InstanceContext {
    /// The GPU of this instance; `None` on the CPU. Require the extension
    /// [`DEVICE`](crate::abi::extensions::DEVICE) if the backend needs one.
    pub fn device(&self) -> Option<Device> {
        let host = Host::get()?;
        let extension = host.device()?;
        let [context, streams @ ..] = self.cuda().map(Stream);
        let id = self.device_id().filter(|_| !streams[0].0.is_null())?;
        Some(Device { host, extension, scope: self.log().clone(), id, context, streams })
    }
}

impl Device {
    /// CUDA ordinal.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// The primary context (`CUcontext`); current on the instance's thread.
    pub fn context(&self) -> *mut u8 {
        self.context.0
    }

    /// The compute stream.
    pub fn stream(&self) -> Stream {
        self.streams[0]
    }

    /// The stream on which the host copies inputs to the device.
    pub fn copy_in(&self) -> Stream {
        self.streams[1]
    }

    /// The stream on which the host copies outputs from the device.
    pub fn copy_out(&self) -> Stream {
        self.streams[2]
    }

    /// Memory of this device, as preferred memory.
    pub fn memory(&self) -> Memory {
        Memory::gpu(self.id)
    }

    /// Creates an event, which counts as reached until it is recorded.
    pub fn event(&self) -> Result<Event, Error> {
        let mut raw = ptr::null_mut();
        let made = self.scope.with(|host, scope| {
            // SAFETY: the scope is open, the pointer is that of a local variable.
            unsafe {
                let error = (self.extension.event_new)(scope, self.id, &raw mut raw);
                Error::take(host, error)
            }
        });
        made.unwrap_or_else(|| Err(closed()))?;
        Ok(Event { host: self.host, extension: self.extension, raw })
    }

    /// Copies `bytes` bytes between any two memories in the order of the stream; without a stream,
    /// returns when the copy is done.
    ///
    /// # Safety
    /// Both are valid until the copy is done, and nothing else accesses the destination meanwhile.
    pub unsafe fn copy(
        &self,
        (to, to_memory): (*mut u8, Memory),
        (from, from_memory): (*const u8, Memory),
        bytes: usize,
        stream: Option<Stream>,
    ) -> Result<(), Error> {
        let stream = stream.map_or(ptr::null_mut(), Stream::as_raw);
        // SAFETY: by the caller's promise.
        unsafe {
            let copy = self.extension.copy;
            Error::take(self.host, copy(to, to_memory, from, from_memory, bytes as u64, stream))
        }
    }

    /// Reports an error that the device may not survive, such as an illegal address. Returns
    /// whether the host found the device lost; if not, only this instance is affected.
    pub fn fault(&self, reason: &str) -> Result<bool, Error> {
        let mut verdict = device_verdict::WORKS;
        let asked = self.scope.with(|host, scope| {
            with_str(reason, |reason| {
                let fault = self.extension.device_fault;
                // SAFETY: the scope is open, the text valid, the pointer that of a local variable.
                unsafe { Error::take(host, fault(scope, self.id, reason, &raw mut verdict)) }
            })
        });
        asked.unwrap_or_else(|| Err(closed()))?;
        Ok(verdict == device_verdict::LOST)
    }
}

/// A point in the work of a stream. Destroyed when it is dropped, reached or not.
pub struct Event {
    host: Host,
    extension: &'static DeviceExtension,
    raw: *mut abi::types::Event,
}

// SAFETY: the host accepts calls with an event from any thread.
unsafe impl Send for Event {}
// SAFETY: the host accepts calls with one event from several threads at once.
unsafe impl Sync for Event {}

impl Event {
    /// Moves the event to the end of what was submitted to the stream so far.
    pub fn record(&self, stream: Stream) -> Result<(), Error> {
        // SAFETY: the event is valid, and so is the stream by the promise of `Stream::from_raw`.
        unsafe { Error::take(self.host, (self.extension.event_record)(self.raw, stream.0)) }
    }

    /// Makes later work of the stream wait for the event. Does not block this thread.
    pub fn wait(&self, stream: Stream) -> Result<(), Error> {
        // SAFETY: the event is valid until it is dropped, and the stream by the promise of
        // `Stream::from_raw`.
        unsafe { Error::take(self.host, (self.extension.event_wait)(self.raw, stream.0)) }
    }

    /// Whether the event is reached. Does not block.
    pub fn is_reached(&self) -> Result<bool, Error> {
        let mut reached = 0;
        // SAFETY: the event is valid, the pointer is that of a local variable.
        unsafe {
            let error = (self.extension.event_query)(self.raw, &raw mut reached);
            Error::take(self.host, error)?;
        }
        Ok(reached != 0)
    }

    /// Gives the event to a function that takes ownership.
    pub(crate) fn into_raw(self) -> *mut abi::types::Event {
        std::mem::ManuallyDrop::new(self).raw
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: valid and not used afterwards.
        unsafe { (self.extension.event_destroy)(self.raw) }
    }
}

/// Makes later work of `stream` wait until memory of the host is ready; nothing to do on the
/// instance's compute stream.
///
/// # Safety
/// The buffer is one that the host gave, and is valid.
pub unsafe fn wait_ready(device: &Device, buf: &Buf, stream: Stream) -> Result<(), Error> {
    if buf.ready.is_null() {
        return Ok(());
    }
    // SAFETY: by the caller's promise the borrowed event is valid.
    unsafe { Error::take(device.host, (device.extension.event_wait)(buf.ready, stream.0)) }
}

/// Memory of the host for the backend's own use: [`Scope::allocate`]. Freed when it is dropped; it
/// must not be used after its scope is closed.
pub struct HostMemory {
    extension: &'static MemoryExtension,
    scope: Scope,
    buf: Buf,
}

// SAFETY: the memory is owned by this value; the host accepts its handle from any thread.
unsafe impl Send for HostMemory {}

impl Scope {
    /// Allocates memory for the backend's own use: CPU memory, zeroed, or on hosts with devices
    /// pinned or GPU memory with arbitrary contents. `align` is 0 or a power of two up to 64, for
    /// GPU memory up to 256.
    pub fn allocate(
        &self,
        memory: Memory,
        bytes: usize,
        align: usize,
    ) -> Result<HostMemory, Error> {
        self.allocate_for(memory, bytes, align, None)
    }

    /// As [`Scope::allocate`], for GPU memory that is first used on `stream`: the call does not
    /// wait for the device.
    pub fn allocate_for(
        &self,
        memory: Memory,
        bytes: usize,
        align: usize,
        stream: Option<Stream>,
    ) -> Result<HostMemory, Error> {
        let stream = stream.map_or(ptr::null_mut(), Stream::as_raw);
        let mut block = cpu_buffer(ptr::null_mut(), 0);
        let made = self.with(|host, scope| {
            let extension = host.memory().ok_or_else(no_memory)?;
            let (bytes, align, out) = (bytes as u64, align as u64, &raw mut block);
            // SAFETY: the scope is open, the pointer is that of a local variable.
            unsafe {
                let alloc = extension.memory_alloc;
                Error::take(host, alloc(scope, memory, bytes, align, 0, stream, out))?;
            }
            Ok(extension)
        });
        let extension = made.unwrap_or_else(|| Err(closed()))?;
        Ok(HostMemory { extension, scope: self.clone(), buf: block })
    }

    /// Reports how many bytes of a memory type and device the backend holds for this scope beside
    /// memory of the host. Replaces the former report of that type and device; report 0 when they
    /// are freed.
    pub fn report_memory(&self, memory: Memory, bytes: u64) -> Result<(), Error> {
        let reported = self.with(|host, scope| {
            let extension = host.memory().ok_or_else(no_memory)?;
            // SAFETY: the scope is open.
            unsafe { Error::take(host, (extension.memory_report)(scope, memory, bytes)) }
        });
        reported.unwrap_or_else(|| Err(closed()))
    }
}

impl HostMemory {
    /// The first byte; of GPU memory, an address of the device.
    pub fn as_ptr(&self) -> *mut u8 {
        self.buf.ptr
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.buf.bytes as usize
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.buf.bytes == 0
    }

    /// Type of the memory, and its device.
    pub fn memory(&self) -> Memory {
        self.buf.memory
    }

    /// Frees the memory once the event is reached.
    pub fn free_after(self, event: Event) {
        self.free(event.into_raw());
        std::mem::forget(self);
    }

    fn free(&self, after: *mut abi::types::Event) {
        let handle = self.buf.memory_handle;
        // SAFETY: allocated by this extension, freed once; the scope's close frees it, too.
        self.scope.with(|_, _| unsafe { (self.extension.memory_free)(handle, after) });
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        self.free(ptr::null_mut());
    }
}

fn closed() -> Error {
    Error::unavailable("the scope of this device or memory is closed")
}

fn no_memory() -> Error {
    Error::unsupported(format_args!("this host has no extension '{}'", extensions::MEMORY))
}
