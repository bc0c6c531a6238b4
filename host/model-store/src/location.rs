//! Where a model repository is: a path, or the URL of an object store (`gs://`, `s3://`, `as://`)
//! as Triton writes it.

use std::fmt;
use std::path::{Path, PathBuf};

/// A value of `--model-repository`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    Local(PathBuf),
    Object(ObjectUrl),
}

/// The services that have object stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreProvider {
    /// Google Cloud Storage.
    Gcs,
    /// Amazon S3 and services with its interface.
    S3,
    /// Azure Blob Storage.
    Azure,
}

/// A directory in an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectUrl {
    pub provider: StoreProvider,
    /// `scheme://host[:port]` of a service other than the provider's own.
    pub endpoint: Option<String>,
    /// Azure's storage account; else empty.
    pub account: String,
    /// Bucket, or Azure's container.
    pub bucket: String,
    /// Without slashes at its ends; empty for the whole bucket.
    pub prefix: String,
    text: String,
}

impl StoreLocation {
    /// # Errors
    /// A URL of another scheme, or one without the parts it needs; for the user.
    pub fn parse(value: &Path) -> Result<Self, String> {
        let Some((scheme, rest)) = value.to_str().and_then(|text| text.split_once("://")) else {
            return Ok(Self::Local(value.to_owned()));
        };
        let text = value.display().to_string();
        let provider = match scheme {
            "gs" => StoreProvider::Gcs,
            "s3" => StoreProvider::S3,
            "as" => StoreProvider::Azure,
            _ => {
                return Err(format!(
                    "model repository '{text}': unknown scheme '{scheme}'; expected a directory, gs://BUCKET/PATH, \
                     s3://BUCKET/PATH, s3://HOST:PORT/BUCKET/PATH or as://ACCOUNT/CONTAINER/PATH"
                ));
            }
        };
        ObjectUrl::parse(provider, rest, &text).map(Self::Object)
    }
}

impl ObjectUrl {
    fn parse(provider: StoreProvider, rest: &str, text: &str) -> Result<Self, String> {
        let (endpoint, path) = split_endpoint(rest);
        if endpoint.as_deref().unwrap_or(path).split('/').any(|part| part.contains('@')) {
            return Err("a model repository's URL must not contain credentials: see \
                        TRITON_CLOUD_CREDENTIAL_PATH in docs/repository.md"
                .to_owned());
        }
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let missing = |what: &str| format!("model repository '{text}' names no {what}");
        let account = match provider {
            StoreProvider::Azure => {
                let account = parts.next().ok_or_else(|| missing("account"))?;
                account.strip_suffix(".blob.core.windows.net").unwrap_or(account).to_owned()
            }
            _ => String::new(),
        };
        let kind = if provider == StoreProvider::Azure { "container" } else { "bucket" };
        let bucket = parts.next().ok_or_else(|| missing(kind))?.to_owned();
        let prefix = parts.collect::<Vec<_>>().join("/");
        if prefix.split('/').any(|part| matches!(part, "." | "..")) {
            return Err(format!(
                "model repository '{text}': its path must not contain '.' or '..'"
            ));
        }
        let text = text.trim_end_matches('/').to_owned();
        Ok(Self { provider, endpoint, account, bucket, prefix, text })
    }

    /// The URL of an object whose key is `key`.
    pub fn object_url(&self, key: &str) -> String {
        let below = key.strip_prefix(&self.prefix).unwrap_or(key).trim_start_matches('/');
        format!("{}/{below}", self.text)
    }

    /// The key of `path` below this directory.
    pub fn key(&self, path: &str) -> String {
        match self.prefix.as_str() {
            "" => path.to_owned(),
            prefix => format!("{prefix}/{path}"),
        }
    }

    /// Names the bucket across spellings of its URL: objects of one bucket are cached once.
    pub fn bucket_identity(&self) -> String {
        let endpoint = self.endpoint.as_deref().unwrap_or_default();
        format!("{:?} {endpoint} {} {}", self.provider, self.account, self.bucket)
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Splits `https://HOST:PORT/PATH`, `http://HOST:PORT/PATH` and `HOST:PORT/PATH`, which means http,
/// into endpoint and path.
fn split_endpoint(rest: &str) -> (Option<String>, &str) {
    for scheme in ["https://", "http://"] {
        if let Some(rest) = rest.strip_prefix(scheme) {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            return (Some(format!("{scheme}{host}")), path);
        }
    }
    let (first, path) = rest.split_once('/').unwrap_or((rest, ""));
    match first.contains(':') {
        true => (Some(format!("http://{first}")), path),
        false => (None, rest),
    }
}

#[cfg(test)]
#[path = "location_tests.rs"]
mod tests;
