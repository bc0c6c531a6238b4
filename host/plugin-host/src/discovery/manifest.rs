//! `plugin.toml`: defaults for the settings of a backend, and what an adapter opens.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trtserver_base::error::{Error, Result};
use trtserver_base::regular_file;

/// `plugin.toml` beside a backend, as it is written.
#[derive(Deserialize)]
struct ManifestText {
    /// `none` or `process`.
    isolation: Option<String>,
    #[serde(default)]
    settings: BTreeMap<String, toml::Value>,
    adapter: Option<AdapterKeys>,
}

/// What a `plugin.toml` says.
#[derive(Default)]
pub struct Manifest {
    /// With `isolation`, which the host takes out again.
    pub settings: BTreeMap<String, String>,
    /// About unknown keys.
    pub warnings: Vec<String>,
    pub adapter: Option<AdapterKeys>,
}

/// The keys of [`ManifestText`].
const KEYS: [&str; 3] = ["isolation", "settings", "adapter"];
pub const MANIFEST: &str = "plugin.toml";
/// Far above the size of any `plugin.toml`.
const MAX_MANIFEST: u64 = 1 << 20;

/// Stands for the name of the backend in [`AdapterKeys::library`].
const NAME: &str = "{name}";

/// The table `[adapter]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AdapterKeys {
    pub file: PathBuf,
    library: String,
    pub directory_file: Option<PathBuf>,
    pub directory_backend: Option<String>,
    /// Default model files by backend.
    #[serde(default)]
    pub default_files: BTreeMap<String, String>,
}

impl AdapterKeys {
    /// # Errors
    /// What is wrong with a value.
    fn check(&self) -> Result<(), String> {
        if self.library.matches(NAME).count() != 1 || self.library.contains('/') {
            return Err(format!(
                "[adapter]: library must be a file name with one '{NAME}', got '{}'",
                self.library
            ));
        }
        if self.directory_file.is_some() != self.directory_backend.is_some() {
            let pair = "directory-file and directory-backend";
            return Err(format!("[adapter]: {pair} must be given together"));
        }
        Ok(())
    }

    /// The file name of a backend's library.
    pub fn library_name(&self, name: &str) -> String {
        self.library.replace(NAME, name)
    }
}

/// Where the `plugin.toml` of a library would be.
pub fn manifest_path(library: &Path) -> PathBuf {
    library.with_file_name(MANIFEST)
}

/// The `plugin.toml` in `dir`; empty if there is none.
pub fn read_manifest(dir: &Path) -> Result<Manifest> {
    let path = dir.join(MANIFEST);
    let unreadable = |e: &dyn std::fmt::Display| {
        Error::internal(format!("unable to read '{}': {e}", path.display()))
    };
    let bytes = match regular_file::read_regular_file(&path, MAX_MANIFEST) {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(size)) => {
            let text = format!("it has {size} bytes, more than {MAX_MANIFEST}");
            return Err(unreadable(&text));
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Default::default()),
        Err(e) => return Err(unreadable(&e)),
    };
    let text = String::from_utf8(bytes).map_err(|e| unreadable(&e))?;
    let malformed = |e: toml::de::Error| {
        Error::invalid(format!("'{}': {}", path.display(), e.to_string().trim_end()))
    };
    let written: ManifestText = toml::from_str(&text).map_err(malformed)?;
    if let Some(Err(why)) = written.adapter.as_ref().map(AdapterKeys::check) {
        return Err(Error::invalid(format!("'{}': {why}", path.display())));
    }
    let table: toml::Table = toml::from_str(&text).map_err(malformed)?;
    let unknown = table.keys().filter(|key| !KEYS.contains(&key.as_str()));
    let warnings = unknown.map(|key| unknown_key(&path, key)).collect();
    let plain = |value: toml::Value| match value {
        toml::Value::String(s) => s,
        other => other.to_string(),
    };
    let mut settings: BTreeMap<_, _> =
        written.settings.into_iter().map(|(k, v)| (k, plain(v))).collect();
    if let Some(isolation) = written.isolation {
        settings.insert(crate::isolation::KEY.to_owned(), isolation);
    }
    Ok(Manifest { settings, warnings, adapter: written.adapter })
}

/// A key of a later version is not a reason to refuse a backend, a misspelled one must not pass in
/// silence.
fn unknown_key(path: &Path, key: &str) -> String {
    let nearest = KEYS.into_iter().min_by_key(|known| strsim::levenshtein(key, known));
    let near = nearest.filter(|known| strsim::levenshtein(key, known) <= 1 + key.len() / 4);
    let hint = match near {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("settings of the backend belong into [{}]", KEYS[1]),
    };
    format!("'{}': unknown key '{key}' is ignored; {hint}", path.display())
}
