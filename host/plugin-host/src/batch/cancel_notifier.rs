//! The cancel notifier: calls a backend's `cancel` entry when a request that it executes is
//! cancelled.
//!
//! A request may be cancelled on any thread, also inside a host function that the backend called
//! with its own locks held. So `cancel` is called from a separate thread, which runs while there
//! are notifications for its instance; a backend that blocks there delays only its own
//! notifications.

use super::slot::ExecutingHandle;
use crate::crash_report;
use crate::crash_report::CrashSubject;
use crate::host_state::HOST;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Weak};
use trtserver_base::host_policy::use_process_cores;
use trtserver_plugin_api::abi::types::{InstanceHandle, Responder};
use trtserver_request::CancelObserver;

/// Starts the notifying threads, so that the cancelling thread does not wait for a thread start.
/// `None` if that failed.
pub type ThreadStarter = LazyLock<Option<Sender<Arc<CancelNotifier>>>>;

/// Starts the starter's own thread.
pub fn start_starter() -> Option<Sender<Arc<CancelNotifier>>> {
    let (sender, receiver) = channel::<Arc<CancelNotifier>>();
    let starts = move || {
        use_process_cores();
        for notifier in receiver {
            let of_thread = Arc::clone(&notifier);
            let thread = std::thread::Builder::new().name("cancellation".into());
            if thread.spawn(move || of_thread.run()).is_err() {
                notifier.stop(notifier.lock());
            }
        }
    };
    let started = std::thread::Builder::new().name("cancellations".into()).spawn(starts);
    if let Err(e) = &started {
        tracing::warn!(
            "backends are not notified of cancellations: no thread could be started: {e}"
        );
    }
    started.ok().map(|_| sender)
}

/// The backend's `cancel` entry.
type CancelEntry = unsafe extern "C" fn(*mut InstanceHandle, *mut Responder);

/// Notifies one instance. Requests are identified by [`ExecutingHandle::ticket`].
pub struct CancelNotifier {
    cancel: CancelEntry,
    instance: *mut InstanceHandle,
    /// Description of the instance for crash reports.
    subject: Arc<CrashSubject>,
    state: Mutex<NotifierState>,
    /// Notified when the thread has stopped.
    stopped: Condvar,
    me: Weak<CancelNotifier>,
}

#[derive(Default)]
struct NotifierState {
    pending: VecDeque<u64>,
    /// A notifying thread is running or being started.
    running: bool,
    /// The instance is about to be closed.
    closed: bool,
}

// SAFETY: the interface lets any thread call `cancel` of an open instance, which `closed` guards.
unsafe impl Send for CancelNotifier {}
// SAFETY: any thread may call `cancel`, also at the same time as `execute`; `closed` ends the calls
// before the instance is closed.
unsafe impl Sync for CancelNotifier {}

impl CancelNotifier {
    /// For an instance that is open until [`CancelNotifier::close`] has returned.
    pub fn new(
        cancel: CancelEntry,
        instance: *mut InstanceHandle,
        subject: &Arc<CrashSubject>,
    ) -> Arc<Self> {
        LazyLock::force(&HOST.cancel_starter);
        Arc::new_cyclic(|me| Self {
            cancel,
            instance,
            subject: Arc::clone(subject),
            state: Mutex::default(),
            stopped: Condvar::new(),
            me: me.clone(),
        })
    }

    pub fn observer(&self) -> Weak<dyn CancelObserver> {
        self.me.clone()
    }

    /// Stops notifying, and waits for a call of `cancel` that is running.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.pending.clear();
        self.stopped.wait_while(&mut state, |state| state.running);
    }

    fn run(&self) {
        let mut state = self.lock();
        while let Some(ticket) = state.pending.pop_front() {
            drop(state);
            if let Some(handle) = ExecutingHandle::from_ticket(ticket)
                && let Ok(responder) = handle.responder()
                && !responder.is_finished()
            {
                let _entered = self.subject.enter(&crash_report::CANCEL);
                // SAFETY: `close` waits while `running` is set, so the instance is open. If the
                // request ends meanwhile, its handle is stale, which host functions detect.
                unsafe { (self.cancel)(self.instance, handle.raw()) };
            }
            state = self.lock();
        }
        self.stop(state);
    }

    /// Marks the thread as stopped.
    fn stop(&self, mut state: MutexGuard<'_, NotifierState>) {
        state.pending.clear();
        state.running = false;
        drop(state);
        self.stopped.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, NotifierState> {
        self.state.lock()
    }
}

impl CancelObserver for CancelNotifier {
    fn cancelled(&self, ticket: u64) {
        let Some(me) = self.me.upgrade() else { return };
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.pending.push_back(ticket);
        if std::mem::replace(&mut state.running, true) {
            return;
        }
        drop(state);
        let starter = HOST.cancel_starter.as_ref();
        if starter.is_none_or(|starter| starter.send(me).is_err()) {
            // Without a thread the backend has only the cancel flag of the request to poll.
            self.stop(self.lock());
        }
    }
}
