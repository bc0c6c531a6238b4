//! Unit tests of `shared_objects.rs`.

use super::*;

fn put(folder: &Path, name: impl AsRef<Path>) -> PathBuf {
    let file = folder.join(name);
    fs::write(&file, "").unwrap();
    file
}

#[test]
fn objects_of_one_child_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let owner = ObjectOwner::new(folder);
    let (one, other) = (SharedObjects::from_owner(&owner), SharedObjects::from_owner(&owner));
    let kept = [format!("{}a", other.prefix()), "trtserver".to_owned(), "another".to_owned()]
        .map(|name| put(folder, name));
    for end in ["a", "b"] {
        put(folder, format!("{}{end}", one.prefix()));
    }
    assert_eq!(remove_object(folder, one.prefix()), 2);
    assert_eq!(remove_object(folder, one.prefix()), 0);
    assert_eq!(remove_object(&folder.join("none"), one.prefix()), 0);
    assert!(kept.iter().all(|file| file.exists()));
}

#[test]
fn objects_without_a_live_owner_are_swept() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (live, dead) = (ObjectOwner::new(folder), ObjectOwner::new(folder));
    let of = |owner: &ObjectOwner, end: &str| put(folder, format!("{}{end}", owner.prefix));
    let kept = [of(&live, "0_a"), of(&live, "7_b"), folder.join(format!("{}lock", live.prefix))];
    let other =
        ["trtserver_lock", "trtserver_1_lock", "trtserver_9_0123456789abcdef_0_a", "python"]
            .map(|name| put(folder, name));
    let gone = [of(&dead, "0_a"), of(&dead, "7_b")];
    assert_eq!(sweep_in(folder), 0);
    drop(dead);
    assert_eq!(sweep_in(folder), 2);
    assert!(kept.iter().chain(&other).all(|file| file.exists()));
    assert!(gone.iter().all(|file| !file.exists()));
    assert_eq!(fs::read_dir(folder).unwrap().count(), kept.len() + other.len());
    assert_eq!((sweep_in(folder), sweep_in(&folder.join("none"))), (0, 0));
}

#[test]
fn a_link_is_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, name) = (folder.path(), "trtserver_1_0123456789abcdef_lock");
    std::os::unix::fs::symlink(put(folder, "file"), folder.join(name)).unwrap();
    let object = put(folder, "trtserver_1_0123456789abcdef_0_a");
    assert_eq!(sweep_in(folder), 0);
    assert!(object.exists());
}
