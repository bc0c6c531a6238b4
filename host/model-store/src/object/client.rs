//! Clients of object stores, with their credentials, timeouts and retries.

use super::super::credentials::{self, CredentialEnvironment, CredentialSources};
use super::super::location::{ObjectUrl, StoreProvider};
use super::http_client::StoreConnector;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Within the time of `RetryConfig::retry_timeout`.
const MAX_RETRIES: usize = 10;

/// The client of one repository.
#[derive(Clone)]
pub struct StoreClient {
    pub url: Arc<ObjectUrl>,
    pub store: Arc<dyn ObjectStore>,
    /// Where the credentials come from, for the log.
    pub credentials: Arc<str>,
    /// What was logged last about keys that are in no model directory.
    pub ignored: Arc<Mutex<Option<String>>>,
}

/// `timeout`: how long the store may send nothing, and how long failed requests are repeated.
///
/// # Errors
/// No credentials, or settings that cannot be used.
pub fn connect_store(url: &ObjectUrl, timeout: Duration) -> Result<StoreClient, String> {
    let mut sources = CredentialSources::default();
    let client = connect_in(url, timeout, &CredentialEnvironment::from_process(), &mut sources);
    client.map_err(|e| {
        let tried: Vec<String> = sources.0.iter().map(ToString::to_string).collect();
        match tried.is_empty() {
            true => e,
            false => format!("{e} (tried: {})", tried.join("; ")),
        }
    })
}

/// As [`connect`], in this environment. The sources that were looked at are added to `sources`.
///
/// # Errors
/// The errors of [`connect`].
pub fn connect_in(
    url: &ObjectUrl,
    timeout: Duration,
    env: &CredentialEnvironment,
    sources: &mut CredentialSources,
) -> Result<StoreClient, String> {
    // Fails if it was done before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut options = ClientOptions::new()
        .with_connect_timeout(timeout.min(CONNECT_TIMEOUT))
        .with_read_timeout(timeout)
        // A large object takes as long as it takes.
        .with_timeout_disabled();
    let mut url = url.clone();
    if url.provider == StoreProvider::S3 {
        if url.endpoint.is_none() {
            url.endpoint = credentials::endpoint_in_environment(env);
        }
        options = credentials::with_ca_bundle(options, env)?;
    }
    let retry = RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: MAX_RETRIES,
        retry_timeout: timeout,
    };
    let failed = |e: object_store::Error| super::message::describe_store_error(&e);
    let store: Arc<dyn ObjectStore> = match url.provider {
        StoreProvider::S3 => {
            let builder = credentials::find_s3_credentials(&url, env, options, sources)?;
            let builder = builder.with_http_connector(StoreConnector);
            Arc::new(builder.with_retry(retry).build().map_err(failed)?)
        }
        StoreProvider::Gcs => {
            let builder = credentials::find_gcs_credentials(&url, env, options, sources)?;
            let builder = builder.with_http_connector(StoreConnector);
            Arc::new(builder.with_retry(retry).build().map_err(failed)?)
        }
        StoreProvider::Azure => {
            let builder = credentials::find_azure_credentials(&url, env, options, sources)?;
            let builder = builder.with_http_connector(StoreConnector);
            Arc::new(builder.with_retry(retry).build().map_err(failed)?)
        }
    };
    let credentials = sources.chosen().map(|tried| tried.source.clone()).unwrap_or_default();
    Ok(StoreClient {
        url: Arc::new(url),
        store,
        credentials: credentials.into(),
        ignored: Arc::default(),
    })
}
