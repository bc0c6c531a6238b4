//! Resolves the links of a path that need not exist.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Links that lead nowhere and are followed, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// The absolute path without links. What does not exist is appended as it is spelled: a library
/// might create it. A link that leads nowhere is followed, for the same reason.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut at = std::path::absolute(path)?;
    let mut missing: Vec<OsString> = Vec::new();
    let mut links = 0;
    loop {
        match at.canonicalize() {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Ok(real);
            }
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            Err(e) => {
                // `..` behind something that does not exist has no file name.
                let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
                    return Err(e);
                };
                if let Ok(target) = fs::read_link(&at) {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(e);
                    }
                    at = parent.join(target);
                    continue;
                }
                missing.push(name.to_owned());
                at = parent.to_owned();
            }
        }
    }
}

#[cfg(test)]
#[path = "real_path_tests.rs"]
mod tests;
