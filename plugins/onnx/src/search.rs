//! Finds the ONNX Runtime library: candidate paths in order, and the error text when none can be opened.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Environment variable that names the library; the setting `library` comes before it.
pub const VARIABLE: &str = "TRTSERVER_ONNXRUNTIME_LIBRARY";
/// Server setting that names the library.
pub const SETTING: &str = "library";

/// Names passed to the dynamic loader, best first.
const SYSTEM_NAMES: [&str; 2] = ["libonnxruntime.so.1", "libonnxruntime.so"];

#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// The setting or environment names the library: no other is tried.
    Named { path: PathBuf, by: String },
    /// Libraries next to the plugin, then those of the dynamic loader.
    Search { found: Vec<PathBuf>, looked_in: Vec<PathBuf>, system: Vec<&'static str> },
}

/// Decides from the setting, the environment, and the directory of the plugin.
pub fn plan(setting: Option<&str>, variable: Option<&OsStr>, plugin_dir: &Path) -> Plan {
    if let Some(path) = setting.filter(|path| !path.is_empty()) {
        return Plan::Named {
            path: path.into(),
            by: format!("--backend-config=onnxruntime,{SETTING}=…"),
        };
    }
    if let Some(path) = variable.filter(|path| !path.is_empty()) {
        return Plan::Named {
            path: path.into(),
            by: format!("the environment variable {VARIABLE}"),
        };
    }
    let looked_in = beside(plugin_dir);
    let found = looked_in.iter().flat_map(|dir| libraries_in(dir)).collect();
    Plan::Search { found, looked_in, system: SYSTEM_NAMES.to_vec() }
}

/// The plugin's directory, its `lib`, and the `lib` of the installation:
/// `<root>/backends/onnxruntime/libtrtserver_onnxruntime.so` goes with `<root>/lib`.
fn beside(plugin_dir: &Path) -> Vec<PathBuf> {
    let mut dirs = vec![plugin_dir.to_path_buf(), plugin_dir.join("lib")];
    // By path components, not by `..`, so that error messages show plain directories.
    if let Some(root) = plugin_dir.parent().and_then(Path::parent) {
        dirs.push(root.join("lib"));
    }
    dirs
}

/// The libraries of one directory, best first: the names without a full version, which package
/// managers link to the right file, then the highest version.
fn libraries_in(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| version_of(name).is_some())
        .collect();
    names.sort_by_key(|name| std::cmp::Reverse(preference(name)));
    names.into_iter().map(|name| dir.join(name)).collect()
}

/// `1.31.1` of `libonnxruntime.so.1.31.1`, nothing of `libonnxruntime.so`; `None` for other files.
fn version_of(name: &str) -> Option<Vec<u32>> {
    let rest = name.strip_prefix("libonnxruntime.so")?;
    if rest.is_empty() {
        return Some(Vec::new());
    }
    rest.strip_prefix('.')?.split('.').map(|part| part.parse().ok()).collect()
}

fn preference(name: &str) -> (u8, Vec<u32>) {
    let version = version_of(name).unwrap_or_default();
    let rank = match version.len() {
        1 => 2, // the soname
        0 => 1, // the developer's link
        _ => 0,
    };
    (rank, version)
}

/// The error text when no library could be opened. `tried` are the ones that exist but failed.
pub fn not_found(looked_in: &[PathBuf], system: &[&str], tried: &[String]) -> String {
    let mut text = String::from("ONNX Runtime library not found; looked for libonnxruntime.so* in");
    for dir in looked_in {
        text.push_str(&format!("\n  {}", dir.display()));
    }
    text.push_str(&format!("\nand asked the dynamic loader for {}", system.join(", ")));
    for failure in tried {
        text.push_str(&format!("\nunusable: {failure}"));
    }
    text.push_str(&format!("\n{}", how_to_get_it()));
    text
}

/// The advice at the end of every message about a missing library.
pub fn how_to_get_it() -> String {
    format!(
        "To get it: `cargo xtask runtimes`, or `pip install onnxruntime` and name the file \
         onnxruntime/capi/libonnxruntime.so.<version> with \
         --backend-config=onnxruntime,{SETTING}=PATH or {VARIABLE}=PATH"
    )
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
