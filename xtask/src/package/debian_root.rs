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
    /// The directory, made once by debootstrap, which needs the rights of root.
    ///
    /// # Errors
    /// debootstrap is missing or fails.
    pub fn make(&self, paths: &Paths) -> Result<PathBuf> {
        let roots = paths.target.join("package/roots");
        let root = roots.join(self.name);
        fs::create_dir_all(&roots)
            .map_err(|e| format!("cannot create {}: {e}", roots.display()))?;
        let _lock = paths::lock(&roots.join(format!("{}.lock", self.name)))?;
        // Written last: an interrupted run leaves no root that looks complete.
        let stamp = roots.join(format!("{}.made-from", self.name));
        let made_from = format!("{} {}\n", self.suite, self.packages);
        if fs::read_to_string(&stamp).is_ok_and(|made| made == made_from) {
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
        // The downloaded packages.
        remove_dir(&root.join("var/cache/apt/archives"))?;
        fs::write(&stamp, made_from)
            .map_err(|e| format!("cannot write {}: {e}", stamp.display()))?;
        Ok(root)
    }
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
