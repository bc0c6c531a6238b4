//! Triton's credential file (`TRITON_CLOUD_CREDENTIAL_PATH`): credentials by URL prefix, for each
//! provider.

use super::super::location::{ObjectUrl, StoreProvider};
use super::{CredentialEnvironment, CredentialSources};
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
struct CredentialFile {
    /// Paths of credential files.
    gs: BTreeMap<String, String>,
    s3: BTreeMap<String, S3Entry>,
    r#as: BTreeMap<String, AzureEntry>,
}

/// The entry for `url`: the one with the longest key that its URL starts with. `""` matches every
/// URL.
pub struct FileEntry<T> {
    pub entry: T,
    /// Where the entry was found, for messages.
    pub source: String,
}

pub fn read_s3_entry(
    url: &ObjectUrl,
    env: &CredentialEnvironment,
    sources: &mut CredentialSources,
) -> Result<Option<FileEntry<S3Entry>>, String> {
    find_entry(url, env, sources, |file| file.s3)
}

pub fn read_azure_entry(
    url: &ObjectUrl,
    env: &CredentialEnvironment,
    sources: &mut CredentialSources,
) -> Result<Option<FileEntry<AzureEntry>>, String> {
    find_entry(url, env, sources, |file| file.r#as)
}

pub fn read_gcs_entry(
    url: &ObjectUrl,
    env: &CredentialEnvironment,
    sources: &mut CredentialSources,
) -> Result<Option<FileEntry<String>>, String> {
    find_entry(url, env, sources, |file| file.gs)
}

fn find_entry<T>(
    url: &ObjectUrl,
    env: &CredentialEnvironment,
    sources: &mut CredentialSources,
    section: impl FnOnce(CredentialFile) -> BTreeMap<String, T>,
) -> Result<Option<FileEntry<T>>, String> {
    let Some(path) = env.get(VARIABLE) else {
        sources.nothing(VARIABLE, "not set");
        return Ok(None);
    };
    let text = std::fs::read_to_string(path)
        .map_err(|e| format!("{VARIABLE}: cannot read '{path}': {e}"))?;
    // The text of the parser's error may quote a secret; its position does not.
    let file: CredentialFile = serde_json::from_str(&text).map_err(|e| {
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
            let source = format!(
                "{VARIABLE} '{path}', entry \"{key}\" of \"{}\"",
                provider_name(url.provider)
            );
            Ok(Some(FileEntry { entry, source }))
        }
        None => {
            let why = format!(
                "'{path}' has no entry of \"{}\" for this URL",
                provider_name(url.provider)
            );
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

fn provider_name(provider: StoreProvider) -> &'static str {
    match provider {
        StoreProvider::Gcs => "gs",
        StoreProvider::S3 => "s3",
        StoreProvider::Azure => "as",
    }
}
