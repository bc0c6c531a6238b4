//! Calls that run in the background: cancellation, and the thread that callbacks run on.
//!
//! Callbacks may block and make calls of their own, so they do not run on the runtime. One thread
//! for each client calls them one after the other, in the order of completion. What only passes a
//! response on needs no thread ([`CallCompletion::Direct`]).

use super::background;
use crate::error::{Error, Kind, Result};
use crate::sync::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread::{JoinHandle, ThreadId};
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// The running calls of one client. Dropping it cancels them and returns after the last callback,
/// except on the thread of the callbacks itself.
#[derive(Default)]
pub(super) struct BackgroundCalls {
    shared: Arc<CallTable>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct CallTable {
    state: Mutex<CallTableState>,
    changed: Condvar,
}

#[derive(Default)]
struct CallTableState {
    cancels: BTreeMap<u64, oneshot::Sender<()>>,
    /// Calls whose callback has not returned.
    outstanding: usize,
    next: u64,
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<ThreadId>,
}

/// Where the completion of a call runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallCompletion {
    /// On the thread of the callbacks.
    Callback,
    /// On the runtime: it must neither block nor make calls, nor drop the client.
    Direct,
}

/// A call in the background.
#[derive(Clone)]
pub struct Call {
    shared: Arc<CallTable>,
    number: u64,
}

impl Call {
    /// The callback gets an error of the kind `Cancelled`, unless the call has completed.
    pub fn cancel(&self) {
        let cancel = self.shared.state.lock().cancels.remove(&self.number);
        drop(cancel);
    }
}

impl BackgroundCalls {
    /// Runs `call` in the background, then `after`, also if the call was cancelled, then the
    /// callback. The call is polled once by this thread, so that the requests of a stream are sent
    /// in the order of their starts. The second result of `call` is dropped as soon as the callback
    /// has its place in the order of callbacks.
    pub fn start<T: Send + 'static, Place: Default + Send + 'static>(
        &self,
        call: impl Future<Output = (Result<T>, Place)> + Send + 'static,
        after: impl Future<Output = ()> + Send + 'static,
        (completion, callback): (CallCompletion, impl FnOnce(Result<T>) + Send + 'static),
    ) -> Result<Call> {
        let runtime = background()?;
        if completion == CallCompletion::Callback {
            self.start_thread()?;
        }
        let (cancel, cancelled) = oneshot::channel::<()>();
        let number = {
            let mut state = self.shared.state.lock();
            state.next += 1;
            state.outstanding += 1;
            let number = state.next;
            state.cancels.insert(number, cancel);
            number
        };
        let shared = self.shared.clone();
        let mut call = Box::pin(call);
        let first = {
            let _entered = runtime.enter();
            call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        };
        runtime.spawn(async move {
            let (result, place) = match first {
                Poll::Ready(completed) => completed,
                Poll::Pending => tokio::select! {
                    completed = &mut call => completed,
                    _ = cancelled => {
                        (Err(Error::new(Kind::Cancelled, "the request was cancelled")), Place::default())
                    }
                },
            };
            drop(call);
            after.await;
            let mut state = shared.state.lock();
            state.cancels.remove(&number);
            let done = shared.clone();
            let job = move || {
                // A panic of one callback must not end the thread of the others.
                let call = std::panic::AssertUnwindSafe(|| callback(result));
                let _ = std::panic::catch_unwind(call);
                done.state.lock().outstanding -= 1;
                done.changed.notify_all();
            };
            match (completion, &state.jobs) {
                (CallCompletion::Callback, Some(jobs)) => drop(jobs.send(Box::new(job))),
                (CallCompletion::Callback, None) => {}
                (CallCompletion::Direct, _) => {
                    drop(state);
                    job();
                }
            }
            drop(place);
        });
        Ok(Call { shared: self.shared.clone(), number })
    }

    fn start_thread(&self) -> Result<()> {
        let mut thread = self.thread.lock();
        if thread.is_some() {
            return Ok(());
        }
        let (jobs, queue) = mpsc::channel::<Job>();
        let run = move || queue.into_iter().for_each(|job| job());
        let started = std::thread::Builder::new().name("trtserver-callback".to_owned()).spawn(run);
        let started = started.map_err(|e| {
            Error::new(Kind::Internal, format!("the thread of callbacks cannot be started: {e}"))
        })?;
        let mut state = self.shared.state.lock();
        state.jobs = Some(jobs);
        state.thread = Some(started.thread().id());
        *thread = Some(started);
        Ok(())
    }
}

impl Drop for BackgroundCalls {
    fn drop(&mut self) {
        let thread = self.thread.lock().take();
        let mut state = self.shared.state.lock();
        state.cancels.clear();
        let own = std::thread::current().id();
        if thread.as_ref().is_some_and(|thread| thread.thread().id() == own) {
            // The callbacks that follow still run; the thread ends with the last sender.
            return;
        }
        while state.outstanding > 0 {
            state = self.shared.changed.wait(state);
        }
        state.jobs = None;
        drop(state);
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}
