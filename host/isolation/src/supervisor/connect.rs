//! Opens instances in the child and connects their sessions to it.

use super::instance_session::InstanceSession;
use super::shared::{LiveProcess, OpenError, Phase, SupervisedModel};
use crate::facts::read_batch_sizes;
use crate::messages::{ExecuteBatch, InstanceFacts, control_request};
use crate::process::PendingResponse;
use crate::requests::{encode_request, unshare_inputs};
use crate::responses::{ResponseReader, Responses};
use crate::work_channel::{ChannelEnd, open_work_channel};
use crate::work_connection::{SendOutcome, WorkConnection};
use std::os::fd::AsFd;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_plugin_host::load_priority;

impl SupervisedModel {
    /// Asks the child to open an instance. Returns the pending response and our end of the work
    /// connection.
    pub(super) fn request_open<'a>(
        &self,
        live: &'a LiveProcess,
        facts: InstanceFacts,
    ) -> Result<(PendingResponse<'a>, ChannelEnd), OpenError> {
        let (ours, theirs, rings) = open_work_channel()?;
        let open = control_request::RequestKind::OpenInstance(facts);
        Ok((live.process.request(open, &[theirs.as_fd(), rings.as_fd()])?, ours))
    }

    /// Connects the session: from here on batches go to this child.
    pub(super) fn connect(
        &self,
        live: &LiveProcess,
        session: &InstanceSession,
        ours: ChannelEnd,
    ) -> Result<Arc<WorkConnection>> {
        // The timeout ends a send that the child does not read.
        let (sender, ring, socket) = ours.split(self.limits.response)?;
        let responses = Responses::new(ring, &live.outputs, &self.names);
        let mut reader = ResponseReader::new(&responses, socket, self.limits.response)?;
        let (process, ordinal) = (Arc::clone(&live.process), session.facts.ordinal);
        let connection = WorkConnection::new(sender, process, ordinal, &responses);
        let of_thread = Arc::clone(&connection);
        let thread = std::thread::Builder::new()
            .name(format!("responses {}", session.facts.name))
            .spawn(move || of_thread.read(&mut reader))
            .map_err(|e| {
                Error::internal(format!("{}: no thread could be started: {e}", self.subject))
            })?;
        self.send_untaken(session, &connection);
        session.connect(&connection, thread);
        Ok(connection)
    }

    /// Sends the batches that the child before has not begun.
    fn send_untaken(&self, session: &InstanceSession, connection: &WorkConnection) {
        let gpu = session.gpu();
        let encode =
            |key, request: &_| encode_request(key, request, &self.inputs, &self.states, gpu);
        let mut message = ExecuteBatch::default();
        let mut batches = session.take_untaken().into_iter();
        for (id, mut requests) in batches.by_ref() {
            message.id = id;
            let unshare = |batch: &_| unshare_inputs(batch, &self.inputs);
            let sent = connection.send(&mut message, &mut requests, gpu, true, encode, unshare);
            if !matches!(sent, Ok(SendOutcome::Delivered)) {
                // The child ended meanwhile.
                session.keep_untaken([(id, requests)].into_iter().chain(batches));
                return;
            }
        }
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
            let response = self.wait(pending)?;
            session.batch_sizes.get_or_init(|| read_batch_sizes(&response.batch_sizes));
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
