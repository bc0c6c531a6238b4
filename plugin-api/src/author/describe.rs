//! What a backend says of itself, as constants, and the form that the host reads.

use super::context::Kind;
use super::host::Kept;
use crate::abi::describe::{About, PreferredGroup, about_flags, instance_kind};
use crate::abi::types::{Str, place};

/// A platform that a backend serves, and the file or directory name of its models when the
/// configuration names none (empty = models need no file).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Platform {
    pub name: &'static str,
    pub default_file: &'static str,
}

/// Instances that a backend prefers when the configuration names no group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preferred {
    pub kind: Kind,
    pub count: u32,
}

/// Facts of a backend. Begin with [`Description::new`] and change what differs:
/// `Description { platforms: &[…], ..Description::new("name", "1.0") }`.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// As `backend:` in a configuration says it.
    pub name: &'static str,
    pub version: &'static str,
    pub platforms: &'static [Platform],
    pub features: &'static [&'static str],
    /// Bits of [`crate::abi::describe::about_flags`], but for `ANY_THREAD`, which
    /// [`Instance::ANY_THREAD`](super::Instance::ANY_THREAD) says.
    pub flags: u32,
    /// Batches accepted but unanswered per instance; 1 = ordinary.
    pub max_in_flight: u32,
    /// Alignment that inputs need, a power of two up to 64; 0 = that of the element.
    pub align: u32,
    /// Stack of an instance's thread in KiB; 0 = the host's default.
    pub stack_kib: u32,
    /// Bit sets of [`crate::abi::types::place`]: where inputs may lie, and where outputs may be made.
    pub input_places: u32,
    pub output_places: u32,
    pub preferred: &'static [Preferred],
}

impl Description {
    /// A backend that works on the CPU.
    pub const fn new(name: &'static str, version: &'static str) -> Description {
        Description {
            name,
            version,
            platforms: &[],
            features: &[],
            flags: 0,
            max_in_flight: 1,
            align: 0,
            stack_kib: 0,
            input_places: 1 << place::CPU,
            output_places: 1 << place::CPU,
            preferred: &[],
        }
    }
}

/// An [`About`] with everything it points at.
pub(crate) struct AboutBox {
    about: About,
    _texts: Vec<Kept>,
    _lists: [Vec<Str>; 3],
    _preferred: Vec<PreferredGroup>,
}

// SAFETY: nothing in it changes after it was made; the pointers go to its own heap blocks.
unsafe impl Send for AboutBox {}
// SAFETY: as above.
unsafe impl Sync for AboutBox {}

impl AboutBox {
    pub(crate) fn new(it: &Description, runtime: &str, any_thread: bool) -> AboutBox {
        let any_thread = if any_thread { about_flags::ANY_THREAD } else { 0 };
        let mut texts = Vec::new();
        let mut keep = |text: &str| {
            let kept = Kept::new(text);
            let lent = kept.get();
            texts.push(kept);
            lent
        };
        let (name, version, runtime) = (keep(it.name), keep(it.version), keep(runtime));
        let lists = [
            it.platforms.iter().map(|p| keep(p.name)).collect::<Vec<Str>>(),
            it.platforms.iter().map(|p| keep(p.default_file)).collect(),
            it.features.iter().map(|f| keep(f)).collect(),
        ];
        let preferred: Vec<PreferredGroup> = it
            .preferred
            .iter()
            .map(|p| PreferredGroup { kind: number(p.kind), count: p.count })
            .collect();
        let about = About {
            size: size_of::<About>() as u64,
            name,
            version,
            runtime,
            platforms: lists[0].as_ptr(),
            default_files: lists[1].as_ptr(),
            features: lists[2].as_ptr(),
            n_platforms: lists[0].len() as u32,
            n_features: lists[2].len() as u32,
            flags: it.flags & !about_flags::ANY_THREAD | any_thread,
            max_in_flight: it.max_in_flight,
            input_places: it.input_places,
            output_places: it.output_places,
            stack_kib: it.stack_kib,
            align: it.align,
            preferred: preferred.as_ptr(),
            n_preferred: preferred.len() as u32,
            pad: 0,
            reserved: [0; 4],
        };
        AboutBox { about, _texts: texts, _lists: lists, _preferred: preferred }
    }

    pub(crate) fn get(&self) -> *const About {
        &raw const self.about
    }
}

fn number(kind: Kind) -> u32 {
    match kind {
        Kind::Gpu => instance_kind::GPU,
        Kind::Cpu => instance_kind::CPU,
        Kind::Model => instance_kind::MODEL,
    }
}
