//! Keys of shared-memory objects, as `shm_open` takes them: a file name in `/dev/shm`, with an
//! optional slash before it.

use std::path::PathBuf;

/// Where glibc and musl keep POSIX shared-memory objects.
const FOLDER: &str = "/dev/shm";
/// Longest file name.
const MAX_LEN: usize = 255;
/// Triton reserves the objects of its Python backend.
const RESERVED: &str = "triton_python_backend_shm_region_";

/// Whether clients may not register the object. Slashes before the name are ignored, so that they
/// hide nothing.
pub fn is_reserved(key: &str) -> bool {
    key.trim_start_matches('/').starts_with(RESERVED)
}

/// The file of an object.
///
/// # Errors
/// What is wrong with the key.
pub fn key_path(key: &str) -> Result<PathBuf, &'static str> {
    let name = key.strip_prefix('/').unwrap_or(key);
    match name {
        "" => Err("the name is empty"),
        "." | ".." => Err("the name is a folder"),
        _ if name.contains('/') => Err("the name contains a slash"),
        _ if name.contains('\0') => Err("the name contains a NUL byte"),
        _ if name.len() > MAX_LEN => Err("the name has more than 255 bytes"),
        _ => Ok([FOLDER, name].iter().collect()),
    }
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
