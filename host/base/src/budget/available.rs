//! Memory that this process may use: physical memory, the limits of its cgroups (v1 and v2), and
//! its address space.

use std::path::Path;

/// Bytes of memory that this process may use: the smallest of all limits.
pub fn available_memory() -> u64 {
    let info = rustix::system::sysinfo();
    let physical = info.totalram as u64 * u64::from(info.mem_unit.max(1));
    let cgroups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let cgroup = cgroup_limit(&cgroups, Path::new("/sys/fs/cgroup"));
    [Some(physical), cgroup, address_space_limit()].into_iter().flatten().min().unwrap_or(physical)
}

/// The limit of this process' address space (RLIMIT_AS), if there is one.
pub fn address_space_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::As).current
}

/// The smallest memory limit of the cgroups in `/proc/self/cgroup` and their parents. Inside a
/// container the path of the file may not exist under `root`; the root's own limit is then the
/// container's.
fn cgroup_limit(cgroups: &str, root: &Path) -> Option<u64> {
    let mut limits = Vec::new();
    for line in cgroups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            c if c.split(',').any(|c| c == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let own = root.join(path.trim_start_matches('/'));
        for dir in own.ancestors().take_while(|dir| dir.starts_with(&root)) {
            // The file contains "max", or in v1 a number beyond all memory, if there is no limit.
            let text = std::fs::read_to_string(dir.join(file)).unwrap_or_default();
            limits.extend(text.trim().parse::<u64>().ok());
        }
    }
    limits.into_iter().min()
}

#[cfg(test)]
#[path = "available_tests.rs"]
mod tests;
