//! The Python wheel `trtserver-client`: the packages of `clients/python` and the C library that
//! they call.
//!
//!     python/trtserver_client-<version>-py3-none-linux_<architecture>.whl
//!
//! Nothing is compiled against Python, so one wheel serves every CPython from 3.9 on.

use crate::command::{Result, say};
use crate::paths::Paths;
use crate::strip::read_stripped;
use crate::wheel_file::{WheelInfo, WheelMember, write_wheel};
use std::fs;
use std::path::{Path, PathBuf};

const NAME: &str = "trtserver_client";
/// The packages of the wheel, below `clients/python`.
const PACKAGES: [&str; 2] = ["tensorrtserver", "trtserver_client"];
/// Files of the packages; others, such as bytecode, are left out.
const ENDINGS: [&str; 3] = ["py", "pyi", "typed"];

/// Writes the wheel with this C library, stripped, into `python/` of the install, and removes
/// others there.
///
/// # Errors
/// A file cannot be read or written.
pub fn install(paths: &Paths, dist: &Path, library: &Path) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let folder = dist.join("python");
    let wrap = |e| format!("cannot write to {}: {e}", folder.display());
    // A wheel of another version must not remain beside this one.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(wrap)?;
    let tag = format!("py3-none-linux_{}", std::env::consts::ARCH);
    let wheel = folder.join(format!("{NAME}-{version}-{tag}.whl"));
    let members = members(paths, library)?;
    let metadata = paths.root.join("clients/python/METADATA");
    let metadata =
        fs::read_to_string(&metadata).map_err(|e| format!("{}: {e}", metadata.display()))?;
    let license = paths.root.join("LICENSE");
    let license = fs::read(&license).map_err(|e| format!("{}: {e}", license.display()))?;
    // Stored: it is installed from the disk where it is made.
    let info = WheelInfo {
        name: NAME,
        version,
        tag: &tag,
        metadata: &metadata,
        license,
        compressed: false,
    };
    write_wheel(&wheel, info, members)?;
    say(format!("build: wheel {}", paths.short(&wheel)));
    Ok(())
}

fn members(paths: &Paths, library: &Path) -> Result<Vec<WheelMember>> {
    let read = |path: &Path| fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let source = paths.root.join("clients/python");
    let mut members = Vec::new();
    for package in PACKAGES {
        for file in package_files(&source.join(package))? {
            let name = file.strip_prefix(&source).unwrap_or(&file).display().to_string();
            members.push(WheelMember { name, data: read(&file)?, executable: false });
        }
    }
    let name = format!("{NAME}/libtrtserver_client.so");
    members.push(WheelMember { name, data: read_stripped(library)?, executable: true });
    Ok(members)
}

/// The Python files of a package and of the packages in it.
fn package_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| ENDINGS.iter().any(|ending| e == *ending)) {
                files.push(path);
            }
        }
    }
    Ok(files)
}
