//! Instance sessions: the state of an isolated instance across restarts, and its connection to the current child.

use crate::plugin::isolated::messages::InstanceFacts;
use crate::plugin::isolated::work_connection::WorkConnection;
use crate::sync::{Mutex, MutexGuard};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// See the module text.
pub struct InstanceSession {
    pub facts: InstanceFacts,
    connection: Mutex<Connected>,
    /// Called when the sequence state in the child is lost.
    pub on_sequences_lost: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// The connection and the thread that reads responses, if it is not the instance's own.
pub(super) type Connected = Option<(Arc<WorkConnection>, Option<JoinHandle<()>>)>;

impl InstanceSession {
    pub fn new(facts: InstanceFacts) -> Arc<Self> {
        Arc::new(Self { facts, connection: Mutex::default(), on_sequences_lost: OnceLock::new() })
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
    pub(super) fn disconnect(&self) -> Connected {
        self.lock().take()
    }

    /// Ends the connection, by which the child closes the instance.
    pub(super) fn close(&self) {
        if let Some((connection, thread)) = self.disconnect() {
            connection.close();
            drop(thread.map(JoinHandle::join));
        }
    }

    /// Replaces the connection.
    pub(super) fn connect(&self, connection: &Arc<WorkConnection>, reader: Option<JoinHandle<()>>) {
        *self.lock() = Some((Arc::clone(connection), reader));
    }

    fn lock(&self) -> MutexGuard<'_, Connected> {
        self.connection.lock()
    }
}
