//! Breaks off the load of a model: by shutdown, or by an unload request. Warm-up ends between two
//! executions, and backends that poll the cancel flag end earlier. The opening of an isolated model
//! ends with its child process. A backend that opens a model in the server's process cannot be
//! broken off, but learns of it when it reports its progress.

use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use trtserver_base::error::Result;
use trtserver_plugin_host::backend::PluginBackend;
use trtserver_plugin_host::health::Health;
use trtserver_plugin_host::{CancelFlag, Isolation, isolation};
use trtserver_proto::v2::ModelConfig;
use trtserver_request::{InferRequest, Responder};

/// One per load. Cancelled once, for good.
#[derive(Default)]
pub struct LoadCancel {
    flag: CancelFlag,
    /// Names of backends that open the model or its instances in this process.
    in_process: Mutex<Vec<String>>,
    /// Models that are open.
    opened: Mutex<Vec<Weak<Health>>>,
    /// Warm-up requests that are executed.
    executing: Mutex<Vec<Weak<Responder>>>,
}

impl LoadCancel {
    pub fn cancel(&self) {
        self.flag.cancel();
        // An isolated model that does not respond to a warm-up request is killed after the drain
        // time.
        let opened = std::mem::take(&mut *self.opened.lock());
        opened.iter().filter_map(Weak::upgrade).for_each(|health| health.begin_unload());
        let executing = std::mem::take(&mut *self.executing.lock());
        for responder in executing.iter().filter_map(Weak::upgrade) {
            responder.cancel_token.cancel();
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.flag.is_cancelled()
    }

    /// The part that reaches isolated models.
    pub fn flag(&self) -> &CancelFlag {
        &self.flag
    }

    /// As [`LoadCancel::enters`] if the model with this configuration runs in this process.
    ///
    /// # Errors
    /// The isolation in the configuration is invalid.
    pub fn calls(
        &self,
        backend: &PluginBackend,
        config: &ModelConfig,
    ) -> Result<Option<InProcess<'_>>> {
        let isolation = isolation::choose_isolation(config, backend.isolation)?;
        Ok((isolation == Isolation::None).then(|| self.enters(&backend.facts.name)))
    }

    /// `backend` is called in this process until the result is dropped.
    pub fn enters(&self, backend: &str) -> InProcess<'_> {
        self.in_process.lock().push(backend.to_owned());
        InProcess(self)
    }

    /// A backend whose call in this process the load waits for.
    pub fn backend_in_process(&self) -> Option<String> {
        self.in_process.lock().first().cloned()
    }

    /// A version of the model is open, and its instances are opened next.
    pub fn opened(&self, health: &Arc<Health>) {
        self.opened.lock().push(Arc::downgrade(health));
        if self.is_cancelled() {
            self.cancel();
        }
    }

    /// `requests` are executed next: cancelling the load cancels them.
    pub fn executes(&self, requests: &[InferRequest]) {
        let mut executing = self.executing.lock();
        executing.retain(|responder| responder.strong_count() > 0);
        executing.extend(requests.iter().map(|request| Arc::downgrade(&request.responder)));
        drop(executing);
        if self.is_cancelled() {
            self.cancel();
        }
    }
}

/// A backend is called in this process.
pub struct InProcess<'a>(&'a LoadCancel);

impl Drop for InProcess<'_> {
    fn drop(&mut self) {
        // All are of the same backend.
        self.0.in_process.lock().pop();
    }
}

#[cfg(test)]
#[path = "load_cancel_tests.rs"]
mod tests;
