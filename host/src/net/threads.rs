//! The threads of the network. They may execute models, too: see `scheduler/borrower.rs`.

use crate::scheduler::borrower::Borrowers;
use std::io::Result;
use std::sync::{Arc, OnceLock};
use tokio::runtime::{Builder, Handle, Runtime};

/// The runtime of all sockets: a thread for each processor that the process may use, at least two. Each has a stack of so many
/// bytes, which is what models may need.
///
/// # Errors
/// The system gives no threads.
pub fn runtime(stack: usize) -> Result<Runtime> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.max(2);
    let runtime: Arc<OnceLock<Handle>> = Arc::default();
    let handle = Arc::clone(&runtime);
    let borrowers = Borrowers::new(threads, move || {
        // A thread that sleeps is woken to run nothing, and then looks after the sockets that the one held up was waiting for.
        if let Some(handle) = handle.get() {
            handle.spawn(async {});
        }
    });
    let built = Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_stack_size(stack)
        .on_thread_start(move || borrowers.join())
        .enable_all()
        .thread_name("net")
        .build()?;
    let _ = runtime.set(built.handle().clone());
    Ok(built)
}
