//! The resources of the rate limiter: which exist, how many of each, and how many are in use.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use trtserver_base::error::{Error, Result};

/// Where a resource counts: once for the server, or once for each device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceScope {
    Global,
    Device(i32),
}

/// How many of a resource an instance needs for an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceDemand {
    pub name: String,
    pub count: u64,
    pub global: bool,
}

/// How many of a resource there are: `--rate-limit-resource`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceCount {
    pub name: String,
    pub count: u64,
    /// `None`: on each device, or in the server for a global resource.
    pub device: Option<i32>,
}

/// Index of a row, and a count.
pub(super) type RowCount = (usize, u64);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ResourceKey {
    name: Arc<str>,
    scope: ResourceScope,
}

#[derive(Debug)]
pub(super) struct ResourceRow {
    pub name: Arc<str>,
    pub scope: ResourceScope,
    pub capacity: u64,
    pub in_use: u64,
    /// How many instances and executions need each count.
    demands: BTreeMap<u64, usize>,
}

/// All resources. A row lives as long as an instance or an execution refers to it.
#[derive(Debug, Default)]
pub(super) struct ResourceTable {
    explicit: Vec<ResourceCount>,
    rows: Vec<Option<ResourceRow>>,
    by_key: HashMap<ResourceKey, usize>,
}

impl ResourceTable {
    pub fn new(explicit: Vec<ResourceCount>) -> Self {
        Self { explicit, ..Self::default() }
    }

    /// How many of a resource the flags give; `None` without any such flag: then the largest demand
    /// counts. Once a flag names one resource, resources without a flag have a count of 0.
    pub fn explicit_count(&self, name: &str, scope: ResourceScope) -> Option<u64> {
        if self.explicit.is_empty() {
            return None;
        }
        let counts = |of: &&ResourceCount| {
            of.name == name
                && match (scope, of.device) {
                    // The server has one of it, whatever the device is.
                    (ResourceScope::Global, _) | (_, None) => true,
                    (ResourceScope::Device(device), Some(of)) => of == device,
                }
        };
        Some(self.explicit.iter().filter(counts).map(|of| of.count).max().unwrap_or(0))
    }

    /// # Errors
    /// The flags give less than `count`, so that an instance could never execute.
    pub fn check(&self, model: &str, name: &str, scope: ResourceScope, count: u64) -> Result<()> {
        match self.explicit_count(name, scope) {
            Some(limit) if limit < count => Err(Error::invalid(format!(
                "Resource count for \"{name}\" is limited to {limit} which will prevent scheduling of one or more model instances, the minimum required count is {count}; raise it with --rate-limit-resource={name}:{count}, or lower the count in instance_group.rate_limiter of model '{model}'"
            ))),
            _ => Ok(()),
        }
    }

    /// Enters the demand of an instance, which was checked.
    pub fn add_demand(&mut self, name: &str, scope: ResourceScope, count: u64) -> RowCount {
        let key = ResourceKey { name: name.into(), scope };
        let row = match self.by_key.get(&key) {
            Some(row) => *row,
            None => self.new_row(key),
        };
        self.repeat_demand((row, count));
        (row, count)
    }

    /// Enters a demand a further time.
    pub fn repeat_demand(&mut self, (row, count): RowCount) {
        if let Some(of) = self.row_mut(row) {
            *of.demands.entry(count).or_default() += 1;
        }
        self.update_capacity(row);
    }

    pub fn remove_demand(&mut self, (row, count): RowCount) {
        let Some(of) = self.row_mut(row) else { return };
        if let Some(times) = of.demands.get_mut(&count) {
            *times -= 1;
            if *times == 0 {
                of.demands.remove(&count);
            }
        }
        if of.demands.is_empty() {
            let key = ResourceKey { name: Arc::clone(&of.name), scope: of.scope };
            self.by_key.remove(&key);
            self.rows[row] = None;
        }
        self.update_capacity(row);
    }

    pub fn fits(&self, demand: &[RowCount]) -> bool {
        let fits = |(row, count): &RowCount| {
            self.row(*row).is_none_or(|of| of.in_use.saturating_add(*count) <= of.capacity)
        };
        demand.iter().all(fits)
    }

    pub fn take(&mut self, demand: &[RowCount]) {
        for (row, count) in demand {
            if let Some(of) = self.row_mut(*row) {
                of.in_use += count;
            }
        }
    }

    pub fn give_back(&mut self, demand: &[RowCount]) {
        for (row, count) in demand {
            if let Some(of) = self.row_mut(*row) {
                debug_assert!(of.in_use >= *count, "{} of {}", of.in_use, of.name);
                of.in_use = of.in_use.saturating_sub(*count);
            }
        }
    }

    pub fn row(&self, row: usize) -> Option<&ResourceRow> {
        self.rows.get(row)?.as_ref()
    }

    pub fn rows(&self) -> impl Iterator<Item = (usize, &ResourceRow)> {
        self.rows.iter().enumerate().filter_map(|(row, of)| Some((row, of.as_ref()?)))
    }

    pub fn count(&self) -> usize {
        self.by_key.len()
    }

    fn row_mut(&mut self, row: usize) -> Option<&mut ResourceRow> {
        self.rows.get_mut(row)?.as_mut()
    }

    fn new_row(&mut self, key: ResourceKey) -> usize {
        let (name, scope) = (Arc::clone(&key.name), key.scope);
        let new = ResourceRow { name, scope, capacity: 0, in_use: 0, demands: BTreeMap::new() };
        let free = self.rows.iter().position(Option::is_none);
        let row = free.unwrap_or(self.rows.len());
        match self.rows.get_mut(row) {
            Some(place) => *place = Some(new),
            None => self.rows.push(Some(new)),
        }
        self.by_key.insert(key, row);
        row
    }

    /// The flags decide, else the largest demand.
    fn update_capacity(&mut self, row: usize) {
        let Some(of) = self.row(row) else { return };
        let largest = of.demands.keys().next_back().copied().unwrap_or(0);
        let capacity = self.explicit_count(&of.name, of.scope).unwrap_or(largest);
        if let Some(of) = self.row_mut(row) {
            of.capacity = capacity;
        }
    }
}

#[cfg(test)]
#[path = "resources_tests.rs"]
mod tests;
