//! The supervisor of an isolated model: starts its child process, waits for the exit, logs the
//! reason, restarts it.
//!
//! ```text
//!   Opening ──► Running ──► Restarting ──► Running …   first exit after a successful response: restart at once
//!      │           │            │
//!      │           └─► Backoff ◄┘ ──► Running …        else after a pause, which doubles
//!      └──► Closed                                     it never opened, or it was closed
//! ```
//! While it is Restarting, instances and with them their requests wait; in Backoff requests are
//! refused.

mod connect;
mod instance_session;
mod shared;
mod unload;

pub use instance_session::InstanceSession;
pub use shared::{SupervisedModel, SupervisorState, create_arena};

use super::child_process::{ChildProcess, spawn_child};
use super::exit_reason::KillReason;
use super::messages::{self, control_request};
use shared::{LiveProcess, OpenError, Phase};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use trtserver_base::arena::ArenaReader;
use trtserver_base::error::{Error, Result};

/// Pause before the second restart in a row without a successful response; doubled by each further
/// one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// How long a child that could not open its model may take to exit.
const GRACE: Duration = Duration::from_secs(2);

/// Runs on a thread of its own while the model is open. Sends once whether it opened.
pub fn supervise_child(shared: &SupervisedModel, opened: Sender<Result<()>>) {
    let mut opened = Some(opened);
    // Exits in a row without a successful response.
    let mut failures = 0u32;
    for generation in 1.. {
        let begin = Instant::now();
        let error = match shared.start(generation) {
            Ok((mut child, live)) => {
                shared.set_running(&live);
                drop(live);
                match opened.take() {
                    Some(opened) => drop(opened.send(Ok(()))),
                    None => tracing::info!(
                        "{}: its process was restarted in {:.1} ms",
                        shared.subject,
                        begin.elapsed().as_secs_f64() * 1e3
                    ),
                }
                let exit = child.reap();
                if child.process.responded.load(Ordering::Relaxed) {
                    failures = 0;
                }
                shared.exit_error(&exit)
            }
            Err(e) => e,
        };
        failures = failures.saturating_add(1);
        let pause = (failures > 1)
            .then(|| FIRST_PAUSE.saturating_mul(1 << (failures - 2).min(16)).min(MAX_PAUSE));
        let restart = shared.set_failed(&error, pause);
        if let Some(opened) = opened.take() {
            let _ = opened.send(Err(error));
        }
        if !restart {
            return;
        }
    }
}

impl SupervisedModel {
    /// Starts a child and opens the model and its current instances there.
    fn start(&self, generation: u64) -> Result<(ChildProcess, Arc<LiveProcess>)> {
        self.inputs.unshare_all();
        let outputs = create_arena(&format!("{} outputs", self.label))?;
        let file = outputs.file().try_clone_to_owned().map_err(|e| {
            Error::internal(format!(
                "{}: cannot duplicate a file for its process: {e}",
                self.subject
            ))
        })?;
        drop(outputs);
        let outputs = ArenaReader::new(&file)?;
        let mut child =
            spawn_child(&self.running, &self.label, self.handshake.clone(), self.limits.open)?;
        let process = Arc::clone(&child.process);
        let _ = process.model.set((self.facts.name.as_str().into(), self.facts.version));
        let live = Arc::new(LiveProcess { process, outputs, generation });
        match self.open(&live, file.as_fd()) {
            Ok(()) => Ok((child, live)),
            Err(OpenError::Refused(e)) => {
                child.process.close(GRACE);
                child.reap();
                Err(e)
            }
            Err(OpenError::ProcessGone) => Err(self.exit_error(&child.reap())),
        }
    }

