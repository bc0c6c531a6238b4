//! Unit tests of `mod.rs`.

use super::*;

#[test]
fn respelled_path_names_the_same_file() {
    let path = Path::new("/b/libtrtserver_b.so");
    for (times, expected) in [
        (0, "/b/libtrtserver_b.so"),
        (1, "/b/./libtrtserver_b.so"),
        (2, "/b/././libtrtserver_b.so"),
    ] {
        assert_eq!(respelled(path, times).as_os_str(), expected);
    }
}
