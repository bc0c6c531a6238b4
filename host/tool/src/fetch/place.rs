//! Where fetched files go: a folder beside the backend's link, renamed when it is complete, so that
//! an interrupted run leaves nothing that looks like a backend.

use super::interpreter::Interpreter;
use super::manifest::{FetchManifest, FetchedMember};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// In a complete folder: what it was made of.
const STAMP: &str = "fetched.txt";

pub struct FetchPlace {
    /// The link.
    backend: PathBuf,
    /// The folder of the release. The server skips names that begin with a dot.
    release: PathBuf,
    /// Held while this exists, so that two runs take turns.
    _lock: File,
}

impl FetchPlace {
    /// Waits for another run that fetches the same backend.
    ///
    /// # Errors
    /// The directory cannot be created or written to.
    pub fn open(
        directory: &Path,
        name: &str,
        version: &str,
        interpreter: &Interpreter,
    ) -> Result<Self, String> {
        let backend = directory.join(name);
        fs::create_dir_all(directory).map_err(|e| unwritable(directory, &e))?;
        let lock = directory.join(format!(".{name}.lock"));
        let file = File::create(&lock).map_err(|e| unwritable(&lock, &e))?;
        file.lock().map_err(|e| format!("unable to lock '{}': {e}", lock.display()))?;
        if fs::symlink_metadata(&backend).is_ok_and(|found| !found.is_symlink()) {
            return Err(format!(
                "'{}' exists and was not fetched: remove it, or name another directory with --into=DIR",
                backend.display()
            ));
        }
        let minor = interpreter.minor_version();
        let release = directory.join(format!(".{name}-{version}-python{minor}"));
        Ok(Self { backend, release, _lock: file })
    }

    /// Whether an earlier run has fetched the same.
    pub fn is_complete(&self, manifest: &FetchManifest) -> bool {
        let stamp = fs::read_to_string(self.release.join(STAMP));
        let whole =
            |file: &FetchedMember| self.release.join(file.target()).symlink_metadata().is_ok();
        stamp.is_ok_and(|stamp| stamp == stamp_text(manifest)) && manifest.files.iter().all(whole)
    }

    /// An empty folder for the files.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn begin(&self) -> Result<PathBuf, String> {
        let partial = self.beside_release(".partial");
        remove(&partial)?;
        fs::create_dir(&partial).map_err(|e| unwritable(&partial, &e))?;
        // Python writes where it is told, whatever the working directory is.
        partial.canonicalize().map_err(|e| unwritable(&partial, &e))
    }

    /// Links the interpreter's library, and gives the folder its name.
    ///
    /// # Errors
    /// The interpreter has no shared library, or the folder cannot be written to.
    pub fn finish(
        &self,
        manifest: &FetchManifest,
        interpreter: &Interpreter,
    ) -> Result<(), String> {
        let partial = self.beside_release(".partial");
        if let Some(link) = &manifest.libpython
            && let Some(library) = interpreter.shared_library()?
        {
            let link = partial.join(link);
            let made = link.parent().map_or(Ok(()), fs::create_dir_all);
            made.and_then(|()| symlink(library, &link)).map_err(|e| unwritable(&link, &e))?;
        }
        let stamp = partial.join(STAMP);
        fs::write(&stamp, stamp_text(manifest)).map_err(|e| unwritable(&stamp, &e))?;
        remove(&self.release)?;
        fs::rename(&partial, &self.release).map_err(|e| unwritable(&self.release, &e))
    }

    /// Makes the backend's name lead to the release.
    ///
    /// # Errors
    /// The directory cannot be written to.
    pub fn link_backend(&self, manifest: &FetchManifest) -> Result<(), String> {
        let release = self.release.file_name().unwrap_or_default();
        let target = Path::new(release).join(&manifest.backend);
        if fs::read_link(&self.backend).is_ok_and(|found| found == target) {
            return Ok(());
        }
        let new = self.beside_release(".link");
        remove(&new)?;
        symlink(&target, &new)
            .and_then(|()| fs::rename(&new, &self.backend))
            .map_err(|e| unwritable(&self.backend, &e))
    }

    fn beside_release(&self, ending: &str) -> PathBuf {
        let mut name = self.release.file_name().unwrap_or_default().to_owned();
        name.push(ending);
        self.release.with_file_name(name)
    }
}

/// What decides the contents of a release.
fn stamp_text(manifest: &FetchManifest) -> String {
    let members = manifest.files.iter().map(|file| format!("{} {}", file.from, file.target()));
    let lines = manifest.requirements.iter().cloned().chain(members);
    lines.map(|line| line + "\n").collect()
}

fn remove(path: &Path) -> Result<(), String> {
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    };
    removed.map_err(|e| format!("unable to remove '{}': {e}", path.display()))
}

fn unwritable(path: &Path, e: &std::io::Error) -> String {
    format!("unable to write '{}': {e}; --into=DIR names another directory", path.display())
}
