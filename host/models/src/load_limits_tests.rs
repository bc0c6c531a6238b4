//! Unit tests of `load_limits.rs`.

use super::*;

#[test]
fn load_memory_is_limited_in_sum() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    std::fs::write(&path, [0; 60]).unwrap();
    let mut memory = LoadMemory::new(100);
    assert!(memory.read(&path, "label file").is_ok_and(|bytes| bytes.len() == 60));
    let Err(ReadError::TooLarge(e)) = memory.read(&path, "label file") else { panic!("it fits") };
    let want = format!(
        "label file '{}' takes 60 bytes, more than the 40 left of --max-load-memory=100",
        path.display()
    );
    assert_eq!(e.message, want);
    memory.take(40, String::new).unwrap();
    let e = memory.take(1, || "a tensor".into()).unwrap_err();
    assert_eq!(e.message, "a tensor takes 1 bytes, more than the 0 left of --max-load-memory=100");
}
