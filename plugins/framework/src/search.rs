//! Finds and opens the shared library of a framework: candidate paths in order, and the error text
//! when none can be opened.

use crate::fault::PluginFault;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, OsStr, c_char};
use std::path::{Path, PathBuf};

/// Server setting that names the library of a backend that has one.
pub const SETTING: &str = "library";

/// Backends for which there are container images with the library (`cargo xtask package --framework`).
const IMAGES: [&str; 2] = ["onnxruntime", "tensorflow"];

/// What is searched.
#[derive(Debug)]
pub struct Framework {
    /// For messages: `ONNX Runtime`.
    pub name: &'static str,
    pub backend: &'static str,
    /// Server setting that names the library, [`SETTING`] unless the backend has several libraries.
    pub setting: &'static str,
    /// Environment variable that names the library; the setting comes before it.
    pub variable: &'static str,
    /// File names up to and including `.so`, best first; a version may follow.
    pub files: &'static [&'static str],
    /// Names passed to the dynamic loader, best first.
    pub system: &'static [&'static str],
    /// Directories of Python packages that contain the library, below `site-packages`.
    pub packages: &'static [&'static str],
    /// How to get it: `` `pip install x`, which installs the file y ``.
    pub advice: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
pub enum SearchPlan {
    /// The setting or environment names the library, or a directory that contains it: no other is
    /// tried.
    Named { path: PathBuf, by: String },
    /// Libraries next to the plugin, then those of the dynamic loader.
    Search { found: Vec<PathBuf>, looked_in: Vec<PathBuf>, system: Vec<&'static str> },
}

impl Framework {
    /// Decides from the setting, the environment, and the directory of the plugin.
    pub fn plan(
        &self,
        setting: Option<&str>,
        variable: Option<&OsStr>,
        plugin_dir: &Path,
    ) -> SearchPlan {
        if let Some(path) = setting.filter(|path| !path.is_empty()) {
            return SearchPlan::Named {
                path: path.into(),
                by: format!("--backend-config={},{}=…", self.backend, self.setting),
            };
        }
        if let Some(path) = variable.filter(|path| !path.is_empty()) {
            return SearchPlan::Named {
                path: path.into(),
                by: format!("the environment variable {}", self.variable),
            };
        }
        let mut looked_in = dirs_beside(plugin_dir);
        let site = site_packages(plugin_dir);
        looked_in.extend(self.packages.iter().filter_map(|package| Some(site?.join(package))));
        let found = looked_in.iter().flat_map(|dir| self.libraries_in(dir)).collect();
        SearchPlan::Search { found, looked_in, system: self.system.to_vec() }
    }

    /// The first library of the plan that `open` accepts. Its errors are reasons that follow the
    /// file's name and a colon.
    ///
    /// # Errors
    /// No library, or none that can be used: names each file and directory with the reason, and how
    /// to get one.
    pub fn open<T>(
        &self,
        plan: SearchPlan,
        mut open: impl FnMut(&Path) -> Result<T, String>,
    ) -> Result<T, PluginFault> {
        let (found, looked_in, system) = match plan {
            SearchPlan::Named { path, by } => return self.open_named(&path, &by, open),
            SearchPlan::Search { found, looked_in, system } => (found, looked_in, system),
        };
        let mut tried = Vec::new();
        for path in &found {
            match open(path) {
                Ok(opened) => return Ok(opened),
                Err(reason) => tried.push(format!("{}: {reason}", path.display())),
            }
        }
        for name in &system {
            match open(Path::new(name)) {
                Ok(opened) => return Ok(opened),
                // Not finding the name is expected, and not worth reporting.
                Err(reason) if is_absent(&reason) => {}
                Err(reason) => tried.push(format!("{name}: {reason}")),
            }
        }
        Err(PluginFault::unavailable(self.not_found(&looked_in, &system, &tried)))
    }

    fn open_named<T>(
        &self,
        path: &Path,
        by: &str,
        mut open: impl FnMut(&Path) -> Result<T, String>,
    ) -> Result<T, PluginFault> {
        let reason = if path.is_dir() {
            let mut reasons = Vec::new();
            for file in self.libraries_in(path) {
                match open(&file) {
                    Ok(opened) => return Ok(opened),
                    Err(reason) => reasons.push(format!("{}: {reason}", file.display())),
                }
            }
            if reasons.is_empty() {
                format!("the directory contains no {}*", self.files.join("*, no "))
            } else {
                reasons.join("\n")
            }
        } else {
            match open(path) {
                Ok(opened) => return Ok(opened),
                Err(reason) => reason,
            }
        };
        let (name, path) = (self.name, path.display());
        Err(PluginFault::unavailable(format!(
            "{name} library '{path}' (named by {by}) cannot be used: {reason}\n{}",
            self.how_to_get_it()
        )))
    }

