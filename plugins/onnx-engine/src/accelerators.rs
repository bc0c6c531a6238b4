//! Execution accelerators of a model: which execution providers of the library its sessions use,
//! with which options.
//!
//! | `execution_accelerators` | provider | instances |
//! |---|---|---|
//! | none | CUDA | on GPUs |
//! | `gpu_execution_accelerator`: `cuda` | CUDA | on GPUs |
//! | `gpu_execution_accelerator`: `tensorrt` | TensorRT, CUDA for what it does not take | on GPUs |
//! | `cpu_execution_accelerator`: `openvino` | OpenVINO | others |
//!
//! An unknown accelerator or option is refused. Accelerators for which the model has no instance do
//! not come here (`trtserver_framework::config`).

use crate::gpu::buckets::GRAPHS;
use crate::provider::ExecutionProvider;
use crate::provider_options::{self, OptionRule};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::model_files::FilePlaces;

/// Server setting: the most bytes of GPU memory that the arena of an instance may take, and its
/// default.
pub const LIMIT_SETTING: &str = "gpu-memory-limit";
/// Server setting: the directory of files that options of accelerators name.
pub const DIRECTORY_SETTING: &str = "accelerator-directory";

/// A provider with its options, by the library's names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderOptions {
    pub provider: ExecutionProvider,
    pub options: BTreeMap<String, String>,
}

/// What the server's settings say.
#[derive(Debug, Clone, Default)]
pub struct AcceleratorSettings {
    /// [`LIMIT_SETTING`]
    pub memory_limit: Option<u64>,
    /// [`DIRECTORY_SETTING`]
    pub directory: Option<PathBuf>,
}

impl AcceleratorSettings {
    /// `setting` returns the value of a setting.
    pub fn new<'a>(setting: impl Fn(&str) -> Option<&'a str>) -> Result<Self, PluginFault> {
        let memory_limit = setting(LIMIT_SETTING)
            .map(|text| bytes(format_args!("setting '{LIMIT_SETTING}'"), text))
            .transpose()?;
        let directory = setting(DIRECTORY_SETTING).map(PathBuf::from);
        if let Some(relative) = directory.as_ref().filter(|directory| !directory.is_absolute()) {
            return Err(PluginFault::invalid(format!(
                "setting '{DIRECTORY_SETTING}' must be an absolute path, not '{}'",
                relative.display()
            )));
        }
        Ok(Self { memory_limit, directory })
    }
}

/// The providers of a model's sessions, in the order in which they get nodes of the graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AcceleratorOptions {
    /// Providers of instances on GPUs.
    pub gpu: Vec<ProviderOptions>,
    /// Providers of other instances.
    pub cpu: Vec<ProviderOptions>,
    /// Parameters of the model without effect.
    pub ineffective: Vec<String>,
}

impl AcceleratorOptions {
    /// `params` are the model's parameters.
    pub fn new<'a>(
        config: &Config,
        params: impl Iterator<Item = (&'a str, &'a str)>,
        settings: &AcceleratorSettings,
    ) -> Result<Self, PluginFault> {
        let mut all = Self::default();
        for accelerator in &config.facts.accelerators {
            let refused = |why: String| {
                PluginFault::unsupported(format!(
                    "{} '{}' requested for model '{}': {why}",
                    accelerator.field(),
                    accelerator.name,
                    config.model
                ))
            };
            let Some(provider) = ExecutionProvider::from_accelerator(accelerator) else {
                return Err(refused(
                    "unknown execution accelerator; ONNX Runtime has 'cuda' and 'tensorrt' for GPUs, and 'openvino' \
                     for CPUs"
                        .to_owned(),
                ));
            };
            let list = if accelerator.gpu { &mut all.gpu } else { &mut all.cpu };
            if list.iter().any(|other| other.provider == provider) {
                return Err(refused("it is requested twice".to_owned()));
            }
            let options = build_provider_options(provider, &accelerator.parameters, settings)
                .map_err(refused)?;
            list.push(ProviderOptions { provider, options });
        }
        let named: Vec<_> = params.filter_map(provider_options::parse_model_parameter).collect();
        if !config.facts.gpu_instances {
            all.ineffective = named.into_iter().map(|named| named.key.to_owned()).collect();
            return Ok(all);
        }
        if !all.gpu.iter().any(|other| other.provider == ExecutionProvider::Cuda) {
            all.gpu.push(ProviderOptions {
                provider: ExecutionProvider::Cuda,
                options: BTreeMap::new(),
            });
        }
        for cuda in all.gpu.iter_mut().filter(|other| other.provider == ExecutionProvider::Cuda) {
            for parameter in &named {
                let (key, value) = parameter.option().map_err(|why| {
                    PluginFault::invalid(format!("unable to load model '{}': {why}", config.model))
                })?;
                // The option of an accelerator comes before the parameter of the model.
                if !key.is_empty() {
                    cuda.options.entry(key).or_insert(value);
                }
            }
            let (search, heuristic) = provider_options::CONVOLUTION_SEARCH;
            cuda.options.entry(search.to_owned()).or_insert_with(|| heuristic.to_owned());
            limit_memory(&mut cuda.options, settings).map_err(|fault| {
                fault.within(format_args!("unable to load model '{}'", config.model))
            })?;
        }
        Ok(all)
    }

    /// Removes the option of the CUDA provider that asks for CUDA graphs: which sessions have them is
    /// decided later.
    pub fn take_graph_option(&mut self) -> Option<String> {
        self.gpu.iter_mut().find_map(|used| used.options.remove(GRAPHS))
    }

    /// # Errors
    /// The library lacks a provider of these: names the library and the providers that it has.
    pub fn expect_available(
        &self,
        model: &str,
        library: &str,
        available: &[String],
    ) -> Result<(), PluginFault> {
        for (requested, kind) in
            self.gpu.iter().map(|p| (p, "KIND_GPU")).chain(self.cpu.iter().map(|p| (p, "KIND_CPU")))
        {
            let name = requested.provider.name();
            if !available.iter().any(|other| other == name) {
                return Err(PluginFault::unsupported(format!(
                    "the instances of {kind} of model '{model}' need the {name}, which {library} does not have; it \
                     has: {}; {}",
                    available.join(", "),
                    requested.provider.advice()
                )));
            }
        }
        Ok(())
    }
}

