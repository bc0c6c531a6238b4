//! The network threads: one tokio runtime for the sockets of requests, whose threads may run instances inline, and one thread
//! for the sockets of health and metrics, which nothing else may occupy.

use super::grpc::first_poll::FirstPolls;
use super::yields;
use std::io::Result;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle, Runtime};
use trtserver_base::heap::Heap;
use trtserver_scheduler::inline::Permits;

/// Delay after a trim of the heap, and between attempts to reach all threads.
const VISIT_DELAY: Duration = Duration::from_millis(100);
const VISITS: usize = 5;
/// How long a thread waits for the others.
const MAX_VISIT: Duration = Duration::from_millis(1);

/// A runtime with one thread for the health and metrics listeners.
///
/// # Errors
/// The system starts no thread.
pub fn health_runtime() -> Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).enable_all().thread_name("health").build()
}

/// A runtime with one thread for each processor that the process may use, at least two. `stack`: bytes of stack of each
/// thread, which models executed inline may use.
///
/// # Errors
/// The system starts no threads.
pub fn runtime(stack: usize, heap: &Arc<Heap>) -> Result<Runtime> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.max(2);
    let runtime: Arc<OnceLock<Handle>> = Arc::default();
    let handle = Arc::clone(&runtime);
    let first_polls = Arc::new(FirstPolls::default());
    let registered = Arc::clone(&first_polls);
    let permits = Permits::new(threads, move || {
        if let Some(handle) = handle.get() {
            first_polls.rescue(handle);
            // An empty task wakes a sleeping thread, which then polls the sockets in place of the one that is held up.
            handle.spawn(async {});
        }
    });
    let (parked, trimmed) = (Arc::clone(heap), Arc::downgrade(heap));
    let built = Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_stack_size(stack)
        .on_thread_start(move || {
            permits.register_thread();
            registered.register_thread();
            yields::register_thread();
        })
        .on_thread_park(move || {
            yields::before_sleep();
            parked.trim_own();
        })
        .enable_all()
        .thread_name("net")
        .build()?;
    let _ = runtime.set(built.handle().clone());
    let handle = built.handle().clone();
    heap.on_trim(move || drop(handle.spawn(visit_sleeping(threads, Weak::clone(&trimmed)))));
    Ok(built)
}

/// Makes all network threads trim their heaps, which they do before they sleep. Most have done so by themselves after a short time; otherwise all
/// are woken at once.
async fn visit_sleeping(threads: usize, heap: Weak<Heap>) {
    for _ in 0..VISITS {
        tokio::time::sleep(VISIT_DELAY).await;
        if heap.upgrade().is_none_or(|heap| heap.trimmed_threads() >= threads) {
            return;
        }
        // A thread that waits for the others takes no second task.
        let arrived = Arc::new(AtomicUsize::new(0));
        for _ in 0..threads {
            let arrived = Arc::clone(&arrived);
            tokio::spawn(async move {
                arrived.fetch_add(1, Relaxed);
                let begin = Instant::now();
                while arrived.load(Relaxed) < threads && begin.elapsed() < MAX_VISIT {
                    std::thread::sleep(MAX_VISIT / 20);
                }
            });
        }
    }
}
