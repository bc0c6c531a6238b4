//! Unit tests of the check of library files.

use super::*;

/// This test program: a position-independent executable has the type of a shared library.
fn library() -> Vec<u8> {
    std::fs::read(std::env::current_exe().unwrap()).unwrap()
}

fn fault(contents: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lib.so");
    std::fs::write(&path, contents).unwrap();
    check_library(&path).err().map_or_else(String::new, |fault| fault.to_string())
}

#[test]
fn complete_library_passes_and_truncated_ones_are_refused() {
    let library = library();
    assert_eq!((&*fault(&library), &*fault(b"")), ("", "the file is empty"));
    for bytes in [1, 3, 20, 63, 64, 100, 5000, library.len() / 2, library.len() - 1] {
        let fault = fault(&library[..bytes]);
        assert!(fault.starts_with(&format!("truncated: {bytes} of at least ")), "{fault}");
    }
}

#[test]
fn other_files_are_named() {
    let with = |at: usize, bytes: &[u8]| {
        let mut library = library();
        library[at..at + bytes.len()].copy_from_slice(bytes);
        fault(&library)
    };
    assert_eq!(fault(b"a text"), "not a shared library: no ELF header in its 6 bytes");
    assert_eq!(with(16, &[2, 0]), "not a shared library: an ELF file of type EXEC");
    // s390
    let other = with(18, &[22, 0]);
    assert!(
        other.starts_with("built for another machine: S390 (ELF machine 22, 64-bit"),
        "{other}"
    );
    // 32 bits, big-endian, neither.
    for (at, value) in [(4, 1), (5, 2)] {
        assert!(with(at, &[value]).starts_with("built for another machine: "));
    }
    assert!(with(4, &[7]).starts_with("not a shared library"));
    // Offsets and counts beyond any file.
    assert!(with(32, &[0xff; 8]).starts_with("truncated: "));
    assert!(with(40, &[0xff; 8]).starts_with("truncated: "));
    assert!(with(56, &[0xff; 2]).starts_with("truncated: "));
    let missing = check_library(Path::new("/nowhere/lib.so")).unwrap_err();
    assert!(missing.to_string().starts_with("cannot be read: "));
}

#[test]
fn stamp_changes_with_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (path, next) = (dir.path().join("a"), dir.path().join("b"));
    std::fs::write(&path, "1").unwrap();
    std::fs::write(&next, "2").unwrap();
    let old = FileStamp::read(&path).unwrap();
    assert_eq!(FileStamp::read(&path).unwrap(), old);
    std::fs::rename(&next, &path).unwrap();
    let new = FileStamp::read(&path).unwrap();
    assert!(new != old && !new.same_inode(&old));
    std::fs::write(&path, "22").unwrap();
    let longer = FileStamp::read(&path).unwrap();
    assert!(longer != new && longer.same_inode(&new));
}
