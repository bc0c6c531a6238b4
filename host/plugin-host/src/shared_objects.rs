//! Shared-memory objects that backends make in `/dev/shm`: their names begin with a prefix that the
//! backend is told, so that what a killed process leaves behind is found.
//!
//! A process holds the lock of a file there as long as it lives. The system gives the lock up
//! however the process ends, so the owner of objects has ended when the lock of its file is free.
//! Process ids do not tell that: they are used again, and containers that share the folder have the
//! same ones.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Environment variable of a child with its prefix.
pub const VARIABLE: &str = "TRTSERVER_SHM_PREFIX";

/// The same as a setting of an adapted backend, which may run in the server's own process.
pub const SETTING: &str = "shared-memory-prefix";

/// Where the system keeps the objects.
const FOLDER: &str = "/dev/shm";

/// End of the name of a file whose lock is held.
const LOCK: &str = "lock";

/// Process-wide: it is named by the process id, and `main` releases it, whatever is still open
/// then.
static OWNER: OnceLock<ObjectOwner> = OnceLock::new();

/// This process as the owner of objects.
struct ObjectOwner {
    /// Begins the names of all its objects: `trtserver_PID_RANDOM_`.
    prefix: String,
    folder: PathBuf,
    /// The last number of a child.
    children: AtomicU64,
    /// Without it other servers remove nothing of this process, also after its end.
    _lock: Option<OwnedFd>,
}

impl ObjectOwner {
    fn new(folder: &Path) -> Self {
        let random = RandomState::new().hash_one(std::process::id());
        let prefix = format!("trtserver_{}_{random:016x}_", std::process::id());
        let lock = lock(folder, &prefix)
            .inspect_err(|e| {
                let folder = folder.display();
                tracing::warn!("no lock for shared-memory objects could be made in {folder}: {e}");
            })
            .ok();
        Self { prefix, folder: folder.to_owned(), children: AtomicU64::new(0), _lock: lock }
    }
}

/// Makes the lock file. It has its name only when its lock is held.
fn lock(folder: &Path, prefix: &str) -> std::io::Result<OwnedFd> {
    let new = folder.join(format!("{prefix}new"));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = open(&new, flags, Mode::RUSR | Mode::WUSR)?;
    let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
    let named = locked.map_err(Into::into).and_then(|()| {
        let lock = folder.join(format!("{prefix}{LOCK}"));
        fs::rename(&new, lock)
    });
    if named.is_err() {
        let _ = fs::remove_file(&new);
    }
    named.map(|()| file)
}

fn owner() -> &'static ObjectOwner {
    OWNER.get_or_init(|| ObjectOwner::new(Path::new(FOLDER)))
}

/// The prefix for backends in this process.
pub fn own_prefix() -> String {
    // A child has a prefix of its own, so that its objects can be told from those of other
    // children.
    std::env::var(VARIABLE).unwrap_or_else(|_| format!("{}0_", owner().prefix))
}

/// Before the process ends: removes its lock, and the objects that its backends have left behind.
pub fn release_objects() {
    if let Some(ObjectOwner { prefix, folder, .. }) = OWNER.get() {
        remove_object(folder, prefix);
    }
}

/// Removes the objects of processes that have ended, and returns how many these are.
pub fn remove_leftovers() -> usize {
    sweep_in(Path::new(FOLDER))
}

fn sweep_in(folder: &Path) -> usize {
    let names = |entry: fs::DirEntry| entry.file_name().into_string().ok();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let locks: Vec<String> = entries.filter_map(names).filter(|n| is_lock(n)).collect();
    let mut removed = 0;
    for name in locks {
        let file = folder.join(&name);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let Ok(held) = open(&file, flags, Mode::empty()) else { continue };
        if flock(&held, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let prefix = name.strip_suffix(LOCK).unwrap_or(&name);
        // The lock comes last: if this process ends before, another one finds the rest.
        removed += remove_unless(folder, prefix, Some(&name));
        let _ = fs::remove_file(&file);
    }
    removed
}

/// Whether a name is exactly that of a lock file. A shorter prefix could be that of other servers,
/// too.
fn is_lock(name: &str) -> bool {
    let parts: Vec<&str> = name.split('_').collect();
    let [program, pid, random, end] = parts[..] else { return false };
    let hex = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    program == "trtserver"
        && !pid.is_empty()
        && pid.chars().all(|c| c.is_ascii_digit())
        && random.len() == 16
        && random.chars().all(hex)
        && end == LOCK
}

fn remove_object(folder: &Path, prefix: &str) -> usize {
    remove_unless(folder, prefix, None)
}

fn remove_unless(folder: &Path, prefix: &str, kept: Option<&str>) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        let name = entry.file_name();
        let is_kept = kept.is_some_and(|kept| name == *kept);
        name.as_encoded_bytes().starts_with(prefix.as_bytes()) && !is_kept
    });
    ours.filter(|entry| fs::remove_file(entry.path()).is_ok()).count()
}

/// The objects of one child; no other has its prefix.
pub struct SharedObjects(String);

impl SharedObjects {
    pub fn for_next_child() -> Self {
        Self::from_owner(owner())
    }

    fn from_owner(owner: &ObjectOwner) -> Self {
        let child = owner.children.fetch_add(1, Ordering::Relaxed) + 1;
        Self(format!("{}{child}_", owner.prefix))
    }

    pub fn prefix(&self) -> &str {
        &self.0
    }

    /// Removes the objects that the ended child left behind, and returns their number.
    pub fn remove(&self) -> usize {
        remove_object(Path::new(FOLDER), &self.0)
    }
}

#[cfg(test)]
#[path = "shared_objects_tests.rs"]
mod tests;
