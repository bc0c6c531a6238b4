//! A backend that the host has opened: the libraries behind its name, and what they say of
//! themselves.

use crate::fault::{Result, TritonFault};
use crate::handles::{self, LiveObject, create_object};
use crate::host::owned_text;
use crate::loader::entries::{BackendEntries, take_entry_error};
use crate::loader::library;
use crate::loader::search::{LocatedLibrary, Search};
use crate::objects::backend::{BackendAttribute, BackendObject};
use crate::objects::instance::kind;
use crate::objects::memory::MemoryManager;
use crate::objects::message::MessageObject;
use crate::scope::Scope;
use std::collections::HashMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use trtserver_model_files::{FilePlaces, ROOTS_SETTING};
use trtserver_plugin_api::abi::descriptors::{
    BackendInfo, PreferredGroup, backend_flags, instance_kind,
};
use trtserver_plugin_api::abi::extensions::{AUTOCOMPLETE, AUTOCOMPLETE_VERSION};
use trtserver_plugin_api::abi::types::{Extension, Str, memory_type};

/// Setting of the host: the library that opens a backend written in Python.
const LIBRARY: &str = "adapted-library";
/// Setting of the host: the prefix of names of shared-memory objects. The host removes objects with
/// it after the process was killed.
const SHARED_MEMORY: &str = "shared-memory-prefix";
/// Setting of Triton's Python backend: the same.
const REGION_PREFIX: &str = "shm-region-prefix-name";

/// A backend that the host has opened, with the libraries that are loaded for its models.
pub struct OpenBackend {
    pub name: String,
    pub scope: Arc<Scope>,
    dir: PathBuf,
    /// What `TRITONBACKEND_BackendConfig` shows.
    settings: Vec<(String, String)>,
    /// The library that the host has found for this backend, if its own directory has none.
    fallback: Option<PathBuf>,
    /// By library and directory; a model may bring a library of its own.
    backends: Mutex<HashMap<LocatedLibrary, LiveObject<BackendObject>>>,
    /// Where links of models may lead.
    roots: Option<String>,
    info: Info,
}

impl OpenBackend {
    /// Opens the library in the directory of the backend.
    pub fn open(
        name: String,
        dir: PathBuf,
        mut settings: Vec<(String, String)>,
        scope: Arc<Scope>,
    ) -> Result<OpenBackend> {
        let fallback = settings.iter().position(|(key, _)| key == LIBRARY);
        let fallback = fallback.map(|at| settings.swap_remove(at).1.into());
        let roots = settings.iter().position(|(key, _)| key == ROOTS_SETTING);
        let roots = roots.map(|at| settings.swap_remove(at).1);
        if let Some(at) = settings.iter().position(|(key, _)| key == SHARED_MEMORY) {
            let (_, prefix) = settings.swap_remove(at);
            if settings.iter().all(|(key, _)| key != REGION_PREFIX) {
                settings.push((REGION_PREFIX.to_owned(), prefix));
            }
        }
        let mut open = OpenBackend {
            name,
            scope,
            dir,
            settings,
            fallback,
            backends: Mutex::default(),
            roots,
            info: Info::new(c"triton".into(), &BackendAttribute::default()),
        };
        let backend = open.backend(open.search("", "", None).run()?)?;
        open.info = Info::new(owned_text(&open.name), &query_attributes(backend, &open.scope));
        Ok(open)
    }

    pub fn info(&self) -> *const BackendInfo {
        &raw const *self.info.info
    }

    /// `<backend directory>/<name>`
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The backend of the model `name`: searched for by the model's directories and `runtime`, and
    /// initialised when it is new.
    pub fn find_backend(
        &self,
        name: &str,
        runtime: &str,
        version: &Path,
        model: &Path,
    ) -> Result<LiveObject<BackendObject>> {
        let located = self.search(name, runtime, Some([version, model])).run()?;
        if [version, model].contains(&&*located.dir) {
            self.places(model).judge(&located.library).map_err(|refusal| {
                TritonFault::invalid(format_args!("library of the backend: {refusal}"))
            })?;
        }
        self.backend(located)
    }

