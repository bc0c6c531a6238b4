//! Unit tests of `thread_limit.rs`.

use super::*;

#[test]
fn control_groups_with_parents() {
    let dirs = |line: &str| -> Vec<String> {
        group_dirs(line).iter().map(|dir| dir.display().to_string()).collect()
    };
    let v2 = ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"];
    assert_eq!(dirs("0::/a/b"), v2);
    assert_eq!(dirs("0::/"), ["/sys/fs/cgroup/"]);
    assert_eq!(dirs("5:cpu,pids:/c"), ["/sys/fs/cgroup/pids/c", "/sys/fs/cgroup/pids"]);
    for line in ["4:cpu:/c", "", "nonsense"] {
        assert_eq!(dirs(line), [""; 0], "{line}");
    }
}

#[test]
fn threads_and_mappings_of_this_machine() {
    assert!(thread_limit().is_none_or(|threads| threads > 0));
    assert!(mapping_limit().is_some_and(|mappings| mappings > 0));
}
