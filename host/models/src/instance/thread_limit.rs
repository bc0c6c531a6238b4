//! How many threads this process may have: RLIMIT_NPROC, `pids.max` of its control groups,
//! `kernel.threads-max`, and the mappings that their stacks need.

use rustix::process::{Resource, getrlimit, getuid};
use std::fs;
use std::path::{Path, PathBuf};

/// Threads that the process may have in the best case, with none of another process.
pub fn thread_limit() -> Option<usize> {
    let groups =
        process_groups().into_iter().filter_map(|group| read_number(&group.join("pids.max")));
    groups.chain(user_limit()).chain(read_number(Path::new("/proc/sys/kernel/threads-max"))).min()
}

/// Memory mappings that the process may have (`vm.max_map_count`).
pub fn mapping_limit() -> Option<usize> {
    read_number(Path::new("/proc/sys/vm/max_map_count"))
}

/// Threads that can still be started, and the limit that says so, as a text.
pub fn threads_left() -> Option<(usize, String)> {
    let of_group = |group: PathBuf| {
        let max = read_number(&group.join("pids.max"))?;
        let current = read_number(&group.join("pids.current"))?;
        Some((max.saturating_sub(current), format!("pids.max={max} of '{}'", group.display())))
    };
    let of_user = || {
        let max = user_limit()?;
        // The limit also counts threads of other processes of the user, whose number is not known.
        let own = fs::read_dir("/proc/self/task").ok()?.count();
        Some((max.saturating_sub(own), format!("RLIMIT_NPROC={max}")))
    };
    process_groups().into_iter().filter_map(of_group).chain(of_user()).min_by_key(|(left, _)| *left)
}

/// RLIMIT_NPROC, which does not bind root.
fn user_limit() -> Option<usize> {
    let limit = getrlimit(Resource::Nproc).current.filter(|_| !getuid().is_root())?;
    usize::try_from(limit).ok()
}

/// Directories of the control groups that count the threads of this process, with their parents.
fn process_groups() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    text.lines().flat_map(group_dirs).collect()
}

/// Directories of the control group in one line of `/proc/self/cgroup`: `0::PATH` (version 2) or
/// `N:pids:PATH` (version 1).
fn group_dirs(line: &str) -> Vec<PathBuf> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
        return Vec::new();
    };
    let root = match controllers {
        "" => Path::new("/sys/fs/cgroup"),
        list if list.split(',').any(|name| name == "pids") => Path::new("/sys/fs/cgroup/pids"),
        _ => return Vec::new(),
    };
    let dir = root.join(path.trim_start_matches('/'));
    dir.ancestors().take_while(|dir| dir.starts_with(root)).map(Path::to_owned).collect()
}

/// The number in a file; `None` for `max`, or where there is no such file.
fn read_number(path: &Path) -> Option<usize> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
#[path = "thread_limit_tests.rs"]
mod tests;
