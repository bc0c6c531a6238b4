//! A client's shared memory: an object under `/dev/shm`, and its region on a server.

use crate::server::Running;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions, remove_file};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A shared-memory object that tests fill with floats. Its region has the same name. Removed when
/// dropped.
pub struct SharedObject {
    pub name: String,
    pub file: File,
    len: u64,
}

impl SharedObject {
    /// `len` zeros.
    pub fn new(len: u64) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trtserver_test_{}_{count}", std::process::id());
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path(&name));
        let object = Self { file: file.unwrap_or_else(|e| panic!("{name}: {e}")), name, len };
        object.resize(len);
        object
    }

    /// The same, with its region registered over v2.
    pub fn registered(server: &Running, len: u64) -> Self {
        let object = Self::new(len);
        object.register(server);
        object
    }

    pub fn path(&self) -> PathBuf {
        path(&self.name)
    }

    /// Registers the whole object.
    #[track_caller]
    pub fn register(&self, server: &Running) {
        let json = json!({ "key": format!("/{}", self.name), "offset": 0, "byte_size": self.len });
        let path = format!("/v2/systemsharedmemory/region/{}/register", self.name);
        let response = server.post(&path, &[], json.to_string());
        assert_eq!(response.status, 200, "{}", response.text());
    }

    #[track_caller]
    pub fn unregister(&self, server: &Running) {
        let path = format!("/v2/systemsharedmemory/region/{}/unregister", self.name);
        assert_eq!(server.post(&path, &[], "").status, 200);
    }

    pub fn resize(&self, len: u64) {
        self.file.set_len(len).unwrap_or_else(|e| panic!("{}: {e}", self.name));
    }

    /// Gives the object its size again, and the floats of the first half this value; the second
    /// half is zero.
    pub fn fill(&self, value: f32) {
        self.resize(self.len);
        let half = self.len as usize / 2;
        self.write(0, &value.to_le_bytes().repeat(half / 4));
        self.write(half as u64, &vec![0; half]);
    }

    pub fn write(&self, offset: u64, bytes: &[u8]) {
        let written = self.file.write_all_at(bytes, offset);
        written.unwrap_or_else(|e| panic!("{}: {e}", self.name));
    }

    pub fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let read = self.file.read_exact_at(&mut bytes, offset);
        read.unwrap_or_else(|e| panic!("{}: {e}", self.name));
        bytes
    }

    /// The parameters of a v2 tensor of `len` bytes at `offset` of the region.
    pub fn parameters(&self, offset: u64, len: u64) -> Value {
        json!({
            "shared_memory_region": self.name,
            "shared_memory_offset": offset,
            "shared_memory_byte_size": len,
        })
    }

    /// A v2 request to a model of [`crate::probe`]: the first half of the object is INPUT0, OUTPUT0
    /// is written to the second.
    pub fn request(&self, parameters: &str) -> String {
        let (half, elements) = (self.len / 2, self.len / 8);
        let input = json!({
            "name": "INPUT0", "datatype": "FP32", "shape": [1, elements],
            "parameters": self.parameters(0, half),
        });
        let output = json!({ "name": "OUTPUT0", "parameters": self.parameters(half, half) });
        format!(r#"{{"parameters":{{{parameters}}},"inputs":[{input}],"outputs":[{output}]}}"#)
    }
}

impl Drop for SharedObject {
    fn drop(&mut self) {
        let _ = remove_file(self.path());
    }
}

fn path(name: &str) -> PathBuf {
    PathBuf::from("/dev/shm").join(name)
}
