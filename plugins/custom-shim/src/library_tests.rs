//! Unit tests of `library.rs`.

use super::*;

#[test]
fn respelled_paths_name_the_same_file() {
    let path = Path::new("/m/1/libcustom.so");
    assert_eq!(spell(path, 0).as_os_str(), "/m/1/libcustom.so");
    assert_eq!(spell(path, 2).as_os_str(), "/m/1/././libcustom.so");
}
