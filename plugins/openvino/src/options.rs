//! What the configuration asks of the library: a device, and properties by the library's names.
//!
//! The names of parameters are those of Triton's OpenVINO backend, and those that the library has
//! for the same things.

use crate::device::{AUTO, CPU};
use std::path::{Path, PathBuf};
use trtserver_framework::fault::PluginFault;
use trtserver_model_files::stays_inside;

/// Parameters that are properties of the library, passed on as they are.
const PROPERTIES: [&str; 17] = [
    "COMPILATION_NUM_THREADS",
    "CPU_DENORMALS_OPTIMIZATION",
    "CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE",
    "ENABLE_CPU_PINNING",
    "ENABLE_CPU_RESERVATION",
    "ENABLE_HYPER_THREADING",
    "EXECUTION_MODE_HINT",
    "INFERENCE_NUM_THREADS",
    "INFERENCE_PRECISION_HINT",
    "KV_CACHE_PRECISION",
    "MODEL_DISTRIBUTION_POLICY",
    "MODEL_PRIORITY",
    "NUM_STREAMS",
    "PERFORMANCE_HINT",
    "PERFORMANCE_HINT_NUM_REQUESTS",
    "SCHEDULING_CORE_TYPE",
];

/// Of these, those that are numbers.
const NUMBERS: [&str; 3] =
    ["COMPILATION_NUM_THREADS", "INFERENCE_NUM_THREADS", "PERFORMANCE_HINT_NUM_REQUESTS"];

/// The most properties that [`Options::properties`] returns: those above, and `CACHE_DIR`.
pub const MAX_PROPERTIES: usize = PROPERTIES.len() + 1;

/// What the host grants a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// For each instance.
    pub threads: usize,
    pub instances: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The configured device.
    pub device: Option<String>,
    /// Configured properties and their values.
    given: Vec<(&'static str, String)>,
    /// Folder for compiled models.
    pub cache: Option<PathBuf>,
    /// Inputs get the shapes of the configuration instead of those of the file.
    pub reshape_inputs: bool,
    /// A first dimension of 1 stays as it is.
    pub fixed_batch: bool,
    /// A library with operations, as it was configured.
    pub extension: Option<String>,
    /// Log lines about parameters without effect.
    pub notes: Vec<String>,
}

