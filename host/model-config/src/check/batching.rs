//! Checks of dynamic batching and its queue policies.

use trtserver_proto::v2::model_config::SchedulingChoice;
use trtserver_proto::v2::model_queue_policy::TimeoutAction;
use trtserver_proto::v2::{ModelConfig, ModelDynamicBatching, ModelQueuePolicy};

use super::super::{ConfigError, ConfigWarning};
use super::refuse_config;

pub(super) fn check_batching(
    config: &ModelConfig,
    dynamic: &ModelDynamicBatching,
) -> Result<(), ConfigError> {
    check_batch_sizes(config, &dynamic.preferred_batch_size, "dynamic batching preferred size")?;
    let model = &config.name;
    let levels = dynamic.priority_levels;
    if levels > 0 {
        let range = 1..=levels;
        if !range.contains(&dynamic.default_priority_level) {
            return refuse_config(format!(
                "default priority level must be in range [1, {levels}] for {model}: it is {}",
                dynamic.default_priority_level
            ));
        }
        if !dynamic.priority_queue_policy.keys().all(|level| range.contains(level)) {
            return refuse_config(format!(
                "priority queue policy must have priority level in range [1, {levels}] for {model}"
            ));
        }
    }
    if dynamic.preserve_ordering {
        if levels > 1 {
            return refuse_config(format!(
                "Only one priority level is allowed when 'preserve_ordering' is true for {model}"
            ));
        }
        let mut policies =
            dynamic.default_queue_policy.iter().chain(dynamic.priority_queue_policy.values());
        if policies.any(allows_delays) {
            return refuse_config(format!(
                "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is \
                 true for {model}"
            ));
        }
    }
    Ok(())
}

/// Warnings of settings that have no effect beside the other settings of the model.
pub(super) fn without_effect(config: &ModelConfig) -> Vec<ConfigWarning> {
    let Some(SchedulingChoice::DynamicBatching(dynamic)) = &config.scheduling_choice else {
        return Vec::new();
    };
    let no_levels = dynamic.priority_levels == 0;
    let no_batches = "'max_batch_size' is 0, so requests are not batched";
    let rows = [
        (
            "default_priority_level",
            no_levels && dynamic.default_priority_level != 0,
            "there are no 'priority_levels'",
        ),
        (
            "priority_queue_policy",
            no_levels && !dynamic.priority_queue_policy.is_empty(),
            "there are no 'priority_levels'",
        ),
        (
            "max_queue_delay_microseconds",
            config.max_batch_size == 0 && dynamic.max_queue_delay_microseconds != 0,
            no_batches,
        ),
    ];
    let set = rows.into_iter().filter(|(_, set, _)| *set);
    set.map(|(field, _, reason)| {
        let field = format!("dynamic_batching.{field}");
        let message = format!("'{field}' has no effect: {reason}");
        ConfigWarning { field, message }
    })
    .collect()
}

/// Preferred batch sizes must be between 1 and the model's maximum. `what` names them in the error.
pub(super) fn check_batch_sizes(
    config: &ModelConfig,
    sizes: &[i32],
    what: &str,
) -> Result<(), ConfigError> {
    for &size in sizes {
        if size <= 0 {
            return refuse_config(format!(
                "{what} must be positive for {}: it is {size}",
                config.name
            ));
        }
        if size > config.max_batch_size {
            return refuse_config(format!(
                "{what} must be <= max batch size for {}: {size} is more than {}",
                config.name, config.max_batch_size
            ));
        }
    }
    Ok(())
}

/// Whether later requests can overtake a request under this policy: DELAY moves a request that
/// timed out.
fn allows_delays(policy: &ModelQueuePolicy) -> bool {
    policy.timeout_action() == TimeoutAction::Delay && policy.default_timeout_microseconds != 0
}

#[cfg(test)]
#[path = "batching_tests.rs"]
mod tests;
