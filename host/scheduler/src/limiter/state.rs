//! The decisions of the rate limiter: pure, without locks, threads and clock.
//!
//! An instance that has a batch *asks*; it gets all resources of its demand at once, or *waits*
//! with none. So nobody waits while holding a part. An execution that has sent nested requests
//! holds nothing until the last of them has its response: then it waits for its resources again,
//! before all instances. So nobody holds resources while waiting for another model, and no set of
//! models can wait for each other.
//!
//! Among waiting instances the one with the smallest *turn* is first. A turn is that of the
//! previous execution plus the instance's priority, so that instances that always have work
//! execute in the proportion of 1 / priority, which is Triton's executions × priority. One that
//! had no work begins at the turn that was served last: it does not catch up what it did not ask
//! for. A waiter whose demand does not fit keeps its resources from all behind it, but nothing
//! else, so that large demands do not starve and other resources are not idle.

use super::resources::{ResourceCount, ResourceDemand, ResourceScope, ResourceTable, RowCount};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use trtserver_base::error::{Error, Result};

/// An instance as the limiter knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitedName {
    pub model: Arc<str>,
    pub version: i64,
    pub instance: String,
}

/// What an instance needs for an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceLimits {
    pub resources: Vec<ResourceDemand>,
    /// 0 counts as 1.
    pub priority: u32,
}

/// Identifies an instance.
pub type InstanceId = u64;
/// Identifies the resources of an execution.
pub type GrantId = u64;

/// What must be told to others once the limiter's lock is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimiterEvent {
    /// The instance may take its batch: [`LimiterState::ask`] returns its grant.
    Granted(InstanceId),
    /// The execution has its resources again, or does not need them any more.
    Resumed(GrantId),
}

/// The result of asking for an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskResult {
    Granted(GrantId),
    /// `new`: it did not wait before.
    Waiting {
        new: bool,
    },
}

/// Whether it is an instance, since executions that continue come first; then the turn; then the
/// order of arrival.
type WaiterKey = (bool, u64, u64);

#[derive(Clone, Copy, Debug)]
enum Waiter {
    Instance(InstanceId),
    Grant(GrantId),
}

#[derive(Debug)]
pub(super) struct LimitedInstance {
    pub name: Arc<LimitedName>,
    pub demand: Arc<[RowCount]>,
    pub priority: u64,
    pub executions: u64,
    /// The turn of its next execution.
    turn: u64,
    waiting: Option<WaiterKey>,
    pub waiting_since: u64,
    /// Granted, and not taken yet.
    reserved: Option<GrantId>,
    /// Times that it had to wait, and for how long together.
    pub waits: u64,
    pub waited_ns: u64,
}

#[derive(Debug)]
pub(super) struct ExecutionState {
    pub instance: InstanceId,
    pub name: Arc<LimitedName>,
    pub demand: Arc<[RowCount]>,
    /// Nested requests without a final response.
    pub nested: u32,
    pub holds: bool,
    waiting: Option<WaiterKey>,
}

/// Resources, instances, executions and who waits.
#[derive(Debug, Default)]
pub struct LimiterState {
    pub(super) table: ResourceTable,
    pub(super) instances: BTreeMap<InstanceId, LimitedInstance>,
    pub(super) executions: HashMap<GrantId, ExecutionState>,
    waiters: BTreeMap<WaiterKey, Waiter>,
    arrivals: u64,
    last_id: u64,
    /// The turn that was served last.
    served: u64,
    /// The latest time that was given.
    latest: u64,
    events: Vec<LimiterEvent>,
}

impl LimiterState {
    pub fn new(explicit: Vec<ResourceCount>) -> Self {
        Self { table: ResourceTable::new(explicit), ..Self::default() }
    }

    /// Adds an instance on `device`. Resources with a count of 0 limit nothing; of several with one
    /// name the last counts.
    ///
    /// # Errors
    /// It could never execute, or another model has one of its resources with the other scope.
    pub fn add(
        &mut self,
        name: LimitedName,
        limits: &InstanceLimits,
        device: i32,
    ) -> Result<InstanceId> {
        let mut wanted = BTreeMap::new();
        for resource in limits.resources.iter().filter(|resource| resource.count > 0) {
            let scope = match resource.global {
                true => ResourceScope::Global,
                // An instance on the CPU counts on device 0.
                false => ResourceScope::Device(device.max(0)),
            };
            wanted.insert((&*resource.name, scope), resource.count);
        }
        for ((resource, scope), count) in &wanted {
            self.table.check(&name.model, resource, *scope, *count)?;
            let is_global = |scope: &ResourceScope| *scope == ResourceScope::Global;
            let here = wanted
                .keys()
                .any(|(other, of)| other == resource && is_global(of) != is_global(scope));
            let other = self.other_scope(&name.model, resource, is_global(scope));
            if here || other.is_some() {
                let other = other.unwrap_or_else(|| Arc::clone(&name.model));
                return Err(Error::invalid(format!(
                    "Resource \"{resource}\" is present as both global and device-specific resource in the model configuration. Model '{}' has it as {} and model '{other}' as the other; set 'global' of instance_group.rate_limiter.resources alike",
                    name.model,
                    if is_global(scope) { "global" } else { "device-specific" },
                )));
            }
        }
        let demand = wanted
            .into_iter()
            .map(|((resource, scope), count)| self.table.add_demand(resource, scope, count));
        let demand = demand.collect();
        let id = self.next_id();
        let instance = LimitedInstance {
            name: Arc::new(name),
            demand,
            priority: u64::from(limits.priority.max(1)),
            executions: 0,
            turn: self.served,
            waiting: None,
            waiting_since: 0,
            reserved: None,
            waits: 0,
            waited_ns: 0,
        };
        self.instances.insert(id, instance);
        Ok(id)
    }