impl Options {
    /// `cache_dir` is the operator's. Unknown parameters are ignored: other parts of the server may
    /// use them.
    ///
    /// # Errors
    /// Names the parameter.
    pub fn read<'a>(
        parameters: impl Iterator<Item = (&'a str, &'a str)>,
        cache_dir: Option<&str>,
    ) -> Result<Self, PluginFault> {
        let cache_dir = cache_dir.filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let mut options = Self { cache: cache_dir.clone(), ..Self::default() };
        for (key, value) in parameters {
            let value = value.trim();
            match key {
                "device" | "TARGET_DEVICE" => options.set_device(key, value)?,
                "HINT_BF16" => {
                    if parse_switch(key, value)? {
                        options.given.push(("INFERENCE_PRECISION_HINT", "bf16".to_owned()));
                    }
                }
                "CACHE_DIR" => options.cache = choose_cache(value, cache_dir.as_deref())?,
                "RESHAPE_IO_LAYERS" => options.reshape_inputs = parse_switch(key, value)?,
                "SKIP_OV_DYNAMIC_BATCHSIZE" => options.fixed_batch = parse_switch(key, value)?,
                "ENABLE_BATCH_PADDING" => {
                    if parse_switch(key, value)? {
                        options.notes.push(format!(
                            "parameter '{key}' has no effect: the batch dimension is dynamic, so that no batch is padded"
                        ));
                    }
                }
                "CPU_EXTENSION_PATH" => options.extension = Some(value.to_owned()),
                _ => options.set_property(key, value)?,
            }
        }
        Ok(options)
    }

    fn set_device(&mut self, key: &str, value: &str) -> Result<(), PluginFault> {
        match &self.device {
            Some(other) if other != value => Err(PluginFault::invalid(format!(
                "parameter '{key}' is '{value}', and another parameter names the device '{other}': one of 'device' and \
                 'TARGET_DEVICE' is enough"
            ))),
            _ if value.is_empty() || value.contains('\0') => Err(PluginFault::invalid(format!(
                "parameter '{key}' is '{value}', expected a device such as CPU, GPU, NPU or AUTO"
            ))),
            _ => {
                self.device = Some(value.to_owned());
                Ok(())
            }
        }
    }

    fn set_property(&mut self, key: &str, value: &str) -> Result<(), PluginFault> {
        let Some(name) = PROPERTIES.iter().find(|name| **name == key) else { return Ok(()) };
        let is_number = value.parse::<u32>().is_ok();
        let is_stream_word = ["AUTO", "NUMA"].contains(&&*value.to_ascii_uppercase());
        let expected = match key {
            _ if NUMBERS.contains(&key) && !is_number => "a number, 0 or more",
            "NUM_STREAMS" if !is_number && !is_stream_word => "a number, AUTO or NUMA",
            _ if value.is_empty() || value.contains('\0') => "a value",
            _ => "",
        };
        if !expected.is_empty() {
            return Err(PluginFault::invalid(format!(
                "parameter '{key}' is '{value}', expected {expected}"
            )));
        }
        let value = match key {
            "NUM_STREAMS" | "PERFORMANCE_HINT" => value.to_ascii_uppercase(),
            _ => value.to_owned(),
        };
        self.given.push((name, value));
        Ok(())
    }

    /// The device of instances of KIND_MODEL, or of other instances.
    pub fn device_for(&self, model_kind: bool) -> &str {
        self.device.as_deref().unwrap_or(if model_kind { AUTO } else { CPU })
    }

    /// Properties for the device, each once.
    ///
    /// On the CPU, streams and threads are those that the host grants, numbers are computed in the
    /// precision of the file, which is not the library's own choice on processors with bfloat16, and
    /// threads are not bound to cores, which those of other models use as well.
    pub fn properties(&self, device: &str, budget: Budget) -> Vec<(&'static str, String)> {
        let mut all: Vec<(&'static str, String)> = Vec::new();
        let gives = |key: &str| self.given.iter().any(|(given, _)| *given == key);
        if device == CPU {
            let instances = budget.instances.max(1);
            // With one the library reports no errors of runs with dynamic shapes.
            let threads = budget.threads.saturating_mul(instances).max(2);
            match gives("PERFORMANCE_HINT") {
                // The library chooses streams for so many runs at once.
                true => all.push(("PERFORMANCE_HINT_NUM_REQUESTS", instances.to_string())),
                false => all.push(("NUM_STREAMS", instances.to_string())),
            }
            all.push(("INFERENCE_NUM_THREADS", threads.to_string()));
            if !gives("EXECUTION_MODE_HINT") {
                all.push(("INFERENCE_PRECISION_HINT", "f32".to_owned()));
            }
            all.push(("ENABLE_CPU_PINNING", "NO".to_owned()));
        }
        for (key, value) in &self.given {
            match all.iter_mut().find(|(own, _)| own == key) {
                Some((_, own)) => own.clone_from(value),
                None => all.push((key, value.clone())),
            }
        }
        if let Some(dir) = &self.cache {
            all.push(("CACHE_DIR", dir.display().to_string()));
        }
        all
    }
}

/// The folder for compiled models of one model: the operator's, one below it, or none.
fn choose_cache(value: &str, operators: Option<&Path>) -> Result<Option<PathBuf>, PluginFault> {
    if value.is_empty() || value.eq_ignore_ascii_case("no") {
        return Ok(None);
    }
    let refused =
        |why: &str| Err(PluginFault::invalid(format!("parameter 'CACHE_DIR' is '{value}': {why}")));
    match operators {
        None => refused(
            "the server writes compiled models only below the folder of --backend-config=openvino,cache-dir=PATH, and \
             that is not set",
        ),
        Some(_) if !stays_inside(value) => refused(
            "expected a name below the folder of --backend-config=openvino,cache-dir=PATH, without '..'",
        ),
        Some(dir) => Ok(Some(dir.join(value))),
    }
}

fn parse_switch(key: &str, value: &str) -> Result<bool, PluginFault> {
    match &*value.to_ascii_lowercase() {
        "yes" | "true" | "1" => Ok(true),
        "no" | "false" | "0" => Ok(false),
        _ => {
            Err(PluginFault::invalid(format!("parameter '{key}' is '{value}', expected YES or NO")))
        }
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
