//! Contents in the cache, and which object has which content.

use super::ModelCache;
use super::files::{to_hex, write_atomically};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Identity of an object's content: changes when the object is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectKey(String);

/// A content in the cache.
#[derive(Clone, Debug)]
pub struct CachedBlob {
    pub path: PathBuf,
}

/// The file of an object in `objects/`.
#[derive(Serialize, Deserialize)]
struct BlobRecord {
    digest: String,
    size: u64,
    /// URL of the object, for people who inspect the cache.
    url: String,
}

impl ObjectKey {
    /// `parts` name the object and its state.
    pub fn from_parts(parts: &[&str]) -> Self {
        let mut context = Context::new(&SHA256);
        for part in parts {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part.as_bytes());
        }
        Self(to_hex(context.finish().as_ref()))
    }

    pub fn name(&self) -> &str {
        &self.0
    }
}

impl ModelCache {
    /// The content of an object if it is in the cache. It is read once in this process, to verify
    /// it; if it was damaged, it is removed.
    ///
    /// # Errors
    /// The cache cannot be read.
    pub fn find(&self, key: &ObjectKey, size: u64) -> io::Result<Option<CachedBlob>> {
        let record = match fs::read(self.path("objects", key.name())) {
            Ok(text) => serde_json::from_slice::<BlobRecord>(&text).ok(),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let Some(record) = record.filter(|r| r.size == size && is_digest(&r.digest)) else {
            return Ok(None);
        };
        let path = self.path("blobs", &record.digest);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let is_verified = self.verified.lock().contains(&record.digest);
        let is_sound = file.metadata()?.len() == size
            && (is_verified || digest_file(&mut file)? == record.digest);
        if !is_sound {
            tracing::warn!("model cache: '{}' is damaged and is removed", path.display());
            fs::remove_file(&path)?;
            self.verified.lock().remove(&record.digest);
            return Ok(None);
        }
        self.verified.lock().insert(record.digest);
        // Marks the time of the last use. Refused for files of another user: the blob then counts
        // as older than it is.
        let _ = file.set_modified(SystemTime::now());
        Ok(Some(CachedBlob { path }))
    }

    /// Moves a complete download into the cache.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub(super) fn insert(
        &self,
        key: &ObjectKey,
        file: &mut File,
        path: &Path,
        url: &str,
    ) -> io::Result<CachedBlob> {
        file.sync_all()?;
        let digest = digest_file(file)?;
        let blob = self.path("blobs", &digest);
        let size = file.metadata()?.len();
        file.set_permissions(Permissions::from_mode(0o444))?;
        // A sound blob of this content stays, because links to it share its space.
        let exists = self.verified.lock().contains(&digest) && blob.exists();
        match exists {
            true => fs::remove_file(path)?,
            false => fs::rename(path, &blob)?,
        }
        let record = BlobRecord { digest: digest.clone(), size, url: url.to_owned() };
        let record = serde_json::to_vec(&record).map_err(io::Error::other)?;
        write_atomically(&self.path("objects", key.name()), &record)?;
        self.verified.lock().insert(digest);
        Ok(CachedBlob { path: blob })
    }
}

/// A name that a blob can have: records are files that anyone with access to the cache may edit.
fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn digest_file(file: &mut File) -> io::Result<String> {
    io::Seek::rewind(file)?;
    let (mut context, mut buffer) = (Context::new(&SHA256), vec![0; 256 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(to_hex(context.finish().as_ref())),
            n => context.update(&buffer[..n]),
        }
    }
}
