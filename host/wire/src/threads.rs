//! The network threads: one tokio runtime for the sockets of requests, whose threads may run
//! instances inline, one for heavy connections, and one thread for the sockets of health and
//! metrics, which nothing else may occupy.

use super::grpc::first_poll::{self, FirstPolls};
use super::postponed_runs::{self, PostponedRuns};
use super::yields;
use std::io::Result;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use trtserver_scheduler::inline::InlinePermits;

/// Polls of tasks after which a thread looks at the sockets. tokio's default is 61: connections whose
/// polls take a millisecond would keep others waiting for that many. Under load, a thread looks
/// after fewer polls anyway, since it finds no more tasks.
const POLLS_PER_LOOK: u32 = 16;

/// The runtimes of a server.
pub struct ServerRuntimes {
    /// For requests.
    pub network: Runtime,
    /// For heavy connections (`connections/heavy.rs`). It has half as many threads.
    pub heavy: Runtime,
    /// For the health and metrics listeners. It has one thread.
    pub health: Runtime,
}

impl ServerRuntimes {
    /// `stack`: bytes of stack of each network thread, which models executed inline may use.
    ///
    /// # Errors
    /// The system starts no threads.
    pub fn start(stack: usize) -> Result<Self> {
        let plain = |threads: usize, name: &str| {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(threads).enable_all().thread_name(name).build()
        };
        let heavy = plain(heavy_threads(), "net-heavy")?;
        Ok(Self { network: create_network_runtime(stack)?, heavy, health: plain(1, "health")? })
    }

    pub fn handles(&self) -> RuntimeHandles {
        let [network, heavy, health] =
            [&self.network, &self.heavy, &self.health].map(|runtime| runtime.handle().clone());
        RuntimeHandles { network, heavy, health }
    }

    /// Stops all threads. Waits at most 100 ms for blocking tasks that still run after the drain, so
    /// that they do not delay the exit.
    pub fn shut_down(self) {
        self.network.shutdown_timeout(Duration::from_millis(100));
        self.heavy.shutdown_background();
        self.health.shutdown_background();
    }
}

/// Handles of [`ServerRuntimes`].
pub struct RuntimeHandles {
    pub network: Handle,
    pub heavy: Handle,
    pub health: Handle,
}

/// How many threads [`ServerRuntimes::network`] has.
pub fn network_threads() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    processors.max(2)
}

/// How many threads [`ServerRuntimes::heavy`] has.
pub fn heavy_threads() -> usize {
    network_threads() / 2
}

/// A runtime with one thread for each processor that the process may use, at least two. `stack`:
/// bytes of stack of each thread, which models executed inline may use.
///
/// # Errors
/// The system starts no threads.
fn create_network_runtime(stack: usize) -> Result<Runtime> {
    let threads = network_threads();
    let runtime: Arc<OnceLock<Handle>> = Arc::default();
    let handle = Arc::clone(&runtime);
    let first_polls = Arc::new(FirstPolls::default());
    let postponed = Arc::new(PostponedRuns::default());
    let registered = (Arc::clone(&first_polls), Arc::clone(&postponed));
    let wake_idle_thread = move || {
        postponed.rescue();
        if let Some(handle) = handle.get() {
            first_polls.rescue(handle);
            // An empty task wakes a sleeping thread, which then polls the sockets in place of the
            // one that is held up.
            handle.spawn(async {});
        }
    };
    let permits = InlinePermits::postponing(threads, wake_idle_thread, |run| {
        postponed_runs::postpone(run, first_poll::is_polling());
    });
    let built = Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_stack_size(stack)
        .on_thread_start(move || {
            permits.register_thread();
            registered.0.register_thread();
            registered.1.register_thread();
            yields::register_thread();
        })
        .on_thread_park(yields::before_sleep)
        .event_interval(POLLS_PER_LOOK)
        .enable_all()
        .thread_name("net")
        .build()?;
    let _ = runtime.set(built.handle().clone());
    Ok(built)
}
