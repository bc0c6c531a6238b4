//! The build of the packages: a release that runs on systems with an old glibc.

use crate::apt::capture_output;
use crate::build::{install_build, release_packages};
use crate::command::{Result, cargo, output, run, say};
use crate::paths::Paths;
use crate::python;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Platform tag of the wheel: Debian 10, Ubuntu 18.10, RHEL 8 and newer.
pub const PLATFORM: &str = "manylinux_2_28";
/// The same release, as the linker is told.
const GLIBC: &str = "2.28";
/// For C code of dependencies, after their own options: those of `aegis` are `-mtune=native`, which
/// zig takes for `-mcpu=native`. The program would then stop on other processors with SIGILL.
const PROCESSOR: &str = "-mcpu=baseline";

/// Where a build reads and writes.
pub struct BuildPlaces {
    /// The workspace.
    pub sources: PathBuf,
    pub target: PathBuf,
    /// cargo's own directory, with the sources of dependencies.
    pub cargo_home: PathBuf,
}

/// Builds with zig's C compiler and linker, which know the symbols of each glibc release. Returns
/// the install.
pub fn build_release(paths: &Paths) -> Result<PathBuf> {
    let directory = paths.target.join("package");
    say("package: release build for old systems (ten minutes the first time)");
    let packages: Vec<&str> = release_packages().collect();
    let (sources, target) = (paths.root.clone(), directory.clone());
    let places = BuildPlaces { sources, target, cargo_home: cargo_home()? };
    let built = compile(paths, &places, source_commit(paths).as_deref(), &packages)?;
    let install = directory.join("install");
    let _ = std::fs::remove_dir_all(&install);
    install_build(paths, &built, &install, false)?;
    Ok(install)
}

/// The home directory of cargo: `CARGO_HOME`, else `~/.cargo`.
///
/// # Errors
/// No variable names it.
pub fn cargo_home() -> Result<PathBuf> {
    let named = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let usual = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    named.or_else(usual).ok_or_else(|| "set CARGO_HOME or HOME: cargo needs its directory".into())
}

/// Compiles packages of a commit. Returns where the programs are.
pub fn compile(
    paths: &Paths,
    places: &BuildPlaces,
    commit: Option<&str>,
    packages: &[&str],
) -> Result<PathBuf> {
    let interpreter = python::environment(paths, &python::PACKAGE)?;
    let target = target();
    let mut command = cargo();
    command.current_dir(&places.sources).args(["zigbuild", "--release", "--locked"]);
    command.args(["--target", &format!("{target}.{GLIBC}")]);
    command.arg("--target-dir").arg(&places.target);
    for package in packages {
        command.args(["--package", package]);
    }
    command.env("PATH", path_with(&interpreter)).env("CARGO_HOME", &places.cargo_home);
    command.env("RUSTFLAGS", stable_paths("--remap-path-prefix", places));
    // Flags of the user would be in the bytes as well.
    let variables = std::env::vars_os().map(|(name, _)| name);
    for name in variables.filter(|name| is_flags_of_c(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    let flags = format!("{PROCESSOR} {}", stable_paths("-ffile-prefix-map", places));
    command.env("CFLAGS", &flags).env("CXXFLAGS", &flags);
    // Only here: other builds would compile the program anew after each commit.
    if let Some(commit) = commit {
        command.env("TRTSERVER_COMMIT", commit);
    }
    run(&mut command, "the target is added with `rustup target add`")?;
    Ok(programs_in(&places.target))
}

/// `CFLAGS` and its forms for one target, as `CFLAGS_x86_64_unknown_linux_gnu` and `HOST_CXXFLAGS`.
fn is_flags_of_c(variable: &str) -> bool {
    ["CFLAGS", "CXXFLAGS"].iter().any(|flags| variable.contains(flags))
}

/// Where [`compile`] puts programs and libraries.
pub fn programs_in(directory: &Path) -> PathBuf {
    directory.join(target()).join("release")
}

fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// Fails unless the wheel of the directory runs with the glibc that its name promises.
pub fn audit(paths: &Paths, directory: &Path) -> Result<()> {
    let interpreter = python::environment(paths, &python::PACKAGE)?;
    let wheel = super::server_wheel::wheel_path(directory, PLATFORM);
    let mut command = Command::new(interpreter);
    command.args(["-m", "auditwheel", "show"]).arg(&wheel);
    let report = output(&mut command, "")?;
    // `manylinux_2_24` may be named for a wheel that may call itself `manylinux_2_28`.
    let newest = glibc_minor(PLATFORM);
    match oldest_platform(&report) {
        Some(found) if glibc_minor(found) <= newest => {
            say(format!("package: auditwheel finds {found}"));
            Ok(())
        }
        found => Err(format!(
            "auditwheel finds {} for {}, expected {PLATFORM} or older:\n{report}",
            found.unwrap_or("no platform"),
            wheel.display()
        )),
    }
}

/// The platform tag that the report calls consistent with the wheel.
fn oldest_platform(report: &str) -> Option<&str> {
    let after = report.split("platform tag:").nth(1)?;
    after.split('"').nth(1).filter(|tag| tag.starts_with("manylinux_"))
}

/// 28 of `manylinux_2_28_x86_64`.
fn glibc_minor(tag: &str) -> u32 {
    let minor = tag.strip_prefix("manylinux_2_").and_then(|rest| rest.split('_').next());
    minor.and_then(|minor| minor.parse().ok()).unwrap_or(u32::MAX)
}

/// The commit of the checkout, for `trtserver --version`; `None` without git. The variable of the
/// environment is for sources without their history.
pub fn source_commit(paths: &Paths) -> Option<String> {
    if let Ok(given) = std::env::var("TRTSERVER_COMMIT") {
        return Some(given);
    }
    let root = paths.root.display().to_string();
    let git = |arguments: &[&str]| capture_output("git", &[&["-C", &root], arguments].concat());
    let commit = git(&["rev-parse", "HEAD"])?.trim().to_owned();
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.trim().is_empty() { commit } else { format!("{commit} and changes") })
}

/// `PATH` with the programs of the Python environment first.
fn path_with(interpreter: &Path) -> std::ffi::OsString {
    let own = interpreter.parent().map(Path::to_path_buf);
    let others = std::env::var_os("PATH").unwrap_or_default();
    let all = own.into_iter().chain(std::env::split_paths(&others));
    // Neither has a colon: they come from a PATH and from cargo's directory.
    std::env::join_paths(all).unwrap_or(others)
}

/// Options that keep paths of this machine out of the programs, which would differ between two
/// builds. rustc and C compilers have one of the same form.
fn stable_paths(option: &str, places: &BuildPlaces) -> String {
    // The last one that fits counts.
    let names = [
        (&places.sources, "/trtserver"),
        (&places.target, "/build"),
        (&places.cargo_home, "/cargo"),
    ];
    names.map(|(place, name)| format!("{option}={}={name}", place.display())).join(" ")
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