    /// The libraries of one directory, best first: by the order of `files`, then the names without
    /// a full version, which package managers link to the right file, then the highest version.
    fn libraries_in(&self, dir: &Path) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| self.preference(name).is_some())
            .collect();
        names.sort_by_key(|name| std::cmp::Reverse(self.preference(name)));
        names.into_iter().map(|name| dir.join(name)).collect()
    }

    /// `None`: another file.
    fn preference(&self, name: &str) -> Option<(usize, u8, Vec<u32>)> {
        let files = self.files.iter().rev().enumerate();
        let (order, version) = files
            .filter_map(|(order, file)| {
                Some((order, parse_version_suffix(name.strip_prefix(file)?)?))
            })
            .next()?;
        let rank = match version.len() {
            1 => 2, // the soname
            0 => 1, // the developer's link
            _ => 0,
        };
        Some((order, rank, version))
    }

    /// The error text when no library could be opened. `tried` are the ones that exist but failed.
    fn not_found(&self, looked_in: &[PathBuf], system: &[&str], tried: &[String]) -> String {
        let files = self.files.join("*, ");
        let mut text = format!("{} library not found; looked for {files}* in", self.name);
        for dir in looked_in {
            text.push_str(&format!("\n  {}", dir.display()));
        }
        text.push_str(&format!("\nand asked the dynamic loader for {}", system.join(", ")));
        for failure in tried {
            text.push_str(&format!("\nunusable: {failure}"));
        }
        text.push_str(&format!("\n{}", self.how_to_get_it()));
        text
    }

    /// The advice at the end of every message about a missing library.
    fn how_to_get_it(&self) -> String {
        let Self { advice, backend, setting, variable, .. } = self;
        let image = match IMAGES.contains(backend) {
            true => {
                format!("; container images of the server whose tag ends in '-{backend}' have it")
            }
            false => String::new(),
        };
        format!(
            "To get it: {advice} and name it with --backend-config={backend},{setting}=PATH or \
             {variable}=PATH; a server from a wheel finds what pip has installed beside it{image}"
        )
    }
}

/// The plugin's directory, its `lib`, and the `lib` of the installation:
/// `<root>/backends/NAME/libtrtserver_NAME.so` goes with `<root>/lib`, and so does the same file in
/// a directory `VERSION` below.
pub fn dirs_beside(plugin_dir: &Path) -> Vec<PathBuf> {
    let mut dirs = vec![plugin_dir.to_path_buf(), plugin_dir.join("lib")];
    // By path components, not by `..`, so that error messages show plain directories.
    let backends = plugin_dir.ancestors().skip(1).take(2);
    let backends = backends.filter(|dir| dir.file_name() == Some(OsStr::new("backends"))).last();
    if let Some(root) = backends.or(plugin_dir.parent()).and_then(Path::parent) {
        dirs.push(root.join("lib"));
    }
    dirs
}

/// The directory with Python's packages, if the installation is one of them:
/// `site-packages/trtserver/backends/NAME`.
fn site_packages(plugin_dir: &Path) -> Option<&Path> {
    let is_site = |dir: &&Path| {
        dir.file_name().is_some_and(|name| name == "site-packages" || name == "dist-packages")
    };
    // The nearest, so that an environment inside of another one has its own packages.
    plugin_dir.ancestors().find(is_site)
}

/// `[1, 31, 1]` of `.1.31.1`, nothing of an empty text; `None` for other files.
fn parse_version_suffix(rest: &str) -> Option<Vec<u32>> {
    if rest.is_empty() {
        return Some(Vec::new());
    }
    rest.strip_prefix('.')?.split('.').map(|part| part.parse().ok()).collect()
}

fn is_absent(reason: &str) -> bool {
    reason.contains("cannot open shared object file")
}

/// Opens a library with all symbols resolved. Local binding keeps its symbols from other frameworks
/// of the process.
///
/// # Errors
/// The dynamic loader's message.
pub fn load_library(path: &Path) -> Result<Library, String> {
    // SAFETY: opening runs the library's initialisers; the operator chose the file.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        use std::error::Error;
        // The error itself only names the function that failed.
        error.source().map_or_else(|| error.to_string(), |source| source.to_string())
    })
}

/// As [`load_library`], but the file that a link leads to: a library finds the others of its package
/// from the directory that it was opened in.
///
/// # Errors
/// The dynamic loader's message.
pub fn load_resolved(path: &Path) -> Result<Library, String> {
    match path.canonicalize() {
        Ok(file) if path.components().count() > 1 => load_library(&file),
        _ => load_library(path),
    }
}

/// A copy of a C string; empty for null.
///
/// # Safety
/// `p` is null or a NUL-terminated string.
pub unsafe fn read_c_text(p: *const c_char) -> String {
    if p.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
