// SPDX-License-Identifier: Apache-2.0
//! The framework's library: opened when the first model needs it, and never closed.

use std::ffi::{c_char, c_int};
use std::path::Path;
use trtserver_framework::library_slot::FrameworkLibrary;
use trtserver_framework::search::{Framework, SETTING, load_resolved, read_c_text};
use trtserver_framework::{function_table, opaque_types};

/// What is searched, in this order: the setting, the environment variable, the folder of the
/// backend, `lib` there and of the install, the dynamic loader.
pub const TOY: Framework = Framework {
    name: "Toy",
    backend: crate::BACKEND,
    setting: SETTING,
    variable: "TOY_LIBRARY",
    files: &["libtoy.so"],
    system: &["libtoy.so"],
    // Directories of Python packages that have it, such as `onnxruntime/capi`.
    packages: &[],
    advice: "`make libtoy.so`, which compiles engine.c,",
};

opaque_types! { ToyModel }

function_table! {
    /// The functions of the library that this backend calls.
    ToyTable;

    version = "toy_version": fn() -> *const c_char;
    // Path, result, reason of a failure, its size.
    load = "toy_load": fn(*const c_char, *mut *mut ToyModel, *mut c_char, usize) -> c_int;
    columns = "toy_columns": fn(*const ToyModel) -> usize;
    // Rows, their number, scores.
    run = "toy_run": fn(*const ToyModel, *const f32, usize, *mut f32) -> c_int;
    free = "toy_free": fn(*mut ToyModel);
}

/// The open library. Its functions stay valid until the process ends.
pub struct ToyLibrary {
    pub api: ToyTable,
    label: String,
}

impl FrameworkLibrary for ToyLibrary {
    fn label(&self) -> &str {
        &self.label
    }
}

/// # Errors
/// It is another library; the reason follows the path.
pub fn open_library(path: &Path) -> Result<ToyLibrary, String> {
    let library = load_resolved(path)?;
    // SAFETY: the signatures are those of engine.c.
    let api = unsafe { ToyTable::load(&library) }
        .map_err(|absent| format!("it lacks functions of Toy 1.0: {}", absent.join(", ")))?;
    // The functions point into the library, so it must not be closed.
    std::mem::forget(library);
    // SAFETY: the text is a constant of the library.
    let version = unsafe { read_c_text((api.version)()) };
    Ok(ToyLibrary { api, label: format!("Toy {version}") })
}
