//! Models to check a backend with: from a directory, or made by the check, which have no file.

use super::element::element_value;
use prost::Message;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trtserver_base::disk::list_dir;
use trtserver_model_config::version_dirs::VersionDirs;
use trtserver_model_config::{
    FILE_NAME, InstanceSupport, MachineFacts, PlatformDirectory, VersionListing,
};
use trtserver_models::lifecycle::{decode_patch, merge_patch};
use trtserver_models::load_limits::LoadLimits;
use trtserver_plugin_api::abi::types::tensor_flags;
use trtserver_plugin_host::Patch;
use trtserver_plugin_testkit::{self as testkit, ModelSpec, Request};
use trtserver_proto::v2::ModelConfig;
use trtserver_request::tensor::element_count;
use trtserver_request::{ModelSignature, TensorSpec};

/// A model as a backend is asked to open it.
#[derive(Clone)]
pub struct ModelPlan {
    /// Describes the model in reports.
    pub label: String,
    pub dir: PathBuf,
    pub version_dir: PathBuf,
    pub version: i64,
    pub config: ModelConfig,
    pub signature: Arc<ModelSignature>,
    /// Made by the check; the backend may not support its tensors.
    pub own: bool,
}

/// Name, platforms and flags of the backend.
pub struct BackendPlatforms {
    pub name: String,
    pub platforms: Vec<(String, String)>,
    /// Bits of `backend_flags`.
    pub flags: u32,
}

impl PlatformDirectory for BackendPlatforms {
    fn find_backend(&self, platform: &str) -> Option<String> {
        self.platforms.iter().any(|(p, _)| p == platform).then(|| self.name.clone())
    }

    fn list_platforms(&self, backend: &str) -> Vec<String> {
        let mine = self.platforms.iter().filter(|_| backend == self.name);
        mine.map(|(platform, _)| platform.clone()).collect()
    }

    fn default_file(&self, name: &str) -> Option<String> {
        let of_platform = self.platforms.iter().find(|(p, _)| p == name);
        let of_backend = || self.platforms.first().filter(|_| name == self.name);
        of_platform.or_else(of_backend).map(|(_, f)| f.clone()).filter(|f| !f.is_empty())
    }

    fn installed_backends(&self) -> Vec<String> {
        vec![self.name.clone()]
    }

