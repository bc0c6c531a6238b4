//! Libraries that select the requests of a batch (`TRITONBACKEND_ModelBatch…`). The server's
//! batcher forms a batch; the library divides it into parts, each as long as the library includes
//! the next request, and each part is executed by itself.

use crate::fault::{Result, TritonFault};
use crate::handles::LiveObject;
use crate::loader::entries::{Returned, find_symbol, take_entry_error};
use crate::loader::library;
use crate::objects::model::ModelObject;
use crate::objects::request::RequestObject;
use crate::scope::Scope;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;
use trtserver_model_files::{FilePlaces, stays_inside};

/// The parameter with the path of such a library, which is in the model's directory.
const PARAMETER: &str = "TRITON_BATCH_STRATEGY_PATH";
/// Its name in the directory of a version, model or backend.
const FILE: &str = "batchstrategy.so";

/// The library for a model with this configuration (JSON), if it has one. `dirs`: version, model,
/// backend.
///
/// # Errors
/// It is not there, it lies elsewhere than files of the model, or the model has sequences.
pub fn find_strategy(
    config: &str,
    dirs: [&Path; 3],
    places: &FilePlaces,
) -> Result<Option<PathBuf>> {
    let config: serde_json::Value = serde_json::from_str(config).unwrap_or_default();
    let parameter = &config["parameters"][PARAMETER]["string_value"];
    let (library, source) = match parameter.as_str() {
        Some(path) => (inside(places, path)?, format!("the parameter '{PARAMETER}'")),
        None => match dirs.iter().map(|dir| dir.join(FILE)).find(|file| file.exists()) {
            Some(file) => {
                if !file.starts_with(dirs[2]) {
                    places.judge(&file).map_err(|refusal| {
                        TritonFault::invalid(format_args!("custom batching strategy {refusal}"))
                    })?;
                }
                (file.clone(), format!("'{}'", file.display()))
            }
            None => return Ok(None),
        },
    };
    match config["sequence_batching"].is_object() {
        true => Err(TritonFault::unsupported(format_args!(
            "{source} is a custom batching strategy, which a model with sequences cannot have"
        ))),
        false => Ok(Some(library)),
    }
}

/// A path, relative to the model's directory or absolute.
fn inside(places: &FilePlaces, path: &str) -> Result<PathBuf> {
    let dir = places.model_dir();
    let refused = |why: &str| {
        let dir = dir.display();
        TritonFault::invalid(format_args!(
            "the parameter '{PARAMETER}' must name a library in the model's directory '{dir}': '{path}' {why}"
        ))
    };
    let file =
        dir.join(path).canonicalize().map_err(|e| refused(&format!("cannot be used: {e}")))?;
    // Links may lead to other places of the operator, names may not.
    let below = Path::new(path).strip_prefix(dir).unwrap_or(Path::new(path));
    match below.to_str().is_some_and(stays_inside) && places.judge(&file).is_ok() {
        true => Ok(file),
        false => Err(refused("is outside")),
    }
}

/// A library that was opened for a model.
pub struct BatchStrategy {
    entries: StrategyEntries,
    /// What the library keeps for the model.
    batcher: *mut c_void,
}

// SAFETY: the library itself protects what it keeps for a model, whose instances call it on their
// threads, as in Triton.
unsafe impl Send for BatchStrategy {}
// SAFETY: the library protects what it keeps for a model against calls from several instance
// threads at once, as Triton requires of it.
unsafe impl Sync for BatchStrategy {}

struct StrategyEntries {
    batcher_initialize: unsafe extern "C" fn(*mut *mut c_void, *mut ModelObject) -> Returned,
    batcher_finalize: unsafe extern "C" fn(*mut c_void) -> Returned,
    batch_initialize: unsafe extern "C" fn(*const c_void, *mut *mut c_void) -> Returned,
    include: unsafe extern "C" fn(*mut RequestObject, *mut c_void, *mut bool) -> Returned,
    batch_finalize: unsafe extern "C" fn(*mut c_void) -> Returned,
}

