//! Backend info: what a backend says of itself, as constants, and in the form that the host reads.

use super::context::Kind;
use super::host::OwnedText;
use crate::abi;
use crate::abi::descriptors::{backend_flags, instance_kind};
use crate::abi::extensions::{
    AUTOCOMPLETE, AUTOCOMPLETE_VERSION, BATCH_SIZES, BATCH_SIZES_VERSION, CANCEL, CANCEL_VERSION,
    MODEL_PROBE, MODEL_PROBE_VERSION,
};
use crate::abi::types::{Str, memory_type};

/// A platform that a backend serves, and the file or directory name of its models when the
/// configuration names none (empty = models need no file).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Platform {
    /// As in `platform:` of a model configuration.
    pub name: &'static str,
    /// File or directory of its models when the configuration names none.
    pub default_file: &'static str,
}

/// Instances that a backend prefers where the configuration names no kind or no count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PreferredGroup {
    /// Where the instances execute.
    pub kind: Kind,
    /// Number of instances on each device of that kind.
    pub count: u32,
}

/// Name and version of an extension; see [`crate::abi::extensions`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extension {
    /// One of the names in [`crate::abi::extensions`].
    pub name: &'static str,
    /// The oldest that will do.
    pub version: u32,
}

/// What a backend says of itself. Start with [`BackendInfo::new`] and change what differs:
/// `BackendInfo { platforms: &[…], ..BackendInfo::new("name", "1.0") }`.
#[derive(Clone, Copy, Debug)]
pub struct BackendInfo {
    /// As in `backend:` of a model configuration.
    pub name: &'static str,
    /// Of the backend, for logs and the list of backends.
    pub version: &'static str,
    /// What models may name instead of the backend.
    pub platforms: &'static [Platform],
    /// Extensions of the host without which the backend cannot run: a host that lacks one refuses
    /// to load it.
    pub required_extensions: &'static [Extension],
    /// Bits of [`crate::abi::descriptors::backend_flags`], except `ANY_THREAD`, which is set by
    /// [`Instance::ANY_THREAD`](super::Instance::ANY_THREAD).
    pub flags: u32,
    /// Batches accepted but unanswered per instance; 1 = ordinary.
    pub max_in_flight: u32,
    /// The same for instances on GPUs; 0 = `max_in_flight`.
    pub gpu_max_in_flight: u32,
    /// The same for instances of decoupled models; 0 = as other models.
    pub decoupled_max_in_flight: u32,
    /// Alignment required of inputs, a power of two up to 64; 0 = that of the element.
    pub align: u32,
    /// Stack of an instance's thread in KiB; 0 = the host's default.
    pub stack_kib: u32,
    /// Bit sets of [`crate::abi::types::memory_type`] for inputs and outputs.
    pub input_memory_types: u32,
    /// Bit set of [`crate::abi::types::memory_type`] of what it writes.
    pub output_memory_types: u32,
    /// Kinds of instance that it opens; [`Backend::instance_kinds`](super::Backend::instance_kinds)
    /// says which of them it opens on this machine.
    pub instance_kinds: &'static [Kind],
    /// Instances where the configuration names no kind or no count, in the order of preference.
    pub preferred: &'static [PreferredGroup],
}

impl BackendInfo {
    /// A backend that works on the CPU.
    pub const fn new(name: &'static str, version: &'static str) -> BackendInfo {
        BackendInfo {
            name,
            version,
            platforms: &[],
            required_extensions: &[],
            flags: 0,
            max_in_flight: 1,
            gpu_max_in_flight: 0,
            decoupled_max_in_flight: 0,
            align: 0,
            stack_kib: 0,
            input_memory_types: 1 << memory_type::CPU,
            output_memory_types: 1 << memory_type::CPU,
            instance_kinds: &[Kind::Cpu, Kind::Model],
            preferred: &[],
        }
    }
}

