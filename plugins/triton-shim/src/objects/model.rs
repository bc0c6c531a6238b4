//! `TRITONBACKEND_Model`: one version of a model.

use super::backend::BackendObject;
use super::server::ServerToken;
use crate::batch_strategy::BatchStrategy;
use crate::fault::{Result, TritonFault};
use crate::handles::{LiveObject, ObjectKind, TypedObject};
use crate::scope::Scope;
use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

pub struct ModelObject {
    pub backend: LiveObject<BackendObject>,
    pub name: CString,
    pub version: u64,
    /// The model's directory, without the version.
    pub dir: CString,
    /// The backend may complete the configuration.
    pub autocomplete: bool,
    pub server: LiveObject<ServerToken>,
    /// Pointer that the backend stores here for its own use.
    pub state: AtomicPtr<c_void>,
    /// Whether `TRITONBACKEND_ModelInitialize` is running in the host's `autocomplete`.
    pub completing: AtomicBool,
    /// What selects the requests of a batch, if the model has that. Set when it is opened.
    pub strategy: OnceLock<BatchStrategy>,
    scope: RwLock<Arc<Scope>>,
    /// The configuration as JSON with all defaults.
    config: Mutex<CString>,
}

impl TypedObject for ModelObject {
    const KIND: ObjectKind = ObjectKind::Model;
}

/// What a model is made of.
pub struct NewModel {
    pub backend: LiveObject<BackendObject>,
    pub name: CString,
    pub version: u64,
    pub dir: CString,
    pub autocomplete: bool,
    pub server: LiveObject<ServerToken>,
    pub scope: Arc<Scope>,
    pub config: CString,
}

impl ModelObject {
    pub fn new(new: NewModel) -> ModelObject {
        let NewModel { backend, name, version, dir, autocomplete, server, scope, config } = new;
        ModelObject {
            backend,
            name,
            version,
            dir,
            autocomplete,
            server,
            state: AtomicPtr::default(),
            completing: AtomicBool::new(false),
            strategy: OnceLock::new(),
            scope: RwLock::new(scope),
            config: Mutex::new(config),
        }
    }

    pub fn scope(&self) -> Arc<Scope> {
        self.scope.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The configuration as JSON.
    pub fn config(&self) -> CString {
        self.config.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_config(&self, config: CString) {
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// The host opens the model that it completed before: scope and configuration are those of the
    /// open model.
    pub fn reopen(&self, scope: Arc<Scope>, config: CString) {
        scope.take_reports(&self.scope());
        *self.scope.write().unwrap_or_else(PoisonError::into_inner) = scope;
        self.set_config(config);
    }

    /// # Errors
    /// A version of configurations other than 1.
    pub fn check_config_version(version: u32) -> Result<()> {
        if version == 1 {
            return Ok(());
        }
        Err(TritonFault::unsupported(format_args!(
            "model configuration version {version} is not supported, supported versions are: 1"
        )))
    }
}
