//! A host for tests of backends: opens a backend in the test's process or from its file, executes
//! batches, and reports each violation of the interface.
//!
//! `trtserver plugin check` runs on it, too. Here authors write their own requests and look at the
//! responses:
//!
//! ```
//! use trtserver_plugin_api::abi::types::dtype;
//! # mod adder {
//! #     use std::sync::Arc;
//! #     use trtserver_plugin_api::author::*;
//! #     pub struct Double;
//! #     impl Backend for Double {
//! #         type Model = Doubler;
//! #         const INFO: BackendInfo = BackendInfo::new("double", "1");
//! #         fn open(_: &BackendContext) -> Result<Self, Error> { Ok(Double) }
//! #     }
//! #     pub struct Doubler;
//! #     impl Model for Doubler {
//! #         type Backend = Double;
//! #         type Instance = Worker;
//! #         fn open(_: &Arc<Double>, _: &ModelContext) -> Result<Self, Error> { Ok(Doubler) }
//! #     }
//! #     pub struct Worker;
//! #     impl Instance for Worker {
//! #         type Model = Doubler;
//! #         fn open(_: &Arc<Doubler>, _: &InstanceContext) -> Result<Self, Error> { Ok(Worker) }
//! #         fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
//! #             for request in batch.requests() {
//! #                 let input = request.required_input("IN")?;
//! #                 let doubled: Vec<f32> = input.to_vec::<f32>()?.iter().map(|x| 2.0 * x).collect();
//! #                 let mut response = request.new_response()?;
//! #                 response.put("OUT", input.shape(), &doubled)?;
//! #                 response.send()?;
//! #             }
//! #             Ok(())
//! #         }
//! #     }
//! # }
//! # use adder::Double;
//! use trtserver_plugin_testkit::{Backend, InstanceSpec, ModelSpec, Request, Session, bytes, table, values};
//!
//! // In a test; at its end a violation of the interface makes it fail.
//! let _session = Session::start();
//! let backend = Backend::open(table::<Double>(), "double", "", &[])?;
//! let spec = ModelSpec::new("m").input("IN", dtype::FP32, &[-1]).output("OUT", dtype::FP32, &[-1]);
//! let instance = backend.open_model(&spec)?.open_instance(&InstanceSpec::default())?;
//! let request = Request::new(1).input("IN", dtype::FP32, &[2], &bytes(&[1.0f32, 2.5])).request_output("OUT");
//! let outcomes = instance.execute(&[request]);
//! let output = outcomes[0].response()?.output("OUT").ok_or("no output")?;
//! assert_eq!(values::<f32>(&output.data), [2.0, 5.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The host is one per process, so tests in one process take turns: [`Session::start`] waits for
//! its turn.

#![warn(missing_docs)]

mod backend; // backends and models
pub mod damaged_files;
mod host; // the host table
mod instance; // executing batches
mod memory; // memory that reveals wrong accesses
mod model; // specifications of models and instances
mod probe; // recognition of model files
mod report; // violations
mod request; // specifications and views of requests
mod text; // strings of the interface

pub use backend::{Backend, Model, Patch, load, table};
pub use host::{Failure, Metric, Output, Response, SentParam, host_table, set_log_level};
pub use instance::{InFlight, Instance, Outcome};
pub use model::{InstanceSpec, ModelSpec, TensorSpec, element_size};
pub use probe::probe;
pub use report::{
    Observer, Violation, forget_timeouts, report_violation, set_observer, set_timeout,
    take_violations, timed_out,
};
pub use request::{Input, Layout, Request};

use host::{ScopeRecord, call_releases, lock_state};
use std::sync::{Mutex, MutexGuard, PoisonError};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// CLOCK_MONOTONIC nanoseconds, the clock of the interface.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// What backends did with the host so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Outputs in memory of the backend.
    pub adopted: usize,
    /// Calls of `memory_alloc`.
    pub allocated: usize,
    /// Calls of `gather`.
    pub gathered: usize,
    /// Calls of `scatter_alloc` and `scatter_adopt`.
    pub scattered: usize,
    /// Blocks of `memory_alloc` that were not freed.
    pub allocations: usize,
}

/// What the host holds now, and how often its entries were called.
pub fn counts() -> Counts {
    let state = lock_state();
    Counts { allocations: state.allocations.len(), ..state.counts }
}

