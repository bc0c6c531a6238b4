//! Soak test: clients of every endpoint send requests to eight models, some cancel; every response
//! is checked, and the server's memory is watched.
//! `cargo run -p trtserver-tests --bin soak -- --requests 1000000`.

mod calls; // clients of stateless models
mod endpoint; // requests and responses on each endpoint
mod grpc; // gRPC over HTTP/2
mod http; // HTTP/1.1
mod memory; // resident memory and its slope
mod random; // pseudorandom numbers
mod repository; // the models
mod request; // requests and expected outputs
mod steps; // clients with sequences

pub use memory::Memory;
pub use repository::server;

use crate::Running;
use endpoint::Endpoint;
pub use random::Random;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, LocalSet};

/// A response that takes longer counts as lost.
const TIMEOUT: Duration = Duration::from_secs(60);
const SAMPLES: u64 = 100;
/// Number of wrong responses in the report.
const EXAMPLES: usize = 10;

/// The result of a soak.
#[derive(Debug)]
pub struct Report {
    pub right: u64,
    pub cancelled: u64,
    pub elapsed: Duration,
    /// Wrong and missing responses.
    pub wrong: u64,
    pub examples: Vec<String>,
    pub memory: Memory,
}

impl Report {
    pub fn per_second(&self) -> f64 {
        (self.right + self.cancelled) as f64 / self.elapsed.as_secs_f64()
    }
}

/// Shared by all clients, which run on one thread.
struct Shared {
    http: String,
    grpc: String,
    requests: u64,
    sent: Cell<u64>,
    right: Cell<u64>,
    cancelled: Cell<u64>,
    wrong: Cell<u64>,
    examples: RefCell<Vec<String>>,
    ids: Cell<u64>,
}

impl Shared {
    /// Counts `more` requests; false when enough were sent.
    fn another(&self, more: u64) -> bool {
        let sent = self.sent.get();
        self.sent.set(sent + more);
        sent < self.requests && self.wrong.get() < 1000
    }

    fn right(&self, more: u64) {
        self.right.set(self.right.get() + more);
    }

    fn cancelled(&self, more: u64) {
        self.cancelled.set(self.cancelled.get() + more);
    }

    fn wrong(&self, client: &str, why: &str) {
        self.wrong.set(self.wrong.get() + 1);
        let mut examples = self.examples.borrow_mut();
        if examples.len() < EXAMPLES {
            examples.push(format!("{client}: {why}"));
        }
    }

    /// An unused correlation id.
    fn fresh_id(&self) -> u64 {
        self.ids.set(self.ids.get() + 1);
        self.ids.get()
    }
}

/// The result of `work`, or an error after [`TIMEOUT`].
async fn with_timeout<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    match tokio::time::timeout(TIMEOUT, work).await {
        Ok(result) => result,
        Err(_) => Err(format!("no response within {} s", TIMEOUT.as_secs())),
    }
}

/// Sends this many requests to a server made by [`server`]; `watch` gets every memory sample.
pub fn run(server: &Running, requests: u64, watch: impl Fn(u64, u64)) -> Report {
    let shared = Rc::new(Shared {
        http: server.http().to_owned(),
        grpc: server.grpc().to_owned(),
        requests,
        sent: Cell::new(0),
        right: Cell::new(0),
        cancelled: Cell::new(0),
        wrong: Cell::new(0),
        examples: RefCell::default(),
        ids: Cell::new(0),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|e| panic!("no runtime: {e}"));
    let mut memory = Memory::default();
    let begin = Instant::now();
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        let mut clients = clients(&shared);
        let step = (requests / SAMPLES).max(1);
        let mut next = step;
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        loop {
            tokio::select! {
                ended = clients.join_next() => match ended {
                    None => break,
                    Some(Ok(())) => {}
                    Some(Err(e)) => shared.wrong("a client", &e.to_string()),
                },
                _ = tick.tick() => {}
            }
            let done = shared.right.get() + shared.cancelled.get();
            if done >= next {
                next = done + step;
                let kib = server.resident_kib();
                memory.sample(done, kib);
                watch(done, kib);
            }
        }
    });
    Report {
        right: shared.right.get(),
        cancelled: shared.cancelled.get(),
        elapsed: begin.elapsed(),
        wrong: shared.wrong.get(),
        examples: shared.examples.take(),
        memory,
    }
}

fn clients(shared: &Rc<Shared>) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    let mut seed = 1;
    let mut random = || {
        seed += 1;
        Random::new(seed)
    };
    for model in request::STATELESS {
        for endpoint in [Endpoint::V1Http, Endpoint::V2Http, Endpoint::V1Grpc, Endpoint::V2Grpc] {
            for _ in 0..2 {
                clients.spawn_local(calls::client(Rc::clone(shared), *model, endpoint, random()));
            }
        }
    }
    for model in request::SEQUENCES {
        for endpoint in [Endpoint::V1Http, Endpoint::V2Http, Endpoint::V2Grpc] {
            clients.spawn_local(steps::one_by_one(Rc::clone(shared), *model, endpoint, random()));
        }
        for endpoint in [Endpoint::V1Stream, Endpoint::V2Stream, Endpoint::V2Stream] {
            clients.spawn_local(steps::streaming(Rc::clone(shared), *model, endpoint, random()));
        }
    }
    clients
}
