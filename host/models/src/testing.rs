//! For unit tests: versions that are served by a queue.

use super::lifecycle::ModelVersion;
use super::{OpenInstances, OpenVersion};
use std::sync::Arc;
use trtserver_proto::v2::ModelConfig;
use trtserver_request::ModelSignature;
use trtserver_scheduler::{RequestQueue, Scheduler};

/// An open version whose requests go to `queue`.
pub fn served_by(
    queue: Arc<RequestQueue>,
    config: &Arc<ModelConfig>,
    signature: &Arc<ModelSignature>,
    version: &ModelVersion,
    instances: Option<Arc<OpenInstances>>,
) -> Arc<OpenVersion> {
    Arc::new(OpenVersion {
        backend: None,
        name: config.name.as_str().into(),
        version: version.number,
        version_text: version.number.to_string().into(),
        config: Arc::clone(config),
        signature: Arc::clone(signature),
        stats: Arc::clone(&version.stats),
        scheduler: Scheduler::Queue(queue),
        response_cache: None,
        usage: version.start_use(),
        instances,
        ending: Arc::default(),
        for_begun_sequences: false,
        arena: None,
        input_pool: None,
    })
}
