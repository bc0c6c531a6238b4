//! Streams of an HTTP/2 connection are tried where they arrive; only those that have to wait become tasks.
//!
//! A request that is whole when its head is read, and answered at once, costs no task, no other thread and no
//! second turn of the connection; the answers to all requests that were read together leave in one write.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

type Stream = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Takes the streams of one connection from hyper, until the connection has read all there is.
#[derive(Clone, Default)]
pub struct Arrivals(Arc<Mutex<Vec<Stream>>>);

impl Arrivals {
    fn lock(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> hyper::rt::Executor<F> for Arrivals
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        self.lock().push(Box::pin(stream));
    }
}

/// A connection and its streams as one future, which ends with the connection.
pub struct Connection<C> {
    connection: C,
    arrivals: Arrivals,
    /// The streams that are looked at; kept for its memory.
    batch: Vec<Stream>,
    wakeups: Arc<Wakeups>,
    /// Of `wakeups`.
    waker: Waker,
}

impl<C: Future + Unpin> Connection<C> {
    /// `connection` puts its streams into `arrivals`.
    pub fn new(connection: C, arrivals: Arrivals) -> Self {
        let wakeups = Arc::new(Wakeups::default());
        let waker = Waker::from(Arc::clone(&wakeups));
        Self { connection, arrivals, batch: Vec::new(), wakeups, waker }
    }

    /// Streams that never found their turn: somebody else sees them end.
    fn hand_over(&mut self) {
        self.arrivals.lock().drain(..).for_each(|stream| drop(tokio::spawn(stream)));
    }
}

impl<C: Future + Unpin> Future for Connection<C> {
    type Output = C::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Output> {
        let me = &mut *self;
        me.wakeups.begin(cx.waker());
        loop {
            // What woke the connection up to here is what it now looks at.
            me.wakeups.again.swap(false, Ordering::SeqCst);
            let done = Pin::new(&mut me.connection).poll(&mut Context::from_waker(&me.waker));
            if done.is_ready() {
                me.hand_over();
                return done;
            }
            std::mem::swap(&mut me.batch, &mut *me.arrivals.lock());
            if me.batch.is_empty() {
                me.wakeups.end();
                return Poll::Pending;
            }
            me.batch.drain(..).for_each(try_once);
        }
    }
}

/// Polls a stream without a promise to come back; if it is not done, a task begins anew.
fn try_once(mut stream: Stream) {
    let mut nobody = Context::from_waker(Waker::noop());
    // A panic ends the stream, as in a task, and not the connection.
    let polled = catch_unwind(AssertUnwindSafe(|| stream.as_mut().poll(&mut nobody)));
    if let Ok(Poll::Pending) = polled {
        tokio::spawn(stream);
    }
}

/// The connection's waker. A stream that is answered in place wakes its connection, which is about to be polled
/// anyway: that is noted and not passed on.
#[derive(Default)]
struct Wakeups {
    task: Mutex<Option<Waker>>,
    /// The connection is being polled.
    inside: AtomicBool,
    /// Somebody woke it meanwhile.
    again: AtomicBool,
}

impl Wakeups {
    fn begin(&self, task: &Waker) {
        let mut known = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.as_ref().is_some_and(|known| known.will_wake(task)) {
            *known = Some(task.clone());
        }
        drop(known);
        self.inside.store(true, Ordering::SeqCst);
    }

    fn end(&self) {
        self.inside.store(false, Ordering::SeqCst);
        if self.again.swap(false, Ordering::SeqCst) {
            self.pass_on();
        }
    }

    fn pass_on(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl Wake for Wakeups {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.again.store(true, Ordering::SeqCst);
        if !self.inside.load(Ordering::SeqCst) && self.again.swap(false, Ordering::SeqCst) {
            self.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::rt::Executor;
    use std::collections::VecDeque;
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;
    use tokio::sync::oneshot;

    /// Each poll brings the next streams; without any left it waits.
    fn connection(
        mut polls: VecDeque<Vec<Stream>>,
        polled: Arc<AtomicUsize>,
    ) -> Connection<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let arrivals = Arrivals::default();
        let streams = arrivals.clone();
        let connection = poll_fn(move |_| {
            polled.fetch_add(1, Ordering::SeqCst);
            polls.pop_front().into_iter().flatten().for_each(|stream| streams.execute(stream));
            Poll::Pending
        });
        Connection::new(Box::pin(connection), arrivals)
    }

    #[tokio::test]
    async fn streams_in_place_and_as_tasks() {
        let polled = Arc::new(AtomicUsize::new(0));
        let done = Arc::new(AtomicUsize::new(0));
        let (go, wait) = oneshot::channel::<()>();
        let (told, tell) = oneshot::channel();
        let count = || {
            let done = Arc::clone(&done);
            Box::pin(async move {
                done.fetch_add(1, Ordering::SeqCst);
            })
        };
        let waits = Box::pin(async move {
            wait.await.unwrap();
            told.send(()).unwrap();
        });
        let panics = Box::pin(async { panic!("a test of what is caught") });
        let first: Vec<Stream> = vec![count(), panics, waits, count()];
        let streams = [first, vec![count()]].into();
        let mut connection = connection(streams, Arc::clone(&polled));
        let once = poll_fn(|cx| Poll::Ready(Pin::new(&mut connection).poll(cx).is_pending()));
        assert!(once.await);
        // Two rounds with streams, and one to send what they said.
        assert_eq!((polled.load(Ordering::SeqCst), done.load(Ordering::SeqCst)), (3, 3));
        go.send(()).unwrap();
        tell.await.unwrap();
    }

    #[tokio::test]
    async fn a_wake_up_is_passed_on_when_the_connection_will_not_look_by_itself() {
        struct Count(AtomicUsize);
        impl Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let task = Waker::from(Arc::clone(&count));
        let wakeups = Arc::new(Wakeups::default());
        let waker = Waker::from(Arc::clone(&wakeups));
        let woken = || count.0.load(Ordering::SeqCst);
        wakeups.begin(&task);
        waker.wake_by_ref();
        assert_eq!(woken(), 0);
        wakeups.end();
        assert_eq!(woken(), 1);
        waker.wake_by_ref();
        assert_eq!(woken(), 2);
        wakeups.begin(&task);
        wakeups.end();
        assert_eq!(woken(), 2);
    }
}
