//! `ILogger`: messages of TensorRT in the host's log, and the last error on each thread, for
//! messages of our own.

use super::{at, info};
use crate::slots::{self, Version};
use crate::vtable::{InterfaceInfo, Raw};
use std::cell::{Cell, RefCell};
use std::ffi::c_char;
use trtserver_framework::log;
use trtserver_framework::search::read_c_text;
use trtserver_plugin_api::abi::types::level;

thread_local! {
    static ERRORS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// The host had no memory.
    static EXHAUSTED: Cell<bool> = const { Cell::new(false) };
}

/// Messages that are kept for one error text.
const MAX_KEPT: usize = 4;

/// The object that a library is given. Never freed: libraries are never closed.
#[repr(C)]
pub struct Logger {
    table: *const *const (),
}

// SAFETY: constant, and `log` may be called from any thread.
unsafe impl Send for Logger {}
// SAFETY: the object never changes, and several threads may be in `log` at once.
unsafe impl Sync for Logger {}

impl Logger {
    pub fn new(slots: &slots::SlotTable, version: Version) -> &'static Logger {
        let log = (at(slots.logger.log, version), write as *const ());
        let table = super::build_table(slots.logger_is_versioned, interface_info, &[log]);
        Box::leak(Box::new(Logger { table: table.pointer() }))
    }

    pub fn raw(&'static self) -> Raw {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}

/// Forgets the errors of this thread.
pub fn clear_errors() {
    ERRORS.with_borrow_mut(Vec::clear);
    EXHAUSTED.set(false);
}

/// The errors of this thread since [`clear_errors`], as one text; `None` if there were none.
pub fn take_errors() -> Option<String> {
    let errors = ERRORS.with_borrow_mut(std::mem::take);
    (!errors.is_empty()).then(|| errors.join("; "))
}

/// Adds the reason for which the host refused memory.
pub fn add_exhausted(reason: String) {
    EXHAUSTED.set(true);
    add_error(reason);
}

/// Whether the host refused memory since [`clear_errors`].
pub fn take_exhausted() -> bool {
    EXHAUSTED.take()
}

fn add_error(error: String) {
    ERRORS.with_borrow_mut(|errors| {
        if errors.len() < MAX_KEPT {
            errors.push(error);
        }
    });
}

unsafe extern "C" fn interface_info(_this: Raw) -> InterfaceInfo {
    info(c"ILogger")
}

/// `log(Severity, char const*)`.
unsafe extern "C" fn write(_this: Raw, severity: i32, message: *const c_char) {
    let level = match severity {
        0 | 1 => level::ERROR,
        2 => level::WARNING,
        3 => level::INFO,
        _ => level::VERBOSE,
    };
    if level == level::VERBOSE && !log::is_enabled(level) {
        return;
    }
    // SAFETY: TensorRT passes a C string that is valid during the call.
    let message = unsafe { read_c_text(message) };
    if level == level::ERROR {
        add_error(message.trim_end().to_owned());
    }
    log::write_line(level, &format!("TensorRT: {}", message.trim_end()));
}
