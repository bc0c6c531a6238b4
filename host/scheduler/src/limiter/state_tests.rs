//! Unit tests of `state.rs`: tables on a fake clock.

use super::*;

fn limits(priority: u32, demands: &[(&str, u64, bool)]) -> InstanceLimits {
    let demand = |(name, count, global): &(&str, u64, bool)| ResourceDemand {
        name: (*name).to_owned(),
        count: *count,
        global: *global,
    };
    InstanceLimits { resources: demands.iter().map(demand).collect(), priority }
}

fn name(model: &str) -> LimitedName {
    LimitedName { model: model.into(), version: 1, instance: format!("{model}_0_cpu") }
}

fn add(state: &mut LimiterState, model: &str, priority: u32, demands: &[(&str, u64)]) -> u64 {
    let demands: Vec<_> = demands.iter().map(|(name, count)| (*name, *count, false)).collect();
    state.add(name(model), &limits(priority, &demands), -1).unwrap()
}

fn granted(state: &mut LimiterState, id: u64) -> u64 {
    match state.ask(id, 0) {
        AskResult::Granted(grant) => grant,
        waiting => panic!("{waiting:?}"),
    }
}

fn waits(state: &mut LimiterState, id: u64) {
    assert_eq!(state.ask(id, 0), AskResult::Waiting { new: true });
}

/// Instances that were granted in the events.
fn told(state: &mut LimiterState) -> Vec<u64> {
    let granted = |event| match event {
        LimiterEvent::Granted(id) => Some(id),
        LimiterEvent::Resumed(_) => None,
    };
    state.take_events().into_iter().filter_map(granted).collect()
}

#[test]
fn one_executes_at_a_time() {
    let mut state = LimiterState::default();
    let (a, b) = (add(&mut state, "a", 0, &[("r", 4)]), add(&mut state, "b", 0, &[("r", 2)]));
    let first = granted(&mut state, a);
    waits(&mut state, b);
    assert_eq!(state.ask(b, 0), AskResult::Waiting { new: false });
    assert!(told(&mut state).is_empty());
    state.end(first, 5);
    assert_eq!(told(&mut state), [b]);
    granted(&mut state, b);
    // Two of four are left.
    waits(&mut state, a);
}

#[test]
fn priorities_share_executions() {
    // Priorities of two instances that always have work, and their shares of 60 executions.
    for (priorities, shares) in
        [([1, 1], [30, 30]), ([1, 2], [40, 20]), ([0, 2], [40, 20]), ([3, 1], [15, 45])]
    {
        let mut state = LimiterState::default();
        let ids = [0, 1].map(|i| add(&mut state, ["a", "b"][i], priorities[i], &[("r", 1)]));
        let mut executed = [0; 2];
        let mut grant = granted(&mut state, ids[0]);
        waits(&mut state, ids[1]);
        let mut current = 0;
        for _ in 0..60 {
            executed[current] += 1;
            state.end_and_ask(grant, true, 0);
            told(&mut state);
            current = (0..2).find(|i| state.instances[&ids[*i]].reserved.is_some()).unwrap();
            grant = granted(&mut state, ids[current]);
        }
        for (executed, share) in executed.iter().zip(shares) {
            assert!(i32::abs(executed - share) <= 1, "{priorities:?}: {executed:?}, not {share}");
        }
    }
}

#[test]
fn instance_does_not_catch_up_what_it_did_not_ask_for() {
    let mut state = LimiterState::default();
    let (a, b) = (add(&mut state, "a", 1, &[("r", 1)]), add(&mut state, "b", 1, &[("r", 1)]));
    for _ in 0..1000 {
        let grant = granted(&mut state, a);
        state.end(grant, 0);
    }
    told(&mut state);
    let mut grant = granted(&mut state, a);
    waits(&mut state, b);
    let mut order = Vec::new();
    for _ in 0..4 {
        state.end_and_ask(grant, true, 0);
        told(&mut state);
        let next = if state.instances[&a].reserved.is_some() { a } else { b };
        order.push(next);
        grant = granted(&mut state, next);
    }
    assert!(order.iter().filter(|id| **id == b).count() <= 2, "{order:?}");
}

#[test]
fn waiter_keeps_its_resources_from_those_behind_it_and_nothing_else() {
    let mut state = LimiterState::default();
    let small = add(&mut state, "small", 1, &[("r", 1)]);
    let large = add(&mut state, "large", 1, &[("r", 2)]);
    let late = add(&mut state, "late", 1, &[("r", 1)]);
    let other = add(&mut state, "other", 1, &[("s", 1)]);
    let grant = granted(&mut state, small);
    waits(&mut state, large);
    waits(&mut state, late);
    granted(&mut state, other);
    state.end(grant, 0);
    assert_eq!(told(&mut state), [large]);
}

