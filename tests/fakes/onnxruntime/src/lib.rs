//! Fake ONNX Runtime library for tests of instances on GPUs: the functions that the plugin calls,
//! over the CUDA driver that the process has, which is the fake one.
//!
//! It is a test double. What passes on it is not a result of ONNX Runtime, and not one on a GPU. Of
//! ONNX Runtime it has the rules that the plugin relies on, and is stricter where the real library
//! would copy or wait on its own: a tensor that is bound in the wrong memory is an error. Models
//! are text, see `model.rs`. Functions that it lacks return NOT_IMPLEMENTED.
//!
//! Environment: `FAKE_ORT_PROVIDERS`, the execution providers, with commas between; `FAKE_ORT_LOG`,
//! a file for a line per session and run; in the line of a run `changed=true` means that the session
//! has run another batch size before, and `graph=replay` that it used the addresses of an earlier run.
#![allow(non_snake_case, reason = "functions are named as in the table")]

mod api; // the functions of the table
mod arena; // device memory of a session
mod cuda; // the driver
mod model; // models as text
mod session; // sessions, bindings, runs
mod value; // tensors

use std::ffi::c_char;
use std::sync::OnceLock;

static API: OnceLock<ort_sys::OrtApi> = OnceLock::new();

unsafe extern "system" fn get_api(version: u32) -> *const ort_sys::OrtApi {
    // As in the library: one table, of which later versions have more.
    if (1..=23).contains(&version) { API.get_or_init(api::table) } else { std::ptr::null() }
}

unsafe extern "system" fn version() -> *const c_char {
    c"1.31.0-test-double".as_ptr()
}

static BASE: ort_sys::OrtApiBase =
    ort_sys::OrtApiBase { GetApi: get_api, GetVersionString: version };

/// The one symbol of the library.
#[unsafe(no_mangle)]
pub extern "system" fn OrtGetApiBase() -> *const ort_sys::OrtApiBase {
    &raw const BASE
}

/// Appends a line to the log.
fn log(line: std::fmt::Arguments<'_>) {
    use std::io::Write;
    let Some(path) = std::env::var_os("FAKE_ORT_LOG") else { return };
    if let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(path) {
        // One write, so that lines of several threads stay whole.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}