    fn searched_dirs(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Reads a model's directory: the configuration as written, the latest version and its directory.
///
/// # Errors
/// The directory is not a model's.
pub fn read_model(dir: &Path) -> Result<(ModelConfig, i64, String), String> {
    let wrong = |what: &str| {
        format!("--model={}: expected the directory of a model with {what}", dir.display())
    };
    let config =
        trtserver_model_config::read_model_config(&dir.join(FILE_NAME)).map_err(|e| e.message)?;
    let config = config.ok_or_else(|| wrong("a 'config.pbtxt', which is not there"))?;
    let found = VersionDirs::read(dir).map_err(|e| e.message)?;
    let latest = found.versions.into_iter().next_back();
    let (number, entry) = latest
        .ok_or_else(|| wrong("a version, a directory with a number for a name; there is none"))?;
    Ok((config, number, entry))
}

impl ModelPlan {
    fn from_config(
        mut config: ModelConfig,
        dir: &Path,
        entry: &str,
        version: i64,
        own: bool,
        flags: u32,
    ) -> Result<Self, String> {
        let machine = MachineFacts::default();
        let mut support = InstanceSupport::every_kind();
        support.flags |= flags;
        trtserver_model_config::normalise_config(&mut config, &machine, &support);
        let instances = LoadLimits::default().instances;
        let checked = trtserver_model_config::check_config(&config, &machine, &support, instances);
        checked.map_err(|refused| refused[0].message.clone())?;
        let signature = Arc::new(ModelSignature::new(&config, |_| None).map_err(|e| e.message)?);
        let (dir, version_dir) = (dir.to_owned(), dir.join(entry));
        let label = match own {
            true => own_label(&signature),
            false => format!("'{}'", dir.display()),
        };
        Ok(Self { label, dir, version_dir, version, config, signature, own })
    }

    /// The latest version of the model in `dir`. `complete` asks the backend for what the
    /// configuration omits.
    pub fn from_dir(
        dir: &Path,
        platforms: &BackendPlatforms,
        complete: impl FnOnce(&ModelPlan) -> Result<Option<Patch>, String>,
    ) -> Result<Self, String> {
        let (mut config, number, entry) = read_model(dir)?;
        let dir = std::path::absolute(dir).map_err(|e| e.to_string())?;
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let version_dir = dir.join(&entry);
        let entries = list_dir(&version_dir).map_err(|e| e.message)?;
        let versions = [VersionListing { number, dir: version_dir, entries }];
        trtserver_model_config::complete_config(&mut config, &name, &versions, platforms, None)
            .map_err(|e| e.message)?;
        if config.input.is_empty() || config.output.is_empty() {
            let signature =
                Arc::new(ModelSignature::new(&config, |_| None).map_err(|e| e.message)?);
            let bare = Self {
                label: String::new(),
                version_dir: dir.join(&entry),
                dir: dir.clone(),
                version: number,
                config: config.clone(),
                signature,
                own: false,
            };
            if let Some(patch) = complete(&bare)? {
                let patch = decode_patch(&patch, &name, &platforms.name).map_err(|e| e.message)?;
                merge_patch(&mut config, patch).map_err(|why| format!("its patch {why}"))?;
            }
        }
        Self::from_config(config, &dir, &entry, number, false, platforms.flags)
    }

    /// Models of the check with this `max_batch_size`, likely ones first. `dir` is an empty model
    /// directory named `check`.
    pub fn own(dir: &Path, platforms: &BackendPlatforms, batch: i32) -> Vec<Self> {
        const NAMES: &[(&[&str], &[&str])] = &[
            (&["INPUT0"], &["OUTPUT0"]),
            (&["INPUT0", "INPUT1"], &["OUTPUT0", "OUTPUT1"]),
            (&["IN"], &["OUT"]),
            (&["INPUT"], &["OUTPUT"]),
        ];
        let mut plans = Vec::new();
        for dtype in TYPES {
            for (inputs, outputs) in NAMES {
                plans.extend(Self::made(dir, platforms, inputs, outputs, dtype, batch));
            }
        }
        plans
    }

    /// The same tensors in another type.
    pub fn retyped(&self, platforms: &BackendPlatforms, dtype: &str) -> Option<Self> {
        let inputs: Vec<&str> = self.config.input.iter().map(|i| &*i.name).collect();
        let outputs: Vec<&str> = self.config.output.iter().map(|o| &*o.name).collect();
        Self::made(&self.dir, platforms, &inputs, &outputs, dtype, self.config.max_batch_size)
    }

    fn made(
        dir: &Path,
        platforms: &BackendPlatforms,
        inputs: &[&str],
        outputs: &[&str],
        dtype: &str,
        batch: i32,
    ) -> Option<Self> {
        let tensor = |kind: &str, name: &&str| {
            format!("{kind} {{ name: \"{name}\" data_type: TYPE_{dtype} dims: [ -1 ] }}\n")
        };
        let mut text =
            format!("name: \"check\"\nbackend: \"{}\"\nmax_batch_size: {batch}\n", platforms.name);
        if let Some((platform, file)) = platforms.platforms.first() {
            text += &format!("platform: \"{platform}\"\ndefault_model_filename: \"{file}\"\n");
        }
        inputs.iter().for_each(|name| text += &tensor("input", name));
        outputs.iter().for_each(|name| text += &tensor("output", name));
        let config: ModelConfig = trtserver_proto::text::parse(&text).ok()?;
        Self::from_config(config, dir, "1", 1, true, platforms.flags).ok()
    }

    pub fn batches(&self) -> bool {
        self.signature.batching()
    }

    pub fn has_variable_dims(&self) -> bool {
        self.signature.inputs.iter().any(|i| i.dims.contains(&-1))
    }

    /// The model for the test host.
    pub fn spec(&self) -> ModelSpec {
        let (config, signature) = (&self.config, &self.signature);
        let tensors = |specs: &[TensorSpec]| specs.iter().map(tensor).collect();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let parameters = config.parameters.iter();
        let graph = config.optimization.as_ref().and_then(|o| o.graph.as_ref());
        let states = signature.states.iter();
        ModelSpec {
            name: config.name.clone(),
            version: self.version,
            dir: text(&self.dir),
            version_dir: text(&self.version_dir),
            file: config.default_model_filename.clone(),
            config_pb: config.encode_to_vec(),
            config_json: trtserver_proto::json::model_config(config),
            parameters: parameters.map(|(k, v)| (k.clone(), v.string_value.clone())).collect(),
            max_batch_size: config.max_batch_size,
            inputs: tensors(&signature.inputs),
            outputs: tensors(&signature.outputs),
            states: states
                .map(|s| testkit::TensorSpec::new(&s.output, s.dtype.number(), &s.dims))
                .collect(),
            graph_level: graph.map_or(0, |g| g.level),
            ..ModelSpec::new("")
        }
    }

    /// A request of `rows` rows for all outputs. Variable dimensions become `variable`; equal
    /// arguments give equal requests, and another `seed` gives other rows.
    pub fn request(&self, rows: u32, variable: i64, seed: usize) -> Request {
        let rows = (0..rows as usize).map(|row| seed * 1000 + row);
        self.build_request(&rows.collect::<Vec<_>>(), variable)
    }

    /// A request of these rows, for all outputs. A row has the same contents in every request.
    pub fn build_request(&self, rows: &[usize], variable: i64) -> Request {
        let mut request = Request::new(rows.len() as u32);
        for (index, spec) in self.signature.inputs.iter().enumerate() {
            let dims = spec.dims.iter().map(|d| if *d < 0 { variable } else { *d });
            let mut shape: Vec<i64> = dims.collect();
            let count = element_count(&shape).unwrap_or(0);
            let of_row = |row: usize| {
                (0..count).flat_map(move |at| element_value(spec.dtype, index, row, at))
            };
            // A shape tensor has no batch dimension, and is the same for all requests.
            let data: Vec<u8> = if self.batches() && !spec.shape_tensor {
                shape.insert(0, rows.len() as i64);
                rows.iter().copied().flat_map(of_row).collect()
            } else {
                of_row(if spec.shape_tensor { 0 } else { rows.first().copied().unwrap_or(0) })
                    .collect()
            };
            let shape = self.signature.to_model(spec, &shape);
            request = request.input(&spec.name, spec.dtype.number(), &shape, &data);
        }
        let outputs = self.signature.outputs.iter();
        outputs.fold(request, |request, output| request.request_output(&output.name))
    }
}

fn tensor(spec: &TensorSpec) -> testkit::TensorSpec {
    let flag = |on: bool, bit| if on { bit } else { 0 };
    let (dtype, name) = (spec.dtype.number(), &spec.name);
    let mut tensor = testkit::TensorSpec::reshaped(name, dtype, &spec.dims, &spec.model_dims);
    tensor.flags = flag(spec.optional, tensor_flags::OPTIONAL)
        | flag(spec.shape_tensor, tensor_flags::SHAPE_TENSOR);
    tensor
}

/// Types of the models of the check.
pub const TYPES: &[&str] = &["FP32", "INT32", "INT64", "UINT8", "STRING", "BOOL", "FP64"];

fn own_label(signature: &ModelSignature) -> String {
    let list = |specs: &[TensorSpec]| {
        let one = |s: &TensorSpec| {
            format!("{}:{}", s.name, s.dtype.config_name().trim_start_matches("TYPE_"))
        };
        specs.iter().map(one).collect::<Vec<_>>().join(",")
    };
    let batch = if signature.batching() { "batching" } else { "not batching" };
    format!(
        "a model of the check ({} -> {}, {batch})",
        list(&signature.inputs),
        list(&signature.outputs)
    )
}
