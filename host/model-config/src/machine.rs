//! The machine that configurations are checked against: its GPUs, and those below
//! `--min-supported-compute-capability`; what flags say of its devices.

use std::collections::BTreeMap;
use std::sync::Arc;
use trtserver_base::host_policy::HostPolicy;
use trtserver_proto::v2::ModelConfig;

/// A GPU, as placement sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineGpu {
    /// CUDA ordinal, as in `gpus` of an instance group.
    pub id: i32,
    pub name: String,
    /// Compute capability, major and minor.
    pub compute: (i32, i32),
}

impl MachineGpu {
    /// `major.minor`, as `cc_model_filenames` spells it.
    pub fn compute_text(&self) -> String {
        format!("{}.{}", self.compute.0, self.compute.1)
    }

    fn supports(&self, min_compute: f64) -> bool {
        // Through text, so that 8.6 is the same number here and in the flag.
        self.compute_text().parse::<f64>().is_ok_and(|compute| compute >= min_compute)
    }
}

/// Facts about this machine that configurations are checked against.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineFacts {
    /// The usable GPUs, by ascending id.
    gpus: Vec<MachineGpu>,
    /// GPUs below `min_compute`, which are not used.
    unsupported: Vec<MachineGpu>,
    /// `--min-supported-compute-capability`.
    min_compute: f64,
    /// `--host-policy`, by name.
    policies: BTreeMap<String, Arc<HostPolicy>>,
    /// `--model-load-gpu-limit`, by GPU.
    load_limits: BTreeMap<i32, f64>,
}

impl MachineFacts {
    pub fn new(mut found: Vec<MachineGpu>, min_compute: f64) -> Self {
        found.sort_by_key(|gpu| gpu.id);
        let (gpus, unsupported) = found.into_iter().partition(|gpu| gpu.supports(min_compute));
        Self { gpus, unsupported, min_compute, ..Self::default() }
    }

    pub fn with_host_policies(mut self, policies: &BTreeMap<String, HostPolicy>) -> Self {
        let shared = |(name, policy): (&String, &HostPolicy)| (name.clone(), policy.clone().into());
        self.policies = policies.iter().map(shared).collect();
        self
    }

    pub fn with_load_limits(mut self, limits: BTreeMap<i32, f64>) -> Self {
        self.load_limits = limits;
        self
    }

    /// The policy of this name, without settings if no flag has any.
    pub fn host_policy(&self, name: &str) -> Arc<HostPolicy> {
        self.policies.get(name).cloned().unwrap_or_else(|| Arc::new(HostPolicy::new(name)))
    }

    /// Share of the GPU's memory that may be in use when an instance is opened there.
    pub fn load_limit(&self, device: i32) -> Option<f64> {
        self.load_limits.get(&device).copied()
    }

    /// Names the GPUs that are not used in the log.
    pub fn log(&self) {
        for gpu in &self.unsupported {
            tracing::warn!(
                "GPU {} ({}) is not used: its compute capability {} is below {}, the value of \
                 --min-supported-compute-capability",
                gpu.id,
                gpu.name,
                gpu.compute_text(),
                self.min_compute
            );
        }
        for policy in self.policies.values() {
            tracing::info!("Instances may have {}", policy.describe());
        }
        for gpu in self.load_limits.keys().filter(|gpu| !self.has_gpu(**gpu)) {
            tracing::warn!(
                "--model-load-gpu-limit has no effect for GPU {gpu}, which is not there or not used"
            );
        }
    }

    pub(super) fn has_gpus(&self) -> bool {
        !self.gpus.is_empty()
    }

    pub(super) fn has_gpu(&self, id: i32) -> bool {
        self.gpu(id).is_some()
    }

    pub(super) fn gpu_ids(&self) -> impl Iterator<Item = i32> {
        self.gpus.iter().map(|gpu| gpu.id)
    }

    /// Why a GPU of a group cannot be used: Triton's text, with the reason where it is the compute
    /// capability.
    pub(super) fn without_gpu(&self, id: i32) -> String {
        let usable: Vec<_> = self.gpu_ids().map(|id| id.to_string()).collect();
        let mut text = format!(
            "specifies invalid or unsupported gpu id {id}. GPUs with at least the minimum required CUDA compute \
             compatibility of {:.6} are: {}",
            self.min_compute,
            usable.join(", ")
        );
        if let Some(gpu) = self.unsupported.iter().find(|gpu| gpu.id == id) {
            text += &format!("; GPU {id} ({}) has {}", gpu.name, gpu.compute_text());
        }
        text
    }

    fn gpu(&self, id: i32) -> Option<&MachineGpu> {
        self.gpus.iter().find(|gpu| gpu.id == id)
    }

    /// For the log: `GPU 0 (7.5)`, or `CPU` for a device below 0.
    pub fn describe(&self, device: i32) -> String {
        match self.gpu(device) {
            Some(gpu) => format!("GPU {device} ({})", gpu.compute_text()),
            None if device < 0 => "CPU".to_owned(),
            None => format!("GPU {device}"),
        }
    }

    /// The model file of an instance on `device`: that of the GPU's compute capability, else the
    /// default.
    pub fn model_file<'a>(&self, config: &'a ModelConfig, device: i32) -> &'a str {
        let by_compute = self
            .gpu(device)
            .and_then(|gpu| config.cc_model_filenames.get(&gpu.compute_text()))
            .filter(|file| !file.is_empty());
        by_compute.unwrap_or(&config.default_model_filename)
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
