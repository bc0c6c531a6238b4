//! A copy of a Debian root, in which programs run with processes and devices of their own.

use crate::command::{Result, run, say};
use crate::package::debian_root::roots;
use crate::paths::Paths;
use crate::python::remove_dir;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Mounts end with the process that made them.
const ENTER: &str = "mount -t proc proc \"$0/proc\" && mount --rbind /dev \"$0/dev\" && \
                     exec chroot \"$@\"";
/// What the root needs of this machine to reach the registries.
const NETWORK_FILES: [&str; 3] =
    ["/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"];
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Removed when it is dropped.
pub struct TrialRoot {
    pub name: &'static str,
    root: PathBuf,
}

impl TrialRoot {
    /// # Errors
    /// The root cannot be copied.
    pub fn copy(paths: &Paths, pristine: &Path, name: &'static str) -> Result<Self> {
        let root = Self::empty(paths, name)?;
        let _ = fs::remove_dir(&root.root);
        run(Command::new("cp").arg("-a").arg(pristine).arg(&root.root), "")?;
        for file in NETWORK_FILES.iter().filter(|file| Path::new(file).exists()) {
            let to = root.root.join(file.trim_start_matches('/'));
            fs::copy(file, &to).map_err(|e| format!("cannot copy {file}: {e}"))?;
        }
        Ok(root)
    }

    /// # Errors
    /// The directory cannot be made.
    pub fn empty(paths: &Paths, name: &'static str) -> Result<Self> {
        let root = roots(paths).join(format!("{name}.trial"));
        remove_dir(&root)?;
        fs::create_dir_all(&root).map_err(|e| format!("cannot create {}: {e}", root.display()))?;
        Ok(Self { name, root })
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Runs a program of the root.
    ///
    /// # Errors
    /// It fails.
    pub fn run(&self, command: &[&str]) -> Result<()> {
        run(&mut self.command(&[], command), &format!("in a Debian of its own, {}", self.name))
    }

    /// Runs a program of the root with options of chroot.
    pub fn command(&self, options: &[&str], command: &[&str]) -> Command {
        let mut enter = Command::new("unshare");
        enter.args(["--mount", "sh", "-c", ENTER]).arg(&self.root).args(options);
        enter.arg(&self.root).args(command).env_clear();
        let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        for (name, value) in [
            ("PATH", path),
            ("HOME", "/root"),
            ("LANG", "C.UTF-8"),
            ("PIP_CERT", CERTIFICATES),
            ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
            ("DEBIAN_FRONTEND", "noninteractive"),
        ] {
            enter.env(name, value);
        }
        enter
    }

    /// Copies a file into a directory of the root. Returns its path there.
    ///
    /// # Errors
    /// It cannot be copied.
    pub fn put(&self, file: &Path, directory: &str) -> Result<String> {
        let name = file.file_name().map(|name| name.display().to_string()).unwrap_or_default();
        let inside = format!("{directory}/{name}");
        let wrap = |e| format!("cannot copy {}: {e}", file.display());
        fs::create_dir_all(self.root.join(directory)).map_err(wrap)?;
        fs::copy(file, self.root.join(&inside)).map_err(wrap)?;
        Ok(format!("/{inside}"))
    }

    /// Copies a directory to a place in the root.
    ///
    /// # Errors
    /// It cannot be copied.
    pub fn put_directory(&self, from: &Path, to: &str) -> Result<()> {
        let to = self.root.join(to);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
        }
        run(Command::new("cp").args(["-a", "-T"]).arg(from).arg(&to), "")
    }

    /// The first file below a directory whose name begins so, as a path in the root.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub fn find(&self, below: &Path, begin: &str) -> Result<Option<String>> {
        let directory = self.root.join(below);
        let entries =
            fs::read_dir(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        for entry in entries.flatten() {
            let path = below.join(entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if let Some(found) = self.find(&path, begin)? {
                    return Ok(Some(found));
                }
            } else if entry.file_name().to_string_lossy().starts_with(begin) {
                return Ok(Some(format!("/{}", path.display())));
            }
        }
        Ok(None)
    }
}

impl Drop for TrialRoot {
    fn drop(&mut self) {
        if let Err(e) = remove_dir(&self.root) {
            say(e);
        }
    }
}
