//! Directories with a small Debian: the base of the container image, and the systems in which the
//! packages are tried.

use crate::apt;
use crate::command::{Result, run, say};
use crate::paths::{self, Paths};
use crate::python::remove_dir;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A Debian with a minimum of packages.
pub struct DebianRoot {
    /// Name of its directory.
    pub name: &'static str,
    pub suite: &'static str,
    /// Packages beside the essential ones.
    pub packages: &'static str,
}

impl DebianRoot {
    /// Tells before a long build that the directory cannot be made.
    ///
    /// # Errors
    /// It is not there, and this does not run as root.
    pub fn check(&self, paths: &Paths) -> Result<()> {
        if self.is_made(paths) { Ok(()) } else { require_root() }
    }

    fn made_from(&self) -> String {
        format!("{} {}\n", self.suite, self.packages)
    }

    /// Written last: an interrupted run leaves no root that looks complete.
    fn stamp(&self, paths: &Paths) -> PathBuf {
        roots(paths).join(format!("{}.made-from", self.name))
    }

    fn is_made(&self, paths: &Paths) -> bool {
        fs::read_to_string(self.stamp(paths)).is_ok_and(|made| made == self.made_from())
    }

    /// The directory, made once by debootstrap, which needs the rights of root.
    ///
    /// # Errors
    /// debootstrap is missing or fails.
    pub fn make(&self, paths: &Paths) -> Result<PathBuf> {
        let roots = roots(paths);
        let root = roots.join(self.name);
        fs::create_dir_all(&roots)
            .map_err(|e| format!("cannot create {}: {e}", roots.display()))?;
        let _lock = paths::lock(&roots.join(format!("{}.lock", self.name)))?;
        if self.is_made(paths) {
            return Ok(root);
        }
        require_root()?;
        if apt::capture_output("debootstrap", &["--version"]).is_none() {
            apt::install(&["debootstrap"]);
        }
        say(format!("package: Debian {} in {} (two minutes)", self.suite, paths.short(&root)));
        remove_dir(&root)?;
        let mut debootstrap = Command::new("debootstrap");
        debootstrap.args(["--variant=minbase", "--include", self.packages, self.suite]);
        debootstrap.arg(&root).stdout(std::process::Stdio::null());
        run(&mut debootstrap, &apt::hint(&["debootstrap"]))?;
        let downloaded = root.join("var/cache/apt/archives");
        run(Command::new("find").arg(downloaded).args(["-name", "*.deb", "-delete"]), "")?;
        let stamp = self.stamp(paths);
        fs::write(&stamp, self.made_from())
            .map_err(|e| format!("cannot write {}: {e}", stamp.display()))?;
        Ok(root)
    }
}

/// Where all of them are, and their copies in which packages are tried.
pub fn roots(paths: &Paths) -> PathBuf {
    paths.target.join("package/roots")
}

/// # Errors
/// This does not run as root, whose rights debootstrap and chroot need.
pub fn require_root() -> Result<()> {
    match apt::capture_output("id", &["-u"]).is_some_and(|id| id.trim() == "0") {
        true => Ok(()),
        false => Err("debootstrap and chroot need the rights of root: run the command as root, \
                      or leave out the image (--only) and --try-in"
            .to_owned()),
    }
}
