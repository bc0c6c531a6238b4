//! Looks at the auth file again and again, and takes it over when it has changed.

use super::gate::AccessRules;
use super::names::NameTable;
use crate::file_reload::reload_files;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use trtserver_base::access_stats::{AccessStats, AuthReloadOutcome};
use trtserver_base::regular_file::read_regular_file;
use trtserver_config::{AuthFile, MAX_AUTH_FILE};

/// A file that cannot be used is looked at again after this time, before it is reported: it may be
/// about to be written.
const SETTLE: Duration = Duration::from_millis(500);

/// The auth file of a server.
pub struct AuthReloader {
    path: PathBuf,
    /// Of the file in use.
    hash: Vec<u8>,
    /// The problem that was logged last; `None` while the file is the one in use.
    reported: Option<String>,
}

impl AuthReloader {
    /// Reads the file.
    ///
    /// # Errors
    /// Names the file and the line that cannot be used.
    pub fn open(path: &Path, stats: &Arc<AccessStats>) -> Result<(NameTable, Self), String> {
        let bytes = read(path)?;
        let file = AuthFile::parse(&path.display().to_string(), &bytes)?;
        let table = NameTable::new(file, stats, None);
        tracing::info!("auth file {}: {} names", path.display(), table.count());
        Ok((table, Self { path: path.to_owned(), hash: hash(&bytes), reported: None }))
    }

    /// Looks at the file in this interval and when asked to, for as long as the server runs.
    pub async fn run(
        self,
        rules: Arc<AccessRules>,
        interval: Option<Duration>,
        asked: Arc<Notify>,
    ) {
        let look = |(reloader, rules): &mut (Self, Arc<AccessRules>)| reloader.look(rules);
        reload_files((self, rules), "the auth file is", interval, asked, look).await;
    }

    /// Takes over a changed file. Otherwise what is in use stays, and the problem is logged once.
    fn look(&mut self, rules: &AccessRules) {
        let path = self.path.display();
        match self.changed() {
            Ok(None) => self.reported = None,
            Ok(Some((hash, file))) => {
                let count = file.names.len();
                rules.replace(|before| NameTable::new(file, &rules.stats, Some(before)));
                rules.stats.count_reload(AuthReloadOutcome::Success);
                tracing::info!("new auth file {path}: {count} names");
                (self.hash, self.reported) = (hash, None);
            }
            Err(problem) => {
                rules.stats.count_reload(AuthReloadOutcome::Failure);
                if self.reported.as_ref() != Some(&problem) {
                    tracing::error!("{problem}; the names before stay in use");
                    self.reported = Some(problem);
                }
            }
        }
    }

    /// A changed file; `None` if it is the one in use.
    fn changed(&self) -> Result<Option<(Vec<u8>, AuthFile)>, String> {
        match self.read_changed() {
            // Twice the same problem would wait for nothing.
            Err(problem) if self.reported.as_ref() != Some(&problem) => {
                std::thread::sleep(SETTLE);
                self.read_changed()
            }
            read => read,
        }
    }

    fn read_changed(&self) -> Result<Option<(Vec<u8>, AuthFile)>, String> {
        let bytes = read(&self.path)?;
        let hash = hash(&bytes);
        if hash == self.hash {
            return Ok(None);
        }
        let file = AuthFile::parse(&self.path.display().to_string(), &bytes)?;
        Ok(Some((hash, file)))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    match read_regular_file(path, MAX_AUTH_FILE) {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(bytes)) => Err(format!(
            "auth file {}: expected at most {MAX_AUTH_FILE} bytes, found {bytes}",
            path.display()
        )),
        Err(e) => Err(format!("auth file {}: {e}", path.display())),
    }
}

fn hash(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

#[cfg(test)]
#[path = "reload_tests.rs"]
mod tests;
