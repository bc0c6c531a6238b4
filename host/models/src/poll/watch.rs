//! inotify watches on the directories of repositories: a hint to look at a model sooner than the
//! polling interval. File systems without events, such as NFS, are polled.

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeSet, HashMap};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use trtserver_base::disk::is_ignored;

/// What is of interest in a directory.
const EVENTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// Magic numbers of file systems that report the changes of all their users: ext4, xfs, btrfs,
/// tmpfs, overlayfs, f2fs, zfs.
const LOCAL: [u64; 7] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1];

/// The inotify watches, and the models and directories that each watch reports on.
pub struct DirWatches {
    fd: OwnedFd,
    owners: HashMap<i32, BTreeSet<WatchOwner>>,
}

/// The owner of a watched directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchOwner {
    Repository,
    Model(String),
}

/// What has to be looked at.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WatchHints {
    pub repositories: bool,
    pub models: BTreeSet<String>,
    /// Events were lost: everything.
    pub all: bool,
}

impl DirWatches {
    /// # Errors
    /// The user has too many inotify objects.
    pub fn new() -> rustix::io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Self { fd, owners: HashMap::new() })
    }

    /// Watches a directory; true if it was not watched.
    ///
    /// # Errors
    /// It is gone, or the user has too many watches.
    pub fn add(&mut self, dir: &Path, owner: WatchOwner) -> rustix::io::Result<bool> {
        let watch = inotify::add_watch(&self.fd, dir, EVENTS)?;
        let owners = self.owners.entry(watch).or_default();
        let new = owners.is_empty();
        owners.insert(owner);
        Ok(new)
    }

    /// Ends the watches of a model that was removed.
    pub fn forget(&mut self, model: &str) {
        let owner = WatchOwner::Model(model.to_owned());
        self.owners.retain(|watch, owners| {
            if owners.remove(&owner) && owners.is_empty() {
                // Fails for a directory that is gone.
                let _ = inotify::remove_watch(&self.fd, *watch);
            }
            !owners.is_empty()
        });
    }

    /// The events since the last call. Does not wait.
    pub fn read(&mut self) -> WatchHints {
        let mut hints = WatchHints::default();
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = Reader::new(&self.fd, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(_) => return hints,
            };
            let (flags, name) = (event.events(), event.file_name());
            hints.all |= flags.contains(ReadFlags::QUEUE_OVERFLOW);
            let name = name.and_then(|name| name.to_str().ok());
            if flags.contains(ReadFlags::IGNORED) {
                self.owners.remove(&event.wd());
            } else if !name.is_some_and(is_ignored)
                && let Some(owners) = self.owners.get(&event.wd())
            {
                for owner in owners {
                    match owner {
                        WatchOwner::Model(model) => drop(hints.models.insert(model.clone())),
                        WatchOwner::Repository => {
                            hints.repositories = true;
                            hints.models.extend(name.map(str::to_owned));
                        }
                    }
                }
            }
        }
    }

    /// Whether the file system of `dir` reports all changes.
    pub fn is_reliable(dir: &Path) -> bool {
        rustix::fs::statfs(dir).is_ok_and(|found| LOCAL.contains(&(found.f_type as u64)))
    }
}

impl AsFd for DirWatches {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
