//! The package for Debian and Ubuntu: programs in `/usr/lib/trtserver`, a systemd unit, a manual
//! page, a configuration file, and a system user who owns `/var/lib/trtserver`.

use super::files::{FileContent, PROGRAMS, PackageFile};
use super::tar_file::{compress_gzip, write_tar};
use super::{PackageSource, architecture};
use crate::command::Result;
use crate::paths::Paths;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the install lies.
const HOME: &str = "usr/lib/trtserver";
const CONFIG: &str = "etc/trtserver/trtserver.toml";
/// Scripts of `packaging/deb` that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Its file in a directory.
pub fn package_path(directory: &Path) -> PathBuf {
    let version = env!("CARGO_PKG_VERSION");
    directory.join(format!("trtserver_{version}_{}.deb", architecture()))
}

/// # Errors
/// A file cannot be read or written.
pub fn write(paths: &Paths, source: &PackageSource, into: &Path) -> Result<PathBuf> {
    let templates = paths.root.join("packaging/deb");
    let read = |name: &str| {
        let path = templates.join(name);
        fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let mut files = installed_files(&source.files);
    files.push(PackageFile::data(CONFIG, read("trtserver.toml")?));
    files.push(PackageFile::data(
        "lib/systemd/system/trtserver.service",
        read("trtserver.service")?,
    ));
    let mut control = vec![
        PackageFile::data("control", control_file(source, &files)),
        PackageFile::data("conffiles", format!("/{CONFIG}\n")),
    ];
    for script in SCRIPTS {
        control.push(PackageFile::program(script, read(script)?));
    }
    let path = package_path(into);
    let wrap = |e| format!("cannot write {}: {e}", path.display());
    let package = pack(&control, &files).map_err(wrap)?;
    fs::write(&path, package).map_err(wrap)?;
    Ok(path)
}

/// The files of the install at the places that Debian's policy gives them.
fn installed_files(install: &[PackageFile]) -> Vec<PackageFile> {
    let mut files = Vec::new();
    for file in install {
        let document = |name: &str| PackageFile {
            path: format!("usr/share/doc/trtserver/{name}"),
            content: file.content.clone(),
        };
        if file.path == "LICENSE" {
            files.push(document("copyright"));
        } else if let Some(rest) = file.path.strip_prefix("share/man/") {
            if let FileContent::Data { bytes, .. } = &file.content
                && let Ok(compressed) = compress_gzip(bytes)
            {
                files.push(PackageFile::data(format!("usr/share/man/{rest}.gz"), compressed));
            }
        } else if file.path == "share/sbom.cdx.json" || file.path.starts_with("licences/") {
            files.push(document(file.path.trim_start_matches("share/")));
        } else if file.path.starts_with("share/bash")
            || file.path.starts_with("share/zsh")
            || file.path.starts_with("share/fish")
        {
            files.push(file.below("usr"));
        } else {
            files.push(file.below(HOME));
        }
    }
    for program in PROGRAMS {
        let link = format!("usr/bin/{program}");
        files.push(PackageFile::link(link, format!("../lib/trtserver/bin/{program}")));
    }
    files
}

fn control_file(source: &PackageSource, files: &[PackageFile]) -> String {
    let bytes: usize = files
        .iter()
        .map(|file| match &file.content {
            FileContent::Data { bytes, .. } => bytes.len(),
            FileContent::Link(_) | FileContent::Directory { .. } => 0,
        })
        .sum();
    let homepage = match env!("CARGO_PKG_REPOSITORY") {
        "" => String::new(),
        address => format!("Homepage: {address}\n"),
    };
    format!(
        "Package: trtserver\nVersion: {}\nArchitecture: {}\nMaintainer: The trtserver authors\n\
         {homepage}Installed-Size: {}\nDepends: libc6 (>= 2.28), passwd\nSection: net\nPriority: optional\n\
         Description: inference server whose frameworks are plugins\n \
         Serves models over HTTP and gRPC with the Open Inference Protocol (v2) and\n \
         the protocol of TRTIS (v1). Libraries of frameworks, such as ONNX Runtime,\n \
         go into /usr/lib/trtserver/lib.\n",
        source.version,
        architecture(),
        bytes.div_ceil(1024)
    )
}

/// An `ar` archive of the format's version, the control files, and the files.
fn pack(control: &[PackageFile], files: &[PackageFile]) -> io::Result<Vec<u8>> {
    let mut builder = ar::Builder::new(Vec::new());
    let parts = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", compress_gzip(&write_tar(control)?)?),
        ("data.tar.gz", compress_gzip(&write_tar(files)?)?),
    ];
    for (name, bytes) in parts {
        let mut header = ar::Header::new(name.into(), bytes.len() as u64);
        header.set_mode(0o100_644);
        builder.append(&header, bytes.as_slice())?;
    }
    builder.into_inner()
}