    /// Where files of the model in this directory may lie.
    pub fn places(&self, model: &Path) -> FilePlaces {
        FilePlaces::with_setting(model, self.roots.as_deref())
    }

    /// The value of a setting; empty without one.
    pub fn setting(&self, key: &str) -> &str {
        let found = self.settings.iter().find(|(known, _)| known == key);
        found.map_or("", |(_, value)| value)
    }

    fn search<'a>(
        &'a self,
        model: &'a str,
        runtime: &'a str,
        of_model: Option<[&'a Path; 2]>,
    ) -> Search<'a> {
        let (name, dir, fallback) = (self.name.as_str(), &self.dir, self.fallback.as_deref());
        Search { name, model, runtime, of_model, dir, fallback }
    }

    fn backend(&self, located: LocatedLibrary) -> Result<LiveObject<BackendObject>> {
        let mut backends = self.backends.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(backend) = backends.get(&located) {
            return Ok(*backend);
        }
        let entries = library::open_library(&located.library)?;
        let backend = self.initialize(entries, &located.dir)?;
        backends.insert(located, backend);
        Ok(backend)
    }

    fn initialize(
        &self,
        entries: &'static BackendEntries,
        dir: &Path,
    ) -> Result<LiveObject<BackendObject>> {
        let backend = create_object(BackendObject {
            name: owned_text(&self.name),
            dir: CString::new(dir.as_os_str().as_bytes()).unwrap_or_default(),
            entries,
            config: MessageObject::create(&self.config()),
            memory: create_object(MemoryManager::new(Arc::clone(&self.scope))),
            state: Default::default(),
            policy: Default::default(),
            initializing: AtomicBool::new(true),
        });
        if let Some(initialize) = entries.initialize {
            // SAFETY: the backend interface requires a live backend handle, which was just made.
            let returned = self.scope.enter(|| unsafe { initialize(backend.raw()) });
            backend.initializing.store(false, Ordering::Release);
            if let Err(fault) = take_entry_error("TRITONBACKEND_Initialize", returned) {
                free_backend(backend);
                return Err(fault);
            }
        }
        backend.initializing.store(false, Ordering::Release);
        Ok(backend)
    }

    /// The message of `TRITONBACKEND_BackendConfig`: all settings are texts.
    fn config(&self) -> String {
        let parent = self.dir.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
        let text = |value: &str| serde_json::Value::String(value.to_owned());
        let mut settings = serde_json::Map::new();
        settings.insert("auto-complete-config".into(), text("true"));
        settings.insert("min-compute-capability".into(), text("6.000000"));
        settings.insert("default-max-batch-size".into(), text("4"));
        settings.extend(self.settings.iter().map(|(key, value)| (key.clone(), text(value))));
        // Backends compare it with the directory that they are told as theirs.
        settings.insert("backend-directory".into(), text(&parent));
        serde_json::json!({ "cmdline": settings }).to_string()
    }
}

impl Drop for OpenBackend {
    fn drop(&mut self) {
        let backends = self.backends.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, backend) in backends.drain() {
            if let Some(finalize) = backend.entries.finalize {
                // SAFETY: the backend interface requires a live handle, once, after the last model:
                // the host closes a backend after its models.
                let returned = self.scope.enter(|| unsafe { finalize(backend.raw()) });
                if let Err(fault) = take_entry_error("TRITONBACKEND_Finalize", returned) {
                    self.scope.error(&format!("TRITONBACKEND_Finalize failed: {fault}"));
                }
            }
            free_backend(backend);
        }
    }
}

fn free_backend(backend: LiveObject<BackendObject>) {
    if let Ok(BackendObject { config, memory, .. }) = handles::free_object(backend.raw()) {
        let _ = (handles::free_object(config.raw()), handles::free_object(memory.raw()));
    }
}

