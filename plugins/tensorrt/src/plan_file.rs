//! The header of a plan file: whether the file is a plan, and which TensorRT version built it.
//!
//! A plan begins with a tag and the version of its format, each 32 bits; format 0 has the four
//! numbers of the TensorRT version at offset 24 (`trtexec --getPlanVersionOnly` reads the same).
//! Releases before 8.6 wrote another tag, without a version.

use crate::slots::Version;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use trtserver_framework::fault::PluginFault;

/// Bytes of a header.
pub const HEADER: usize = 28;
/// `ftrt`.
pub const TAG: u32 = 0x7472_7466;
/// `ptrt`, of releases before 8.6.
const OLD_TAG: u32 = 0x7472_7470;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// Built by this version.
    Built(Version),
    /// A plan whose header does not give the version: of TensorRT 8.5 or older, or of a newer
    /// format.
    Unknown { format: Option<u32> },
}

impl Header {
    /// The major version of the library that the plan needs, if the header gives it.
    pub fn major(self) -> Option<u32> {
        match self {
            Header::Built(version) => Some(version.major),
            Header::Unknown { format: None } => Some(8),
            Header::Unknown { format: Some(_) } => None,
        }
    }
}

/// Reads the header of a file.
///
/// # Errors
/// The file cannot be read or is not a plan: names the file and what it is.
pub fn read_header(path: &Path) -> Result<Header, PluginFault> {
    let refuse =
        |why: String| PluginFault::invalid(format!("plan file '{}': {why}", path.display()));
    let mut bytes = Vec::with_capacity(HEADER);
    let mut file = File::open(path).map_err(|e| refuse(format!("cannot be opened: {e}")))?;
    let read = Read::by_ref(&mut file).take(HEADER as u64).read_to_end(&mut bytes);
    read.map_err(|e| refuse(format!("cannot be read: {e}")))?;
    parse_header(&bytes).map_err(refuse)
}

/// The header from the first [`HEADER`] bytes of a file; fewer if the file is shorter.
///
/// # Errors
/// What the file is instead of a plan.
pub fn parse_header(bytes: &[u8]) -> Result<Header, String> {
    let expected = "expected a TensorRT engine, which begins with \"ftrt\"";
    if bytes.is_empty() {
        return Err(format!("the file is empty; {expected}"));
    }
    let word = |at: usize| {
        let word = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(word))
    };
    let truncated = || {
        format!(
            "the file is truncated: {} bytes, the header of an engine has {HEADER}; copy it again",
            bytes.len()
        )
    };
    match word(0) {
        Some(OLD_TAG) => Ok(Header::Unknown { format: None }),
        Some(TAG) if bytes.len() < HEADER => Err(truncated()),
        Some(TAG) => match word(4) {
            Some(0) => {
                let [major, minor, patch] = [bytes[24], bytes[25], bytes[26]].map(u32::from);
                Ok(Header::Built(Version::new(major, minor, patch)))
            }
            format => Ok(Header::Unknown { format }),
        },
        Some(tag) if tag.swap_bytes() == TAG || tag.swap_bytes() == OLD_TAG => Err(
            "the engine was built on a machine of the other byte order; build it on this kind of \
                 machine"
                .to_owned(),
        ),
        _ if is_text(bytes) => Err(format!(
            "the file is text, it begins with {:?}; {expected}",
            String::from_utf8_lossy(bytes)
        )),
        _ if bytes[0] == 0x08 => {
            Err(format!("the file looks like an ONNX model; {expected}: build one with trtexec"))
        }
        _ if bytes.len() < HEADER => Err(truncated()),
        _ => Err(format!("the file begins with the bytes {:02x?}; {expected}", &bytes[..4])),
    }
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~'))
}

#[cfg(test)]
#[path = "plan_file_tests.rs"]
mod tests;
