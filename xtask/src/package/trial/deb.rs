//! The Debian package: installed, started as its unit starts it, and removed.

use super::Trial;
use super::root::TrialRoot;
use crate::command::{Result, say};
use crate::package::deb;
use std::fs;
use std::path::Path;
use std::process::Command;

const UNIT: &str = "lib/systemd/system/trtserver.service";
const LIBRARIES: &str = "usr/lib/trtserver/lib";
/// What an installed package has, relative to the root.
const INSTALLED: [&str; 5] = [
    "usr/bin/trtserver",
    UNIT,
    "etc/trtserver/trtserver.toml",
    "usr/share/man/man1/trtserver.1.gz",
    "usr/share/bash-completion/completions/trtserver",
];

pub fn try_package(trial: &Trial, root: &TrialRoot) -> Result<()> {
    let file = root.put(&deb::package_path(trial.packages), "try")?;
    root.run(&["apt-get", "install", "-y", "--no-install-recommends", &file])?;
    for name in INSTALLED {
        if !root.path().join(name).exists() {
            return Err(format!("{}: the package has installed no /{name}", root.name));
        }
    }
    let models = "var/lib/trtserver/models";
    root.put_directory(
        &trial.paths.root.join("examples/models/dynamic_shape"),
        &format!("{models}/dynamic_shape"),
    )?;
    let library = trial.onnx_library(root)?;
    let own = root.put(&root.path().join(library.trim_start_matches('/')), LIBRARIES)?;
    let (from, to) = (own.trim_start_matches('/'), format!("{LIBRARIES}/libonnxruntime.so.1"));
    fs::rename(root.path().join(from), root.path().join(&to)).map_err(|e| format!("/{to}: {e}"))?;
    verify_unit(&root.path().join(UNIT));
    let start = unit_value(&root.path().join(UNIT), "ExecStart")?;
    let user = unit_value(&root.path().join(UNIT), "User")?;
    let (reuid, regid) = (format!("--reuid={user}"), format!("--regid={user}"));
    let begin = ["python3", "/try/answer.py", "dynamic_shape"];
    let as_user = ["setpriv", &reuid, &regid, "--init-groups"];
    let server: Vec<&str> = start.split_whitespace().collect();
    root.run(&[&begin[..], &as_user[..], &server].concat())?;
    root.run(&["apt-get", "remove", "-y", "trtserver"])?;
    if root.path().join("usr/bin/trtserver").symlink_metadata().is_ok() {
        return Err(format!("{}: /usr/bin/trtserver is there after the removal", root.name));
    }
    if !root.path().join(models).join("dynamic_shape/config.pbtxt").exists() {
        return Err(format!("{}: the removal has removed the models", root.name));
    }
    root.run(&["apt-get", "purge", "-y", "trtserver"])?;
    if root.path().join("etc/trtserver").exists() {
        return Err(format!("{}: /etc/trtserver is there after the purge", root.name));
    }
    say(format!("package: {}: the deb was installed, answered and was removed", root.name));
    Ok(())
}

/// The value of a key in the unit.
fn unit_value(unit: &Path, key: &str) -> Result<String> {
    let text = fs::read_to_string(unit).map_err(|e| format!("{}: {e}", unit.display()))?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    value.map(str::to_owned).ok_or_else(|| format!("{}: no {key}", unit.display()))
}

/// Prints what systemd of this machine says of the unit. Its programs are not installed here, which
/// it mentions.
fn verify_unit(unit: &Path) {
    let mut verify = Command::new("systemd-analyze");
    let _ = verify.arg("verify").arg(unit).status();
}
