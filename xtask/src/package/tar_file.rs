//! Tar archives with fixed times and owners.

use super::files::{FileContent, PackageFile};
use std::collections::BTreeSet;
use std::io;
use tar::{Builder, EntryType, Header};

/// An archive of these files and their directories, in the order of their paths.
pub fn write_tar(files: &[PackageFile]) -> io::Result<Vec<u8>> {
    let mut files: Vec<&PackageFile> = files.iter().collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut builder = Builder::new(Vec::new());
    let mut made = BTreeSet::new();
    for file in files {
        for (end, _) in file.path.match_indices('/') {
            let directory = &file.path[..end];
            if made.insert(directory) {
                let mut header = fixed_header(EntryType::Directory, 0o755, 0);
                builder.append_data(&mut header, format!("{directory}/"), io::empty())?;
            }
        }
        match &file.content {
            FileContent::Data { bytes, executable } => {
                let mode = if *executable { 0o755 } else { 0o644 };
                let mut header = fixed_header(EntryType::Regular, mode, bytes.len() as u64);
                builder.append_data(&mut header, &file.path, bytes.as_slice())?;
            }
            FileContent::Directory { owner } => {
                let mut header = fixed_header(EntryType::Directory, 0o755, 0);
                header.set_uid(*owner);
                header.set_gid(*owner);
                builder.append_data(&mut header, format!("{}/", file.path), io::empty())?;
            }
            FileContent::Link(target) => {
                let mut header = fixed_header(EntryType::Symlink, 0o777, 0);
                builder.append_link(&mut header, &file.path, target)?;
            }
        }
    }
    builder.into_inner()
}

fn fixed_header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

/// gzip without a file name and a time.
pub fn compress_gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::GzBuilder::new().write(Vec::new(), flate2::Compression::best());
    io::Write::write_all(&mut encoder, bytes)?;
    encoder.finish()
}

#[cfg(test)]
#[path = "tar_file_tests.rs"]
mod tests;
