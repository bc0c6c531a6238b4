//! The report of the rate limiter for operators: resources, their holders, waiting instances.

use super::resources::ResourceScope;
use super::state::{LimitedName, LimiterState};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The limiter at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimiterReport {
    /// By name and scope.
    pub resources: Vec<ResourceReport>,
    pub instances: Vec<WaitingInstance>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceReport {
    pub name: Arc<str>,
    pub scope: ResourceScope,
    pub capacity: u64,
    pub in_use: u64,
    pub holders: Vec<ResourceHolder>,
}

/// An instance that holds some of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceHolder {
    pub name: Arc<LimitedName>,
    pub count: u64,
}

/// An instance with a demand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingInstance {
    pub name: Arc<LimitedName>,
    pub priority: u64,
    pub executions: u64,
    /// Executions that had to wait, and how long together.
    pub waits: u64,
    pub waited_ns: u64,
    /// How long it has been waiting; `None`: it does not wait.
    pub waiting_ns: Option<u64>,
    /// Executions that hold nothing, because they wait for nested requests.
    pub lending: usize,
    /// Names and counts of what it needs for an execution.
    pub demand: Vec<(Arc<str>, ResourceScope, u64)>,
    /// Positions in [`LimiterReport::resources`] of what it waits for: it does not fit, or is kept
    /// for an instance that comes before.
    pub waits_for: Vec<usize>,
}

impl LimiterReport {
    pub(super) fn new(state: &LimiterState, now: u64) -> Self {
        let mut rows: Vec<_> = state.table.rows().collect();
        rows.sort_by_key(|(_, row)| (Arc::clone(&row.name), row.scope));
        let position = |of: usize| rows.iter().position(|(row, _)| *row == of);
        let resources = rows.iter().map(|(index, row)| ResourceReport {
            name: Arc::clone(&row.name),
            scope: row.scope,
            capacity: row.capacity,
            in_use: row.in_use,
            holders: holders(state, *index),
        });
        let instances = state.instances.iter().map(|(id, instance)| {
            let waits = state.is_waiting(*id);
            let lacking = |row: usize, count: u64| !state.table.fits(&[(row, count)]);
            let demand = instance.demand.iter();
            let lacks: Vec<_> =
                demand.clone().filter(|(row, count)| lacking(*row, *count)).collect();
            // What is kept for others is free.
            let waits_for = if lacks.is_empty() { demand.clone().collect() } else { lacks };
            let named = demand.filter_map(|(row, count)| {
                let row = state.table.row(*row)?;
                Some((Arc::clone(&row.name), row.scope, *count))
            });
            let lends = |e: &&super::state::ExecutionState| e.instance == *id && !e.holds;
            WaitingInstance {
                name: Arc::clone(&instance.name),
                priority: instance.priority,
                executions: instance.executions,
                waits: instance.waits,
                waited_ns: instance.waited_ns,
                waiting_ns: waits.then(|| now.saturating_sub(instance.waiting_since)),
                lending: state.executions.values().filter(lends).count(),
                demand: named.collect(),
                waits_for: match waits {
                    true => waits_for.iter().filter_map(|(row, _)| position(*row)).collect(),
                    false => Vec::new(),
                },
            }
        });
        Self { resources: resources.collect(), instances: instances.collect() }
    }
}

/// Who holds a resource, by instance.
fn holders(state: &LimiterState, row: usize) -> Vec<ResourceHolder> {
    let mut holders: BTreeMap<u64, ResourceHolder> = BTreeMap::new();
    for execution in state.executions.values().filter(|execution| execution.holds) {
        let held = execution.demand.iter().find(|(of, _)| *of == row);
        if let Some((_, count)) = held {
            let none = || ResourceHolder { name: Arc::clone(&execution.name), count: 0 };
            holders.entry(execution.instance).or_insert_with(none).count += count;
        }
    }
    holders.into_values().collect()
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
