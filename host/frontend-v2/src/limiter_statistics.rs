//! What the rate limiter does to the executions of one version, for the statistics extension:
//! who waits, for what, and who holds it.

use trtserver_models::limiter::{LimiterReport, ResourceReport, ResourceScope, WaitingInstance};
use trtserver_proto::v2::rate_limiter_statistics::{Holder, Resource, Waiting};
use trtserver_proto::v2::{RateLimiterStatistics, StatisticDuration};

/// The statistics of a version; `None` if none of its instances is limited.
pub fn limiter_statistics(
    report: &LimiterReport,
    model: &str,
    version: i64,
) -> Option<RateLimiterStatistics> {
    let belongs = |instance: &&WaitingInstance| {
        &*instance.name.model == model && instance.name.version == version
    };
    let mut statistics: Option<RateLimiterStatistics> = None;
    for instance in report.instances.iter().filter(belongs) {
        let of = statistics.get_or_insert_default();
        of.execution_count += instance.executions;
        let wait = of.wait.get_or_insert_default();
        *wait = StatisticDuration {
            count: wait.count + instance.waits,
            ns: wait.ns + instance.waited_ns,
        };
        of.waiting.extend(waiting(report, instance));
    }
    statistics
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
