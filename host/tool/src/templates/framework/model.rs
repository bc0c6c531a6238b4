// SPDX-License-Identifier: Apache-2.0
//! A model version: its file, opened by the library, and the plan that configuration and file agree
//! on.

use crate::instance::ToyInstance;
use crate::library::{ToyLibrary, ToyModel};
use crate::{BACKEND, DEFAULT_FILE, ToyBackend};
use std::ffi::{CString, c_char};
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use trtserver_framework::check::{Dims, Element, ModelTensors, TensorDeclaration, check_tensors};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::file_contents::explain_foreign;
use trtserver_framework::model_files;
use trtserver_framework::search::read_c_text;
use trtserver_framework::slot::TensorPlan;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::{Error, Model, ModelContext};

/// A tensor as the file declares it: FP32, the rows first.
pub struct ToyTensor {
    name: &'static str,
    dims: [i64; 2],
}

impl TensorDeclaration for ToyTensor {
    // What the library calls the tensor in a run: it has one input and one output.
    type Handle = ();

    fn name(&self) -> &str {
        self.name
    }

    fn element(&self) -> Element {
        Element::Known(dtype::FP32)
    }

    fn dims(&self) -> Dims<'_> {
        Dims::Known(&self.dims)
    }

    fn handle(&self, kind: u32) -> Option<()> {
        (kind == dtype::FP32).then_some(())
    }
}

/// A file that the library has opened.
pub struct LoadedFile {
    library: Arc<ToyLibrary>,
    raw: NonNull<ToyModel>,
    input: ToyTensor,
    output: ToyTensor,
}

// SAFETY: the library does not change a model after it is loaded, and any thread may free it.
unsafe impl Send for LoadedFile {}
// SAFETY: as above: runs only read.
unsafe impl Sync for LoadedFile {}

impl LoadedFile {
    /// # Errors
    /// The file or the library cannot be used: names the model and the file.
    pub fn open(backend: &ToyBackend, context: &ModelContext) -> Result<Self, PluginFault> {
        let name = if context.file().is_empty() { DEFAULT_FILE } else { context.file() };
        // A model must not name files outside of its directory.
        let path = model_files::in_version_dir(context, name)?;
        let refuse = |why: &dyn Display| {
            PluginFault::invalid(format!(
                "unable to load model '{}' from {}: {why}",
                context.name(),
                path.display()
            ))
        };
        // A download that went wrong is named as such, before the library reads it.
        let mut head = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(512).read_to_end(&mut head));
        read.map_err(|e| refuse(&e))?;
        if let Some(why) = explain_foreign(&head) {
            return Err(refuse(&why));
        }
        // After the file: its own faults come before those of the install.
        let library = backend.library(context)?;
        let text = CString::new(path.as_os_str().as_bytes()).map_err(|e| refuse(&e))?;
        let (mut raw, mut why) = (ptr::null_mut(), [0 as c_char; 256]);
        // SAFETY: the path lives during the call, and the reason has so many bytes.
        let code =
            unsafe { (library.api.load)(text.as_ptr(), &raw mut raw, why.as_mut_ptr(), why.len()) };
        let Some(raw) = NonNull::new(raw).filter(|_| code == 0) else {
            // SAFETY: the library ends the reason with a zero, and an unwritten one is empty.
            return Err(refuse(&unsafe { read_c_text(why.as_ptr()) }));
        };
        // SAFETY: the model is loaded.
        let columns = unsafe { (library.api.columns)(raw.as_ptr()) };
        let columns = i64::try_from(columns).unwrap_or(i64::MAX);
        Ok(Self {
            library,
            raw,
            input: ToyTensor { name: "INPUT", dims: [-1, columns] },
            output: ToyTensor { name: "SCORE", dims: [-1, 1] },
        })
    }

    pub fn tensors(&self) -> ModelTensors<'_, ToyTensor> {
        let one = std::slice::from_ref;
        ModelTensors { inputs: one(&self.input), defaulted: &[], outputs: one(&self.output) }
    }

    /// A score for each row.
    ///
    /// # Errors
    /// The library fails, or `rows` are not so many rows of the model's columns.
    pub fn run(&self, rows: &[f32], scores: &mut [f32]) -> Result<(), PluginFault> {
        if usize::try_from(self.input.dims[1]).ok() != rows.len().checked_div(scores.len()) {
            return Err(PluginFault::internal("rows and scores differ in number"));
        }
        // SAFETY: the library reads as many rows as there are scores, of the model's columns.
        let code = unsafe {
            (self.library.api.run)(
                self.raw.as_ptr(),
                rows.as_ptr(),
                scores.len(),
                scores.as_mut_ptr(),
            )
        };
        match code {
            0 => Ok(()),
            code => Err(PluginFault::internal(format!("toy_run failed with code {code}"))),
        }
    }
}

impl Drop for LoadedFile {
    fn drop(&mut self) {
        // SAFETY: no run is under way: each borrows the file.
        unsafe { (self.library.api.free)(self.raw.as_ptr()) };
    }
}

/// What the instances of a version share.
pub struct ToyVersion {
    pub name: String,
    pub file: Arc<LoadedFile>,
    pub plan: TensorPlan<()>,
}

impl Model for ToyVersion {
    type Backend = ToyBackend;
    type Instance = ToyInstance;

    fn open(backend: &Arc<ToyBackend>, context: &ModelContext) -> Result<Self, Error> {
        let config = Config::from_context(context);
        config.refuse_ragged(BACKEND)?;
        let file = match context.state::<Arc<LoadedFile>>() {
            // It was opened for the completion.
            Some(file) => Arc::clone(file),
            None => Arc::new(LoadedFile::open(backend, context)?),
        };
        let plan = check_tensors(&config, &file.tensors())?;
        Ok(Self { name: config.model, file, plan })
    }
}
