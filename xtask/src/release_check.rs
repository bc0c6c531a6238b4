//! `cargo xtask release-check`: what CONTRIBUTING.md *Releases* asks for before a version is published,
//! as far as the sources show it.

use crate::apt::capture_output;
use crate::command::{Result, say};
use crate::package::source_commit;
use crate::paths::Paths;
use std::fs;

/// Where the plugin interface states its version.
const INTERFACE: &str = "plugin-api/src/abi/mod.rs";
/// Pages and files that name packages and images of the version.
const NAMING_VERSION: [&str; 3] = ["README.md", "docs", "deploy"];
/// What stands before the version there.
const BEFORE_VERSION: [&str; 7] = [
    "trtserver-",
    "trtserver_",
    "trtserver:",
    "trtserver_client-",
    "image:",
    "newTag: ",
    "appVersion: ",
];

/// What the checks read.
struct ReleaseSources {
    version: &'static str,
    /// The public address of the sources, from the workspace's manifest.
    repository: &'static str,
    changelog: String,
    /// Of the plugin interface: `1.0`.
    interface: String,
    /// Whether `tests/plugins/released` has this version of the interface.
    interface_is_kept: bool,
    /// Name and text of each of [`NAMING_VERSION`].
    pages: Vec<(String, String)>,
    /// `None` without git.
    commit: Option<String>,
    /// The commit that has the version's tag already.
    tagged: Option<String>,
}

/// # Errors
/// What is missing, one thing a line.
pub fn release_check(paths: &Paths) -> Result<()> {
    let sources = read_sources(paths)?;
    let missing = missing_for_release(&sources);
    if missing.is_empty() {
        say(format!("release-check: version {} can be tagged", sources.version));
        return Ok(());
    }
    let version = sources.version;
    Err(format!("version {version} cannot be published yet:\n  {}", missing.join("\n  ")))
}

fn missing_for_release(sources: &ReleaseSources) -> Vec<String> {
    let version = sources.version;
    let mut missing = Vec::new();
    if !sources.repository.starts_with("https://") {
        missing.push(format!(
            "`repository` of [workspace.package] in Cargo.toml is '{}', expected the public address \
             of the sources, with https://",
            sources.repository
        ));
    }
    match changelog_section(&sources.changelog, "Unreleased") {
        None => missing.push("CHANGELOG.md has no section *Unreleased*".to_owned()),
        Some(text) if !text.is_empty() => missing
            .push(format!("CHANGELOG.md has lines below *Unreleased*: move them below {version}")),
        Some(_) => {}
    }
    if changelog_section(&sources.changelog, version).is_none_or(str::is_empty) {
        missing.push(format!("CHANGELOG.md says nothing of {version}"));
    }
    if !sources.interface_is_kept {
        missing.push(format!(
            "tests/plugins/released/{0} is missing: copy `include` and `package` of plugin-api there, \
             for the tests of interface {0}",
            sources.interface
        ));
    }
    for (name, text) in &sources.pages {
        missing.extend(
            other_versions(text, version)
                .into_iter()
                .map(|(line, found)| format!("{name}:{line} names {found}, expected {version}")),
        );
    }
    match &sources.commit {
        None => missing.push("this is not a checkout of git, which names the commit".to_owned()),
        Some(commit) if commit.contains(' ') => {
            missing.push("files differ from the commit: see `git status`".to_owned());
        }
        Some(commit) => {
            if let Some(tagged) = sources.tagged.as_ref().filter(|tagged| *tagged != commit) {
                missing.push(format!(
                    "the tag v{version} names commit {tagged} already: raise `version` in Cargo.toml"
                ));
            }
        }
    }
    missing
}

/// The text below a heading of the second level, without the space around it.
fn changelog_section<'a>(changelog: &'a str, heading: &str) -> Option<&'a str> {
    let start = format!("\n## {heading}\n");
    let (_, after) = changelog.split_once(&start)?;
    Some(after.split("\n## ").next().unwrap_or(after).trim())
}

/// Lines, counted from 1, that name another version of the packages.
fn other_versions(text: &str, version: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for before in BEFORE_VERSION {
            for (at, _) in line.match_indices(before) {
                let rest =
                    line[at + before.len()..].split(|c: char| !c.is_ascii_digit() && c != '.');
                let named = rest.map(|word| word.trim_end_matches('.')).next().unwrap_or_default();
                if named.split('.').count() == 3 && named != version {
                    found.push((number + 1, named.to_owned()));
                }
            }
        }
    }
    found
}

fn read_sources(paths: &Paths) -> Result<ReleaseSources> {
    let read = |name: &str| {
        let path = paths.root.join(name);
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let interface = interface_version(&read(INTERFACE)?)
        .ok_or_else(|| format!("{INTERFACE}: ABI_MAJOR or ABI_MINOR is not stated"))?;
    let kept = paths.root.join("tests/plugins/released").join(&interface).join("include");
    let root = paths.root.display().to_string();
    // Without git there is no commit either, which is reported.
    let listed = [&["-C", &root, "ls-files", "--"][..], &NAMING_VERSION].concat();
    let listed = capture_output("git", &listed).unwrap_or_default();
    // Pictures are not text.
    let pages = listed.lines().filter_map(|name| Some((name.to_owned(), read(name).ok()?)));
    let version = env!("CARGO_PKG_VERSION");
    let tag = format!("refs/tags/v{version}^{{commit}}");
    let tagged = capture_output("git", &["-C", &root, "rev-parse", "--verify", "--quiet", &tag]);
    Ok(ReleaseSources {
        version,
        repository: env!("CARGO_PKG_REPOSITORY"),
        changelog: read("CHANGELOG.md")?,
        interface,
        interface_is_kept: kept.is_dir(),
        pages: pages.collect(),
        commit: source_commit(paths),
        tagged: tagged.map(|commit| commit.trim().to_owned()),
    })
}

/// `1.0` of the constants in the source.
fn interface_version(source: &str) -> Option<String> {
    let constant = |name: &str| {
        let (_, after) = source.split_once(&format!("pub const {name}: u32 = "))?;
        after.split(';').next()
    };
    Some(format!("{}.{}", constant("ABI_MAJOR")?, constant("ABI_MINOR")?))
}

#[cfg(test)]
#[path = "release_check_tests.rs"]
mod tests;
