//! Where a call of a blocking client runs: on the calling thread as long as it can, in the runtime
//! where it must.
//!
//! A current-thread runtime is driven by one of the threads that wait for it. A call that blocked
//! inside would stop the calls of the other threads, so a direct call blocks outside of it.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tokio::runtime::Runtime;

#[derive(Clone, Copy, PartialEq, Eq)]
enum TurnPlace {
    /// Not in a call of a blocking client.
    Other,
    CallingThread,
    Runtime,
    /// In the runtime; goes on at the calling thread.
    Leaving,
}

thread_local! {
    static PLACE: Cell<TurnPlace> = const { Cell::new(TurnPlace::Other) };
}

/// Polls with the place set; returns the place after it.
fn poll_in<T>(place: TurnPlace, poll: impl FnOnce() -> Poll<T>) -> (Poll<T>, TurnPlace) {
    struct Restore(TurnPlace);
    impl Drop for Restore {
        fn drop(&mut self) {
            PLACE.set(self.0);
        }
    }
    let _restore = Restore(PLACE.replace(place));
    let polled = poll();
    (polled, PLACE.get())
}

/// Runs a call to its end.
pub(crate) fn run_call<T>(runtime: &Runtime, call: impl Future<Output = T>) -> T {
    let mut call = pin!(call);
    loop {
        let mut context = Context::from_waker(Waker::noop());
        let (polled, _) = poll_in(TurnPlace::CallingThread, || call.as_mut().poll(&mut context));
        if let Poll::Ready(result) = polled {
            return result;
        }
        let result = runtime.block_on(poll_fn(|context| {
            match poll_in(TurnPlace::Runtime, || call.as_mut().poll(context)) {
                (Poll::Ready(result), _) => Poll::Ready(Some(result)),
                (Poll::Pending, TurnPlace::Leaving) => Poll::Ready(None),
                (Poll::Pending, _) => Poll::Pending,
            }
        }));
        if let Some(result) = result {
            return result;
        }
    }
}

pub(super) fn is_on_calling_thread() -> bool {
    PLACE.get() == TurnPlace::CallingThread
}

/// What follows may use sockets, timers and tasks of the runtime.
pub(crate) async fn enter_runtime() {
    poll_fn(|_| match PLACE.get() {
        TurnPlace::CallingThread => Poll::Pending,
        _ => Poll::Ready(()),
    })
    .await;
}

/// What follows may block.
pub(super) async fn leave_runtime() {
    poll_fn(|_| match PLACE.get() {
        TurnPlace::CallingThread => Poll::Ready(()),
        _ => {
            PLACE.set(TurnPlace::Leaving);
            Poll::Pending
        }
    })
    .await;
}
