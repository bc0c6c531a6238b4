//! The sources of crates, which `build.rs` packs into this program, so that a project in Rust needs
//! neither a checkout nor a registry.

use flate2::read::GzDecoder;
use std::io::Read;

const INTERFACE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/interface.gz"));
const FRAMEWORK: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/framework.gz"));

/// Path and contents of each file of the interface and its test host, with paths below the folder
/// `plugin-api`.
///
/// # Errors
/// The program was damaged.
pub fn interface_files() -> Result<Vec<(String, String)>, String> {
    unpack(INTERFACE)
}

/// The same of what backends of frameworks share, with paths below the folder that has
/// `plugin-api`.
///
/// # Errors
/// The program was damaged.
pub fn framework_files() -> Result<Vec<(String, String)>, String> {
    unpack(FRAMEWORK)
}

fn unpack(packed: &[u8]) -> Result<Vec<(String, String)>, String> {
    let damaged = || "trtserver plugin new: the crates in this program are damaged".to_owned();
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).map_err(|_| damaged())?;
    let mut rest = text.as_str();
    let mut files = Vec::new();
    while let Some((head, behind)) = rest.split_once('\n') {
        let (path, length) = head.rsplit_once(' ').ok_or_else(damaged)?;
        let length = length.parse().map_err(|_| damaged())?;
        let (contents, next) = behind.split_at_checked(length).ok_or_else(damaged)?;
        files.push((path.to_owned(), contents.to_owned()));
        rest = next;
    }
    Ok(files)
}
