//! Expands the instance groups of a normalised configuration into single instances.

use super::priority::Priority;
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_instance_group::Kind;

/// One instance to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstancePlan {
    /// `<group>_<i>_cpu` or `<group>_<i>_gpu<device>`, as in TRTIS's log.
    pub name: String,
    pub kind: Kind,
    /// GPU ordinal, -1 for a CPU instance.
    pub device: i32,
    pub profiles: Vec<String>,
    pub priority: Priority,
    /// Niceness of its thread.
    pub nice: i32,
}

/// All instances of a model: `count` for each group, and for each GPU of a GPU group. `max_asked`: a model of the server has
/// `PRIORITY_MAX`.
pub fn plans(config: &ModelConfig, max_asked: bool) -> Vec<InstancePlan> {
    let mut plans = Vec::new();
    let priority = Priority::of(config);
    for group in &config.instance_group {
        let kind = Kind::try_from(group.kind).unwrap_or(Kind::Cpu);
        for i in 0..group.count.max(1) {
            let mut plan = |suffix: &str, device: i32| {
                plans.push(InstancePlan {
                    name: format!("{}_{i}_{suffix}", group.name),
                    kind,
                    device,
                    profiles: group.profile.clone(),
                    priority,
                    nice: priority.nice(max_asked),
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

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
