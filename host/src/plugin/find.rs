//! Where backends may lie: `--backend-dir` directories and the files in them.
//!
//! `libtrtserver_NAME.so` directly, in `NAME/`, or in `NAME/VERSION/`; a `plugin.toml` beside the file
//! gives defaults for its settings.

use crate::error::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file that may be a backend.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub path: PathBuf,
    /// From the file name, before the library was asked.
    pub name: String,
    /// Settings from `plugin.toml`; the command line overrides them.
    pub settings: BTreeMap<String, String>,
}

/// `plugin.toml` beside a backend.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Manifest {
    /// `none` or `process`; a setting like any other, only that it is the host's.
    isolation: Option<String>,
    #[serde(default)]
    settings: BTreeMap<String, toml::Value>,
}

const PREFIX: &str = "libtrtserver_";

/// All candidates below `dir`, sorted by path.
///
/// # Errors
/// The directory cannot be read, or a `plugin.toml` is malformed.
pub fn candidates(dir: &Path) -> Result<Vec<Candidate>> {
    let mut found = Vec::new();
    walk(dir, 0, &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn walk(dir: &Path, depth: usize, found: &mut Vec<Candidate>) -> Result<()> {
    let entries = std::fs::read_dir(dir).map_err(|e| {
        Error::internal(format!("unable to read backend directory '{}': {e}", dir.display()))
    })?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if depth < 2 {
                walk(&path, depth + 1, found)?;
            }
            continue;
        }
        let file = entry.file_name();
        let Some(name) = file
            .to_str()
            .and_then(|f| f.strip_prefix(PREFIX))
            .and_then(|f| f.strip_suffix(std::env::consts::DLL_SUFFIX))
        else {
            continue;
        };
        // In NAME/ and NAME/VERSION/ only NAME's own library counts.
        let owner = match depth {
            0 => None,
            1 => dir.file_name(),
            _ => dir.parent().and_then(Path::file_name),
        };
        if owner.is_some_and(|o| o != name) {
            continue;
        }
        found.push(Candidate { name: name.to_owned(), settings: manifest(dir)?, path });
    }
    Ok(())
}

fn manifest(dir: &Path) -> Result<BTreeMap<String, String>> {
    let path = dir.join("plugin.toml");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(e) => return Err(Error::internal(format!("unable to read '{}': {e}", path.display()))),
    };
    let manifest: Manifest = toml::from_str(&text).map_err(|e| {
        Error::invalid(format!("'{}': {}", path.display(), e.to_string().trim_end()))
    })?;
    let plain = |value: toml::Value| match value {
        toml::Value::String(s) => s,
        other => other.to_string(),
    };
    let mut settings: BTreeMap<_, _> =
        manifest.settings.into_iter().map(|(k, v)| (k, plain(v))).collect();
    if let Some(isolation) = manifest.isolation {
        settings.insert(super::isolation::KEY.to_owned(), isolation);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_named_and_versioned() {
        let dir = tempfile::tempdir().unwrap();
        let so = std::env::consts::DLL_SUFFIX;
        for file in [
            format!("libtrtserver_a{so}"),
            format!("b/libtrtserver_b{so}"),
            format!("c/2/libtrtserver_c{so}"),
            format!("c/other{so}"),
            format!("b/libtrtserver_wrong{so}"),
            "readme".into(),
        ] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::fs::write(dir.path().join("b/plugin.toml"), "[settings]\nthreads = 2\nlib = \"x\"\n")
            .unwrap();
        let found = candidates(dir.path()).unwrap();
        assert_eq!(found.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["b", "c", "a"]);
        assert_eq!(found[0].settings["threads"], "2");
        assert_eq!(found[0].settings["lib"], "x");
        std::fs::write(dir.path().join("b/plugin.toml"), "nonsense = 1\n").unwrap();
        let e = candidates(dir.path()).unwrap_err();
        assert!(e.message.contains("plugin.toml") && e.message.contains("nonsense"), "{e}");
    }
}
