//! Log lines of the download of one model.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(2);

/// What was downloaded of a model so far.
pub struct DownloadProgress {
    model: String,
    location: String,
    files: usize,
    total: u64,
    downloaded: AtomicU64,
    cached: AtomicU64,
    start: Instant,
    logged: Mutex<Instant>,
}

impl DownloadProgress {
    pub fn new(model: &str, location: &str, files: usize, total: u64) -> Self {
        let start = Instant::now();
        let (model, location) = (model.to_owned(), location.to_owned());
        let (downloaded, cached) = Default::default();
        let logged = Mutex::new(start);
        Self { model, location, files, total, downloaded, cached, start, logged }
    }

    pub fn add_downloaded(&self, bytes: u64) {
        self.downloaded.fetch_add(bytes, Ordering::Relaxed);
    }

    /// These bytes were in the cache.
    pub fn add_cached(&self, bytes: u64) {
        self.cached.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A line every two seconds.
    pub fn log(&self) {
        let mut logged = self.logged.lock();
        if logged.elapsed() >= INTERVAL {
            *logged = Instant::now();
            let downloaded = self.downloaded.load(Ordering::Relaxed);
            let cached = self.cached.load(Ordering::Relaxed);
            tracing::info!(
                "model '{}': downloaded {} of {} MiB from {} in {:.0} s",
                self.model,
                downloaded >> 20,
                self.total.saturating_sub(cached) >> 20,
                self.location,
                self.start.elapsed().as_secs_f64()
            );
        }
    }

    /// Logs the last line.
    pub fn finish(&self) {
        tracing::info!(
            "model '{}': {} files of {} bytes from {} in {:.0} ms: {} bytes downloaded, {} found in the model cache",
            self.model,
            self.files,
            self.total,
            self.location,
            self.start.elapsed().as_secs_f64() * 1e3,
            self.downloaded.load(Ordering::Relaxed),
            self.cached.load(Ordering::Relaxed)
        );
    }
}
