//! Clients of object stores, with their credentials, timeouts and retries.

use super::super::credentials::{self, Environment, Sources};
use super::super::location::{ObjectUrl, Provider};
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Within the time of `RetryConfig::retry_timeout`.
const MAX_RETRIES: usize = 10;

/// The client of one repository.
#[derive(Clone)]
pub struct Client {
    pub url: Arc<ObjectUrl>,
    pub store: Arc<dyn ObjectStore>,
    /// Where the credentials come from, for the log.
    pub credentials: Arc<str>,
}

/// `timeout`: how long the store may send nothing, and how long failed requests are repeated.
///
/// # Errors
/// No credentials, or settings that cannot be used.
pub fn connect(url: &ObjectUrl, timeout: Duration) -> Result<Client, String> {
    let mut sources = Sources::default();
    let client = connect_in(url, timeout, &Environment::of_process(), &mut sources);
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
    env: &Environment,
    sources: &mut Sources,
) -> Result<Client, String> {
    // Fails if it was done before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = ClientOptions::new()
        .with_connect_timeout(timeout.min(CONNECT_TIMEOUT))
        .with_read_timeout(timeout)
        // A large object takes as long as it takes.
        .with_timeout_disabled();
    let retry = RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: MAX_RETRIES,
        retry_timeout: timeout,
    };
    let failed = |e: object_store::Error| super::message::of(&e);
    let store: Arc<dyn ObjectStore> = match url.provider {
        Provider::S3 => {
            let builder = credentials::s3(url, env, options, sources)?;
            Arc::new(builder.with_retry(retry).build().map_err(failed)?)
        }
        Provider::Gcs => {
            let builder = credentials::gcs(url, env, options, sources)?;
            Arc::new(builder.with_retry(retry).build().map_err(failed)?)
        }
        Provider::Azure => {
            let builder = credentials::azure(url, env, options, sources)?;
            Arc::new(builder.with_retry(retry).build().map_err(failed)?)
        }
    };
    let credentials = sources.chosen().map(|tried| tried.source.clone()).unwrap_or_default();
    Ok(Client { url: Arc::new(url.clone()), store, credentials: credentials.into() })
}
