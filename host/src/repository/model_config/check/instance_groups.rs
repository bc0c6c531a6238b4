//! Checks of instance groups against the GPUs of this machine.

use trtserver_proto::v2::model_instance_group::Kind;
use trtserver_proto::v2::{ModelConfig, ModelInstanceGroup};

use super::super::{ConfigError, Machine};
use super::refuse;

/// Each instance is a thread and may hold a copy of the model. A higher count is most likely a typing error and could
/// exhaust the machine.
const MAX_COUNT: i32 = 1024;

pub(super) fn check(config: &ModelConfig, machine: &Machine) -> Result<(), ConfigError> {
    if config.instance_group.is_empty() {
        return refuse(format!("must specify one or more 'instance group's for {}", config.name));
    }
    config.instance_group.iter().try_for_each(|group| one(config, group, machine))
}

fn one(
    config: &ModelConfig,
    group: &ModelInstanceGroup,
    machine: &Machine,
) -> Result<(), ConfigError> {
    let subject = format!("instance group {} of model {}", group.name, config.name);
    match group.kind() {
        Kind::Auto => return refuse(format!("{subject} has unexpected kind KIND_AUTO")),
        Kind::Cpu | Kind::Model => {
            if !group.gpus.is_empty() {
                let kind = group.kind().as_str_name();
                return refuse(format!("{subject} has kind {kind} but specifies one or more GPUs"));
            }
        }
        Kind::Gpu => {
            if machine.gpus.is_empty() {
                return refuse(format!("{subject} has kind KIND_GPU but no GPUs are available"));
            }
            if group.gpus.is_empty() {
                return refuse(format!("{subject} has kind KIND_GPU but specifies no GPUs"));
            }
            if let Some(id) = group.gpus.iter().find(|&&id| !machine.has_gpu(id)) {
                let usable: Vec<_> = machine.gpus.iter().map(i32::to_string).collect();
                return refuse(format!(
                    "{subject} specifies invalid or unsupported gpu id {id}. GPUs with at least \
                     the minimum required CUDA compute compatibility of {} are: {}",
                    machine.min_compute,
                    usable.join(", ")
                ));
            }
        }
    }
    if group.count > MAX_COUNT {
        let count = group.count;
        return refuse(format!("{subject} has count {count}, at most {MAX_COUNT} is allowed"));
    }
    // Optimisation profiles exist in TensorRT only.
    let tensorrt = config.backend == "tensorrt" || config.platform == "tensorrt_plan";
    if !group.profile.is_empty() && !tensorrt {
        return refuse(format!(
            "{subject} specifies a profile, which is supported only on TensorRT models"
        ));
    }
    Ok(())
}

#[cfg(test)]
#[path = "instance_groups_tests.rs"]
mod tests;
