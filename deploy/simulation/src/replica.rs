//! One server: the real dynamic batcher, and instances that take a modelled time.

use crate::random::RandomStream;
use std::collections::BTreeMap;
use trtserver_request::RequestSequence;
use trtserver_scheduler::batcher::dynamic::DynamicBatcher;
use trtserver_scheduler::batcher::settings::{
    BatchingSettings, DynamicSettings, QueuePolicy, TimeoutAction,
};
use trtserver_scheduler::batcher::{BatchDecision, BatchEntry, BatchableRequest, WakeTarget};

/// A kind of server with its model.
#[derive(Clone, Debug)]
pub struct ServerModel {
    pub name: &'static str,
    pub instances: u32,
    pub max_rows: u32,
    pub delay_ns: u64,
    /// Time of an execution: `base_ns` + rows × `row_ns`.
    pub base_ns: f64,
    pub row_ns: f64,
    /// Executions are exponentially distributed around that time, for known results.
    pub exponential: bool,
    /// Queue timeout; 0: none.
    pub deadline_us: u64,
}

impl ServerModel {
    pub fn execution_ns(&self, rows: usize) -> f64 {
        self.base_ns + self.row_ns * rows as f64
    }

    /// Requests a second of a server that is always full.
    pub fn capacity(&self) -> f64 {
        let rows = f64::from(self.max_rows);
        f64::from(self.instances) * rows / self.execution_ns(self.max_rows as usize) * 1e9
    }
}

/// A request with one row.
#[derive(Clone, Debug)]
pub struct SimulatedRequest {
    pub arrived: u64,
    pub balancer: usize,
    sequence: RequestSequence,
}

impl SimulatedRequest {
    pub fn new(arrived: u64, balancer: usize) -> Self {
        Self { arrived, balancer, sequence: RequestSequence::default() }
    }
}

impl BatchableRequest for SimulatedRequest {
    type Memory = ();

    fn rows(&self) -> u32 {
        1
    }

    fn priority(&self) -> u64 {
        0
    }

    fn timeout_us(&self) -> u64 {
        0
    }

    fn sequence(&self) -> &RequestSequence {
        &self.sequence
    }

    fn compatible_with(&self, _first: &Self) -> bool {
        true
    }
}

/// What a server does when it looks at its queue.
pub enum ReplicaStep {
    /// An instance executes the batch for so long.
    Execute { batch: Vec<BatchEntry<SimulatedRequest>>, ns: u64 },
    /// Nothing to do before this time, if any.
    Wait(Option<u64>),
}

/// A server.
pub struct Replica {
    batcher: DynamicBatcher<SimulatedRequest>,
    idle: u32,
    /// Below 1: slower than its model.
    speed: f64,
    wakes: Vec<WakeTarget>,
    /// Since the last report.
    pub busy_ns: f64,
    pub completed: u32,
}

impl Replica {
    pub fn new(model: &ServerModel, speed: f64) -> Self {
        let batching = BatchingSettings {
            max_rows: model.max_rows,
            preferred: Vec::new(),
            delay_ns: model.delay_ns,
        };
        let batcher = DynamicBatcher::new(DynamicSettings {
            batching: (model.max_rows > 1).then_some(batching),
            levels: 0,
            default_level: 0,
            default_policy: QueuePolicy {
                max_size: 0,
                timeout_us: model.deadline_us,
                action: TimeoutAction::Reject,
                allow_override: false,
            },
            policies: BTreeMap::new(),
            fair: false,
        });
        let wakes = Vec::new();
        Self { batcher, idle: model.instances, speed, wakes, busy_ns: 0.0, completed: 0 }
    }

    /// True if an idle instance shall look at the queue.
    pub fn accept(&mut self, request: SimulatedRequest, now: u64) -> bool {
        self.wakes.clear();
        // The queue has no limit, so that nothing is refused.
        let accepted = self.batcher.push(request, now, &mut self.wakes).is_ok();
        accepted && !self.wakes.is_empty() && self.idle > 0
    }

    /// An instance is free again.
    pub fn finish_batch(&mut self, rows: usize) {
        self.idle += 1;
        self.completed += rows as u32;
    }

    pub fn has_idle_instance(&self) -> bool {
        self.idle > 0
    }

    pub fn waiting(&self) -> usize {
        self.batcher.waiting()
    }

    /// Looks at the queue for an idle instance. Requests whose time is over go to `expired`.
    pub fn look(
        &mut self,
        model: &ServerModel,
        now: u64,
        random: &mut RandomStream,
        expired: &mut Vec<SimulatedRequest>,
    ) -> ReplicaStep {
        let mut refused = Vec::new();
        self.batcher.expire(now, &mut refused);
        expired.extend(refused.into_iter().map(|(request, _)| request));
        let mut batch = Vec::with_capacity(model.max_rows as usize);
        match self.batcher.next_batch(now, &mut batch) {
            BatchDecision::Wait { until } => ReplicaStep::Wait(until),
            BatchDecision::Batch(_) => {
                let mean = model.execution_ns(batch.len()) / self.speed;
                let ns = if model.exponential { random.next_exponential(mean) } else { mean };
                self.idle -= 1;
                self.busy_ns += ns;
                ReplicaStep::Execute { batch, ns: ns as u64 }
            }
        }
    }
}
