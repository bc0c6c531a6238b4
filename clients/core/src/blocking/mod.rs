//! The clients without async: every call waits for its result, at most until the deadline of the
//! settings.
//!
//! A call runs its connection on the calling thread, without a switch to another: a small one on a
//! blocking socket (`transport/direct`), others on a runtime of the client. Calls with a callback,
//! and streams, run on a runtime in the background ([`background`]) with connections of their own.

mod calls;
pub mod v1;
pub mod v2;

pub use calls::Call;

use crate::error::{Error, Kind, Result};
use crate::transport::direct::{self, enter_runtime};
use std::future::Future;
use std::sync::OnceLock;
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads of the runtime in the background.
const THREADS: usize = 2;

/// The runtime of asynchronous calls and streams, started when it is first needed and shared by all
/// clients.
///
/// # Errors
/// It cannot be started: no threads, no file descriptors.
pub fn background() -> Result<Handle> {
    static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    let started = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("trtserver-client").enable_all().build()
    });
    match started {
        Ok(runtime) => Ok(runtime.handle().clone()),
        Err(e) => Err(not_started(e)),
    }
}

fn not_started(error: &std::io::Error) -> Error {
    Error::new(Kind::Internal, format!("the runtime cannot be started: {error}"))
}

/// Blocking inside a runtime would stop the runtime's other work, or never end.
fn check_thread() -> Result<()> {
    if Handle::try_current().is_err() {
        return Ok(());
    }
    Err(Error::invalid("a blocking call was made on a thread of an async runtime"))
}

/// Waits for something on the runtime in the background.
fn wait_for<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    check_thread()?;
    background()?.block_on(future)
}

/// A runtime that runs on the threads that wait for it.
struct RuntimeDriver(Option<Runtime>);

impl RuntimeDriver {
    fn new() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self(Some(runtime.map_err(|e| not_started(&e))?)))
    }

    fn run<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        check_thread()?;
        match &self.0 {
            Some(runtime) => direct::run_call(runtime, future),
            None => Err(Error::new(Kind::Internal, "the runtime has ended")),
        }
    }

    /// As [`run`](Self::run) for code of the user, which may expect a runtime everywhere.
    fn run_in_runtime<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        self.run(async {
            enter_runtime().await;
            future.await
        })
    }
}

/// A runtime may be dropped everywhere, also on the threads of another.
impl Drop for RuntimeDriver {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Methods that run the async method of the same name to its end.
macro_rules! forward {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            $(#[$doc])*
            #[doc = ""]
            #[doc = "Runs the async method of this name to its end."]
            pub fn $name(&self $(, $argument: $type)*) -> crate::error::Result<$result> {
                self.driver.run(self.inner.$name($($argument),*))
            }
        )*
    };
}
use forward;
