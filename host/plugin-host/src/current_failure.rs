//! Why a model does not serve, read without a lock.

use arc_swap::ArcSwapOption;
use std::sync::Arc;
use trtserver_base::clock::now_ns;

/// Why a model does not serve, and since when.
#[derive(Debug, Default)]
pub struct CurrentFailure(ArcSwapOption<(String, u64)>);

impl CurrentFailure {
    /// Sets the reason. Of several failures without success between them, the time of the first one
    /// stays.
    pub fn set(&self, reason: String) {
        let since = self.since_ns().unwrap_or_else(now_ns);
        self.0.store(Some(Arc::new((reason, since))));
    }

    pub fn clear(&self) {
        self.0.store(None);
    }

    pub fn reason(&self) -> Option<String> {
        self.0.load().as_deref().map(|(reason, _)| reason.clone())
    }

    /// When the failure began, in nanoseconds of CLOCK_MONOTONIC.
    pub fn since_ns(&self) -> Option<u64> {
        self.0.load().as_deref().map(|(_, since)| *since)
    }
}
