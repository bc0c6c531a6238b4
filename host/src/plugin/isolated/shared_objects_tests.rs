//! Unit tests of `shared_objects.rs`.

use super::*;

#[test]
fn objects_of_one_child_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (SharedObjects::new(), SharedObjects::new());
    let kept = [format!("{}a", other.prefix()), "trtserver".to_owned(), "another".to_owned()];
    let removed = [format!("{}a", one.prefix()), format!("{}b", one.prefix())];
    for name in kept.iter().chain(&removed) {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    assert_eq!(one.remove_in(folder.path()), 2);
    assert_eq!(one.remove_in(folder.path()), 0);
    assert_eq!(one.remove_in(&folder.path().join("none")), 0);
    assert!(kept.iter().all(|name| folder.path().join(name).exists()));
}
