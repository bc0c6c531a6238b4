//! Checks of instance groups against the GPUs of this machine and the kinds of instance that the
//! backend opens.

use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_proto::v2::model_instance_group::Kind;
use trtserver_proto::v2::{ModelConfig, ModelInstanceGroup};

use super::super::{ConfigError, ConfigWarning, InstanceSupport, MachineFacts};
use super::refuse_config;

/// Each instance is a thread and may hold a copy of the model: more than `max` of them in all
/// groups are refused.
pub(super) fn check_instance_groups(
    config: &ModelConfig,
    machine: &MachineFacts,
    support: &InstanceSupport,
    max: usize,
) -> Vec<ConfigError> {
    let (model, groups) = (&config.name, &config.instance_group);
    if groups.is_empty() {
        let text = format!("must specify one or more 'instance group's for {model}");
        return vec![ConfigError::invalid(text)];
    }
    let each = groups
        .iter()
        .filter_map(|group| check_instance_group(config, group, machine, support, max).err());
    let mut refused: Vec<_> = each.collect();
    let total = groups.iter().map(count_instances).fold(0, usize::saturating_add);
    if refused.is_empty() && total > max {
        refused.push(ConfigError::invalid(format!(
            "the instance groups of model {model} have {total} instances, at most {max} are allowed by \
             --max-instances-per-model"
        )));
    }
    refused
}

/// A warning for secondary devices that the backend does not use: they offload a part of the work,
/// and responses are the same without.
pub(super) fn unused_devices(
    config: &ModelConfig,
    support: &InstanceSupport,
) -> Option<ConfigWarning> {
    let mut groups = config.instance_group.iter();
    groups.find(|group| !group.secondary_devices.is_empty())?;
    let field = "instance_group.secondary_devices".to_owned();
    let message =
        format!("'{field}' has no effect: backend '{}' does not use them", support.backend);
    (!support.declares(backend_flags::SECONDARY_DEVICES))
        .then_some(ConfigWarning { field, message })
}

fn check_instance_group(
    config: &ModelConfig,
    group: &ModelInstanceGroup,
    machine: &MachineFacts,
    support: &InstanceSupport,
    max: usize,
) -> Result<(), ConfigError> {
    let subject = format!("instance group {} of model {}", group.name, config.name);
    match group.kind() {
        Kind::Auto => return refuse_config(format!("{subject} has unexpected kind KIND_AUTO")),
        Kind::Cpu | Kind::Model => {
            if !group.gpus.is_empty() {
                let kind = group.kind().as_str_name();
                return refuse_config(format!(
                    "{subject} has kind {kind} but specifies one or more GPUs"
                ));
            }
        }
        Kind::Gpu => {
            if !machine.has_gpus() {
                return refuse_config(format!(
                    "{subject} has kind KIND_GPU but no GPUs are available"
                ));
            }
            if group.gpus.is_empty() {
                return refuse_config(format!("{subject} has kind KIND_GPU but specifies no GPUs"));
            }
            if let Some(&id) = group.gpus.iter().find(|&&id| !machine.has_gpu(id)) {
                return refuse_config(format!("{subject} {}", machine.without_gpu(id)));
            }
        }
    }
    if !support.opens(group.kind()) {
        let (backend, kinds) = (&support.backend, support.kinds_text());
        return refuse_config(match group.kind() {
            // The beginning is the text of v1.6 (docs/protocol/v1.md §7.3).
            Kind::Model => format!(
                "{subject} has kind KIND_MODEL which is supported only on TensorFlow models and by backends \
                 that open it: backend '{backend}' opens only instances of {kinds}"
            ),
            kind => format!(
                "{subject} has kind {} but backend '{backend}' opens only instances of {kinds}",
                kind.as_str_name()
            ),
        });
    }
    let count = group.count;
    if count < 1 {
        return refuse_config(format!("{subject} has count {count}, expected at least 1"));
    }
    if usize::try_from(count).is_ok_and(|count| count > max) {
        return refuse_config(format!(
            "{subject} has count {count}, at most {max} is allowed (--max-instances-per-model)"
        ));
    }
    if !group.profile.is_empty() && !support.declares(backend_flags::PROFILES) {
        // The text of v1.6 (docs/protocol/v1.md §7.3).
        return refuse_config(format!(
            "{subject} specifies a profile, which is supported only on TensorRT models"
        ));
    }
    Ok(())
}

/// A GPU group has `count` instances for each GPU.
fn count_instances(group: &ModelInstanceGroup) -> usize {
    let count = usize::try_from(group.count).unwrap_or(0).max(1);
    match group.kind() {
        Kind::Gpu => count.saturating_mul(group.gpus.len()),
        _ => count,
    }
}

#[cfg(test)]
#[path = "instance_groups_tests.rs"]
mod tests;
