//! Telling a plugin at once that nobody waits any more for a call that it has.
//!
//! Callers go away on any thread, also on one that is inside of a plugin's call into the host and holds that plugin's
//! locks. So plugins are told from a thread where nothing of theirs is below, which lives as long as there is something
//! to tell its instance; a plugin that blocks there holds up nobody but itself.

use super::slot::Handle;
use crate::request::CancelObserver;
use crate::sync::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Weak};
use trtserver_plugin_api::abi::types::{InstanceHandle, Responder};

/// Starts the threads that tell, so that whoever cancels does not wait for the start of one; `None` if there can be none.
static STARTER: LazyLock<Option<Sender<Arc<Nudges>>>> = LazyLock::new(|| {
    let (sender, wanted) = channel::<Arc<Nudges>>();
    let starts = move || {
        for nudges in wanted {
            let of_thread = Arc::clone(&nudges);
            let thread = std::thread::Builder::new().name("cancellation".into());
            if thread.spawn(move || of_thread.tell()).is_err() {
                nudges.rest(nudges.lock());
            }
        }
    };
    let started = std::thread::Builder::new().name("cancellations".into()).spawn(starts);
    if let Err(e) = &started {
        tracing::warn!("backends are not told of cancellations: no thread could be started: {e}");
    }
    started.ok().map(|_| sender)
});

/// The plugin's entry.
type Cancel = unsafe extern "C" fn(*mut InstanceHandle, *mut Responder);

/// Tells one instance. Its tickets are those of [`Handle::ticket`].
pub struct Nudges {
    cancel: Cancel,
    instance: *mut InstanceHandle,
    state: Mutex<State>,
    /// Nobody tells any more.
    quiet: Condvar,
    me: Weak<Nudges>,
}

#[derive(Default)]
struct State {
    due: VecDeque<u64>,
    /// There is a thread that tells.
    telling: bool,
    /// The instance is about to be closed.
    closed: bool,
}

// SAFETY: the interface lets any thread call `cancel` of an open instance, which `closed` guards.
unsafe impl Send for Nudges {}
// SAFETY: as above.
unsafe impl Sync for Nudges {}

impl Nudges {
    /// For an instance that is open until [`Nudges::close`] has returned.
    pub fn new(cancel: Cancel, instance: *mut InstanceHandle) -> Arc<Self> {
        LazyLock::force(&STARTER);
        Arc::new_cyclic(|me| Self {
            cancel,
            instance,
            state: Mutex::default(),
            quiet: Condvar::new(),
            me: me.clone(),
        })
    }

    pub fn weak(&self) -> Weak<dyn CancelObserver> {
        self.me.clone()
    }

    /// Tells nothing from here on, and waits for what is being told.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.due.clear();
        let quiet = self.quiet.wait_while(state, |state| state.telling);
        drop(quiet);
    }

    fn tell(&self) {
        let mut state = self.lock();
        while let Some(ticket) = state.due.pop_front() {
            drop(state);
            if let Some(handle) = Handle::of_ticket(ticket)
                && let Ok(reply) = handle.reply()
                && !reply.is_finished()
            {
                // SAFETY: whoever closes the instance waits while `telling` is set. The handle is one of the
                // instance's; if its call ends meanwhile, it is stale, which host calls notice.
                unsafe { (self.cancel)(self.instance, handle.raw()) };
            }
            state = self.lock();
        }
        self.rest(state);
    }

    /// Nobody tells any more.
    fn rest(&self, mut state: MutexGuard<'_, State>) {
        state.due.clear();
        state.telling = false;
        drop(state);
        self.quiet.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl CancelObserver for Nudges {
    fn cancelled(&self, ticket: u64) {
        let Some(me) = self.me.upgrade() else { return };
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.due.push_back(ticket);
        if std::mem::replace(&mut state.telling, true) {
            return;
        }
        drop(state);
        let starter = STARTER.as_ref();
        if starter.is_none_or(|starter| starter.send(me).is_err()) {
            // The plugin sees the word of the call, later.
            self.rest(self.lock());
        }
    }
}
