//! A pool of replicas behind balancers, event by event: arrivals, executions, reports.

use crate::latency::LatencyHistogram;
use crate::policy::{BalancingPolicy, LoadReport, RequestBalancer, report_weights};
use crate::random::RandomStream;
use crate::replica::{Replica, ReplicaStep, ServerModel, SimulatedRequest};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use trtserver_scheduler::batcher::BatchEntry;

/// One run.
#[derive(Clone, Debug)]
pub struct ClusterSettings<'a> {
    pub model: &'a ServerModel,
    pub replicas: usize,
    pub balancers: usize,
    pub policy: BalancingPolicy,
    /// Requests a second over the capacity of the replicas at nominal speed.
    pub utilization: f64,
    /// Share of replicas with half the speed: noisy neighbours, throttled clocks.
    pub slow_share: f64,
    /// The others differ by so much in either direction.
    pub speed_spread: f64,
    pub report_ns: u64,
    /// Not counted.
    pub warmup_ns: u64,
    pub measured_ns: u64,
    pub seed: u64,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct ClusterReport {
    pub latency: LatencyHistogram,
    /// Requests whose queue timeout passed.
    pub expired: f64,
    /// Time in which instances were busy, as a share.
    pub busy: f64,
    /// Waiting requests of a replica.
    pub waiting: f64,
    /// Waiting requests of a replica × its time for one, over the deadline.
    pub saturation: f64,
    pub events: u64,
}

impl ClusterReport {
    pub fn error_share(&self) -> f64 {
        let all = self.latency.count() + self.expired;
        if all > 0.0 { self.expired / all } else { 0.0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Finished { replica: usize, batch: usize },
    Look { replica: usize },
    Report,
}

/// The state of a run.
struct Cluster<'a> {
    settings: &'a ClusterSettings<'a>,
    random: RandomStream,
    replicas: Vec<Replica>,
    balancers: Vec<RequestBalancer>,
    weights: Vec<f32>,
    /// Number of the event last, so that the order of equal times is fixed.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    /// Time of the next look of each replica.
    looks: Vec<u64>,
    batches: Vec<Vec<BatchEntry<SimulatedRequest>>>,
    free_batches: Vec<usize>,
    report: ClusterReport,
    samples: f64,
}

/// Runs the pool.
pub fn run_cluster(settings: &ClusterSettings) -> ClusterReport {
    let mut random = RandomStream::new(settings.seed);
    let slow = (settings.slow_share * settings.replicas as f64).round() as usize;
    let speed = |index: usize, random: &mut RandomStream| {
        let around = 1.0 + settings.speed_spread * (2.0 * random.next_unit() - 1.0);
        if index < slow { 0.5 } else { around }
    };
    let replicas = (0..settings.replicas)
        .map(|index| Replica::new(settings.model, speed(index, &mut random)))
        .collect();
    let balancers = (0..settings.balancers)
        .map(|_| RequestBalancer::new(settings.policy, settings.replicas, &mut random))
        .collect();
    let mut cluster = Cluster {
        settings,
        random,
        replicas,
        balancers,
        weights: vec![1.0; settings.replicas],
        events: BinaryHeap::new(),
        scheduled: 0,
        looks: vec![u64::MAX; settings.replicas],
        batches: Vec::new(),
        free_batches: Vec::new(),
        report: ClusterReport::default(),
        samples: 0.0,
    };
    cluster.run();
    cluster.report
}

impl Cluster<'_> {
    fn run(&mut self) {
        let settings = self.settings;
        let rate = settings.utilization * settings.model.capacity() * settings.replicas as f64;
        let (gap, end) = (1e9 / rate, settings.warmup_ns + settings.measured_ns);
        let mut arrival = self.random.next_exponential(gap);
        self.schedule(settings.report_ns, Event::Report);
        loop {
            let next = self.events.peek().map_or(u64::MAX, |Reverse((time, ..))| *time);
            if next.min(arrival as u64) >= end {
                break;
            }
            self.report.events += 1;
            if next <= arrival as u64 {
                let Some(Reverse((now, _, event))) = self.events.pop() else { break };
                self.handle(event, now);
            } else {
                self.arrive(arrival as u64);
                arrival += self.random.next_exponential(gap);
            }
        }
        let instances = f64::from(settings.model.instances) * settings.replicas as f64;
        self.report.busy /= instances * self.samples.max(1.0) * settings.report_ns as f64;
        self.report.waiting /= self.samples.max(1.0) * settings.replicas as f64;
        let deadline = settings.model.deadline_us as f64 / 1e6;
        if deadline > 0.0 {
            self.report.saturation = self.report.waiting / settings.model.capacity() / deadline;
        }
    }

