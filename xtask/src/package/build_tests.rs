//! Unit tests of `build.rs`.

use super::*;

#[test]
fn platform_is_read_from_the_report() {
    let report =
        "\nx.whl is consistent with\nthe following platform tag:\n\"manylinux_2_24_x86_64\".\n";
    assert_eq!(oldest_platform(report), Some("manylinux_2_24_x86_64"));
    assert_eq!(oldest_platform("the following platform tag:\n\"linux_x86_64\"."), None);
    assert_eq!(oldest_platform(""), None);
    let minors = ["manylinux_2_28", "manylinux_2_17_x86_64", "linux_x86_64"].map(glibc_minor);
    assert_eq!(minors, [28, 17, u32::MAX]);
}
