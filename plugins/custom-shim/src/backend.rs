//! The backend `custom`: its info, settings and log.

use crate::generation::{RequestedGeneration, SETTING};
use crate::model::CustomModel;
use std::sync::{PoisonError, RwLock};
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::author::{
    Backend, BackendContext, BackendInfo, Error, Kind, Platform, Scope,
};

/// The default file of a model.
pub const DEFAULT_FILE: &str = "libcustom.so";

/// The backend's log, for messages that belong to no open instance.
static LOG: RwLock<Option<Scope>> = RwLock::new(None);

/// Logs a warning of the backend.
pub fn log_warning(text: std::fmt::Arguments<'_>) {
    let log = LOG.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(log) = &*log {
        log.warning(text);
    }
}

pub struct Custom {
    /// Generation of libraries that do not export their version.
    pub default: Option<RequestedGeneration>,
    /// Version of the server, passed to libraries of generation C.
    pub server_version: String,
}

impl Backend for Custom {
    type Model = CustomModel;

    const INFO: BackendInfo = BackendInfo {
        platforms: &[Platform { name: "custom", default_file: DEFAULT_FILE }],
        // Libraries cannot be checked: calling one through the wrong generation corrupts memory.
        flags: backend_flags::MUST_ISOLATE,
        // The library decides at its initialisation whether it can use the device.
        instance_kinds: &[Kind::Cpu, Kind::Gpu, Kind::Model],
        ..BackendInfo::new("custom", env!("CARGO_PKG_VERSION"))
    };

    fn open(context: &BackendContext) -> Result<Self, Error> {
        *LOG.write().unwrap_or_else(PoisonError::into_inner) = Some(context.log().clone());
        let default = context.setting(SETTING).map(|value| {
            RequestedGeneration::read(
                value,
                format_args!("setting '{SETTING}' of backend '{}'", context.name()),
            )
        });
        Ok(Self {
            default: default.transpose()?,
            server_version: context.host_version().to_owned(),
        })
    }
}
