//! The extension `trts.device`: events, copies and faults. Offered when the driver was found with a
//! device.
//!
//! The event of a backend is the address of a boxed `trtserver_device::CudaEvent`.

use super::basics::no_scope;
use super::guard::{guard_entry, guard_value, put_out};
use super::reported_memory::memory_name;
use super::scope::Scope;
use crate::text::read_text;
use trtserver_base::error::{Error as HostError, Result};
use trtserver_device::{CudaContext, CudaEvent, CudaStream, GpuDevice, GpuDriver};
use trtserver_plugin_api::abi::extensions::{DeviceExtension, device_verdict};
use trtserver_plugin_api::abi::types::{self, Error, Memory, Str, memory_type};

static TABLE: DeviceExtension = DeviceExtension {
    size: std::mem::size_of::<DeviceExtension>() as u64,
    event_new,
    event_record,
    event_wait,
    event_query,
    event_destroy,
    copy,
    device_fault,
};

/// The table; `None` without a driver or a device.
pub(super) fn table() -> Option<&'static DeviceExtension> {
    GpuDriver::get().is_ok().then_some(&TABLE)
}

/// Takes the event that a backend gives to the host.
///
/// # Safety
/// `event` is null, or an event of this host that is not used again.
pub(super) unsafe fn take_event(event: *mut types::Event) -> Option<Box<CudaEvent>> {
    // SAFETY: by the caller's promise, a box of `event_new`.
    (!event.is_null()).then(|| unsafe { Box::from_raw(event.cast::<CudaEvent>()) })
}

/// The event behind a handle: one of `event_new`, or of a buffer's `ready`.
///
/// # Safety
/// `event` is null or a valid event of this host.
pub(super) unsafe fn borrow_event<'a>(event: *const types::Event) -> Result<&'a CudaEvent> {
    // SAFETY: by the caller's promise.
    let event = unsafe { event.cast::<CudaEvent>().as_ref() };
    event.ok_or_else(|| HostError::invalid("a host function was called with a null event"))
}

unsafe extern "C" fn event_new(
    scope: *mut types::Scope,
    device_id: i32,
    out: *mut *mut types::Event,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: the handle is valid during the call.
        unsafe { Scope::from_handle(scope) }.ok_or_else(no_scope)?;
        let event =
            Box::into_raw(Box::new(trtserver_device::find_gpu(device_id)?.events().event()?));
        // SAFETY: null or valid for one handle.
        let stored = unsafe { put_out(out, event.cast()) };
        if stored.is_err() {
            // SAFETY: just created, not stored.
            drop(unsafe { Box::from_raw(event) });
        }
        stored
    })
}

unsafe extern "C" fn event_record(event: *mut types::Event, stream: *mut u8) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a valid event; a stream of its device, by the interface.
        unsafe {
            let event = borrow_event(event)?;
            event.record(&CudaStream::borrowed(event.context(), stream.cast()))
        }
    })
}

unsafe extern "C" fn event_wait(event: *const types::Event, stream: *mut u8) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a valid event; a stream, by the interface.
        unsafe {
            let event = borrow_event(event)?;
            event.block(&CudaStream::borrowed(event.context(), stream.cast()))
        }
    })
}

unsafe extern "C" fn event_query(event: *const types::Event, reached: *mut u32) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a valid event; null or valid for one number.
        unsafe { put_out(reached, borrow_event(event)?.is_reached()?.into()) }
    })
}

unsafe extern "C" fn event_destroy(event: *mut types::Event) {
    // SAFETY: null or an event that is not used again.
    guard_value((), || drop(unsafe { take_event(event) }));
}

unsafe extern "C" fn copy(
    to: *mut u8,
    to_memory: Memory,
    from: *const u8,
    from_memory: Memory,
    bytes: u64,
    stream: *mut u8,
) -> *mut Error {
    guard_entry(|| {
        let len = usize::try_from(bytes).unwrap_or(usize::MAX);
        if len > isize::MAX as usize || len > 0 && (to.is_null() || from.is_null()) {
            return Err(HostError::invalid(format!(
                "a copy of {bytes} bytes from {from:p} to {to:p} was requested"
            )));
        }
        let context = find_context(&[to_memory, from_memory])?;
        // SAFETY: a stream, by the interface; null is the default stream of the context.
        let borrowed = unsafe { CudaStream::borrowed(context, stream.cast()) };
        // SAFETY: by the interface both are valid until the copy is complete.
        unsafe { borrowed.copy(to.addr() as u64, from.addr() as u64, len)? };
        if stream.is_null() { borrowed.synchronize() } else { Ok(()) }
    })
}

/// The context of the GPU among these memories; of any device that is in use if there is none.
fn find_context(memories: &[Memory]) -> Result<&'static CudaContext> {
    for memory in memories {
        match memory.memory_type {
            memory_type::CPU | memory_type::PINNED => {}
            memory_type::GPU | memory_type::MANAGED => {
                return Ok(trtserver_device::find_gpu(memory.device_id)?.context());
            }
            _ => {
                return Err(HostError::unsupported(format!(
                    "a copy from or to {} was requested",
                    memory_name(*memory)
                )));
            }
        }
    }
    any_device().map(GpuDevice::context)
}

/// A device that is in use, else the first.
pub(super) fn any_device() -> Result<&'static GpuDevice> {
    let devices = GpuDriver::get().map(GpuDriver::devices).unwrap_or_default();
    let used = devices.iter().find(|device| device.context().is_open());
    used.or(devices.first()).ok_or_else(|| HostError::unsupported("this host has no GPU"))
}

unsafe extern "C" fn device_fault(
    scope: *mut types::Scope,
    device_id: i32,
    reason: Str,
    verdict: *mut u32,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: handle and text are valid during the call.
        let (scope, reason) =
            unsafe { (Scope::from_handle(scope).ok_or_else(no_scope)?, read_text(reason)) };
        let device = trtserver_device::find_gpu(device_id)?;
        // After a sticky error every call of the driver fails, and marks the device lost.
        let answer = device.memory_info();
        let (lost, label) = (device.lost().is_some(), scope.label());
        match answer {
            Ok(_) => {
                tracing::warn!("{label} reports a fault of GPU {device_id}, which works: {reason}")
            }
            Err(e) => tracing::error!("{label} reports a fault of GPU {device_id}: {reason}; {e}"),
        }
        let result = if lost { device_verdict::LOST } else { device_verdict::WORKS };
        // SAFETY: null or valid for one number.
        unsafe { put_out(verdict, result) }
    })
}
