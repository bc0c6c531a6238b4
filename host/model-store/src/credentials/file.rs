//! Triton's credential file (`TRITON_CLOUD_CREDENTIAL_PATH`): credentials by URL prefix, for each provider.

use super::super::location::{ObjectUrl, Provider};
use super::{Environment, Sources};
use serde::Deserialize;
use std::collections::BTreeMap;

const VARIABLE: &str = "TRITON_CLOUD_CREDENTIAL_PATH";

/// The entry of a URL.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct S3Entry {
    pub secret_key: String,
    pub key_id: String,
    pub region: String,
    pub session_token: String,
    pub profile: String,
}

/// The entry of a URL.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct AzureEntry {
    pub account_str: String,
    pub account_key: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    /// Paths of credential files.
    gs: BTreeMap<String, String>,
    s3: BTreeMap<String, S3Entry>,
    r#as: BTreeMap<String, AzureEntry>,
}

/// The entry for `url`: the one with the longest key that its URL starts with. `""` matches every URL.
pub struct FileEntry<T> {
    pub entry: T,
    /// Where the entry was found, for messages.
    pub source: String,
}

pub fn s3(
    url: &ObjectUrl,
    env: &Environment,
    sources: &mut Sources,
) -> Result<Option<FileEntry<S3Entry>>, String> {
    find(url, env, sources, |file| file.s3)
}

pub fn azure(
    url: &ObjectUrl,
    env: &Environment,
    sources: &mut Sources,
) -> Result<Option<FileEntry<AzureEntry>>, String> {
    find(url, env, sources, |file| file.r#as)
}

pub fn gcs(
    url: &ObjectUrl,
    env: &Environment,
    sources: &mut Sources,
) -> Result<Option<FileEntry<String>>, String> {
    find(url, env, sources, |file| file.gs)
}

fn find<T>(
    url: &ObjectUrl,
    env: &Environment,
    sources: &mut Sources,
    section: impl FnOnce(File) -> BTreeMap<String, T>,
) -> Result<Option<FileEntry<T>>, String> {
    let Some(path) = env.get(VARIABLE) else {
        sources.nothing(VARIABLE, "not set");
        return Ok(None);
    };
    let text = std::fs::read_to_string(path)
        .map_err(|e| format!("{VARIABLE}: cannot read '{path}': {e}"))?;
    // The text of the parser's error may quote a secret; its position does not.
    let file: File = serde_json::from_str(&text).map_err(|e| {
        format!(
            "{VARIABLE}: '{path}':{}:{}: not a credential file: expected JSON with the keys gs, s3 and as",
            e.line(),
            e.column()
        )
    })?;
    let text = url.to_string();
    let matching = |key: &String| is_prefix(key.trim_end_matches('/'), &text);
    let best = section(file).into_iter().filter(|(key, _)| matching(key));
    match best.max_by_key(|(key, _)| key.len()) {
        Some((key, entry)) => {
            let source =
                format!("{VARIABLE} '{path}', entry \"{key}\" of \"{}\"", name(url.provider));
            Ok(Some(FileEntry { entry, source }))
        }
        None => {
            let why = format!("'{path}' has no entry of \"{}\" for this URL", name(url.provider));
            sources.nothing(VARIABLE, why);
            Ok(None)
        }
    }
}

/// Whether `url` is `prefix` or below it.
fn is_prefix(prefix: &str, url: &str) -> bool {
    prefix.is_empty()
        || url.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn name(provider: Provider) -> &'static str {
    match provider {
        Provider::Gcs => "gs",
        Provider::S3 => "s3",
        Provider::Azure => "as",
    }
}
