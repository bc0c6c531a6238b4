//! Settings of object stores and their cache, and of bare repositories.

use super::BareSettings;
use super::location::StoreProvider;
use std::path::PathBuf;
use std::time::Duration;

/// Settings from the flags of the same names, and the names of model files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// `--model-cache-dir`; `None`: `trtserver` in the user's cache directory.
    pub cache_dir: Option<PathBuf>,
    /// `--model-cache-size`; `None`: no limit.
    pub cache_size: Option<u64>,
    /// `--store-timeout-secs`.
    pub timeout: Duration,
    pub bare: BareSettings,
}

/// The defaults of the flags.
impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            cache_dir: None,
            cache_size: None,
            timeout: Duration::from_secs(30),
            bare: BareSettings::default(),
        }
    }
}

impl StoreSettings {
    /// The directory of the flag, of Triton's variable for the provider, or the user's.
    ///
    /// # Errors
    /// The user has no cache directory.
    pub fn cache_dir(&self, provider: StoreProvider) -> Result<PathBuf, String> {
        let set = |name: &str| std::env::var_os(name).filter(|dir| !dir.is_empty());
        let default = || {
            let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
            cache.or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")))
        };
        let default = || default().map(|dir| dir.join("trtserver/models"));
        let mounted = || set(mount_variable(provider)).map(PathBuf::from);
        self.cache_dir.clone().or_else(mounted).or_else(default).ok_or_else(|| {
            "--model-cache-dir is needed for a repository in an object store: neither HOME nor XDG_CACHE_HOME is set"
                .to_owned()
        })
    }
}

/// Where Triton copies the models of a provider to.
fn mount_variable(provider: StoreProvider) -> &'static str {
    match provider {
        StoreProvider::Gcs => "TRITON_GCS_MOUNT_DIRECTORY",
        StoreProvider::S3 => "TRITON_AWS_MOUNT_DIRECTORY",
        StoreProvider::Azure => "TRITON_AZURE_MOUNT_DIRECTORY",
    }
}
