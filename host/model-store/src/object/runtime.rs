//! Threads of object store clients. They exist only if a repository is in an object store, and
//! write downloads to disk, so that no network thread waits for a disk.

use std::io;
use std::pin::pin;
use std::time::Duration;
use tokio::runtime::Runtime;
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::{Code, Error, Result};

const THREADS: usize = 2;
/// How often cancellation is looked at.
const INTERVAL: Duration = Duration::from_millis(100);

/// The tokio runtime of the object store clients; `None` once it is shut down.
pub struct StoreRuntime(Option<Runtime>);

impl StoreRuntime {
    /// # Errors
    /// The system starts no threads.
    pub fn start() -> io::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("store").enable_all();
        Ok(Self(Some(builder.build()?)))
    }

    /// Runs `work` while the calling thread waits, and calls `tick` every now and then. Not to be
    /// called on network threads.
    ///
    /// # Errors
    /// `work` failed, or `cancel` is set.
    pub fn run<T>(
        &self,
        cancel: &CancelFlag,
        tick: impl Fn(),
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let Some(runtime) = &self.0 else { return Err(Error::unavailable("Server exiting")) };
        runtime.block_on(async {
            let mut work = pin!(work);
            let mut interval = tokio::time::interval(INTERVAL);
            loop {
                tokio::select! {
                    done = &mut work => return done,
                    _ = interval.tick() => {
                        if cancel.is_cancelled() {
                            return Err(Error::new(Code::Cancelled, "the download was broken off"));
                        }
                        tick();
                    }
                }
            }
        })
    }
}

impl Drop for StoreRuntime {
    fn drop(&mut self) {
        // The thread that drops it may be one that must not block.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
