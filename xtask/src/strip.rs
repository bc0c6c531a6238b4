//! Programs and libraries without debug information, which is more than half of a debug build.

use crate::command::{Result, run};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The contents of the file without symbols and debug information.
///
/// # Errors
/// `strip` is missing or fails.
pub fn read_stripped(path: &Path) -> Result<Vec<u8>> {
    let to = std::env::temp_dir().join(format!("trtserver-strip-{}", std::process::id()));
    let hint = "`strip` is part of binutils, which C compilers need as well";
    run(Command::new("strip").arg("--strip-all").arg("-o").arg(&to).arg(path), hint)?;
    let bytes = fs::read(&to).map_err(|e| format!("cannot read {}: {e}", to.display()));
    let _ = fs::remove_file(&to);
    bytes
}
