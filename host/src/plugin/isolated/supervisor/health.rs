//! Whether a model serves, for lookups that do not keep it open: an isolated one, or one whose instances may become broken.

use super::shared::Shared;
use super::unload;
use arc_swap::ArcSwapOption;
use std::sync::{Arc, Weak};

/// See the module text.
#[derive(Default)]
pub struct Health {
    failure: Arc<ArcSwapOption<String>>,
    model: Weak<Shared>,
}

impl Health {
    pub fn new(shared: &Arc<Shared>) -> Arc<Self> {
        let (failure, model) = (Arc::clone(&shared.failure), Arc::downgrade(shared));
        Arc::new(Self { failure, model })
    }

    /// Why it does not serve at the moment; `None` = it serves.
    pub fn failure(&self) -> Option<String> {
        self.failure.load().as_deref().cloned()
    }

    /// It does not serve from now on.
    pub fn fail(&self, reason: String) {
        self.failure.store(Some(Arc::new(reason)));
    }

    /// No further request will be sent. From here on the response deadline is at most the drain time.
    pub fn begin_unload(&self) {
        if let Some(shared) = self.model.upgrade() {
            unload::begin(&shared);
        }
    }
}
