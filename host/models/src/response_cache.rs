//! The response cache of a version that is opened.

use std::sync::Arc;
use trtserver_base::ledger::LedgerOwner;
use trtserver_proto::v2::ModelConfig;
use trtserver_response_cache::{ResponseStore, VersionCache};

/// The model asks for the response cache.
pub fn is_enabled(config: &ModelConfig) -> bool {
    config.response_cache.as_ref().is_some_and(|cache| cache.enable)
}

/// The cache of version `number` in `store`, if the model asks for it.
pub fn open_cache(
    store: Option<&Arc<ResponseStore>>,
    config: &ModelConfig,
    number: i64,
    owner: LedgerOwner,
) -> Option<Arc<VersionCache>> {
    if !is_enabled(config) {
        return None;
    }
    let Some(store) = store else {
        tracing::warn!(
            "model '{}': 'response_cache' is enabled, but the server has no response cache \
             (--cache-config=local,size=BYTES): every request is executed",
            config.name
        );
        return None;
    };
    Some(Arc::new(VersionCache::new(store, &config.name, number, owner)))
}

/// The error for an ensemble with a response cache whose step `model` has `what`.
pub fn uncacheable_step(ensemble: &str, model: &str, what: &str) -> String {
    format!(
        "Response Cache does not currently support model {ensemble} with {what} in its composing model \
         {model}. Please disable the response cache."
    )
}
