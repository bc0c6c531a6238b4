//! Property test: no set of models waits for each other, whatever they demand and call. Random
//! graphs of models, whose executions call other models, are executed on the pure limiter; with an
//! instance for each execution at a time, since waiting for an instance is not the limiter's.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const RESOURCES: [&str; 3] = ["r", "s", "t"];

/// A model: what it demands, and which models its executions call.
#[derive(Clone, Debug)]
struct GraphModel {
    demand: [u64; 3],
    priority: u32,
    calls: Vec<usize>,
    /// It sends all its nested requests at once.
    at_once: bool,
}

/// A request of the test: for a model, on behalf of an execution.
#[derive(Clone, Debug)]
struct Call {
    model: usize,
    parent: Option<usize>,
    depth: usize,
    instance: InstanceId,
    grant: Option<GrantId>,
    /// Calls that it has not made yet, and that have not returned.
    left: Vec<usize>,
    open: usize,
    /// A response that waits for its resources.
    held_back: bool,
    done: bool,
}

fn models() -> impl Strategy<Value = Vec<GraphModel>> {
    (2usize..7).prop_flat_map(|count| {
        let calls = prop::collection::vec(0..count, 0..3);
        let model = (prop::array::uniform3(0u64..4), 0u32..4, calls, any::<bool>());
        let model = model.prop_map(|(demand, priority, calls, at_once)| GraphModel {
            demand,
            priority,
            calls,
            at_once,
        });
        prop::collection::vec(model, count)
    })
}

struct Run {
    models: Vec<GraphModel>,
    state: LimiterState,
    calls: Vec<Call>,
    now: u64,
}

impl Run {
    /// A request arrives: an instance of its own asks for it.
    fn arrive(&mut self, model: usize, parent: Option<usize>, depth: usize) {
        let GraphModel { demand, priority, .. } = &self.models[model];
        let resources = RESOURCES.iter().zip(demand).map(|(name, count)| ResourceDemand {
            name: (*name).to_owned(),
            count: *count,
            global: *name == "t",
        });
        let limits = InstanceLimits { resources: resources.collect(), priority: *priority };
        let name = LimitedName { model: "m".into(), version: 1, instance: model.to_string() };
        let instance = self.state.add(name, &limits, 0).unwrap();
        // Cycles of calls end.
        let left = if depth < 3 { self.models[model].calls.clone() } else { Vec::new() };
        let call = Call {
            model,
            parent,
            depth,
            instance,
            grant: None,
            left,
            open: 0,
            held_back: false,
            done: false,
        };
        self.calls.push(call);
        let index = self.calls.len() - 1;
        if let AskResult::Granted(grant) = self.state.ask(instance, self.now) {
            self.calls[index].grant = Some(grant);
        }
        self.tell();
    }

    fn tell(&mut self) {
        for event in self.state.take_events() {
            match event {
                LimiterEvent::Granted(id) => {
                    let call = self.calls.iter_mut().find(|call| call.instance == id).unwrap();
                    if let AskResult::Granted(grant) = self.state.ask(id, self.now) {
                        call.grant = Some(grant);
                    }
                }
                LimiterEvent::Resumed(grant) => {
                    for call in self.calls.iter_mut().filter(|call| call.grant == Some(grant)) {
                        call.held_back = false;
                    }
                }
            }
        }
    }

    /// Calls that can go on.
    fn ready(&self) -> Vec<usize> {
        let ready =
            |call: &Call| call.grant.is_some() && !call.done && call.open == 0 && !call.held_back;
        (0..self.calls.len()).filter(|index| ready(&self.calls[*index])).collect()
    }

    /// An execution calls its next models, or ends.
    fn advance(&mut self, index: usize) {
        self.now += 1;
        let Call { model, parent, depth, grant, .. } = self.calls[index].clone();
        let grant = grant.unwrap();
        if !self.calls[index].left.is_empty() {
            let at_once = self.models[model].at_once;
            let left = &mut self.calls[index].left;
            let now = if at_once { std::mem::take(left) } else { vec![left.remove(0)] };
            for next in now {
                self.calls[index].open += 1;
                assert!(self.state.begin_nested(grant, self.now));
                self.tell();
                self.arrive(next, Some(index), depth + 1);
            }
            return;
        }
        self.calls[index].done = true;
        self.state.end_and_ask(grant, false, self.now);
        self.state.remove(self.calls[index].instance);
        self.tell();
        if let Some(parent) = parent {
            self.calls[parent].open -= 1;
            let of_parent = self.calls[parent].grant.unwrap();
            let delivered = self.state.end_nested(of_parent, self.now);
            self.calls[parent].held_back = !delivered;
            self.tell();
        }
    }

    /// Held resources never exceed their counts, and an execution that waits for nested requests holds
    /// none.
    fn check(&self) {
        for (_, row) in self.state.table.rows() {
            // The capacity falls when the instance with the largest demand is removed.
            let of = RESOURCES.iter().position(|name| *name == &*row.name).unwrap();
            let largest = self.models.iter().map(|model| model.demand[of]).max().unwrap();
            assert!(row.in_use <= largest && row.capacity <= largest, "{row:?}");
        }
        for execution in self.state.executions.values() {
            assert!(!execution.holds || execution.nested == 0, "{execution:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(40),
        ..ProptestConfig::default()
    })]
    #[test]
    fn no_models_wait_for_each_other(
        models in models(),
        requests in prop::collection::vec((0usize..7, 0usize..1000), 1..12),
        picks in prop::collection::vec(0usize..1000, 40),
        explicit in any::<bool>(),
    ) {
        let largest = |of: usize| models.iter().map(|model| model.demand[of]).max().unwrap_or(0);
        let counts = (0..3).map(|of| ResourceCount {
            name: RESOURCES[of].to_owned(),
            count: largest(of),
            device: None,
        });
        let state = LimiterState::new(if explicit { counts.collect() } else { Vec::new() });
        let mut run = Run { models, state, calls: Vec::new(), now: 0 };
        for (model, _) in &requests {
            run.arrive(model % run.models.len(), None, 0);
        }
        let mut picks = picks.into_iter().cycle();
        loop {
            run.check();
            let ready = run.ready();
            let Some(pick) = picks.next().filter(|_| !ready.is_empty()) else { break };
            run.advance(ready[pick % ready.len()]);
        }
        let stuck: Vec<_> = run.calls.iter().filter(|call| !call.done).collect();
        prop_assert!(stuck.is_empty(), "stuck: {stuck:?}");
        prop_assert_eq!(run.state.table.count(), 0);
        prop_assert!(run.state.executions.is_empty() && run.state.waiters.is_empty());
    }
}
