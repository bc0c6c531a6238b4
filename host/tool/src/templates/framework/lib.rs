// SPDX-License-Identifier: Apache-2.0
//! A backend around the library of a framework, which is found at run time: engine.c stands for it.
//!
//! ```text
//! lib.rs        the backend: cheap to open, so that a server without the library starts
//! library.rs    the library and its functions: where it is searched, and what is said if it is not there
//! model.rs      a file, opened; its tensors against the configuration, or completing it
//! instance.rs   batches: one run for all requests, else request by request
//! ```

mod instance;
mod library;
mod model;

use library::{TOY, ToyLibrary, open_library};
use model::{LoadedFile, ToyVersion};
use std::path::PathBuf;
use std::sync::Arc;
use trtserver_framework::complete::{SETTING, config_patch, default_batch, is_needed};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::library_slot::LibrarySlot;
use trtserver_framework::log;
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::author::*;
use trtserver_plugin_api::export_backend;

const BACKEND: &str = "rust_framework";
/// The file of a version, unless the configuration names another one.
const DEFAULT_FILE: &str = "model.toy";
/// Rows of a batch, unless the server or the configuration sets another limit.
const DEFAULT_BATCH: usize = 4;

pub struct ToyBackend {
    dir: PathBuf,
    library: LibrarySlot<ToyLibrary>,
    default_batch: usize,
}

impl ToyBackend {
    /// # Errors
    /// There is no library, or it cannot be used: the text names each place and how to get one.
    fn library(&self, context: &ModelContext) -> Result<Arc<ToyLibrary>, PluginFault> {
        self.library.open(&TOY, context.setting(TOY.setting), &self.dir, open_library)
    }
}

impl Backend for ToyBackend {
    type Model = ToyVersion;

    const INFO: BackendInfo = BackendInfo {
        platforms: &[Platform { name: BACKEND, default_file: DEFAULT_FILE }],
        flags: backend_flags::PARALLEL_OPEN | backend_flags::V1_BATCH_SIZE,
        ..BackendInfo::new(BACKEND, env!("CARGO_PKG_VERSION"))
    };

    fn open(context: &BackendContext) -> Result<Self, Error> {
        log::send_to(context.log());
        Ok(Self {
            dir: PathBuf::from(context.dir()),
            library: LibrarySlot::default(),
            default_batch: default_batch(context.setting(SETTING), DEFAULT_BATCH)?,
        })
    }

    fn runtime(&self) -> String {
        // Not loaded until a model needs it, so that an idle server stays small.
        self.library.label().unwrap_or_else(|| TOY.name.to_owned())
    }

    /// What a configuration omits. The opened file is handed to the model, which need not read it
    /// again.
    fn autocomplete(&self, context: &ModelContext) -> Result<Completion, Error> {
        let config = Config::from_context(context);
        if !is_needed(&config) {
            return Ok(Completion::default());
        }
        let file = LoadedFile::open(self, context)?;
        // This library computes each row by itself. One that does not say so is run with several
        // rows here, by trtserver_framework::row_probe.
        let additions = config_patch(&config, &file.tensors(), self.default_batch, || Ok(()));
        let additions = additions.map_err(|fault| {
            fault.within(format_args!("autofill failed for model '{}'", config.model))
        })?;
        let patch = additions.log(context.log(), &config.model).map(ConfigPatch::Text);
        Ok(Completion::from(patch).with_state(Arc::new(file)))
    }
}

export_backend!(ToyBackend);

#[cfg(test)]
mod tests;
