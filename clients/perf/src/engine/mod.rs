//! The load generator: threads that send prepared requests at a given concurrency or schedule and
//! record when each was sent and completed.
//!
//! One thread serves many connections with one epoll. A thread never blocks except in `epoll_wait`,
//! encodes nothing, and parses of a response only what tells success from failure.

mod arrivals;
mod chunked;
mod clock;
mod grpc;
mod http;
mod message;
mod poll;
mod response;
mod sequences;
mod socket;
mod thread;

pub use arrivals::{Arrivals, Distribution, Random};
pub use message::MessageKind;
pub use sequences::{SequenceStep, Sequences};

use crate::encode::PreparedRequests;
use crate::settings::Protocol;
use clock::EngineClock;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use trtserver_client::TlsClient;

/// What is sent where: fixed for one run of the engine.
#[derive(Debug)]
pub struct EnginePlan {
    pub protocol: Protocol,
    pub address: SocketAddr,
    /// `HOST:PORT` as given by the user.
    pub authority: String,
    /// The server as errors name it.
    pub url: String,
    pub tls: Option<TlsClient>,
    pub prepared: PreparedRequests,
    pub sequences: Option<Sequences>,
    /// gRPC calls that share a connection.
    pub calls_per_connection: usize,
    /// Connections of one thread in an open loop.
    pub max_connections: usize,
    /// A request without a response for this long has failed.
    pub timeout: Duration,
}

/// How requests are timed.
#[derive(Clone, Debug)]
pub enum Load {
    /// Closed loop: this many requests in flight.
    Concurrency(usize),
    /// Open loop: requests are sent when they are due.
    Schedule(Arrivals),
}

/// One completed request. Times are nanoseconds since the engine started.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// When it was sent; in an open loop, when it was due.
    pub start: u64,
    /// When it was sent.
    pub begun: u64,
    pub end: u64,
    /// Time to hand the request to the kernel.
    pub send: u32,
    /// Time from the first to the last byte of the response.
    pub receive: u32,
    pub ends_sequence: bool,
    /// Sent more than a millisecond after it was due.
    pub delayed: bool,
    /// Responses to the request; a decoupled model sends any number.
    pub responses: u32,
}

/// Requests that completed since the last call of [`Engine::take`].
#[derive(Debug, Default)]
pub struct CompletedRequests {
    pub records: Vec<Record>,
    pub failures: u64,
    pub first_failure: Option<String>,
}

/// Failed requests.
#[derive(Debug, Default)]
pub struct Failures {
    pub count: u64,
    pub first: Option<String>,
}

impl Failures {
    pub fn add(&mut self, count: u64, first: Option<String>) {
        self.count += count;
        self.first = self.first.take().or(first);
    }
}

impl CompletedRequests {
    /// Keeps the failures only.
    pub fn fold_failures(self, into: &mut Failures) {
        into.add(self.failures, self.first_failure);
    }
}

/// State that the load threads share with the thread that measures.
#[derive(Debug, Default)]
struct ThreadStatus {
    stop: AtomicBool,
    taken: Mutex<CompletedRequests>,
}

impl ThreadStatus {
    fn lock(&self) -> MutexGuard<'_, CompletedRequests> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Running load; stopped when dropped.
#[derive(Debug)]
pub struct Engine {
    threads: Vec<(Arc<ThreadStatus>, Option<Thread>)>,
}

type Thread = JoinHandle<Result<(), String>>;

impl Engine {
    /// # Errors
    /// A thread cannot be started.
    pub fn start(plan: &Arc<EnginePlan>, load: &Load, threads: usize) -> Result<Self, String> {
        let count = match load {
            Load::Concurrency(n) => threads.min(*n),
            Load::Schedule(_) => threads,
        }
        .max(1);
        let clock = EngineClock::start();
        let mut engine = Engine { threads: Vec::with_capacity(count) };
        for index in 0..count {
            let part = match load {
                Load::Concurrency(n) => {
                    thread::ThreadLoad::Slots(n / count + usize::from(index < n % count))
                }
                Load::Schedule(arrivals) => {
                    thread::ThreadLoad::Arrivals(arrivals.clone().share(index, count))
                }
            };
            let shared = Arc::new(ThreadStatus::default());
            let (plan, for_thread) = (Arc::clone(plan), Arc::clone(&shared));
            let handle = std::thread::Builder::new()
                .name(format!("load-{index}"))
                .spawn(move || thread::run_thread(&plan, part, (index, count), clock, &for_thread))
                .map_err(|e| format!("cannot start a load thread: {e}"))?;
            engine.threads.push((shared, Some(handle)));
        }
        Ok(engine)
    }

    /// What completed since the last call.
    ///
    /// # Errors
    /// A load thread has ended.
    pub fn take(&mut self) -> Result<CompletedRequests, String> {
        let mut all = CompletedRequests::default();
        for (shared, handle) in &mut self.threads {
            let mut taken = std::mem::take(&mut *shared.lock());
            all.records.append(&mut taken.records);
            all.failures += taken.failures;
            all.first_failure = all.first_failure.or(taken.first_failure);
            if handle.as_ref().is_some_and(JoinHandle::is_finished)
                && let Some(handle) = handle.take()
            {
                end(handle)?;
                return Err("a load thread ended early".to_owned());
            }
        }
        Ok(all)
    }

    /// Ends open sequences, waits for the requests in flight, and returns what [`Engine::take`] has
    /// not.
    ///
    /// # Errors
    /// A load thread failed.
    pub fn stop(mut self) -> Result<CompletedRequests, String> {
        self.join()?;
        self.take()
    }

    fn join(&mut self) -> Result<(), String> {
        for (shared, _) in &self.threads {
            shared.stop.store(true, Ordering::Relaxed);
        }
        let mut outcome = Ok(());
        for (_, handle) in &mut self.threads {
            if let Some(handle) = handle.take() {
                outcome = outcome.and(end(handle));
            }
        }
        outcome
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

fn end(handle: Thread) -> Result<(), String> {
    handle.join().unwrap_or_else(|_| Err("a load thread panicked".to_owned()))
}
