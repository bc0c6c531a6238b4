//! Parameters of the fleet: pools, prices, cold starts, load. docs/scale.md states them.

use crate::replica::ServerModel;

/// From the decision to start a replica to its first request.
#[derive(Clone, Copy, Debug)]
pub struct ColdStart {
    /// A node is there and the pod is bound to it.
    pub node_s: f64,
    pub image_mb: f64,
    pub pull_mb_per_s: f64,
    /// The server's start until its models are loaded.
    pub server_s: f64,
    /// Until a probe has found it ready and every balancer knows.
    pub probe_s: f64,
}

impl ColdStart {
    /// On a node that has no image.
    pub fn seconds(&self) -> f64 {
        self.node_s + self.image_mb / self.pull_mb_per_s + self.server_s + self.probe_s
    }

    /// On a node of the pool, as in a rolling upgrade.
    pub fn seconds_on_node(&self) -> f64 {
        self.seconds() - self.node_s
    }
}

/// A pool of equal servers in three zones.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    pub model: ServerModel,
    /// Of the fixed fleet. An autoscaler has a fifth to twice as many.
    pub replicas: f64,
    pub price_per_hour: f64,
    pub cold_start: ColdStart,
    /// CPU utilisation of a server whose instances are always busy.
    pub cpu_of_busy: f64,
    /// Share of time in which instances are busy, at which the autoscaler by utilisation aims.
    pub busy_target: f64,
    /// Waiting requests of a replica at which the autoscaler by queue length aims.
    pub queue_target: f64,
    /// A rolling upgrade starts the new replica first; else an old one ends first.
    pub surge: bool,
}

/// All pools, and the load at the daily peak.
#[derive(Clone, Debug)]
pub struct FleetSettings {
    pub pools: Vec<PoolSettings>,
    pub peak_rps: f64,
    pub seed: u64,
}

/// Of a server, in both pools.
pub const DEADLINE_US: u64 = 100_000;

impl FleetSettings {
    /// 150 servers with a GPU, 850 without, a million requests a second.
    pub fn thousand(seed: u64, gpu_price: f64, cpu_price: f64) -> Self {
        let pools = vec![gpu_pool(150.0, gpu_price), cpu_pool(850.0, cpu_price)];
        Self { pools, peak_rps: 1e6, seed }
    }

    /// Requests a second of the fixed fleet.
    pub fn capacity(&self) -> f64 {
        self.pools.iter().map(|pool| pool.replicas * pool.model.capacity()).sum()
    }
}

fn gpu_pool(replicas: f64, price_per_hour: f64) -> PoolSettings {
    PoolSettings {
        model: ServerModel {
            name: "GPU",
            instances: 1,
            max_rows: 32,
            delay_ns: 1_000_000,
            base_ns: 1_200_000.0,
            row_ns: 200_000.0,
            exponential: false,
            deadline_us: DEADLINE_US,
        },
        replicas,
        price_per_hour,
        cold_start: ColdStart {
            node_s: 120.0,
            image_mb: 1500.0,
            pull_mb_per_s: 100.0,
            server_s: 8.0,
            probe_s: 6.0,
        },
        cpu_of_busy: 0.3,
        // Small batches keep a GPU busy long before it is full.
        busy_target: 0.9,
        queue_target: 24.0,
        surge: false,
    }
}

fn cpu_pool(replicas: f64, price_per_hour: f64) -> PoolSettings {
    PoolSettings {
        model: ServerModel {
            name: "CPU",
            instances: 4,
            max_rows: 8,
            delay_ns: 1_000_000,
            base_ns: 1_000_000.0,
            row_ns: 4_000_000.0,
            exponential: false,
            deadline_us: DEADLINE_US,
        },
        replicas,
        price_per_hour,
        cold_start: ColdStart {
            node_s: 45.0,
            image_mb: 65.0,
            pull_mb_per_s: 100.0,
            server_s: 0.03,
            probe_s: 6.0,
        },
        cpu_of_busy: 1.0,
        busy_target: 0.65,
        queue_target: 4.0,
        surge: true,
    }
}