impl StrategyEntries {
    fn open_entries(path: &Path) -> Result<StrategyEntries> {
        let library = library::open_file(path)?;
        let missing = |name| {
            move || {
                TritonFault::not_found(format_args!(
                    "it does not define TRITONBACKEND_Model{name}, one of the five functions of a batching strategy"
                ))
            }
        };
        // SAFETY: the types of these functions in the backend interface.
        let entries = unsafe {
            StrategyEntries {
                batcher_initialize: find_symbol(&library, "TRITONBACKEND_ModelBatcherInitialize")
                    .ok_or_else(missing("BatcherInitialize"))?,
                batcher_finalize: find_symbol(&library, "TRITONBACKEND_ModelBatcherFinalize")
                    .ok_or_else(missing("BatcherFinalize"))?,
                batch_initialize: find_symbol(&library, "TRITONBACKEND_ModelBatchInitialize")
                    .ok_or_else(missing("BatchInitialize"))?,
                include: find_symbol(&library, "TRITONBACKEND_ModelBatchIncludeRequest")
                    .ok_or_else(missing("BatchIncludeRequest"))?,
                batch_finalize: find_symbol(&library, "TRITONBACKEND_ModelBatchFinalize")
                    .ok_or_else(missing("BatchFinalize"))?,
            }
        };
        // Like backends, it stays open.
        std::mem::forget(library);
        Ok(entries)
    }
}

impl BatchStrategy {
    /// Opens the library for a model that is initialised.
    ///
    /// # Errors
    /// It cannot be opened, lacks a function, or refuses the model.
    pub fn open(path: &Path, model: LiveObject<ModelObject>) -> Result<BatchStrategy> {
        let entries =
            StrategyEntries::open_entries(path).map_err(|fault| fault.context(path.display()))?;
        let mut batcher = ptr::null_mut();
        let returned = model.scope().enter(|| {
            // SAFETY: the interface requires a pointer that may be written, here a local variable,
            // and a live model handle.
            unsafe { (entries.batcher_initialize)(&raw mut batcher, model.raw()) }
        });
        take_entry_error("TRITONBACKEND_ModelBatcherInitialize", returned)?;
        Ok(BatchStrategy { entries, batcher })
    }

    /// Closes it, before the model is finalised.
    pub fn close(&self, scope: &Arc<Scope>) {
        // SAFETY: the interface requires what `batcher_initialize` returned, once. The host closes
        // a model after its last batch.
        let returned = scope.enter(|| unsafe { (self.entries.batcher_finalize)(self.batcher) });
        if let Err(fault) = take_entry_error("TRITONBACKEND_ModelBatcherFinalize", returned) {
            scope.error(&format!("TRITONBACKEND_ModelBatcherFinalize failed: {fault}"));
        }
    }

    /// How many of the first `requests` form a batch; at least one, since the library is asked
    /// which requests join a batch. A batch also ends before a request for which the library
    /// returns an error.
    ///
    /// # Errors
    /// The library returns one for the batch, or for its first request.
    pub fn count(&self, requests: &[*mut RequestObject]) -> Result<usize> {
        let mut batch = ptr::null_mut();
        // SAFETY: the interface requires what the library returned for the model, and a pointer
        // that may be written, here a local variable.
        let returned = unsafe { (self.entries.batch_initialize)(self.batcher, &raw mut batch) };
        take_entry_error("TRITONBACKEND_ModelBatchInitialize", returned)?;
        let mut included = 0;
        let mut refused = Ok(());
        for request in requests {
            let mut include = false;
            // SAFETY: the interface requires a live request handle, what the library returned for
            // this batch, and a flag that may be written, here a local variable.
            let returned = unsafe { (self.entries.include)(*request, batch, &raw mut include) };
            let asked = take_entry_error("TRITONBACKEND_ModelBatchIncludeRequest", returned);
            match (asked, included) {
                (Err(fault), 0) => {
                    refused = Err(fault);
                    break;
                }
                (Ok(()), 0) => {}
                (Ok(()), _) if include => {}
                _ => break,
            }
            included += 1;
        }
        // SAFETY: the interface requires what the library returned for this batch, which is passed
        // here for the last time.
        let returned = unsafe { (self.entries.batch_finalize)(batch) };
        refused
            .and(take_entry_error("TRITONBACKEND_ModelBatchFinalize", returned))
            .map(|()| included)
    }
}
