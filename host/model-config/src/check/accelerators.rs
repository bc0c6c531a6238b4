//! Checks `optimization.execution_accelerators`: refused unless the backend reads them, because
//! they would be ignored. Those for which the model has no instance are ignored with a warning: one
//! configuration serves machines with and without GPUs.

use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_instance_group::Kind;
use trtserver_proto::v2::model_optimization_policy::execution_accelerators::Accelerator;

use super::super::platforms::ENSEMBLE;
use super::super::{ConfigError, ConfigWarning, InstanceSupport};

/// Names the first accelerator that nothing reads.
pub(super) fn check_accelerators(
    config: &ModelConfig,
    support: &InstanceSupport,
) -> Result<(), ConfigError> {
    let mut used = requested(config).filter(|(device, _)| has_instance(config, device));
    let Some((device, first)) = used.next() else { return Ok(()) };
    let (model, name) = (&config.name, &first.name);
    let why = match (config.platform == ENSEMBLE, support.declares(backend_flags::ACCELERATORS)) {
        (true, _) => {
            "an ensemble executes nothing by itself; configure the models of its steps".to_owned()
        }
        (false, true) => return Ok(()),
        (false, false) => {
            format!("backend '{}' supports no execution accelerators", support.backend)
        }
    };
    Err(ConfigError::unsupported(format!(
        "{device}_execution_accelerator '{name}' requested for model '{model}': {why}"
    )))
}

/// A warning for each device whose accelerators no instance can use.
pub(super) fn idle_accelerators(config: &ModelConfig) -> Vec<ConfigWarning> {
    let idle = |device: &&str| {
        requested(config).any(|(of, _)| of == *device) && !has_instance(config, device)
    };
    let warning = |device: &str| {
        let field = format!("optimization.execution_accelerators.{device}_execution_accelerator");
        let kind = if device == GPU { "KIND_GPU" } else { "KIND_CPU" };
        let message = format!("'{field}' has no effect: the model has no instance of {kind}");
        ConfigWarning { field, message }
    };
    [GPU, CPU].iter().filter(|device| idle(device)).map(|device| warning(device)).collect()
}

const GPU: &str = "gpu";
const CPU: &str = "cpu";

/// The device of each accelerator, and the accelerator.
fn requested(config: &ModelConfig) -> impl Iterator<Item = (&'static str, &Accelerator)> {
    let all = config.optimization.as_ref().and_then(|o| o.execution_accelerators.as_ref());
    all.into_iter().flat_map(|all| {
        let gpu = all.gpu_execution_accelerator.iter().map(|a| (GPU, a));
        gpu.chain(all.cpu_execution_accelerator.iter().map(|a| (CPU, a)))
    })
}

/// Whether an instance may be on the device, or that is not known yet.
fn has_instance(config: &ModelConfig, device: &str) -> bool {
    let own = if device == GPU { Kind::Gpu } else { Kind::Cpu };
    let may_be = |kind: Kind| kind == own || matches!(kind, Kind::Auto | Kind::Model);
    config.instance_group.is_empty() || config.instance_group.iter().any(|g| may_be(g.kind()))
}

#[cfg(test)]
#[path = "accelerators_tests.rs"]
mod tests;
