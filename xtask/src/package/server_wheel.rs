//! The Python wheel `trtserver`: the server with its backends.
//!
//! Python only starts the program: the wheel serves every interpreter. Libraries of frameworks come
//! from their own packages, beside which the backends look for them.

use super::PackageSource;
use super::files::FileContent;
use crate::command::Result;
use crate::paths::Paths;
use crate::wheel_file::{WheelInfo, WheelMember, write_wheel};
use std::fs;
use std::path::{Path, PathBuf};

const NAME: &str = "trtserver";
/// Parts of the install that the package contains.
const PARTS: [&str; 5] =
    ["bin/trtserver", "bin/trtserver-perf", "backends/", "plugins/", "licences/"];
/// Templates in `packaging/wheel`, with `@VERSION@` for the version.
const PYTHON: [&str; 2] = ["trtserver/__init__.py", "trtserver/__main__.py"];

/// The file of the wheel in a directory.
pub fn wheel_path(directory: &Path, platform: &str) -> PathBuf {
    let (version, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    directory.join(format!("{NAME}-{version}-py3-none-{platform}_{arch}.whl"))
}

/// # Errors
/// A file cannot be read or written.
pub fn write(paths: &Paths, source: &PackageSource, into: &Path) -> Result<PathBuf> {
    let templates = paths.root.join("packaging/wheel");
    let read = |name: &str| {
        let path = templates.join(name);
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let mut members = Vec::new();
    for name in PYTHON {
        let text = read(name)?.replace("@VERSION@", source.version);
        members.push(WheelMember { name: name.into(), data: text.into(), executable: false });
    }
    for file in &source.files {
        let packed = PARTS.iter().any(|part| match part.ends_with('/') {
            true => file.path.starts_with(part),
            false => file.path == *part,
        });
        // Zip archives of wheels have no links; the parts above contain none.
        if let FileContent::Data { bytes, executable } = &file.content
            && packed
        {
            let name = format!("{NAME}/{}", file.path);
            members.push(WheelMember { name, data: bytes.clone(), executable: *executable });
        }
    }
    let name = format!("{NAME}-{}.dist-info/entry_points.txt", source.version);
    members.push(WheelMember { name, data: read("entry_points.txt")?.into(), executable: false });
    let tag = format!("py3-none-{}_{}", source.platform, std::env::consts::ARCH);
    let license = paths.root.join("LICENSE");
    let info = WheelInfo {
        name: NAME,
        version: source.version,
        tag: &tag,
        metadata: &read("METADATA")?,
        license: fs::read(&license).map_err(|e| format!("{}: {e}", license.display()))?,
        compressed: true,
    };
    let wheel = wheel_path(into, &source.platform);
    write_wheel(&wheel, info, members)?;
    Ok(wheel)
}
