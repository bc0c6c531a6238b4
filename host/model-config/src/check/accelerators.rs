//! Checks `optimization.execution_accelerators`: refused unless the backend reads them, because
//! they would be ignored.

use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_proto::v2::ModelConfig;

use super::super::platforms::ENSEMBLE;
use super::super::{ConfigError, InstanceSupport};

/// Names the first accelerator that nothing reads.
pub(super) fn check_accelerators(
    config: &ModelConfig,
    support: &InstanceSupport,
) -> Result<(), ConfigError> {
    let accelerators = config.optimization.as_ref().and_then(|o| o.execution_accelerators.as_ref());
    let Some(accelerators) = accelerators else { return Ok(()) };
    let gpu = accelerators.gpu_execution_accelerator.iter().map(|a| ("gpu", a));
    let cpu = accelerators.cpu_execution_accelerator.iter().map(|a| ("cpu", a));
    let Some((device, first)) = gpu.chain(cpu).next() else { return Ok(()) };
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

#[cfg(test)]
#[path = "accelerators_tests.rs"]
mod tests;
