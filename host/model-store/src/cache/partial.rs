//! Downloads that are not complete: written in chunks, in any order, and resumed after an
//! interruption.

use super::leftovers::chunks_path;
use super::lock::try_lock;
use super::{CachedBlob, ModelCache, ObjectKey};
use parking_lot::Mutex;
use ring::digest::{Context, SHA256, digest};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes that are requested at once, and whose digest is recorded.
pub const CHUNK: u64 = 8 << 20;
const DIGEST: u64 = 32;

/// A download, locked against other users.
pub struct PartialDownload {
    file: Mutex<File>,
    chunks: File,
    path: PathBuf,
    size: u64,
}

impl ModelCache {
    /// The download of an object of `size` bytes; `None` while another task or server downloads it.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn partial(&self, key: &ObjectKey, size: u64) -> io::Result<Option<PartialDownload>> {
        let path = self.path("partial", key.name());
        let Some(file) = try_lock(&path)? else { return Ok(None) };
        let chunks = chunks_path(&path);
        let open = |path: &Path| {
            File::options().read(true).write(true).create(true).truncate(false).open(path)
        };
        Ok(Some(PartialDownload { chunks: open(&chunks)?, file: Mutex::new(file), path, size }))
    }

    /// Moves a complete download into the cache.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn complete(
        &self,
        partial: PartialDownload,
        key: &ObjectKey,
        url: &str,
    ) -> io::Result<CachedBlob> {
        let mut file = partial.file.lock();
        let blob = self.insert(key, &mut file, &partial.path, url)?;
        let _ = fs::remove_file(chunks_path(&partial.path));
        Ok(blob)
    }
}

impl PartialDownload {
    /// Allocates the file, so that a full disk is found before the download.
    ///
    /// # Errors
    /// The disk has no space for it.
    pub fn reserve_space(&self) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        let file = self.file.lock();
        if self.size == 0 || file.metadata()?.len() == self.size {
            return Ok(());
        }
        match fallocate(&*file, FallocateFlags::empty(), 0, self.size) {
            Ok(()) => Ok(()),
            // Not every file system can.
            Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(self.size),
            Err(e) => Err(e.into()),
        }
    }

    /// The chunks that are missing. Chunks of an earlier download are read and compared with their
    /// digests.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn missing(&self) -> io::Result<Vec<Range<u64>>> {
        let mut missing = Vec::new();
        let mut buffer = Vec::new();
        for start in (0..self.size).step_by(CHUNK as usize) {
            let chunk = start..self.size.min(start + CHUNK);
            let mut recorded = [0; DIGEST as usize];
            let is_recorded = match self.chunks.read_exact_at(&mut recorded, digest_offset(start)) {
                Ok(()) => recorded != [0; DIGEST as usize],
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => false,
                Err(e) => return Err(e),
            };
            if is_recorded {
                buffer.resize((chunk.end - chunk.start) as usize, 0);
                self.file.lock().read_exact_at(&mut buffer, start)?;
                if digest(&SHA256, &buffer).as_ref() == recorded {
                    continue;
                }
            }
            missing.push(chunk);
        }
        Ok(missing)
    }

    /// Begins to write a chunk of `missing`.
    ///
    /// # Errors
    /// The system has no file descriptor.
    pub fn chunk(&self, range: Range<u64>) -> io::Result<ChunkWriter> {
        Ok(ChunkWriter {
            file: self.file.lock().try_clone()?,
            chunks: self.chunks.try_clone()?,
            next: range.start,
            context: Context::new(&SHA256),
            range,
        })
    }

    /// Removes what was downloaded.
    pub fn discard(self) {
        let _ = fs::remove_file(chunks_path(&self.path));
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes one chunk of a download from its begin to its end.
pub struct ChunkWriter {
    file: File,
    chunks: File,
    range: Range<u64>,
    next: u64,
    context: Context,
}

impl ChunkWriter {
    /// # Errors
    /// The file cannot be written, or `bytes` exceed the chunk.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > self.range.end - self.next {
            return Err(io::Error::new(ErrorKind::InvalidData, "more bytes than were requested"));
        }
        self.file.write_all_at(bytes, self.next)?;
        self.context.update(bytes);
        self.next += bytes.len() as u64;
        Ok(())
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.next - self.range.start
    }

    /// Records the chunk as complete. Its digest tells after a crash whether its bytes reached the
    /// disk.
    ///
    /// # Errors
    /// The chunk is not complete, or the record cannot be written.
    pub fn finish(self) -> io::Result<()> {
        if self.next != self.range.end {
            return Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                format!(
                    "ended after {} of {} bytes",
                    self.written(),
                    self.range.end - self.range.start
                ),
            ));
        }
        self.chunks.write_all_at(self.context.finish().as_ref(), digest_offset(self.range.start))
    }
}

fn digest_offset(start: u64) -> u64 {
    start / CHUNK * DIGEST
}
