//! `--backend-config`: settings that backends are opened with.

use super::values::FlagValues;
use crate::cli::GivenFlags;
use std::collections::BTreeMap;

/// Settings by backend name.
pub type BackendConfig = BTreeMap<String, BTreeMap<String, String>>;

/// All settings of backends, those of the `--tf-…` flags included.
pub fn backend_config(flags: &GivenFlags, v: &FlagValues) -> Result<BackendConfig, String> {
    let mut config: BackendConfig = BTreeMap::new();
    // Flags of TRTIS for one backend (docs/protocol/v1.md §1.2).
    for name in ["tf-allow-soft-placement", "tf-gpu-memory-fraction"] {
        if let Some(value) = v.texts(name).pop() {
            let key = name.trim_start_matches("tf-").to_owned();
            config.entry("tensorflow".to_owned()).or_default().insert(key, value);
        }
    }
    let origin = flags.get("backend-config").map(|g| g.origin.to_string()).unwrap_or_default();
    let texts = v.texts("backend-config");
    let settings = backend_settings(texts.iter().map(String::as_str));
    for (backend, settings) in settings.map_err(|e| format!("{origin}{e}"))? {
        config.entry(backend).or_default().extend(settings);
    }
    Ok(config)
}

/// Settings by backend name, from texts `[NAME,]KEY=VALUE`; the empty name is for all backends. A
/// comma ends the name only if it comes before the equals sign.
pub fn backend_settings<'a>(texts: impl Iterator<Item = &'a str>) -> Result<BackendConfig, String> {
    let mut config: BackendConfig = BTreeMap::new();
    for text in texts {
        let malformed = || format!("--backend-config={text}: expected [NAME,]KEY=VALUE");
        let (left, value) = text.split_once('=').ok_or_else(malformed)?;
        let (backend, key) = match left.split_once(',') {
            Some(("", _)) => return Err(malformed()),
            Some(pair) => pair,
            None => ("", left),
        };
        if key.is_empty() {
            return Err(malformed());
        }
        config.entry(backend.to_owned()).or_default().insert(key.to_owned(), value.to_owned());
    }
    Ok(config)
}