/// Asks a backend for its attributes. An error means that it has none.
fn query_attributes(backend: LiveObject<BackendObject>, scope: &Arc<Scope>) -> BackendAttribute {
    let Some(ask) = backend.entries.attribute else { return BackendAttribute::default() };
    let attribute = create_object(BackendAttribute::default());
    // SAFETY: the backend interface requires two live handles; the attributes are freed after
    // the call.
    let returned = scope.enter(|| unsafe { ask(backend.raw(), attribute.raw()) });
    let told = take_entry_error("TRITONBACKEND_GetBackendAttribute", returned);
    match (told, handles::free_object(attribute.raw())) {
        (Ok(()), Ok(attribute)) => attribute,
        (told, _) => {
            let text = told.err().map(|fault| fault.text).unwrap_or_default();
            scope.warn(&format!("TRITONBACKEND_GetBackendAttribute failed: {text}"));
            BackendAttribute::default()
        }
    }
}

/// A [`BackendInfo`] with what it points at.
pub struct Info {
    info: Box<BackendInfo>,
    _name: CString,
    _preferred: Vec<PreferredGroup>,
}

// SAFETY: immutable after construction; the pointers go to memory of its own or to constants.
unsafe impl Send for Info {}
// SAFETY: the info never changes once it is made, so threads only read it.
unsafe impl Sync for Info {}

struct Extensions([Extension; 1]);

// SAFETY: the pointers go to constants.
unsafe impl Sync for Extensions {}

static EXTENSIONS: Extensions = Extensions([Extension {
    name: Str { p: c"trts.autocomplete".as_ptr().cast(), n: AUTOCOMPLETE.len() as u64 },
    version: AUTOCOMPLETE_VERSION,
    pad: 0,
}]);

fn constant(text: &'static std::ffi::CStr) -> Str {
    crate::host::as_str(text)
}

impl Info {
    pub fn new(name: CString, attribute: &BackendAttribute) -> Info {
        let groups = attribute.preferred.lock().unwrap_or_else(PoisonError::into_inner);
        let preferred: Vec<_> = groups
            .iter()
            .filter_map(|(kind, count)| {
                let kind = match *kind {
                    kind::CPU => instance_kind::CPU,
                    kind::GPU => instance_kind::GPU,
                    kind::MODEL => instance_kind::MODEL,
                    // No preference.
                    _ => return None,
                };
                Some(PreferredGroup { kind, count: u32::try_from(*count).unwrap_or(u32::MAX) })
            })
            .collect();
        let parallel = attribute.parallel.load(Ordering::Relaxed);
        let flags = backend_flags::SECONDARY_DEVICES
            | backend_flags::ACCELERATORS
            | backend_flags::BATCH_INPUTS
            | backend_flags::OWN_STREAM
            | backend_flags::FREE_OUTPUTS
            // Of most backends the adapter refuses these itself: `tensorrt_only.rs`.
            | backend_flags::PROFILES
            | backend_flags::SHAPE_TENSORS
            | backend_flags::NON_LINEAR_IO
            | if parallel { backend_flags::PARALLEL_OPEN } else { 0 };
        let info = Box::new(BackendInfo {
            size: size_of::<BackendInfo>() as u64,
            name: crate::host::as_str(&name),
            version: constant(c"1.19"),
            runtime: constant(c"Triton backend API 1.19"),
            platforms: ptr::null(),
            default_files: ptr::null(),
            extensions: EXTENSIONS.0.as_ptr(),
            required_extensions: ptr::null(),
            n_platforms: 0,
            n_extensions: EXTENSIONS.0.len() as u32,
            n_required_extensions: 0,
            flags,
            max_in_flight: 1,
            input_memory_types: 1 << memory_type::CPU,
            output_memory_types: 1 << memory_type::CPU,
            instance_kinds: 1 << instance_kind::CPU
                | 1 << instance_kind::GPU
                | 1 << instance_kind::MODEL,
            stack_kib: 0,
            align: 0,
            n_preferred: preferred.len() as u32,
            gpu_max_in_flight: 0,
            preferred: preferred.as_ptr(),
            // A decoupled backend takes the next batch as soon as its Execute has returned.
            decoupled_max_in_flight: 1 << 16,
            pad: 0,
            reserved: [0; 3],
        });
        Info { info, _name: name, _preferred: preferred }
    }

    pub fn raw(&self) -> *const BackendInfo {
        &raw const *self.info
    }
}
