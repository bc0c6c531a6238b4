//! TensorFlow's status object: its codes as codes of the interface.

use crate::api::TfStatus;
use crate::runtime::TensorFlowRuntime;
use std::ffi::c_int;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::search::read_c_text;
use trtserver_plugin_api::abi::types::code;

/// A status that calls write to. It may be used for any number of calls, one after another.
pub struct Status {
    runtime: &'static TensorFlowRuntime,
    raw: *mut TfStatus,
}

// SAFETY: a status is plain memory; TensorFlow allows using it on any thread, one at a time.
unsafe impl Send for Status {}

impl Status {
    pub fn new(runtime: &'static TensorFlowRuntime) -> Self {
        // SAFETY: a function without conditions.
        Self { runtime, raw: unsafe { (runtime.api.new_status)() } }
    }

    pub fn as_ptr(&mut self) -> *mut TfStatus {
        self.raw
    }

    /// The result of the last call.
    pub fn outcome(&self) -> Result<(), PluginFault> {
        // SAFETY: the status is alive.
        match unsafe { (self.runtime.api.get_code)(self.raw) } {
            0 => Ok(()),
            number => Err(self.failure(number)),
        }
    }

    #[cold]
    fn failure(&self, number: c_int) -> PluginFault {
        // SAFETY: the status is alive; the text lives until its next use.
        let text = unsafe { read_c_text((self.runtime.api.message)(self.raw)) };
        PluginFault { code: to_abi_code(number), text: format!("tensorflow: {text}") }
    }
}

/// The classes that v1 clients can tell apart; all others are UNKNOWN.
fn to_abi_code(number: c_int) -> u32 {
    match number {
        1 => code::CANCELLED,
        3 => code::INVALID,
        5 => code::NOT_FOUND,
        6 => code::EXISTS,
        13 => code::INTERNAL,
        14 => code::UNAVAILABLE,
        _ => code::UNKNOWN,
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: ours, and this is the only release.
        unsafe { (self.runtime.api.delete_status)(self.raw) }
    }
}

/// Calls a function whose last argument is a status. Expands to an unsafe call: the surrounding
/// block states why the arguments are valid.
macro_rules! tf {
    ($runtime:expr, $status:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let result = ($runtime.api.$function)($($argument,)* $status.as_ptr());
        $status.outcome().map(|()| result)
    }};
}
pub(crate) use tf;
