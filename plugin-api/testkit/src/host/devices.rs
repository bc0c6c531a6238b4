//! Events, copies and faults of devices. The test host has no GPU: it checks handles, and copies
//! CPU memory at once, so that every event is reached when it is recorded. Backends for GPUs can so
//! be opened and their use of the table checked.

use super::{
    CallRefusal, EVENT, Str, entry, handle, handle_id, put, refuse_misuse, text, void_entry,
};
use crate::report::report_exercised;
use trtserver_plugin_api::abi::extensions::device_verdict;
use trtserver_plugin_api::abi::types::{Error, Event, Memory, Scope, code, memory_type};

pub(super) unsafe extern "C" fn event_new(
    scope: *mut Scope,
    device_id: i32,
    out: *mut *mut Event,
) -> *mut Error {
    entry("event_new", |state| {
        state.scope(scope)?;
        if device_id < 0 {
            return refuse_misuse(format!("device {device_id}"));
        }
        let id = state.id();
        // SAFETY: null or valid for one handle.
        unsafe { put(out, handle(EVENT, id)) }?;
        state.events.insert(id);
        report_exercised("host.events");
        Ok(())
    })
}

fn check(name: &str, event: *const Event) -> *mut Error {
    entry(name, |state| {
        if state.events.contains(&handle_id(EVENT, event, "event")?) {
            return Ok(());
        }
        refuse_misuse("an event was used after it was destroyed or given to the host")
    })
}

pub(super) unsafe extern "C" fn event_record(event: *mut Event, _stream: *mut u8) -> *mut Error {
    check("event_record", event)
}

pub(super) unsafe extern "C" fn event_wait(event: *const Event, _stream: *mut u8) -> *mut Error {
    check("event_wait", event)
}

pub(super) unsafe extern "C" fn event_query(event: *const Event, reached: *mut u32) -> *mut Error {
    let error = check("event_query", event);
    if !error.is_null() {
        return error;
    }
    // SAFETY: null or valid for one number.
    entry("event_query", |_| unsafe { put(reached, 1) })
}

pub(super) unsafe extern "C" fn event_destroy(event: *mut Event) {
    void_entry("event_destroy", |state| state.take_event(event));
}

pub(super) unsafe extern "C" fn copy(
    to: *mut u8,
    to_memory: Memory,
    from: *const u8,
    from_memory: Memory,
    bytes: u64,
    _stream: *mut u8,
) -> *mut Error {
    entry("copy", |_| {
        let readable = |m: Memory| matches!(m.memory_type, memory_type::CPU | memory_type::PINNED);
        if !readable(to_memory) || !readable(from_memory) {
            let text = "the test host has no GPU".to_owned();
            return Err(CallRefusal { promise: None, code: code::UNSUPPORTED, text });
        }
        if bytes > 0 && (to.is_null() || from.is_null()) {
            return refuse_misuse(format!("{bytes} bytes from {from:p} to {to:p}"));
        }
        if bytes > 0 {
            // SAFETY: by the interface both are valid for that many bytes.
            unsafe { std::ptr::copy(from, to, bytes as usize) };
        }
        Ok(())
    })
}

pub(super) unsafe extern "C" fn device_fault(
    scope: *mut Scope,
    device_id: i32,
    reason: Str,
    verdict: *mut u32,
) -> *mut Error {
    entry("device_fault", |state| {
        state.scope(scope)?;
        // SAFETY: the text is valid during the call; null or valid for one number.
        unsafe {
            let reason = text(reason, "the reason of a device fault")?;
            if device_id < 0 {
                return refuse_misuse(format!("device {device_id}: {reason}"));
            }
            put(verdict, device_verdict::WORKS)
        }
    })
}
