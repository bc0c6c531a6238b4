//! The fetch manifest: which packages a backend comes in, and which of their members it needs.

use super::interpreter::Interpreter;
use serde::Deserialize;
use std::path::{Component, Path, PathBuf};
use trtserver_server::default_adapter_dirs;

/// Stands for the minor version of the interpreter, such as `3.11`.
const PYTHON: &str = "{python}";
const EXTENSION: &str = ".toml";

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchManifest {
    /// For messages.
    pub title: String,
    pub version: String,
    pub machine: String,
    /// The oldest that the files run with, as `2.35`.
    glibc: String,
    /// The oldest and the newest minor version of CPython.
    python: [String; 2],
    /// Of the download, for messages.
    pub megabytes: u32,
    /// Lines of pip's requirements files, each with its hashes.
    pub requirements: Vec<String>,
    /// The folder that is the backend, below that of the release.
    pub backend: PathBuf,
    /// Where the shared library of the interpreter is expected.
    pub libpython: Option<PathBuf>,
    pub files: Vec<FetchedMember>,
    #[serde(default)]
    conflicts: Vec<PackageConflict>,
}

/// A package of the interpreter with which the backend does not work.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageConflict {
    package: String,
    /// The first version that does not.
    from: String,
    /// Follows "because".
    reason: String,
}

/// A member of a package, or all below it if its name ends with a slash.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchedMember {
    pub from: String,
    to: Option<String>,
    /// Gets the permission to be executed.
    #[serde(default)]
    pub program: bool,
}

impl FetchedMember {
    pub fn target(&self) -> &str {
        self.to.as_deref().unwrap_or(&self.from)
    }
}

/// The installed manifest for this backend.
///
/// # Errors
/// No backend of this name can be fetched; the error lists the names that can.
pub fn find_installed(name: &str) -> Result<PathBuf, String> {
    let mut known = Vec::new();
    let folders = default_adapter_dirs().into_iter().flat_map(std::fs::read_dir).flatten();
    for folder in folders.flatten() {
        let entries = std::fs::read_dir(folder.path().join("fetch")).into_iter().flatten();
        for entry in entries.flatten() {
            let file = entry.file_name();
            let stem = file.to_str().and_then(|file| file.strip_suffix(EXTENSION));
            match stem {
                Some(stem) if stem == name => return Ok(entry.path()),
                Some(stem) => known.push(format!("'{stem}'")),
                None => {}
            }
        }
    }
    known.sort();
    Err(match known.is_empty() {
        true => "this install knows no backend that can be fetched (plugins/*/fetch/NAME.toml beside the program's \
                 folder); --manifest=FILE names a fetch manifest"
            .to_owned(),
        false => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            format!("unknown backend '{name}'; expected {}", crate::alternatives(&known))
        }
    })
}

impl FetchManifest {
    /// # Errors
    /// The file cannot be read, is malformed, or leads out of the folder of the release.
    pub fn read(file: &Path) -> Result<Self, String> {
        let shown = file.display();
        let text = std::fs::read_to_string(file)
            .map_err(|e| format!("unable to read fetch manifest '{shown}': {e}"))?;
        let manifest: Self = toml::from_str(&text)
            .map_err(|e| format!("fetch manifest '{shown}': {}", e.to_string().trim_end()))?;
        manifest.check().map_err(|why| format!("fetch manifest '{shown}': {why}"))?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        let paths = self.files.iter().map(|file| Path::new(file.target()));
        let mut paths = paths.chain([self.backend.as_path()]).chain(self.libpython.as_deref());
        if let Some(path) = paths.find(|path| !is_below(path)) {
            return Err(format!("'{}' leads out of the release's folder", path.display()));
        }
        let folders =
            |file: &&FetchedMember| file.from.ends_with('/') != file.target().ends_with('/');
        if let Some(file) = self.files.iter().find(folders) {
            let (from, to) = (&file.from, file.target());
            return Err(format!("'{from}' and '{to}': both or none must end with a slash"));
        }
        if !is_below(Path::new(&self.version)) || self.version.contains('/') {
            return Err(format!("version '{}' is not a file name", self.version));
        }
        match self.requirements.iter().find(|line| !line.contains("--hash=sha256:")) {
            Some(line) => Err(format!("requirement '{line}' has no --hash=sha256:")),
            None => Ok(()),
        }
    }

    /// # Errors
    /// The files do not run on this machine or with this interpreter.
    pub fn check_interpreter(&self, interpreter: &Interpreter) -> Result<(), String> {
        let (program, title) = (interpreter.program.display(), &self.title);
        if interpreter.machine != self.machine {
            return Err(format!(
                "{title} is for {}, and '{program}' runs on {}",
                self.machine, interpreter.machine
            ));
        }
        let found = &interpreter.glibc;
        if numbers(found) < numbers(&self.glibc) {
            let found = if found.is_empty() { "another C library" } else { found };
            return Err(format!("{title} needs glibc {} or newer, found {found}", self.glibc));
        }
        let [oldest, newest] = &self.python;
        let found = interpreter.minor_version();
        let range = numbers(oldest)..=numbers(newest);
        if interpreter.implementation != "cpython" || !range.contains(&numbers(&found)) {
            return Err(format!(
                "{title} needs CPython {oldest} to {newest}, and '{program}' is {} {found}; --python=PROGRAM names \
                 another one",
                interpreter.implementation
            ));
        }
        self.check_conflicts(&interpreter.program, |package| interpreter.installed_version(package))
    }

    /// `version_of` says the installed version of a package, if there is one.
    fn check_conflicts(
        &self,
        program: &Path,
        version_of: impl Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        for PackageConflict { package, from, reason } in &self.conflicts {
            let found = version_of(package).filter(|found| numbers(found) >= numbers(from));
            if let Some(found) = found {
                let (program, title) = (program.display(), &self.title);
                return Err(format!(
                    "{title} does not work with the {package} {found} of '{program}', because {reason}: \
                     `{program} -m pip install '{package}<{from}'`, or --python=PROGRAM names another one"
                ));
            }
        }
        Ok(())
    }

    /// The manifest with the interpreter's minor version in its names.
    pub fn for_python(&self, minor: &str) -> Self {
        let fill = |text: &str| text.replace(PYTHON, minor);
        let fill_path = |path: &Path| PathBuf::from(fill(&path.to_string_lossy()));
        let files = self.files.iter().map(|file| FetchedMember {
            from: fill(&file.from),
            to: file.to.as_deref().map(fill),
            program: file.program,
        });
        Self {
            backend: fill_path(&self.backend),
            libpython: self.libpython.as_deref().map(fill_path),
            files: files.collect(),
            ..self.clone()
        }
    }
}

/// Whether the path stays below the folder that it is relative to.
fn is_below(path: &Path) -> bool {
    let mut parts = path.components();
    path.components().next().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// `3.11` as numbers. Other text comes before all versions.
fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
