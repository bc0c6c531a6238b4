//! What a backend declares about itself, copied from its backend info.

use super::plugin_file::{AdaptedLibrary, PluginFile};
use super::text::read_text;
use std::ptr::null_mut;
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::descriptors::{BackendInfo, backend_flags, instance_kind};
use trtserver_plugin_api::abi::types::{Str, memory_type};
use trtserver_proto::v2::model_instance_group::Kind;

/// Stack of an instance's thread in bytes, unless the backend declares another.
pub const DEFAULT_STACK: usize = 8 << 20;
/// Smallest stack: what the host's own frames need on an instance's thread.
pub const MIN_STACK: usize = 512 << 10;

/// Name, version, platforms and abilities of a backend, copied from its backend info.
#[derive(Clone, Debug)]
pub struct BackendFacts {
    pub name: String,
    pub version: String,
    /// The interface version that the file was built for.
    pub abi: (u32, u32),
    /// The framework behind it, as far as known without a model; may be empty.
    pub runtime: String,
    /// Platform and its default model file ("" = none).
    pub platforms: Vec<(String, String)>,
    /// Default model file of an adapted backend, which has no platforms.
    pub default_file: Option<String>,
    pub flags: u32,
    pub max_in_flight: usize,
    /// As `max_in_flight`, for instances on GPUs.
    pub gpu_max_in_flight: usize,
    /// The same for instances of decoupled models; `None` = as other models.
    pub decoupled_max_in_flight: Option<usize>,
    /// Where inputs may be: bit set by memory type.
    pub input_memory_types: u32,
    /// Alignment of inputs, 0 = natural.
    pub align: usize,
    pub stack_bytes: usize,
    /// Kinds of instance that it opens: bit `1 << instance_kind::GPU` and so on. Of the library:
    /// see [`Backend::facts_when_open`](super::backend::PluginBackend::facts_when_open).
    pub instance_kinds: u32,
    /// (instance kind, count).
    pub preferred: Vec<(u32, u32)>,
}

/// What a backend says of itself only once it is open.
#[derive(Clone, Debug, Default)]
pub struct OpenFacts {
    pub runtime: String,
    /// As in [`BackendFacts`], as the following.
    pub instance_kinds: u32,
    pub preferred: Vec<(u32, u32)>,
}

impl OpenFacts {
    /// # Safety
    /// The backend info is valid and was checked.
    pub unsafe fn from_info(info: *const BackendInfo) -> Self {
        // SAFETY: by the caller's promise.
        let BackendFacts { runtime, instance_kinds, preferred, .. } = unsafe { facts(info) };
        Self { runtime, instance_kinds, preferred }
    }
}

impl BackendFacts {
    /// The facts of a library whose backend is not open.
    pub fn from_table(table: &BackendTable) -> Self {
        // SAFETY: backend_info(null) gives a static info, checked when the library was opened.
        let facts = unsafe { facts((table.backend_info)(null_mut())) };
        Self { abi: (table.abi_major, table.abi_minor), ..facts }
    }

    /// The facts of the backend of `file`, from those of its library. An adapter has no name and no
    /// platforms for it.
    pub fn for_file(mut self, file: &PluginFile) -> Self {
        if let Some(AdaptedLibrary { adapter, name, .. }) = &file.adapted {
            self.version = format!("{adapter}-{}", self.version);
            (self.name, self.platforms) = (name.clone(), Vec::new());
        }
        self
    }

    /// The facts of the backend `name` of the same adapter.
    pub fn for_sibling(&self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self.clone() }
    }

    /// The most batches that an instance of this kind, of a model that is decoupled or not, may
    /// have accepted and not answered.
    pub fn max_in_flight_for(&self, kind: Kind, decoupled: bool) -> usize {
        if let Some(most) = self.decoupled_max_in_flight.filter(|_| decoupled) {
            return most;
        }
        if kind == Kind::Gpu { self.gpu_max_in_flight } else { self.max_in_flight }
    }

    /// Data types and shapes of its outputs may differ from the configuration.
    pub fn has_free_outputs(&self) -> bool {
        self.flags & backend_flags::FREE_OUTPUTS != 0
    }

    /// Files of its models are data.
    pub fn has_data_models(&self) -> bool {
        self.flags & backend_flags::DATA_MODELS != 0
    }

    /// Instances on a GPU take inputs in its memory.
    pub fn takes_gpu_memory(&self) -> bool {
        self.input_memory_types & (1 << memory_type::GPU) != 0
    }
}

/// Kinds of instance by a backend info.
pub fn instance_kinds(info: &BackendInfo) -> u32 {
    match info.instance_kinds {
        0 => 1 << instance_kind::CPU | 1 << instance_kind::MODEL,
        kinds => kinds,
    }
}

/// Copies a backend info.
///
/// # Safety
/// `info` was checked by `library`, and its lists and texts are static.
unsafe fn facts(info: *const BackendInfo) -> BackendFacts {
    // SAFETY: by the caller's promise the info was checked, and its lists and texts are static.
    unsafe {
        let info = &*info;
        let list = |p: *const Str, n: u32| -> Vec<String> {
            if p.is_null() || n == 0 {
                return Vec::new();
            }
            std::slice::from_raw_parts(p, n as usize).iter().map(|s| read_text(*s)).collect()
        };
        let names = list(info.platforms, info.n_platforms);
        let mut files = list(info.default_files, info.n_platforms);
        files.resize(names.len(), String::new());
        let preferred = if info.preferred.is_null() || info.n_preferred == 0 {
            Vec::new()
        } else {
            let groups = std::slice::from_raw_parts(info.preferred, info.n_preferred as usize);
            groups.iter().map(|g| (g.kind, g.count)).collect()
        };
        BackendFacts {
            name: read_text(info.name),
            version: read_text(info.version),
            abi: (0, 0),
            runtime: read_text(info.runtime),
            platforms: names.into_iter().zip(files).collect(),
            default_file: None,
            flags: info.flags,
            max_in_flight: info.max_in_flight.max(1) as usize,
            decoupled_max_in_flight: match info.decoupled_max_in_flight {
                0 => None,
                most => Some(most as usize),
            },
            gpu_max_in_flight: match info.gpu_max_in_flight {
                0 => info.max_in_flight.max(1) as usize,
                batches => batches as usize,
            },
            input_memory_types: info.input_memory_types,
            align: info.align as usize,
            stack_bytes: if info.stack_kib == 0 {
                DEFAULT_STACK
            } else {
                (info.stack_kib as usize * 1024).max(MIN_STACK)
            },
            instance_kinds: instance_kinds(info),
            preferred,
        }
    }
}
