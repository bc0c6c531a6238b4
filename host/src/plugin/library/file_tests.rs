//! Unit tests of `file.rs`.

use super::*;

/// Uses the test program itself as the ELF file.
#[test]
fn refuses_truncated_files() {
    let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lib.so");
    for bytes in [0, 1, 20, 100, 5000, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..bytes]).unwrap();
        let e = check_complete(&path).unwrap_err();
        assert!(e.contains("tried again"), "{bytes}: {e}");
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(check_complete(&path), Ok(()));
    // Not ELF: left to the loader.
    std::fs::write(&path, "a text").unwrap();
    assert_eq!(check_complete(&path), Ok(()));
    assert!(check_complete(&dir.path().join("none")).unwrap_err().contains("cannot be read"));
}

#[test]
fn stamp_changes_when_file_is_replaced_or_written() {
    let dir = tempfile::tempdir().unwrap();
    let (path, next) = (dir.path().join("a"), dir.path().join("b"));
    std::fs::write(&path, "1").unwrap();
    std::fs::write(&next, "2").unwrap();
    let old = Stamp::of(&path).unwrap();
    assert_eq!(Stamp::of(&path).unwrap(), old);
    std::fs::rename(&next, &path).unwrap();
    let new = Stamp::of(&path).unwrap();
    assert!(new != old && !new.same_inode(&old));
    std::fs::write(&path, "22").unwrap();
    let longer = Stamp::of(&path).unwrap();
    assert!(longer != new && longer.same_inode(&new));
}
