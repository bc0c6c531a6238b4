//! Expands the instance groups of a normalised configuration into single instances.

use super::priority::InstancePriority;
use std::sync::Arc;
use trtserver_base::host_policy::HostPolicy;
use trtserver_model_config::MachineFacts;
use trtserver_plugin_host::load_priority::model_nice;
use trtserver_proto::v2::model_instance_group::Kind;
use trtserver_proto::v2::{ModelConfig, ModelInstanceGroup};
use trtserver_scheduler::limiter::{InstanceLimits, ResourceDemand};

/// One instance to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstancePlan {
    /// `<group>_<i>_cpu` or `<group>_<i>_gpu<device>`, as in TRTIS's log.
    pub name: Arc<str>,
    pub kind: Kind,
    /// GPU ordinal, -1 for a CPU instance.
    pub device: i32,
    /// Model file in the version's directory.
    pub file: String,
    pub profiles: Vec<String>,
    /// Kind and id of further devices.
    pub secondary_devices: Vec<(String, i64)>,
    /// The policy that the group names, or that of the kind.
    pub host_policy: Arc<HostPolicy>,
    pub priority: InstancePriority,
    /// Niceness of its thread.
    pub nice: i32,
    /// What its executions need of the rate limiter.
    pub limits: InstanceLimits,
}

impl InstancePlan {
    /// Whether an instance of this plan is as one of `other`. The niceness does not count: it also
    /// depends on other models.
    pub fn is_same(&self, other: &Self) -> bool {
        let Self {
            name,
            kind,
            device,
            file,
            profiles,
            secondary_devices,
            host_policy,
            priority,
            limits,
            nice: _,
        } = self;
        *name == other.name
            && *kind == other.kind
            && *device == other.device
            && *file == other.file
            && *profiles == other.profiles
            && *secondary_devices == other.secondary_devices
            && *host_policy == other.host_policy
            && *priority == other.priority
            && *limits == other.limits
    }
}

/// All instances of a model: `count` for each group, and for each GPU of a GPU group. `max_asked`:
/// a model of the server has `PRIORITY_MAX`.
pub fn plan_instances(
    config: &ModelConfig,
    max_asked: bool,
    machine: &MachineFacts,
) -> Vec<InstancePlan> {
    let mut plans = Vec::new();
    let priority = InstancePriority::from_config(config);
    for group in &config.instance_group {
        let kind = Kind::try_from(group.kind).unwrap_or(Kind::Cpu);
        let secondary = group.secondary_devices.iter();
        let secondary: Vec<_> = secondary
            .map(|device| (device.kind().as_str_name().to_owned(), device.device_id))
            .collect();
        let limits = instance_limits(group);
        for i in 0..group.count.max(1) {
            let mut plan = |suffix: &str, device: i32| {
                plans.push(InstancePlan {
                    name: format!("{}_{i}_{suffix}", group.name).into(),
                    kind,
                    device,
                    file: machine.model_file(config, device).to_owned(),
                    profiles: group.profile.clone(),
                    secondary_devices: secondary.clone(),
                    host_policy: match (&*group.host_policy, kind) {
                        ("", Kind::Gpu) => machine.host_policy(&format!("gpu_{device}")),
                        ("", Kind::Model) => machine.host_policy("model"),
                        ("", _) => machine.host_policy("cpu"),
                        (named, _) => machine.host_policy(named),
                    },
                    priority,
                    limits: limits.clone(),
                    nice: model_nice(priority.nice(max_asked)),
                });
            };
            match kind {
                Kind::Gpu => group.gpus.iter().for_each(|gpu| plan(&format!("gpu{gpu}"), *gpu)),
                Kind::Model => plan("model", -1),
                _ => plan("cpu", -1),
            }
        }
    }
    plans
}

/// What a group demands of the rate limiter.
fn instance_limits(group: &ModelInstanceGroup) -> InstanceLimits {
    let Some(limiter) = &group.rate_limiter else { return InstanceLimits::default() };
    let resources = limiter.resources.iter().map(|resource| ResourceDemand {
        name: resource.name.clone(),
        count: u64::from(resource.count),
        global: resource.global,
    });
    InstanceLimits { resources: resources.collect(), priority: limiter.priority }
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
