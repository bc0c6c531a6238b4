//! An object of system shared memory, registered with a server: the time of a body on the socket
//! would hide what is measured.

use serde_json::json;
use trtserver_tests::Running;

/// Unlinked when it is dropped.
pub struct Region(String);

impl Region {
    /// Registers `bytes` under `name`.
    pub fn register(server: &Running, name: &str, bytes: &[u8]) -> Result<Self, String> {
        let key = format!("/trtserver-gpu-test-{name}-{}", std::process::id());
        let region = Self(format!("/dev/shm{key}"));
        std::fs::write(&region.0, bytes).map_err(|e| format!("{}: {e}", region.0))?;
        let body = json!({ "key": key, "offset": 0, "byte_size": bytes.len() }).to_string();
        let path = format!("/v2/systemsharedmemory/region/{name}/register");
        let response = server.post(&path, &[], body);
        match response.status {
            200 => Ok(region),
            status => Err(format!("register: status {status}: {}", response.text())),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
