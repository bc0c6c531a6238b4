//! Repositories that appear after the start: KServe mounts models of an image through a symbolic link
//! that it makes once the container of the image runs (`MODEL_INIT_MODE=async`).

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use trtserver_base::error::{Error, Result};
use trtserver_model_store::StoreLocation;

/// How long the start waits for the directories.
pub const WAIT_LIMIT: Duration = Duration::from_secs(300);
const INTERVAL: Duration = Duration::from_millis(100);

/// Waits until each local repository is a directory.
///
/// # Errors
/// One is not within the limit.
pub fn wait_for_directories(repositories: &[PathBuf], limit: Duration) -> Result<()> {
    let start = Instant::now();
    for path in repositories.iter().filter(|path| is_local(path)) {
        if !path.is_dir() {
            tracing::info!(
                "waiting up to {} s for model repository '{}' (MODEL_INIT_MODE=async)",
                limit.as_secs(),
                path.display()
            );
        }
        while !path.is_dir() {
            if start.elapsed() >= limit {
                return Err(Error::invalid(format!(
                    "model repository '{}' is not a directory {} s after the start, for which \
                     MODEL_INIT_MODE=async waits",
                    path.display(),
                    limit.as_secs()
                )));
            }
            sleep(INTERVAL);
        }
    }
    Ok(())
}

fn is_local(path: &Path) -> bool {
    matches!(StoreLocation::parse(path), Ok(StoreLocation::Local(_)))
}

#[cfg(test)]
#[path = "late_repositories_tests.rs"]
mod tests;
