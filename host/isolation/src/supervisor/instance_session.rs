//! Instance sessions: the state of an isolated instance across restarts, and its connection to the
//! current child.

use crate::messages::InstanceFacts;
use crate::outstanding::UntakenBatches;
use crate::work_connection::WorkConnection;
use parking_lot::{Mutex, MutexGuard};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use trtserver_base::error::Error;
use trtserver_plugin_api::abi::descriptors::instance_kind;
use trtserver_plugin_api::abi::extensions::BatchSize;
use trtserver_request::InferRequest;

/// State of one isolated instance that outlives restarts of the child process.
pub struct InstanceSession {
    pub facts: InstanceFacts,
    connection: Mutex<OpenConnection>,
    /// Batches that an ended child has not begun.
    untaken: Mutex<UntakenBatches>,
    /// Called when the sequence state in the child is lost.
    pub on_sequences_lost: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// The sizes that the first child has prepared it for.
    pub batch_sizes: OnceLock<Vec<BatchSize>>,
}

/// The connection and the thread that reads responses.
pub(super) type OpenConnection = Option<(Arc<WorkConnection>, JoinHandle<()>)>;

impl InstanceSession {
    pub fn new(facts: InstanceFacts) -> Arc<Self> {
        Arc::new(Self {
            facts,
            connection: Mutex::default(),
            untaken: Mutex::default(),
            on_sequences_lost: OnceLock::new(),
            batch_sizes: OnceLock::new(),
        })
    }

    /// Ordinal of its GPU.
    pub fn gpu(&self) -> Option<i32> {
        (self.facts.kind == instance_kind::GPU).then_some(self.facts.device)
    }

    /// Keeps batches for the next child.
    pub(super) fn keep_untaken(&self, batches: impl IntoIterator<Item = (u64, Vec<InferRequest>)>) {
        self.untaken.lock().extend(batches);
    }

    /// There is no next child for a while.
    pub(super) fn fail_untaken(&self, error: &Error) {
        for request in self.take_untaken().into_iter().flat_map(|(_, requests)| requests) {
            let _ = request.responder.finish(Err(error.clone()));
        }
    }

    pub(super) fn take_untaken(&self) -> UntakenBatches {
        std::mem::take(&mut self.untaken.lock())
    }

    pub fn connection(&self) -> Option<Arc<WorkConnection>> {
        self.lock().as_ref().map(|(connection, _)| Arc::clone(connection))
    }

    pub fn notify_lost(&self) {
        if let Some(lost) = self.on_sequences_lost.get() {
            lost();
        }
    }

    /// Removes the connection, if there is one.
    pub(super) fn disconnect(&self) -> OpenConnection {
        self.lock().take()
    }

    /// Ends the connection, by which the child closes the instance.
    pub(super) fn close(&self) {
        if let Some((connection, thread)) = self.disconnect() {
            connection.close();
            drop(thread.join());
        }
    }

    /// Replaces the connection.
    pub(super) fn connect(&self, connection: &Arc<WorkConnection>, reader: JoinHandle<()>) {
        *self.lock() = Some((Arc::clone(connection), reader));
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnection> {
        self.connection.lock()
    }
}
