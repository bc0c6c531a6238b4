//! Looks at the files of TLS again and again, and takes over those that have changed.

use super::TlsListener;
use super::certificates::{ServedCertificate, TlsContents};
use super::handshake::TlsEndpoint;
use crate::file_reload::reload_files;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;
use trtserver_base::tls_stats::TlsReloadOutcome;
use trtserver_config::TlsFiles;

/// Files that do not fit together are looked at again after this time, before they are reported:
/// they may have been copied one after another.
const SETTLE: Duration = Duration::from_millis(500);
const MAX_LOOKS: usize = 4;

/// The files of all listeners with TLS.
#[derive(Default)]
pub struct TlsReloader(Vec<TlsSource>);

/// The files of one or more listeners.
struct TlsSource {
    files: TlsFiles,
    endpoints: Vec<Arc<TlsEndpoint>>,
    /// Of the files in use.
    hash: [u8; 32],
    expires_at: i64,
    /// The problem that was logged last; `None` while the files are those in use.
    reported: Option<String>,
}

impl TlsReloader {
    /// Adds a listener, and reads its files unless another listener has the same.
    ///
    /// # Errors
    /// Names the file that cannot be used.
    pub(super) fn add(&mut self, listener: &TlsListener<'_>) -> Result<Arc<TlsEndpoint>, String> {
        // Read again for each listener: an endpoint needs a configuration, and a start is rare.
        let contents = TlsContents::read(listener.files)?;
        let ServedCertificate { config, expires_at } = contents.configure(listener.files)?;
        let endpoint = Arc::new(TlsEndpoint::new(listener.name, listener.wire, config));
        endpoint.stats().set_expires_at(expires_at);
        match self.0.iter_mut().find(|source| source.files == *listener.files) {
            Some(source) => source.endpoints.push(Arc::clone(&endpoint)),
            None => {
                let source = TlsSource {
                    files: listener.files.clone(),
                    endpoints: vec![Arc::clone(&endpoint)],
                    hash: contents.hash(),
                    expires_at,
                    reported: None,
                };
                source.warn_if_expired();
                self.0.push(source);
            }
        }
        Ok(endpoint)
    }

    /// Looks at the files in this interval and when asked to, for as long as the server runs.
    pub async fn run(self, interval: Option<Duration>, asked: Arc<Notify>) {
        let look = |reloader: &mut Self| reloader.0.iter_mut().for_each(TlsSource::look);
        reload_files(self, "TLS files are", interval, asked, look).await;
    }
}

impl TlsSource {
    /// Takes over changed files. Otherwise what is in use stays, and the problem is logged once.
    fn look(&mut self) {
        match self.changed() {
            Ok(None) => self.reported = None,
            Ok(Some((hash, served))) => {
                (self.hash, self.expires_at, self.reported) = (hash, served.expires_at, None);
                for endpoint in &self.endpoints {
                    endpoint.replace(&served.config);
                    endpoint.stats().set_expires_at(served.expires_at);
                }
                self.count(TlsReloadOutcome::Success);
                tracing::info!(
                    "new TLS certificate {} of {}, valid until {}",
                    self.files.certificate.display(),
                    self.names(),
                    date(self.expires_at)
                );
                self.warn_if_expired();
            }
            Err(problem) => {
                self.count(TlsReloadOutcome::Failure);
                if self.reported.as_ref() != Some(&problem) {
                    tracing::error!(
                        "{problem}; {} keeps the certificate before, which is valid until {}",
                        self.names(),
                        date(self.expires_at)
                    );
                    self.reported = Some(problem);
                }
            }
        }
    }

    /// The configuration of changed files; `None` if they are those in use.
    fn changed(&self) -> Result<Option<([u8; 32], ServedCertificate)>, String> {
        let mut last = [0; 32];
        let mut problem = String::new();
        for look in 0..MAX_LOOKS {
            if look > 0 {
                std::thread::sleep(SETTLE);
            }
            let contents = match TlsContents::read(&self.files) {
                Ok(contents) => contents,
                // Files that are being replaced may be missing for a moment.
                Err(e) if look == 0 => {
                    problem = e;
                    continue;
                }
                Err(e) => return Err(e),
            };
            let hash = contents.hash();
            if hash == self.hash {
                return Ok(None);
            }
            match contents.configure(&self.files) {
                Ok(served) => return Ok(Some((hash, served))),
                Err(e) if hash == last => return Err(e),
                Err(e) => (last, problem) = (hash, e),
            }
        }
        Err(problem)
    }

    fn count(&self, outcome: TlsReloadOutcome) {
        self.endpoints.iter().for_each(|endpoint| endpoint.stats().count_reload(outcome));
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.endpoints.iter().map(|e| e.stats().listener).collect();
        names.join(", ")
    }

    fn warn_if_expired(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if self.expires_at < i64::try_from(now).unwrap_or(i64::MAX) {
            tracing::warn!(
                "TLS certificate {} has expired at {}: clients refuse it",
                self.files.certificate.display(),
                date(self.expires_at)
            );
        }
    }
}

/// `2026-11-27T10:00:00Z`.
fn date(seconds: i64) -> String {
    let after = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    // The library refuses years from 10000 on.
    match UNIX_EPOCH.checked_add(after).filter(|_| seconds < 253_402_300_800) {
        Some(time) => humantime::format_rfc3339_seconds(time).to_string(),
        None => format!("{seconds} seconds after 1970"),
    }
}

#[cfg(test)]
#[path = "reload_tests.rs"]
mod tests;
