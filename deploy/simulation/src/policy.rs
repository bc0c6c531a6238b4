//! Balancers: which replica of a pool gets the next request. Each balancer sees its own requests
//! only, as a proxy or a client library does.

use crate::random::RandomStream;

/// How a balancer chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BalancingPolicy {
    Random,
    RoundRobin,
    /// The fewest requests in flight, as far as this balancer knows.
    LeastRequest,
    /// The better of two at random, by requests in flight: `LEAST_REQUEST` of Envoy.
    PowerOfTwo,
    /// Round robin weighted by requests per second over reported utilisation:
    /// `client_side_weighted_round_robin` of Envoy, `weighted_round_robin` of gRPC. The utilisation
    /// is the share of time in which instances are busy.
    OrcaBusy,
    /// The same with the saturation, the predicted wait over the deadline, as the utilisation.
    OrcaSaturation,
}

impl BalancingPolicy {
    pub const ALL: [Self; 6] = [
        Self::Random,
        Self::RoundRobin,
        Self::LeastRequest,
        Self::PowerOfTwo,
        Self::OrcaBusy,
        Self::OrcaSaturation,
    ];

    /// Weights come from load reports.
    pub fn reads_reports(self) -> bool {
        matches!(self, Self::OrcaBusy | Self::OrcaSaturation)
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::RoundRobin => "round robin",
            Self::LeastRequest => "least request",
            Self::PowerOfTwo => "power of two",
            Self::OrcaBusy => "ORCA, busy share",
            Self::OrcaSaturation => "ORCA, saturation",
        }
    }
}

/// One balancer.
#[derive(Clone, Debug)]
pub struct RequestBalancer {
    policy: BalancingPolicy,
    next: usize,
    in_flight: Vec<u32>,
    /// Of the weighted round robin: a replica is due when its sum of weights reaches 1.
    credit: Vec<f32>,
}

impl RequestBalancer {
    /// Balancers begin at different replicas.
    pub fn new(policy: BalancingPolicy, replicas: usize, random: &mut RandomStream) -> Self {
        Self {
            policy,
            next: random.next_index(replicas),
            in_flight: vec![0; replicas],
            credit: (0..replicas).map(|_| random.next_unit() as f32).collect(),
        }
    }

    /// `weights`: of each replica, relative to the largest.
    pub fn choose(&mut self, weights: &[f32], random: &mut RandomStream) -> usize {
        let replicas = self.in_flight.len();
        let chosen = match self.policy {
            BalancingPolicy::Random => random.next_index(replicas),
            BalancingPolicy::RoundRobin => self.step(),
            BalancingPolicy::LeastRequest => self.least(),
            BalancingPolicy::PowerOfTwo => {
                let (a, b) = (random.next_index(replicas), random.next_index(replicas));
                if self.in_flight[b] < self.in_flight[a] { b } else { a }
            }
            BalancingPolicy::OrcaBusy | BalancingPolicy::OrcaSaturation => self.weighted(weights),
        };
        self.in_flight[chosen] += 1;
        chosen
    }

    /// A request has ended.
    pub fn finish(&mut self, replica: usize) {
        self.in_flight[replica] -= 1;
    }

    fn step(&mut self) -> usize {
        let chosen = self.next;
        self.next = if chosen + 1 == self.in_flight.len() { 0 } else { chosen + 1 };
        chosen
    }

    /// Among equals the one behind the last choice.
    fn least(&mut self) -> usize {
        let (before, after) = self.in_flight.split_at(self.next);
        let fewest = |part: &[u32]| {
            let numbered = part.iter().copied().enumerate();
            numbered.min_by_key(|(_, count)| *count)
        };
        let late = fewest(after).map(|(index, count)| (index + before.len(), count));
        let chosen = match (late, fewest(before)) {
            (Some((_, late)), Some((index, early))) if early < late => index,
            (Some((index, _)), _) | (None, Some((index, _))) => index,
            (None, None) => 0,
        };
        self.next = chosen;
        self.step()
    }

    fn weighted(&mut self, weights: &[f32]) -> usize {
        loop {
            let candidate = self.step();
            self.credit[candidate] += weights[candidate];
            if self.credit[candidate] >= 1.0 {
                self.credit[candidate] -= 1.0;
                return candidate;
            }
        }
    }
}

/// What a replica reported for an interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadReport {
    pub completed: u32,
    pub utilization: f64,
}

/// Weights from reports, relative to the largest. A replica that reported no load gets the mean.
pub fn report_weights(reports: &[LoadReport], weights: &mut [f32]) {
    let weight = |report: &LoadReport| {
        let known = report.completed > 0 && report.utilization > 0.0;
        known.then(|| f64::from(report.completed) / report.utilization)
    };
    let known: Vec<f64> = reports.iter().filter_map(weight).collect();
    if known.is_empty() {
        return;
    }
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let largest = known.iter().copied().fold(mean, f64::max);
    for (own, report) in weights.iter_mut().zip(reports) {
        // No replica is starved: it would not report any more.
        *own = (weight(report).unwrap_or(mean) / largest).max(0.02) as f32;
    }
}
