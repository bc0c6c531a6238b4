//! Opens instances in the child and connects their sessions to it.

use super::instance_session::InstanceSession;
use super::shared::{LiveProcess, OpenError, Phase, Shared};
use crate::error::{Error, Result};
use crate::plugin::isolated::messages::{InstanceFacts, control_request};
use crate::plugin::isolated::process::PendingResponse;
use crate::plugin::isolated::responses::ResponseReader;
use crate::plugin::isolated::wire;
use crate::plugin::isolated::work_connection::WorkConnection;
use crate::plugin::load_priority;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

impl Shared {
    /// Asks the child to open an instance. Returns the pending response and our end of the work connection.
    pub(super) fn request_open<'a>(
        &self,
        live: &'a LiveProcess,
        facts: InstanceFacts,
    ) -> Result<(PendingResponse<'a>, UnixStream), OpenError> {
        let (ours, theirs) = wire::pair()?;
        // The instance's thread may both send and read: only the timeout ends a send that the child does not read.
        ours.set_write_timeout(self.limits.response).map_err(|e| {
            Error::internal(format!("{}: cannot set up a work connection: {e}", self.subject))
        })?;
        let open = control_request::Kind::OpenInstance(facts);
        Ok((live.process.request(open, &[theirs.as_fd()])?, ours))
    }

    /// Connects the session: from here on batches go to this child.
    pub(super) fn connect(
        &self,
        live: &LiveProcess,
        session: &InstanceSession,
        ours: UnixStream,
    ) -> Result<Arc<WorkConnection>> {
        let (sender, receiver) = wire::split(ours);
        let reader =
            ResponseReader::new(receiver, &live.outputs, &self.names, self.limits.response)?;
        let (process, ordinal) = (Arc::clone(&live.process), session.facts.ordinal);
        if self.one_batch_at_a_time {
            let connection = WorkConnection::new(sender, process, ordinal, Some(reader));
            session.connect(&connection, None);
            return Ok(connection);
        }
        let connection = WorkConnection::new(sender, process, ordinal, None);
        let (mut reader, of_thread) = (reader, Arc::clone(&connection));
        let thread = std::thread::Builder::new()
            .name(format!("responses {}", session.facts.name))
            .spawn(move || of_thread.read(&mut reader, false))
            .map_err(|e| {
                Error::internal(format!("{}: no thread could be started: {e}", self.subject))
            })?;
        session.connect(&connection, Some(thread));
        Ok(connection)
    }

    /// Closes the instance in the running child. It has no outstanding requests.
    pub fn remove(&self, session: &Arc<InstanceSession>) {
        self.lock().sessions.retain(|other| !Arc::ptr_eq(other, session));
        session.close();
    }

    /// Opens a further instance in the running child.
    pub fn add(&self, session: &Arc<InstanceSession>) -> Result<(Arc<WorkConnection>, u64)> {
        let live = self.live(0)?;
        // The host ends the low priority when the version is open.
        let nice = load_priority::while_loading(session.facts.nice);
        let facts = InstanceFacts { nice, ..session.facts.clone() };
        let opened = self.request_open(&live, facts).and_then(|(pending, ours)| {
            self.wait(pending)?;
            Ok(self.connect(&live, session, ours)?)
        });
        match opened {
            Ok(connection) => {
                let mut state = self.lock();
                if matches!(&state.phase, Phase::Running(now) if now.generation == live.generation)
                {
                    state.sessions.push(Arc::clone(session));
                    state.opened |= state.sessions.len() == self.facts.n_instances as usize;
                    return Ok((connection, live.generation));
                }
                drop(state);
                connection.close();
            }
            Err(OpenError::Refused(e)) => return Err(e),
            Err(OpenError::ProcessGone) => {}
        }
        // The supervisor has the reason of the exit.
        Err(match self.live(live.generation) {
            Err(e) => e,
            Ok(_) => Error::internal(format!("{}: its process exited meanwhile", self.subject)),
        })
    }
}
