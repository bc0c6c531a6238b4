//! Python wheels: zip archives with METADATA, WHEEL and RECORD. The same files give the same bytes:
//! members are sorted and have no times.

use crate::command::Result;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// A file of the archive.
pub struct WheelMember {
    pub name: String,
    pub data: Vec<u8>,
    /// A program or a shared library.
    pub executable: bool,
}

/// What the archive is for.
pub struct WheelInfo<'a> {
    /// With underscores, as in file names.
    pub name: &'a str,
    pub version: &'a str,
    /// `py3-none-PLATFORM`.
    pub tag: &'a str,
    /// With `@VERSION@` for the version. The address of the sources is added.
    pub metadata: &'a str,
    pub license: Vec<u8>,
    /// Stored members are written and installed sooner, compressed ones are for downloads.
    pub compressed: bool,
}

/// Adds the files of the `.dist-info` directory and writes the wheel.
///
/// # Errors
/// The file cannot be written.
pub fn write_wheel(path: &Path, info: WheelInfo<'_>, members: Vec<WheelMember>) -> Result<()> {
    let compressed = info.compressed;
    let members = with_dist_info(info, members);
    write_zip(path, &members, compressed)
        .map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn with_dist_info(info: WheelInfo<'_>, mut members: Vec<WheelMember>) -> Vec<WheelMember> {
    let WheelInfo { name, version, tag, metadata, license, .. } = info;
    let folder = format!("{name}-{version}.dist-info");
    let mut add = |file: &str, data: Vec<u8>| {
        members.push(WheelMember { name: format!("{folder}/{file}"), data, executable: false });
    };
    let metadata = metadata.replace("@VERSION@", version);
    add("METADATA", with_address(&metadata, env!("CARGO_PKG_REPOSITORY")).into_bytes());
    add("LICENSE", license);
    let wheel =
        format!("Wheel-Version: 1.0\nGenerator: trtserver\nRoot-Is-Purelib: false\nTag: {tag}\n");
    add("WHEEL", wheel.into_bytes());
    members.sort_by(|a, b| a.name.cmp(&b.name));
    // RECORD lists every file, itself without a hash, and is last by convention.
    let name = format!("{folder}/RECORD");
    members.push(WheelMember { data: record(&members, &name), name, executable: false });
    members
}

/// The metadata with the address of the sources, if there is one, after the licence.
fn with_address(metadata: &str, address: &str) -> String {
    const LICENSE: &str = "\nLicense: Apache-2.0\n";
    match address {
        "" => metadata.to_owned(),
        _ => metadata.replacen(LICENSE, &format!("{LICENSE}Project-URL: Source, {address}\n"), 1),
    }
}

fn record(members: &[WheelMember], own_name: &str) -> Vec<u8> {
    let mut text = String::new();
    for WheelMember { name, data, .. } in members {
        let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(data));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name},sha256={hash},{}", data.len());
    }
    let _ = writeln!(text, "{own_name},,");
    text.into_bytes()
}

fn write_zip(wheel: &Path, members: &[WheelMember], compressed: bool) -> std::io::Result<()> {
    let mut zip = ZipWriter::new(File::create(wheel)?);
    let method = if compressed { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    let options = SimpleFileOptions::default()
        .compression_method(method)
        .last_modified_time(DateTime::default());
    for WheelMember { name, data, executable } in members {
        let mode = if *executable { 0o755 } else { 0o644 };
        zip.start_file(name, options.unix_permissions(mode))?;
        zip.write_all(data)?;
    }
    zip.finish()?;
    Ok(())
}

#[cfg(test)]
#[path = "wheel_file_tests.rs"]
mod tests;
