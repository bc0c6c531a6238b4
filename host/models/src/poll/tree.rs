//! The files of one model as they were last seen. Another look costs one `stat` for each file and
//! directory: entries of a directory are read only if its modification time has changed.

use std::fs::{self, Metadata};
use std::io::Result;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use trtserver_model_store::fingerprint::{
    FileStamp, ModelFingerprint, relative_path, walk_model_dir,
};

/// A directory whose time is closer to that of the look may change without another time: times have
/// a granularity, and clocks of file servers differ.
const TIME_GRANULARITY: Duration = Duration::from_secs(2);

/// The files and directories of one model at the last look, with their fingerprint.
pub struct FileTree {
    nodes: Vec<TreeNode>,
    fingerprint: Arc<ModelFingerprint>,
    has_links: bool,
}

struct TreeNode {
    path: PathBuf,
    stamp: FileStamp,
    /// Entries of a directory; `None` for a file.
    entries: Option<DirEntries>,
}

/// Shows whether the entries of a directory may have changed.
#[derive(PartialEq, Eq)]
struct DirEntries {
    modified: (i64, i64),
    inode: (u64, u64),
    /// It was changed just before its entries were read.
    recent: bool,
}

impl DirEntries {
    fn from_metadata(metadata: &Metadata, now: SystemTime) -> Option<Self> {
        let recent = metadata.modified().map_or(true, |at| at + TIME_GRANULARITY > now);
        metadata.is_dir().then(|| Self {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            inode: (metadata.dev(), metadata.ino()),
            recent,
        })
    }
}

impl FileTree {
    /// # Errors
    /// The metadata of a file or the entries of a directory cannot be read.
    pub fn read(dir: &Path) -> Result<Self> {
        let now = SystemTime::now();
        let (mut nodes, mut has_links) = (Vec::new(), false);
        walk_model_dir(dir, |path, metadata, is_link| {
            has_links |= is_link;
            let (stamp, entries) =
                (FileStamp::from_metadata(metadata), DirEntries::from_metadata(metadata, now));
            nodes.push(TreeNode { path: path.to_owned(), stamp, entries });
        })?;
        let files = nodes.iter().map(|node| (relative_path(&node.path, dir), node.stamp));
        let fingerprint = Arc::new(ModelFingerprint::new(files));
        Ok(Self { nodes, fingerprint, has_links })
    }

    pub fn fingerprint(&self) -> &Arc<ModelFingerprint> {
        &self.fingerprint
    }

    /// Whether it has links, whose targets may change without an event in its directories.
    pub fn has_links(&self) -> bool {
        self.has_links
    }

    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.nodes.iter().filter(|node| node.entries.is_some()).map(|node| node.path.as_path())
    }

    /// Whether all files and directories are as they were read.
    pub fn is_current(&self) -> bool {
        self.nodes.iter().all(|node| {
            let path = &node.path;
            let found = fs::metadata(path).or_else(|_| fs::symlink_metadata(path));
            found.is_ok_and(|now| node.is_same(&now))
        })
    }
}

impl TreeNode {
    fn is_same(&self, now: &Metadata) -> bool {
        let entries = match &self.entries {
            Some(entries) => {
                let modified = (now.mtime(), now.mtime_nsec());
                !entries.recent
                    && entries.modified == modified
                    && entries.inode == (now.dev(), now.ino())
            }
            None => true,
        };
        entries && self.stamp == FileStamp::from_metadata(now)
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
