//! Limits of all regions of this process together.

use rustix::process::{Resource, getrlimit};

/// Most regions, mapped or waiting for their last request. Each is a mapping, of which Linux allows
/// a process 65,530.
pub const MAX_REGIONS: usize = 16_384;
/// Most bytes of all windows: an eighth of the address space. A client can create objects of any
/// size, because their pages take no memory before they are written.
const MAX_BYTES: usize = 1 << 44;

/// How many windows may be mapped, and of how many bytes together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowLimits {
    pub windows: usize,
    pub bytes: usize,
}

impl WindowLimits {
    /// Each region holds a file descriptor, so regions use at most an eighth of the descriptors
    /// that the process may open, and at most a quarter of a limited address space.
    pub fn from_process() -> Self {
        let share = |resource, part| {
            let limit = getrlimit(resource).current.map(|n| n / part);
            limit.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX)
        };
        Self {
            windows: MAX_REGIONS.min(share(Resource::Nofile, 8)),
            bytes: MAX_BYTES.min(share(Resource::As, 4)),
        }
    }
}