    fn schedule(&mut self, time: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }

    fn is_measured(&self, now: u64) -> bool {
        now >= self.settings.warmup_ns
    }

    fn arrive(&mut self, now: u64) {
        let balancer = self.random.next_index(self.balancers.len());
        let replica = self.balancers[balancer].choose(&self.weights, &mut self.random);
        if self.replicas[replica].accept(SimulatedRequest::new(now, balancer), now) {
            self.look(replica, now);
        }
    }

    fn handle(&mut self, event: Event, now: u64) {
        match event {
            Event::Finished { replica, batch } => self.finish(replica, batch, now),
            Event::Look { replica } => {
                if self.looks[replica] == now {
                    self.looks[replica] = u64::MAX;
                    self.look(replica, now);
                }
            }
            Event::Report => {
                self.collect_reports(now);
                self.schedule(now + self.settings.report_ns, Event::Report);
            }
        }
    }

    /// Starts what the batcher gives to idle instances.
    fn look(&mut self, replica: usize, now: u64) {
        let mut expired = Vec::new();
        while self.replicas[replica].has_idle_instance() {
            let model = self.settings.model;
            let step = self.replicas[replica].look(model, now, &mut self.random, &mut expired);
            match step {
                ReplicaStep::Execute { batch, ns } => {
                    let place = self.free_batches.pop().unwrap_or(self.batches.len());
                    if place == self.batches.len() {
                        self.batches.push(batch);
                    } else {
                        self.batches[place] = batch;
                    }
                    self.schedule(now + ns, Event::Finished { replica, batch: place });
                }
                ReplicaStep::Wait(until) => {
                    if let Some(time) = until.filter(|time| *time < self.looks[replica]) {
                        let time = time.max(now + 1);
                        self.looks[replica] = time;
                        self.schedule(time, Event::Look { replica });
                    }
                    break;
                }
            }
        }
        for request in expired {
            self.balancers[request.balancer].finish(replica);
            if self.is_measured(now) {
                self.report.expired += 1.0;
            }
        }
    }

    fn finish(&mut self, replica: usize, place: usize, now: u64) {
        let batch = std::mem::take(&mut self.batches[place]);
        self.free_batches.push(place);
        self.replicas[replica].finish_batch(batch.len());
        for entry in batch {
            let BatchEntry::Request(request) = entry else { continue };
            self.balancers[request.balancer].finish(replica);
            if self.is_measured(now) {
                self.report.latency.add((now - request.arrived) as f64);
            }
        }
        self.look(replica, now);
    }

    fn collect_reports(&mut self, now: u64) {
        let interval = f64::from(self.settings.model.instances) * self.settings.report_ns as f64;
        let deadline = self.settings.model.deadline_us as f64 / 1e6;
        let measured = self.is_measured(now);
        let mut reports = Vec::with_capacity(self.replicas.len());
        for replica in &mut self.replicas {
            let busy = (replica.busy_ns / interval).min(1.0);
            let wait = replica.waiting() as f64 / self.settings.model.capacity();
            let utilization = match self.settings.policy {
                // A server without a queue still has a load.
                BalancingPolicy::OrcaSaturation if deadline > 0.0 => 0.05 + wait / deadline,
                _ => busy,
            };
            reports.push(LoadReport { completed: replica.completed, utilization });
            if measured {
                self.report.busy += replica.busy_ns.min(interval);
                self.report.waiting += replica.waiting() as f64;
            }
            (replica.busy_ns, replica.completed) = (0.0, 0);
        }
        if measured {
            self.samples += 1.0;
        }
        if self.settings.policy.reads_reports() {
            report_weights(&reports, &mut self.weights);
        }
    }
}