    /// Another model that has the resource with the other scope. A model that changes it may be
    /// loaded beside its old version.
    fn other_scope(&self, model: &str, resource: &str, global: bool) -> Option<Arc<str>> {
        let others = self.instances.values().filter(|other| *other.name.model != *model);
        let mut clashing =
            others.filter(|other| {
                other.demand.iter().filter_map(|(row, _)| self.table.row(*row)).any(|row| {
                    *row.name == *resource && (row.scope == ResourceScope::Global) != global
                })
            });
        clashing.next().map(|other| Arc::clone(&other.name.model))
    }

    /// The instance executes nothing more. Executions that have not ended keep their resources.
    pub fn remove(&mut self, id: InstanceId) {
        self.withdraw(id);
        if let Some(instance) = self.instances.remove(&id) {
            instance.demand.iter().for_each(|demand| self.table.remove_demand(*demand));
        }
        self.grant(self.latest);
    }

    /// The instance has a batch.
    pub fn ask(&mut self, id: InstanceId, now: u64) -> AskResult {
        let Some(instance) = self.instances.get_mut(&id) else {
            return AskResult::Waiting { new: false };
        };
        if let Some(grant) = instance.reserved.take() {
            return AskResult::Granted(grant);
        }
        if instance.waiting.is_some() {
            return AskResult::Waiting { new: false };
        }
        self.enter(id, now);
        self.grant(now);
        match self.take_reserved(id) {
            Some(grant) => AskResult::Granted(grant),
            None => {
                if let Some(instance) = self.instances.get_mut(&id) {
                    instance.waits += 1;
                }
                AskResult::Waiting { new: true }
            }
        }
    }

    /// An execution has ended; `asks`: its instance has a further batch. Both at once, so that the
    /// instance's turn counts when the resources are given away.
    pub fn end_and_ask(&mut self, grant: GrantId, asks: bool, now: u64) {
        let instance = self.executions.get(&grant).map(|execution| execution.instance);
        if let Some(id) = instance.filter(|_| asks)
            && self
                .instances
                .get(&id)
                .is_some_and(|of| of.waiting.is_none() && of.reserved.is_none())
        {
            self.enter(id, now);
            self.end(grant, now);
            if let Some(instance) = self.instances.get_mut(&id).filter(|of| of.waiting.is_some()) {
                instance.waits += 1;
            }
            // It is asking now.
            let granted = LimiterEvent::Granted(id);
            self.events.retain(|event| *event != granted);
            return;
        }
        self.end(grant, now);
    }

    /// An execution has ended.
    pub fn end(&mut self, grant: GrantId, now: u64) {
        let Some(execution) = self.executions.remove(&grant) else { return };
        if execution.holds {
            self.table.give_back(&execution.demand);
        }
        if let Some(key) = execution.waiting {
            self.waiters.remove(&key);
        }
        execution.demand.iter().for_each(|demand| self.table.remove_demand(*demand));
        self.events.push(LimiterEvent::Resumed(grant));
        self.grant(now);
    }

    /// The instance has no batch any more: it neither waits nor keeps what it was granted.
    pub fn withdraw(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        if let Some(key) = instance.waiting.take() {
            self.waiters.remove(&key);
            self.grant(self.latest);
        } else if let Some(grant) = instance.reserved.take() {
            instance.turn = instance.turn.saturating_sub(instance.priority);
            instance.executions -= 1;
            self.end(grant, self.latest);
        }
    }

    /// A grant for which there was no batch after all.
    pub fn give_back(&mut self, id: InstanceId, grant: GrantId) {
        if let Some(instance) = self.instances.get_mut(&id) {
            instance.reserved = Some(grant);
        }
        self.withdraw(id);
    }

    /// The execution sends a nested request. False if it has ended.
    pub fn begin_nested(&mut self, grant: GrantId, now: u64) -> bool {
        let Some(execution) = self.executions.get_mut(&grant) else { return false };
        execution.nested += 1;
        if let Some(key) = execution.waiting.take() {
            self.waiters.remove(&key);
            // It has gone on without its resources: the response that it waited for comes now.
            self.events.push(LimiterEvent::Resumed(grant));
        }
        if std::mem::take(&mut execution.holds) {
            let demand = Arc::clone(&execution.demand);
            self.table.give_back(&demand);
        }
        self.grant(now);
        true
    }

