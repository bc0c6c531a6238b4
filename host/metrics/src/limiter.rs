//! The rate limiter: resources, and the instances that wait for them.

use super::family::{FamilyBuilder, Labels};
use prometheus::proto::MetricFamily;
use std::collections::BTreeMap;
use trtserver_models::limiter::{LimiterReport, ResourceScope};

fn label(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn resource(name: &str, scope: ResourceScope) -> Labels {
    let device = match scope {
        ResourceScope::Global => "global".to_owned(),
        ResourceScope::Device(device) => device.to_string(),
    };
    Labels::from([label("resource", name), label("device", &device)])
}

/// What the instances of a model version have together.
#[derive(Default)]
struct VersionLimits {
    executions: u64,
    waits: u64,
    waited_ns: u64,
    /// Waiting instances by resource.
    waiting: BTreeMap<Labels, u64>,
    /// What executions hold of each resource.
    held: BTreeMap<Labels, u64>,
}

pub fn limiter_families(report: &LimiterReport) -> Vec<MetricFamily> {
    let mut counts = FamilyBuilder::gauge(
        "trtserver_rate_limiter_resource_count",
        "How many of a resource of the rate limiter there are",
    );
    let mut in_use = FamilyBuilder::gauge(
        "trtserver_rate_limiter_resource_in_use",
        "How many of a resource executions hold",
    );
    for row in &report.resources {
        let labels = resource(&row.name, row.scope);
        counts.put(&labels, row.capacity as f64);
        in_use.put(&labels, row.in_use as f64);
    }
    let mut versions: BTreeMap<(&str, i64), VersionLimits> = BTreeMap::new();
    for instance in &report.instances {
        let of = versions.entry((&instance.name.model, instance.name.version)).or_default();
        of.executions += instance.executions;
        of.waits += instance.waits;
        of.waited_ns += instance.waited_ns;
        for (name, scope, _) in &instance.demand {
            of.waiting.entry(resource(name, *scope)).or_default();
            of.held.entry(resource(name, *scope)).or_default();
        }
        for row in instance.waits_for.iter().filter_map(|at| report.resources.get(*at)) {
            *of.waiting.entry(resource(&row.name, row.scope)).or_default() += 1;
        }
    }
    for row in &report.resources {
        // An execution may outlive its instance.
        for holder in &row.holders {
            let of = versions.entry((&holder.name.model, holder.name.version)).or_default();
            *of.held.entry(resource(&row.name, row.scope)).or_default() += holder.count;
        }
    }
    let mut families = version_families(&versions);
    families.extend([counts.done(), in_use.done()]);
    families
}

fn version_families(versions: &BTreeMap<(&str, i64), VersionLimits>) -> Vec<MetricFamily> {
    let mut executions = FamilyBuilder::counter(
        "trtserver_rate_limiter_executions_total",
        "Executions that needed resources",
    );
    let mut waits = FamilyBuilder::counter(
        "trtserver_rate_limiter_waits_total",
        "Executions that had to wait for resources",
    );
    let mut waited = FamilyBuilder::counter(
        "trtserver_rate_limiter_wait_seconds_total",
        "Time that instances waited for resources",
    );
    let mut waiting = FamilyBuilder::gauge(
        "trtserver_rate_limiter_waiting_instances",
        "Instances that wait for a resource now",
    );
    let mut held = FamilyBuilder::gauge(
        "trtserver_rate_limiter_resource_held",
        "How many of a resource the executions of a model hold",
    );
    for ((model, version), of) in versions {
        let labels = Labels::from([label("model", model), label("version", &version.to_string())]);
        executions.put(&labels, of.executions as f64);
        waits.put(&labels, of.waits as f64);
        waited.put(&labels, of.waited_ns as f64 / 1e9);
        for (resource, instances) in &of.waiting {
            waiting.put(&[labels.clone(), resource.clone()].concat(), *instances as f64);
        }
        for (resource, count) in &of.held {
            held.put(&[labels.clone(), resource.clone()].concat(), *count as f64);
        }
    }
    vec![executions.done(), waits.done(), waited.done(), waiting.done(), held.done()]
}