    fn open(
        &self,
        live: &LiveProcess,
        outputs: std::os::fd::BorrowedFd<'_>,
    ) -> Result<(), OpenError> {
        self.warn_if_replaced(live)?;
        let files = [self.inputs.file(), outputs];
        let open = control_request::RequestKind::OpenModel(self.facts.clone());
        self.wait(live.process.request(open, &files)?)?;
        let sessions = self.lock().sessions.clone();
        let requests = sessions.iter().map(|s| Ok((s, self.request_open(live, s.facts.clone())?)));
        for (session, (pending, ours)) in requests.collect::<Result<Vec<_>, OpenError>>()? {
            self.wait(pending)?;
            self.connect(live, session, ours)?;
            // It may have been removed meanwhile.
            let kept = self.lock().sessions.iter().any(|kept| Arc::ptr_eq(kept, session));
            if !kept {
                session.close();
            }
        }
        Ok(())
    }

    /// Logs a warning if the plugin file was replaced since the model was loaded; the child uses
    /// the new one.
    fn warn_if_replaced(&self, live: &LiveProcess) -> Result<(), OpenError> {
        if !self.backend.is_replaced() {
            return Ok(());
        }
        let response = self.wait(
            live.process
                .request(control_request::RequestKind::Describe(messages::EmptyMessage {}), &[])?,
        )?;
        let now = response.backend.map(|info| info.version).unwrap_or_default();
        tracing::warn!(
            "{}: {} was replaced after the model was loaded with backend '{}' {}; its restarted process uses the new \
             file, which declares version {now}; reload the model to update the server",
            self.subject,
            self.backend.file.path().display(),
            self.backend.facts.name,
            self.backend.facts.version
        );
        Ok(())
    }

    fn set_running(&self, live: &Arc<LiveProcess>) {
        let mut state = self.lock();
        if state.closing {
            live.process.kill(KillReason::Closing);
        }
        state.phase = Phase::Running(Arc::clone(live));
        self.failure.clear();
        drop(state);
        self.changed.notify_all();
    }

    /// The child has exited or could not be started: fails what is outstanding, then waits for the
    /// pause. Returns whether to restart it.
    fn set_failed(&self, error: &Error, pause: Option<Duration>) -> bool {
        let failure = &error.message;
        let mut state = self.lock();
        let restart = !state.closing && state.opened;
        state.phase = match pause {
            _ if !restart => Phase::Closed(error.clone()),
            None => Phase::Restarting,
            Some(pause) => {
                Phase::Backoff { failure: failure.clone(), until: Some(Instant::now() + pause) }
            }
        };
        if restart {
            match pause {
                // Requests wait, so the model stays ready.
                None if state.unloading => tracing::error!("{failure}"),
                None => tracing::error!("{failure}; it is restarted"),
                Some(pause) => {
                    self.failure.set(failure.clone());
                    tracing::error!("{failure}; it is restarted in {} s", pause.as_secs_f64());
                }
            }
        }
        let sessions = state.sessions.clone();
        drop(state);
        let closed = sessions.iter().filter_map(|session| {
            let (connection, thread) = session.disconnect()?;
            Some((session, connection, thread))
        });
        let closed: Vec<_> = closed.collect();
        closed.iter().for_each(|(_, connection, _)| connection.close());
        self.changed.notify_all();
        // Before requests fail: their callers may send the next requests of the sequences at once.
        sessions.iter().for_each(|session| session.notify_lost());
        for (session, connection, thread) in closed {
            // Waits until the reader has passed on what was received before the exit.
            drop(thread.join());
            if !self.keeps_sequences {
                session.keep_untaken(connection.untaken());
            }
            connection.outstanding.fail(error);
        }
        if !restart || pause.is_some() {
            for session in &sessions {
                session.fail_untaken(error);
            }
        }
        restart && self.pause(pause)
    }

    fn pause(&self, pause: Option<Duration>) -> bool {
        let Some(pause) = pause else { return self.needed() };
        let mut state = self.lock();
        self.changed.wait_while_for(&mut state, |state| !state.closing, pause);
        if let Phase::Backoff { until, .. } = &mut state.phase {
            *until = None;
        }
        !state.closing
    }
}
