//! Clients that share models: their weights, and what each has waiting.
//!
//! A client is known by its name. The first [`MAX_SHOWN`] names, and those with a weight, have
//! counters of their own; all others share those of [`OTHERS`], so that names that clients invent do
//! not fill the metrics page.

use crate::clock::now_ns;
use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Names with counters of their own.
pub const MAX_SHOWN: usize = 64;
/// Longer names are among the others.
const MAX_NAME: usize = 128;
/// The name of all further clients.
pub const OTHERS: &str = "(others)";
/// The name of requests without a name.
pub const UNNAMED: &str = "(unnamed)";

/// A client as fair queues tell it from others.
#[derive(Debug)]
pub struct FairClient {
    /// The same for requests of one name.
    pub key: u64,
    /// Its share beside a client with weight 1.
    pub weight: u32,
    counts: Arc<ClientCounts>,
}

/// Counters of one client, or of all others.
#[derive(Debug, Default)]
pub struct ClientCounts {
    queued: AtomicU64,
    left: AtomicU64,
    waited_ns: AtomicU64,
}

/// What the metrics page shows of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientReport {
    pub name: String,
    pub requests: u64,
    pub waiting: u64,
    pub waited_ns: u64,
}

/// The clients of a server.
#[derive(Debug)]
pub struct FairClients {
    by_name: RwLock<HashMap<String, Arc<FairClient>>>,
    unnamed: Arc<FairClient>,
    others: Arc<ClientCounts>,
    hasher: RandomState,
    max_shown: usize,
}

impl FairClients {
    pub fn new(weights: &BTreeMap<String, u32>) -> Arc<Self> {
        let (hasher, others) = (RandomState::new(), Arc::<ClientCounts>::default());
        let client = |name: &str, counts| {
            let weight = weights.get(name).copied().unwrap_or(1);
            new_client(hasher.hash_one(name), weight, counts)
        };
        let mut by_name: HashMap<_, _> =
            weights.keys().map(|name| (name.clone(), client(name, Arc::default()))).collect();
        // A client may choose these names as well. Each is one line of the metrics page.
        let unnamed = client(UNNAMED, Arc::default());
        by_name.insert(UNNAMED.to_owned(), Arc::clone(&unnamed));
        by_name.insert(OTHERS.to_owned(), client(OTHERS, Arc::clone(&others)));
        let max_shown = MAX_SHOWN + by_name.len();
        Arc::new(Self { by_name: RwLock::new(by_name), unnamed, others, hasher, max_shown })
    }

    /// The client with this name.
    pub fn named(&self, name: &str) -> Arc<FairClient> {
        if let Some(client) = self.by_name.read().get(name) {
            return Arc::clone(client);
        }
        let key = self.hasher.hash_one(name);
        if name.len() <= MAX_NAME {
            let mut by_name = self.by_name.write();
            if by_name.len() < self.max_shown {
                let new = || new_client(key, 1, Arc::default());
                return Arc::clone(by_name.entry(name.to_owned()).or_insert_with(new));
            }
        }
        new_client(key, 1, Arc::clone(&self.others))
    }

    /// The client of requests without a name.
    pub fn unnamed(&self) -> Arc<FairClient> {
        Arc::clone(&self.unnamed)
    }

    /// By name; those that have sent nothing are left out.
    pub fn report(&self) -> Vec<ClientReport> {
        let by_name = self.by_name.read();
        let named = by_name.iter().map(|(name, client)| client.counts.report(name));
        let mut all: Vec<_> = named.filter(|report| report.requests > 0).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}

fn new_client(key: u64, weight: u32, counts: Arc<ClientCounts>) -> Arc<FairClient> {
    Arc::new(FairClient { key, weight, counts })
}

impl ClientCounts {
    fn report(&self, name: &str) -> ClientReport {
        // Read first: a request that leaves meanwhile is not counted as one that never came.
        let left = self.left.load(Relaxed);
        let requests = self.queued.load(Relaxed);
        ClientReport {
            name: name.to_owned(),
            requests,
            waiting: requests.saturating_sub(left),
            waited_ns: self.waited_ns.load(Relaxed),
        }
    }
}

/// Whose a request is, and since when it waits in a queue. Counts that it has left when it is
/// dropped.
#[derive(Debug)]
pub struct ClientTurn {
    pub client: Arc<FairClient>,
    /// 0: it does not wait.
    since_ns: u64,
}

impl ClientTurn {
    pub fn new(client: Arc<FairClient>) -> Self {
        Self { client, since_ns: 0 }
    }

    /// The turn of a further request of the client.
    pub fn again(&self) -> Self {
        Self::new(Arc::clone(&self.client))
    }

    /// The request is in a queue from now on.
    pub fn begin(&mut self, now: u64) {
        self.since_ns = now;
        self.client.counts.queued.fetch_add(1, Relaxed);
    }

    /// The request has left the queue.
    pub fn end(&mut self, now: u64) {
        let since = std::mem::take(&mut self.since_ns);
        if since != 0 {
            let counts = &self.client.counts;
            counts.left.fetch_add(1, Relaxed);
            counts.waited_ns.fetch_add(now.saturating_sub(since), Relaxed);
        }
    }
}

impl Drop for ClientTurn {
    fn drop(&mut self) {
        if self.since_ns != 0 {
            self.end(now_ns());
        }
    }
}

#[cfg(test)]
#[path = "fair_clients_tests.rs"]
mod tests;