/// The options of an accelerator by the library's names.
fn build_provider_options(
    provider: ExecutionProvider,
    parameters: &BTreeMap<String, String>,
    settings: &AcceleratorSettings,
) -> Result<BTreeMap<String, String>, String> {
    let mut options = BTreeMap::new();
    for (key, value) in parameters {
        match provider_options::option_rule(provider, key) {
            None => {
                return Err(format!(
                    "unknown parameter '{key}'; known are: {}",
                    provider_options::known_options(provider).collect::<Vec<_>>().join(", ")
                ));
            }
            Some(OptionRule::Refused(why)) => return Err(format!("parameter '{key}': {why}")),
            Some(OptionRule::Name) if value.contains(['/', '\0']) => {
                return Err(format!(
                    "parameter '{key}': {value:?} must be a part of a file's name, not a path"
                ));
            }
            Some(OptionRule::Passed | OptionRule::Name) => {
                drop(options.insert(key.clone(), value.clone()))
            }
            Some(OptionRule::Path) => {
                let paths = inside(settings.directory.as_deref(), value)
                    .map_err(|why| format!("parameter '{key}': {why}"))?;
                options.insert(key.clone(), paths);
            }
            Some(OptionRule::Renamed(name)) => drop(options.insert(name.to_owned(), value.clone())),
            Some(OptionRule::Precisions) => {
                for precision in value.split(',').map(str::trim) {
                    let Some(option) = provider_options::precision_mode(precision) else {
                        return Err(format!(
                            "parameter '{key}': unknown precision '{precision}'; known are: FP32, FP16, BF16, INT8"
                        ));
                    };
                    if !option.is_empty() {
                        options.insert(option.to_owned(), "1".to_owned());
                    }
                }
            }
        }
    }
    Ok(options)
}

/// The paths of a list with semicolons in the directory for such files. A configuration may come
/// with a load request, so it must not name other files.
fn inside(directory: Option<&Path>, paths: &str) -> Result<String, String> {
    let Some(directory) = directory else {
        return Err(format!(
            "it names a file, which needs a directory for such files: \
             --backend-config=onnxruntime,{DIRECTORY_SETTING}=DIRECTORY"
        ));
    };
    let places = FilePlaces::new(directory, []);
    let one = |path: &str| {
        let joined = directory.join(path);
        // An absolute path may spell the directory itself.
        let below = joined.strip_prefix(directory).ok().and_then(Path::to_str);
        let found = below.and_then(|below| places.resolve(directory, below).ok());
        found.map(|path| path.display().to_string()).ok_or_else(|| {
            format!("'{path}' is not in {}, the directory for such files", directory.display())
        })
    };
    let all: Result<Vec<_>, _> = paths.split(';').map(|path| one(path.trim())).collect();
    Ok(all?.join(";"))
}

/// Applies the operator's limit to the arena of an instance.
fn limit_memory(
    options: &mut BTreeMap<String, String>,
    settings: &AcceleratorSettings,
) -> Result<(), PluginFault> {
    let Some(requested) = options.get(provider_options::MEMORY_LIMIT) else {
        if let Some(limit) = settings.memory_limit {
            options.insert(provider_options::MEMORY_LIMIT.to_owned(), limit.to_string());
        }
        return Ok(());
    };
    let requested = bytes(provider_options::MEMORY_LIMIT, requested)?;
    match settings.memory_limit {
        Some(limit) if requested > limit => Err(PluginFault::invalid(format!(
            "{} is {requested} bytes, at most {limit} are allowed by \
             --backend-config=onnxruntime,{LIMIT_SETTING}={limit}",
            provider_options::MEMORY_LIMIT
        ))),
        _ => Ok(()),
    }
}

fn bytes(subject: impl std::fmt::Display, text: &str) -> Result<u64, PluginFault> {
    text.trim().parse().ok().filter(|&bytes| bytes > 0).ok_or_else(|| {
        PluginFault::invalid(format!("{subject} must be a number of bytes above 0, not '{text}'"))
    })
}

#[cfg(test)]
#[path = "accelerators_tests.rs"]
mod tests;