    /// A nested request has its final response. True: it can be delivered now; false: after
    /// [`LimiterEvent::Resumed`].
    pub fn end_nested(&mut self, grant: GrantId, now: u64) -> bool {
        let arrival = self.next_arrival();
        let Some(execution) = self.executions.get_mut(&grant) else { return true };
        execution.nested = execution.nested.saturating_sub(1);
        if execution.nested > 0 || execution.holds {
            return true;
        }
        let key = (false, 0, arrival);
        execution.waiting = Some(key);
        self.waiters.insert(key, Waiter::Grant(grant));
        self.grant(now);
        let resumed = self.executions.get(&grant).is_none_or(|execution| execution.holds);
        if resumed {
            let event = LimiterEvent::Resumed(grant);
            self.events.retain(|other| *other != event);
        }
        resumed
    }

    /// Executions of a model version that have not ended.
    pub fn executions_of(&self, model: &str, version: i64) -> Vec<GrantId> {
        let of = |e: &ExecutionState| *e.name.model == *model && e.name.version == version;
        self.executions.iter().filter(|(_, e)| of(e)).map(|(grant, _)| *grant).collect()
    }

    pub fn take_events(&mut self) -> Vec<LimiterEvent> {
        std::mem::take(&mut self.events)
    }

    /// The instance waits.
    pub(super) fn is_waiting(&self, id: InstanceId) -> bool {
        self.instances.get(&id).is_some_and(|instance| instance.waiting.is_some())
    }

    fn enter(&mut self, id: InstanceId, now: u64) {
        let arrival = self.next_arrival();
        let Some(instance) = self.instances.get_mut(&id) else { return };
        instance.turn = instance.turn.max(self.served);
        let key = (true, instance.turn, arrival);
        (instance.waiting, instance.waiting_since) = (Some(key), now);
        self.waiters.insert(key, Waiter::Instance(id));
    }

    /// Gives what is free to those who wait, in their order.
    fn grant(&mut self, now: u64) {
        self.latest = self.latest.max(now);
        let mut blocked: Vec<usize> = Vec::new();
        let mut granted: Vec<(WaiterKey, Waiter)> = Vec::new();
        for (key, waiter) in &self.waiters {
            // Nothing is left for anybody.
            if blocked.len() >= self.table.count() && !blocked.is_empty() {
                break;
            }
            let demand = match waiter {
                Waiter::Instance(id) => self.instances.get(id).map(|of| Arc::clone(&of.demand)),
                Waiter::Grant(id) => self.executions.get(id).map(|of| Arc::clone(&of.demand)),
            };
            let Some(demand) = demand else { continue };
            let kept = |(row, _): &RowCount| blocked.contains(row);
            if !demand.iter().any(kept) && self.table.fits(&demand) {
                self.table.take(&demand);
                granted.push((*key, *waiter));
            } else {
                let new: Vec<_> = demand.iter().filter(|of| !kept(of)).map(|of| of.0).collect();
                blocked.extend(new);
            }
        }
        for (key, waiter) in granted {
            self.waiters.remove(&key);
            match waiter {
                Waiter::Instance(id) => self.reserve(id, now),
                Waiter::Grant(grant) => {
                    if let Some(execution) = self.executions.get_mut(&grant) {
                        (execution.holds, execution.waiting) = (true, None);
                    }
                    self.events.push(LimiterEvent::Resumed(grant));
                }
            }
        }
    }

    /// The resources of a waiting instance were taken for it.
    fn reserve(&mut self, id: InstanceId, now: u64) {
        let grant = self.next_id();
        let Some(instance) = self.instances.get_mut(&id) else { return };
        self.served = self.served.max(instance.turn);
        instance.turn = instance.turn.saturating_add(instance.priority);
        instance.executions += 1;
        instance.waited_ns += now.saturating_sub(instance.waiting_since);
        (instance.waiting, instance.reserved) = (None, Some(grant));
        let execution = ExecutionState {
            instance: id,
            name: Arc::clone(&instance.name),
            demand: Arc::clone(&instance.demand),
            nested: 0,
            holds: true,
            waiting: None,
        };
        // What it needs to continue stays in the capacity, even if the instance is removed.
        execution.demand.iter().for_each(|demand| self.table.repeat_demand(*demand));
        self.executions.insert(grant, execution);
        self.events.push(LimiterEvent::Granted(id));
    }

    fn take_reserved(&mut self, id: InstanceId) -> Option<GrantId> {
        let grant = self.instances.get_mut(&id)?.reserved.take()?;
        let event = LimiterEvent::Granted(id);
        self.events.retain(|other| *other != event);
        Some(grant)
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn next_arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "properties_tests.rs"]
mod properties;