/// Keeps adopted memory until this is called with false, as a host does that sends late.
pub fn hold_releases(hold: bool) {
    let mut state = lock_state();
    state.hold_releases = hold;
    let done = if hold { Vec::new() } else { std::mem::take(&mut state.done) };
    drop(state);
    call_releases(done);
}

/// Whether `progress` tells backends that the load was abandoned.
pub fn abandon_loads(abandon: bool) {
    lock_state().abandon_loads = abandon;
}

/// Removes and returns the host extensions that were looked up, with their versions.
pub fn take_lookups() -> Vec<(String, u32)> {
    std::mem::take(&mut lock_state().lookups)
}

/// Removes and returns what would have been a violation in an unchecked request.
pub fn take_suspect() -> Option<(&'static str, String)> {
    lock_state().suspect.take()
}

/// Checks what must be left when everything is closed, and forgets all that is.
pub fn settle() {
    let mut state = lock_state();
    state.check_sent();
    if let Some(error) = state.errors.values().next() {
        let text = error.text.to_string_lossy();
        let text = format!("{} errors were never freed, one says '{text}'", state.errors.len());
        report_violation("host.errors", text);
    }
    report::report_exercised("host.errors");
    if !state.events.is_empty() {
        report_violation(
            "host.events",
            format!("{} events were never destroyed", state.events.len()),
        );
    }
    state.events.clear();
    state.errors.clear();
    state.requests.clear();
    state.responses.clear();
    state.batches.clear();
    state.metrics.clear();
    state.families.clear();
    state.lookups.clear();
    state.scopes.retain(|_, scope| scope.open);
    state.hold_releases = false;
    state.abandon_loads = false;
    let done = std::mem::take(&mut state.done);
    drop(state);
    call_releases(done);
    request::held_requests().clear();
}

/// The host for one test. Fails the test at its end if the backend violated the interface.
pub struct Session(#[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Session {
    /// Waits until no other test of this process has a session.
    pub fn start() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = lock(&TURN);
        settle();
        take_violations();
        Self(turn)
    }

    fn scopes<T>(&self, of: impl Fn(&ScopeRecord) -> Vec<T>) -> Vec<T> {
        let state = lock_state();
        let mut scopes: Vec<_> = state.scopes.iter().collect();
        scopes.sort_by_key(|(id, _)| **id);
        scopes.into_iter().flat_map(|(_, scope)| of(scope)).collect()
    }

    /// Level and text of the log records since the session began, by backend, model and instance.
    pub fn log(&self) -> Vec<(u32, String)> {
        self.scopes(|scope| scope.log.clone())
    }

    /// Whether a log record contains `text`.
    pub fn logged(&self, text: &str) -> bool {
        self.log().iter().any(|(_, record)| record.contains(text))
    }

    /// The metrics of the backend, its models and instances that are open.
    pub fn metrics(&self) -> Vec<Metric> {
        self.scopes(|scope| scope.metrics.clone())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        settle();
        let violations = take_violations();
        if !violations.is_empty() && !std::thread::panicking() {
            let list: Vec<_> =
                violations.iter().map(|v| format!("{}: {}", v.promise, v.text)).collect();
            panic!("the backend violated the interface:\n  {}", list.join("\n  "));
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// A number that tensors contain.
pub trait Number: Copy {
    /// Appends the bytes, little-endian.
    fn put(self, to: &mut Vec<u8>);
    /// # Panics
    /// `from` is not of this number's size.
    fn get(from: &[u8]) -> Self;
    /// Bytes of a number.
    const SIZE: usize;
}

macro_rules! numbers {
    ($($type:ty),*) => { $(
        impl Number for $type {
            fn put(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
            fn get(from: &[u8]) -> Self {
                let mut bytes = [0; size_of::<$type>()];
                bytes.copy_from_slice(from);
                Self::from_le_bytes(bytes)
            }
            const SIZE: usize = size_of::<$type>();
        }
    )* };
}

numbers!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

/// The contents of a tensor with these elements.
pub fn bytes<T: Number>(values: &[T]) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len() * T::SIZE);
    values.iter().for_each(|value| value.put(&mut out));
    out
}

/// The elements of a tensor.
pub fn values<T: Number>(contents: &[u8]) -> Vec<T> {
    contents.chunks_exact(T::SIZE).map(T::get).collect()
}
