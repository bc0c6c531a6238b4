//! What the rate limiter does to the executions of one version, for the statistics extension:
//! the instances that wait, the resources that they wait for, and the holders of these.

use std::collections::HashMap;
use trtserver_models::limiter::{LimiterReport, ResourceReport, ResourceScope, WaitingInstance};
use trtserver_proto::v2::rate_limiter_statistics::{Holder, Resource, Waiting};
use trtserver_proto::v2::{RateLimiterStatistics, StatisticDuration};

/// The limited instances by model and version, found once for all versions.
pub struct LimitedInstances<'a> {
    report: &'a LimiterReport,
    by_version: HashMap<(&'a str, i64), Vec<&'a WaitingInstance>>,
}

impl<'a> LimitedInstances<'a> {
    pub fn new(report: &'a LimiterReport) -> Self {
        let mut by_version: HashMap<_, Vec<_>> = HashMap::new();
        for instance in &report.instances {
            let version = (&*instance.name.model, instance.name.version);
            by_version.entry(version).or_default().push(instance);
        }
        Self { report, by_version }
    }

    /// The statistics of a version; `None` if none of its instances is limited.
    pub fn statistics(&self, model: &str, version: i64) -> Option<RateLimiterStatistics> {
        let instances = self.by_version.get(&(model, version))?;
        let sum = |count: fn(&WaitingInstance) -> u64| instances.iter().map(|i| count(i)).sum();
        Some(RateLimiterStatistics {
            execution_count: sum(|instance| instance.executions),
            wait: Some(StatisticDuration {
                count: sum(|instance| instance.waits),
                ns: sum(|instance| instance.waited_ns),
            }),
            waiting: instances.iter().filter_map(|i| waiting(self.report, i)).collect(),
        })
    }
}

/// `None` if the instance does not wait.
fn waiting(report: &LimiterReport, instance: &WaitingInstance) -> Option<Waiting> {
    let lacking = instance.waits_for.iter().filter_map(|at| report.resources.get(*at));
    Some(Waiting {
        instance: instance.name.instance.clone(),
        waiting_ns: instance.waiting_ns?,
        waits_for: lacking.map(resource).collect(),
    })
}

fn resource(report: &ResourceReport) -> Resource {
    let holders = report.holders.iter().map(|holder| Holder {
        model: holder.name.model.to_string(),
        version: holder.name.version.to_string(),
        instance: holder.name.instance.clone(),
        count: holder.count,
    });
    Resource {
        name: report.name.to_string(),
        device: match report.scope {
            ResourceScope::Global => 0,
            ResourceScope::Device(device) => i64::from(device),
        },
        global: report.scope == ResourceScope::Global,
        count: report.capacity,
        in_use: report.in_use,
        holders: holders.collect(),
    }
}
