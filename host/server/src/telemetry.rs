//! What the server tells of its requests in the background: the access log.

use std::sync::Arc;
use std::time::Duration;
use trtserver_base::error::{Error, Result};
use trtserver_config::ServerSettings;
use trtserver_metrics::TelemetryStats;
use trtserver_telemetry::access_log::AccessLog;

/// Limit of the wait for a file or pipe that takes nothing more.
const MAX_WRITE: Duration = Duration::from_secs(1);

/// Each part is `None` unless it is asked for.
#[derive(Clone, Debug, Default)]
pub struct Telemetry {
    pub access_log: Option<Arc<AccessLog>>,
}

impl Telemetry {
    /// # Errors
    /// Names the file or setting that cannot be used.
    pub fn start(settings: &ServerSettings) -> Result<Self> {
        let access_log = settings.access_log.as_deref().map(AccessLog::open).transpose();
        Ok(Self { access_log: access_log.map_err(Error::invalid)?.map(Arc::new) })
    }

    pub fn stats(&self) -> TelemetryStats {
        TelemetryStats {
            spans: None,
            access_log: self.access_log.as_ref().map(|log| Arc::clone(log.stats())),
        }
    }

    /// Opens files anew that were renamed. False without a file.
    pub fn reopen(&self) -> bool {
        self.access_log.as_ref().map(|log| log.reopen()).is_some()
    }

    /// Writes and sends what waits, for at most `limit`. Blocks.
    pub fn shut_down(&self, limit: Duration) {
        if let Some(log) = &self.access_log {
            log.shut_down(limit.min(MAX_WRITE));
        }
    }
}