/// What every backend of this crate offers; `get_extension` in `export.rs` returns them.
const OFFERED: [Extension; 4] = [
    Extension { name: AUTOCOMPLETE, version: AUTOCOMPLETE_VERSION },
    Extension { name: CANCEL, version: CANCEL_VERSION },
    Extension { name: MODEL_PROBE, version: MODEL_PROBE_VERSION },
    Extension { name: BATCH_SIZES, version: BATCH_SIZES_VERSION },
];

/// An [`abi::descriptors::BackendInfo`] with everything it points at.
pub(crate) struct OwnedBackendInfo {
    info: abi::descriptors::BackendInfo,
    _texts: Vec<OwnedText>,
    _lists: [Vec<Str>; 2],
    _extensions: [Vec<abi::types::Extension>; 2],
    _preferred: Vec<abi::descriptors::PreferredGroup>,
}

// SAFETY: immutable after construction; the pointers go to its own heap blocks.
unsafe impl Send for OwnedBackendInfo {}
// SAFETY: the object owns all that its pointers lead to and never changes it, so threads only read.
unsafe impl Sync for OwnedBackendInfo {}

impl OwnedBackendInfo {
    pub(crate) fn new(
        it: &BackendInfo,
        kinds: &[Kind],
        runtime: &str,
        any_thread: bool,
    ) -> OwnedBackendInfo {
        let any_thread = if any_thread { backend_flags::ANY_THREAD } else { 0 };
        let mut texts = Vec::new();
        let mut own = |text: &str| {
            let owned = OwnedText::new(text);
            let borrowed = owned.get();
            texts.push(owned);
            borrowed
        };
        let (name, version, runtime) = (own(it.name), own(it.version), own(runtime));
        let lists = [
            it.platforms.iter().map(|p| own(p.name)).collect::<Vec<Str>>(),
            it.platforms.iter().map(|p| own(p.default_file)).collect(),
        ];
        let extensions = [&OFFERED, it.required_extensions].map(|list| {
            let one = |e: &Extension| abi::types::Extension {
                name: own(e.name),
                version: e.version,
                pad: 0,
            };
            list.iter().map(one).collect::<Vec<_>>()
        });
        let preferred: Vec<_> = it
            .preferred
            .iter()
            .map(|p| abi::descriptors::PreferredGroup { kind: number(p.kind), count: p.count })
            .collect();
        let info = abi::descriptors::BackendInfo {
            size: size_of::<abi::descriptors::BackendInfo>() as u64,
            name,
            version,
            runtime,
            platforms: lists[0].as_ptr(),
            default_files: lists[1].as_ptr(),
            extensions: extensions[0].as_ptr(),
            required_extensions: extensions[1].as_ptr(),
            n_platforms: lists[0].len() as u32,
            n_extensions: extensions[0].len() as u32,
            n_required_extensions: extensions[1].len() as u32,
            flags: it.flags & !backend_flags::ANY_THREAD | any_thread,
            max_in_flight: it.max_in_flight,
            input_memory_types: it.input_memory_types,
            output_memory_types: it.output_memory_types,
            instance_kinds: kinds.iter().fold(0, |set, kind| set | 1 << number(*kind)),
            stack_kib: it.stack_kib,
            align: it.align,
            n_preferred: preferred.len() as u32,
            gpu_max_in_flight: it.gpu_max_in_flight,
            preferred: preferred.as_ptr(),
            decoupled_max_in_flight: it.decoupled_max_in_flight,
            pad: 0,
            reserved: [0; 3],
        };
        OwnedBackendInfo {
            info,
            _texts: texts,
            _lists: lists,
            _extensions: extensions,
            _preferred: preferred,
        }
    }

    pub(crate) fn get(&self) -> *const abi::descriptors::BackendInfo {
        &raw const self.info
    }
}

fn number(kind: Kind) -> u32 {
    match kind {
        Kind::Gpu => instance_kind::GPU,
        Kind::Cpu => instance_kind::CPU,
        Kind::Model => instance_kind::MODEL,
    }
}
