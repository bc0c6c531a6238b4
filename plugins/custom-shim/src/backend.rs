//! The plugin as the host sees it.

use crate::generation::{SETTING, Wish};
use crate::model::CustomModel;
use std::sync::{PoisonError, RwLock};
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::author::{Backend, BackendContext, BackendInfo, Error, Platform, Scope};

/// The default file of a model.
pub const DEFAULT_FILE: &str = "libcustom.so";

/// The plugin's own log, for what belongs to no instance any more.
static LOG: RwLock<Option<Scope>> = RwLock::new(None);

/// Writes a warning of the plugin itself.
pub fn warn(text: std::fmt::Arguments<'_>) {
    let log = LOG.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(log) = &*log {
        log.warning(text);
    }
}

pub struct Custom {
    /// The generation of libraries that do not tell theirs.
    pub usual: Option<Wish>,
    /// Version of the server, which generation C is told.
    pub server_version: String,
}

impl Backend for Custom {
    type Model = CustomModel;

    const INFO: BackendInfo = BackendInfo {
        platforms: &[Platform { name: "custom", default_file: DEFAULT_FILE }],
        // The libraries cannot be checked, and the wrong generation alone corrupts memory.
        flags: backend_flags::MUST_ISOLATE,
        ..BackendInfo::new("custom", env!("CARGO_PKG_VERSION"))
    };

    fn open(context: &BackendContext) -> Result<Self, Error> {
        *LOG.write().unwrap_or_else(PoisonError::into_inner) = Some(context.log().clone());
        let usual = context.setting(SETTING).map(|word| {
            Wish::read(word, format_args!("setting '{SETTING}' of backend '{}'", context.name()))
        });
        Ok(Self { usual: usual.transpose()?, server_version: context.host_version().to_owned() })
    }
}
