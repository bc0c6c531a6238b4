//! Shared-memory objects for unit tests.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// An object of this test, removed when it is dropped.
pub struct Object {
    /// Key with the leading slash.
    pub key: String,
    pub path: PathBuf,
    pub file: File,
}

impl Object {
    pub fn new(len: u64) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trtserver-test-{}-{number}", std::process::id());
        let path = PathBuf::from("/dev/shm").join(&name);
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(len).unwrap();
        Self { key: format!("/{name}"), path, file }
    }

    pub fn write(&self, offset: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, offset).unwrap();
    }

    pub fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, offset).unwrap();
        bytes
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