#[test]
fn withdrawn_instance_keeps_nothing() {
    let mut state = LimiterState::default();
    let [a, b, c] = ["a", "b", "c"].map(|model| add(&mut state, model, 1, &[("r", 1)]));
    let grant = granted(&mut state, a);
    waits(&mut state, b);
    waits(&mut state, c);
    state.withdraw(b);
    state.end(grant, 0);
    assert_eq!(told(&mut state), [c]);
    let executions = state.instances[&c].executions;
    // Granted, and not taken.
    state.withdraw(c);
    assert_eq!(state.instances[&c].executions, executions - 1);
    granted(&mut state, b);
    state.remove(b);
    waits(&mut state, a);
}

#[test]
fn nested_requests_lend_the_resources() {
    let mut state = LimiterState::default();
    let (outer, inner) =
        (add(&mut state, "outer", 1, &[("r", 1)]), add(&mut state, "inner", 1, &[("r", 1)]));
    let outer_grant = granted(&mut state, outer);
    assert!(state.begin_nested(outer_grant, 0) && state.begin_nested(outer_grant, 0));
    let inner_grant = granted(&mut state, inner);
    // One response of two is delivered although its resources are in use.
    assert!(state.end_nested(outer_grant, 0));
    assert!(!state.end_nested(outer_grant, 0));
    told(&mut state);
    // It comes before the instance that executes, whatever the turns are.
    state.end_and_ask(inner_grant, true, 0);
    assert!(state.take_events().contains(&LimiterEvent::Resumed(outer_grant)));
    assert_eq!(state.ask(inner, 0), AskResult::Waiting { new: false });
    state.end(outer_grant, 0);
    assert_eq!(told(&mut state), [inner]);
    assert!(!state.begin_nested(outer_grant, 0), "it has ended");
    assert!(state.end_nested(outer_grant, 0));
}

#[test]
fn execution_that_ends_or_goes_on_resumes() {
    for ends in [true, false] {
        let mut state = LimiterState::default();
        let (outer, inner) =
            (add(&mut state, "outer", 1, &[("r", 1)]), add(&mut state, "inner", 1, &[("r", 1)]));
        let grant = granted(&mut state, outer);
        state.begin_nested(grant, 0);
        granted(&mut state, inner);
        assert!(!state.end_nested(grant, 0));
        state.take_events();
        match ends {
            true => state.end(grant, 0),
            false => drop(state.begin_nested(grant, 0)),
        }
        assert_eq!(state.take_events(), [LimiterEvent::Resumed(grant)]);
    }
}

#[test]
fn removed_instance_leaves_its_execution_what_it_needs() {
    let mut state = LimiterState::default();
    let large = add(&mut state, "large", 1, &[("r", 4)]);
    let small = add(&mut state, "small", 1, &[("r", 1)]);
    let grant = granted(&mut state, large);
    state.begin_nested(grant, 0);
    state.remove(large);
    let other = granted(&mut state, small);
    assert!(!state.end_nested(grant, 0));
    state.end(other, 0);
    assert!(state.take_events().contains(&LimiterEvent::Resumed(grant)));
    state.end(grant, 0);
    assert_eq!(state.table.rows().map(|(_, row)| (row.capacity, row.in_use)).next(), Some((1, 0)));
}

#[test]
fn refused_demands() {
    let conflict = "Resource \"r\" is present as both global and device-specific resource in the model configuration.";
    let mut state = LimiterState::default();
    state.add(name("a"), &limits(1, &[("r", 1, true)]), 0).unwrap();
    // A new version of the model itself may change the scope.
    let new = state.add(name("a"), &limits(1, &[("r", 1, false)]), 0).unwrap();
    state.remove(new);
    let both = state.add(name("b"), &limits(1, &[("q", 1, false), ("q", 2, true)]), 0);
    assert!(both.unwrap_err().message.starts_with("Resource \"q\" is present as both"));
    let error = state.add(name("b"), &limits(1, &[("r", 1, false)]), 0).unwrap_err();
    assert!(error.message.starts_with(conflict), "{error}");
    assert!(error.message.contains("'a'") && error.message.contains("'b'"), "{error}");
    // Nothing of a refused instance is left.
    assert_eq!((state.table.count(), state.instances.len()), (1, 1));
    let given = ResourceCount { name: "r".to_owned(), count: 1, device: Some(1) };
    let mut state = LimiterState::new(vec![given]);
    state.add(name("a"), &limits(1, &[("r", 1, false)]), 1).unwrap();
    let error = state.add(name("a"), &limits(1, &[("r", 1, false)]), -1).unwrap_err().message;
    assert!(error.contains("limited to 0 which"), "{error}");
    // The last of several, and nothing for a count of 0.
    let twice = limits(1, &[("r", 9, false), ("r", 1, false), ("s", 0, true)]);
    state.add(name("a"), &twice, 1).unwrap();
}
