//! `cargo xtask package --compare-builds NAME`: programs of the packages are compiled twice, with two
//! directories of the sources, of the build and of cargo itself, and must have equal bytes.
//!
//! Variables such as `CARGO_PROFILE_RELEASE_OPT_LEVEL=1` make both builds cheaper.

use super::build::{self, BuildPlaces};
use crate::build::release_packages;
use crate::command::{Result, run, say};
use crate::paths::Paths;
use crate::python::remove_dir;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// For `--compare-builds`: every package.
const ALL: &str = "all";
/// Copies the sources, as git knows them and as they are now, from `$0` to `$1`.
const COPY: &str = "git -C \"$0\" ls-files -z --cached --others --exclude-standard | \
                    tar -C \"$0\" --null -T - -c -f - | tar -C \"$1\" -x -f -";

/// The names that `--compare-builds` takes.
pub fn package_names() -> Vec<&'static str> {
    std::iter::once(ALL).chain(release_packages()).collect()
}

/// # Errors
/// A build fails, or a program differs.
pub fn compare_builds(paths: &Paths, names: &[String]) -> Result<()> {
    let is_asked = |package: &&str| names.iter().any(|name| name == ALL || name == package);
    let packages: Vec<&str> = release_packages().filter(is_asked).collect();
    let (directory, home) = (paths.target.join("package"), build::cargo_home()?);
    let (one, other) = (directory.join("compare"), directory.join("compare-elsewhere"));
    // Paths of another length, since lengths are in programs as well. Both builds have copies: the
    // checkout may change while they run.
    let one = BuildPlaces {
        sources: one.join("sources"),
        target: one.join("built"),
        cargo_home: home.clone(),
    };
    let other = BuildPlaces {
        sources: other.join("some/other/directory"),
        target: other.join("built"),
        cargo_home: other.join("home"),
    };
    link_entries(&home, &other.cargo_home)?;
    for places in [&one, &other] {
        remove_programs(&build::programs_in(&places.target))?;
        make_empty(&places.sources)?;
    }
    let mut copy = Command::new("sh");
    copy.args(["-c", COPY]).arg(&paths.root).arg(&one.sources);
    run(&mut copy, "the sources are copied by git")?;
    // Of the copy: an edit between two copies of the checkout would be a difference.
    run(Command::new("cp").args(["-a", "-T"]).arg(&one.sources).arg(&other.sources), "")?;
    say(format!("package: building {} twice", packages.join(", ")));
    let commit = build::source_commit(paths);
    let one = build::compile(paths, &one, commit.as_deref(), &packages)?;
    let other = build::compile(paths, &other, commit.as_deref(), &packages)?;
    let (ones, others) = (programs(&one)?, programs(&other)?);
    if ones.is_empty() || !ones.keys().eq(others.keys()) {
        return Err(format!("the builds made {:?} and {:?}", ones.keys(), others.keys()));
    }
    let mut differing = Vec::new();
    for ((name, one), other) in ones.iter().zip(others.values()) {
        match first_difference(&read(one)?, &read(other)?) {
            None => say(format!("package: {name} is equal in both builds")),
            Some(at) => differing.push(format!(
                "{} and {} from byte {at} on",
                one.display(),
                other.display()
            )),
        }
    }
    match differing.is_empty() {
        true => Ok(()),
        false => Err(format!("the two builds differ:\n  {}", differing.join("\n  "))),
    }
}

fn make_empty(directory: &Path) -> Result<()> {
    remove_dir(directory)?;
    fs::create_dir_all(directory).map_err(|e| format!("cannot create {}: {e}", directory.display()))
}

/// Makes a directory that has the same entries as another one, by links.
fn link_entries(of: &Path, directory: &Path) -> Result<()> {
    make_empty(directory)?;
    let entries = fs::read_dir(of).map_err(|e| format!("{}: {e}", of.display()))?;
    entries.flatten().try_for_each(|entry| {
        symlink(entry.path(), directory.join(entry.file_name()))
            .map_err(|e| format!("{}: {e}", directory.display()))
    })
}

/// Removes those of other packages, which an earlier comparison has made.
fn remove_programs(built: &Path) -> Result<()> {
    if !built.exists() {
        return Ok(());
    }
    let remove = |file: &PathBuf| {
        fs::remove_file(file).map_err(|e| format!("cannot remove {}: {e}", file.display()))
    };
    programs(built)?.values().try_for_each(remove)
}

/// Programs and libraries of a build by name.
fn programs(built: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let entries = fs::read_dir(built).map_err(|e| format!("{}: {e}", built.display()))?;
    let files = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|t| t.is_file()));
    let named = files.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    let is_program = |name: &str| {
        !name.starts_with('.') && [".d", ".rlib"].iter().all(|other| !name.ends_with(other))
    };
    Ok(named.filter(|(name, _)| is_program(name)).collect())
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).map_err(|e| format!("cannot read {}: {e}", file.display()))
}

fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    let at = one.iter().zip(other).position(|(a, b)| a != b);
    at.or_else(|| (one.len() != other.len()).then(|| one.len().min(other.len())))
}

#[cfg(test)]
#[path = "two_builds_tests.rs"]
mod tests;
