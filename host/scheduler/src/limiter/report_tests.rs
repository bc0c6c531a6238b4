//! Unit tests of `report.rs`.

use super::super::{InstanceLimits, ResourceDemand};
use super::*;
use crate::limiter::state::AskResult;

#[test]
fn holders_and_waiters_are_named() {
    let mut state = LimiterState::default();
    let mut add = |model: &str, count: u64| {
        let demand = ResourceDemand { name: "gpu".to_owned(), count, global: false };
        let limits = InstanceLimits { resources: vec![demand], priority: 2 };
        let instance = format!("{model}_0_cpu");
        let name = LimitedName { model: model.into(), version: 3, instance };
        state.add(name, &limits, 1).unwrap()
    };
    let (a, b) = (add("a", 4), add("b", 2));
    assert!(matches!(state.ask(a, 100), AskResult::Granted(_)));
    assert_eq!(state.ask(b, 200), AskResult::Waiting { new: true });
    let report = LimiterReport::new(&state, 1200);
    let [gpu] = report.resources.as_slice() else { panic!("{report:?}") };
    assert_eq!((&*gpu.name, gpu.scope), ("gpu", ResourceScope::Device(1)));
    assert_eq!((gpu.capacity, gpu.in_use), (4, 4));
    let holders: Vec<_> = gpu.holders.iter().map(|h| (&*h.name.model, h.count)).collect();
    assert_eq!(holders, [("a", 4)]);
    let [holder, waiter] = report.instances.as_slice() else { panic!("{report:?}") };
    assert_eq!((holder.executions, holder.waiting_ns, holder.waits_for.len()), (1, None, 0));
    assert_eq!((&*waiter.name.instance, waiter.name.version), ("b_0_cpu", 3));
    assert_eq!((waiter.waiting_ns, waiter.waits), (Some(1000), 1));
    assert_eq!(waiter.waits_for, [0]);
    assert_eq!((waiter.priority, waiter.demand[0].2), (2, 2));
}
