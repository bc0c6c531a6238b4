//! Unit tests of `available.rs`.

use super::*;
use std::fs;

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

#[test]
fn smallest_limit_of_the_cgroup_and_its_parents_counts() {
    let v2 = tree(&[
        ("memory.max", "max\n"),
        ("a/memory.max", "5000\n"),
        ("a/b/memory.max", "9000\n"),
        ("c/memory.max", "1\n"),
    ]);
    assert_eq!(cgroup_limit("0::/a/b\n", v2.path()), Some(5000));
    // The path of the host, which does not exist inside a container.
    assert_eq!(cgroup_limit("0::/x/y\n", v2.path()), None);
    let container = tree(&[("memory.max", "7000\n")]);
    assert_eq!(cgroup_limit("0::/x/y\n", container.path()), Some(7000));
    let v1 = tree(&[
        ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ("memory/d/memory.limit_in_bytes", "6000\n"),
    ]);
    let cgroups = "4:cpu,cpuacct:/d\n3:memory:/d\n0::/\n";
    assert_eq!(cgroup_limit(cgroups, v1.path()), Some(6000));
}

#[test]
fn available_memory_is_at_most_physical_memory() {
    let info = rustix::system::sysinfo();
    let physical = info.totalram as u64 * u64::from(info.mem_unit.max(1));
    assert!((1..=physical).contains(&available_memory()));
}
