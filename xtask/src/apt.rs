//! Debian packages that tests use: installed when this runs as root, else named.

use crate::command::say;
use std::process::{Command, Stdio};

/// Runs `apt-get install` if this runs as root. True if the packages were installed.
pub fn install(packages: &[&str]) -> bool {
    if packages.is_empty() || capture_output("id", &["-u"]).is_none_or(|id| id.trim() != "0") {
        return false;
    }
    say(format!("apt-get install {}", packages.join(" ")));
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    // Most failures are due to an outdated or missing package list.
    let install = [&["install", "-y", "--no-install-recommends"], packages].concat();
    apt(&install) || (apt(&["update"]) && apt(&install))
}

/// What to do where `install` did not.
pub fn hint(packages: &[&str]) -> String {
    format!("on Debian and Ubuntu, sudo apt-get install {}", packages.join(" "))
}

/// Standard output of a program, if it succeeded.
pub fn capture_output(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
