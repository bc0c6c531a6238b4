//! Libraries of TensorRT plugins (custom layers): those of the setting `plugins`, and the standard
//! ones beside the library.

use crate::library::Library;
use crate::settings::{PLUGINS, TensorRtSettings};
use std::collections::HashSet;
use std::ffi::{c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::log;
use trtserver_framework::search::load_library;
use trtserver_plugin_api::abi::types::level;

/// Registers what a library contains; the second argument is a namespace.
type Register = unsafe extern "C" fn(*mut c_void, *const c_char) -> bool;

/// Files that are loaded, for the life of the process.
static LOADED: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);

/// Loads the plugin libraries for models of this library, each once.
///
/// # Errors
/// A library of the setting cannot be loaded: names the file and the reason.
pub fn load_all(library: &Library, settings: &TensorRtSettings) -> Result<(), PluginFault> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let loaded = loaded.get_or_insert_default();
    let major = library.version.major;
    let names = ["libnvinfer_plugin", "libnvinfer_vc_plugin"].map(|n| format!("{n}.so.{major}"));
    let standard = settings.places.files(&names);
    if !standard.iter().any(|path| loaded.contains(path)) {
        let found = standard.into_iter().find(|path| load_one(path, library).is_ok());
        let text = match &found {
            Some(path) => format!("TensorRT's standard plugins from {}", path.display()),
            None => {
                format!("TensorRT {major} without its standard plugins: no {}", names.join(", no "))
            }
        };
        log::write_line(level::VERBOSE, &text);
        loaded.extend(found);
    }
    for path in &settings.plugins {
        if loaded.contains(path) {
            continue;
        }
        load_one(path, library).map_err(|reason| {
            PluginFault::unavailable(format!(
                "plugin library '{}' (--backend-config=tensorrt,{PLUGINS}=…) cannot be used with TensorRT {}: \
                 {reason}",
                path.display(),
                library.version
            ))
        })?;
        loaded.insert(path.clone());
    }
    Ok(())
}

fn load_one(path: &Path, library: &Library) -> Result<(), String> {
    // Its initialisers register plugins with the library that it is linked to, which is open.
    let handle = load_library(path)?;
    // SAFETY: the function of this name has this type.
    if let Ok(register) = unsafe { handle.get::<Register>(b"initLibNvInferPlugins") } {
        // SAFETY: a logger of the library's class, and a text.
        if !unsafe { register(library.logger(), c"".as_ptr()) } {
            return Err("initLibNvInferPlugins failed".to_owned());
        }
    }
    std::mem::forget(handle);
    Ok(())
}
