//! Descriptors of models, instances and version directories for backends, in memory that stays
//! valid until they are closed.

use super::host_api::scope::Scope;
use super::text::{bytes_view, c_text, str_view};
use prost::Message;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path;
use std::ptr::null;
use std::sync::Arc;
use std::time::Duration;
use trtserver_base::host_policy::HostPolicy;
use trtserver_device::InstanceStreams;
use trtserver_plugin_api::abi::descriptors::{
    InstanceDesc, ModelDesc, SecondaryDevice, TensorDecl,
};
use trtserver_plugin_api::abi::extensions::{DirEntry, ProbeDesc};
use trtserver_plugin_api::abi::types::{Param, Str, param, tensor_flags};
use trtserver_proto::v2::ModelConfig;
use trtserver_request::{ModelSignature, TensorSpec};

/// Facts about a model version.
pub struct ModelFacts<'a> {
    pub name: &'a str,
    pub version: i64,
    pub dir: &'a Path,
    pub version_dir: &'a Path,
    /// Model file in the version's directory.
    pub file: &'a str,
    pub config: &'a ModelConfig,
    pub signature: &'a ModelSignature,
    pub n_instances: u32,
    /// Threads per instance.
    pub threads: u32,
    /// With settings, and that of all instances; `None` if there is no such.
    pub host_policy: Option<&'a HostPolicy>,
    /// From a completion of the configuration, for opening the model; may be null.
    pub state: *mut u8,
}

/// Keys and values in memory that backends can read.
pub struct CTexts {
    pairs: Vec<(CString, CString)>,
    params: Vec<Param>,
}

impl CTexts {
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let pairs: Vec<_> = pairs.into_iter().map(|(k, v)| (c_text(k), c_text(v))).collect();
        let params = pairs
            .iter()
            .map(|(k, v)| Param {
                key: str_view(k),
                kind: param::STRING,
                pad: 0,
                text: str_view(v),
                bits: 0,
            })
            .collect();
        Self { pairs, params }
    }

    pub fn params(&self) -> &[Param] {
        debug_assert_eq!(self.pairs.len(), self.params.len());
        &self.params
    }
}

/// A [`ModelDesc`] with everything it points at.
pub struct ModelHold {
    pub scope: Arc<Scope>,
    desc: Box<ModelDesc>,
    _texts: Vec<CString>,
    _config_pb: Vec<u8>,
    _settings: CTexts,
    _params: CTexts,
    _decls: [Decls; 2],
}

// SAFETY: everything is immutable after construction and owned.
unsafe impl Send for ModelHold {}
// SAFETY: the descriptor owns all that its pointers lead to and never changes it, so threads only
// read.
unsafe impl Sync for ModelHold {}

struct Decls {
    list: Vec<TensorDecl>,
    _names: Vec<CString>,
    _dims: Vec<Vec<i64>>,
}

impl Decls {
    fn new(specs: &[TensorSpec]) -> Self {
        let names: Vec<CString> = specs.iter().map(|s| c_text(&s.name)).collect();
        let dims: Vec<Vec<i64>> =
            specs.iter().flat_map(|s| [s.dims.clone(), s.model_dims.clone()]).collect();
        let flag = |on: bool, bit| if on { bit } else { 0 };
        let list = specs
            .iter()
            .enumerate()
            .map(|(i, s)| TensorDecl {
                name: str_view(&names[i]),
                dtype: s.dtype.number(),
                rank: s.dims.len() as u32,
                dims: dims[2 * i].as_ptr(),
                model_dims: dims[2 * i + 1].as_ptr(),
                model_rank: s.model_dims.len() as u32,
                flags: flag(s.optional, tensor_flags::OPTIONAL)
                    | flag(s.shape_tensor, tensor_flags::SHAPE_TENSOR)
                    | flag(s.ragged, tensor_flags::RAGGED),
            })
            .collect();
        Self { list, _names: names, _dims: dims }
    }
}

impl ModelHold {
    pub fn new(
        facts: &ModelFacts<'_>,
        settings: &BTreeMap<String, String>,
        autocomplete: bool,
    ) -> Self {
        let scope = Scope::for_model(facts.name, facts.version);
        let texts: Vec<CString> = [
            facts.name,
            &facts.dir.to_string_lossy(),
            &facts.version_dir.to_string_lossy(),
            facts.file,
            &trtserver_proto::json::model_config(facts.config),
        ]
        .iter()
        .map(|t| c_text(t))
        .collect();
        let config_pb = facts.config.encode_to_vec();
        let settings = CTexts::new(settings);
        let parameters: BTreeMap<String, String> = facts
            .config
            .parameters
            .iter()
            .map(|(k, v)| (k.clone(), v.string_value.clone()))
            .collect();
        let params = CTexts::new(&parameters);
        let decls = [Decls::new(&facts.signature.inputs), Decls::new(&facts.signature.outputs)];
        let graph = facts.config.optimization.as_ref().and_then(|o| o.graph.as_ref());
        let desc = Box::new(ModelDesc {
            size: std::mem::size_of::<ModelDesc>() as u64,
            scope: scope.handle(),
            name: str_view(&texts[0]),
            version: facts.version,
            dir: str_view(&texts[1]),
            version_dir: str_view(&texts[2]),
            file: str_view(&texts[3]),
            config_pb: bytes_view(&config_pb),
            config_json: str_view(&texts[4]),
            settings: settings.params().as_ptr(),
            n_settings: settings.params().len() as u32,
            autocomplete: u32::from(autocomplete),
            params: params.params().as_ptr(),
            n_params: params.params().len() as u32,
            max_batch_size: facts.config.max_batch_size,
            inputs: decls[0].list.as_ptr(),
            outputs: decls[1].list.as_ptr(),
            n_inputs: decls[0].list.len() as u32,
            n_outputs: decls[1].list.len() as u32,
            graph_level: graph.map_or(0, |g| g.level),
            n_instances: facts.n_instances,
            threads: facts.threads.max(1),
            pad: 0,
            state: facts.state,
            reserved: [0; 4],
        });
        Self {
            scope,
            desc,
            _texts: texts,
            _config_pb: config_pb,
            _settings: settings,
            _params: params,
            _decls: decls,
        }
    }

    pub fn desc(&self) -> *const ModelDesc {
        &*self.desc
    }
}

/// Facts about an instance.
pub struct InstanceFacts<'a> {
    pub name: &'a str,
    /// Value of `instance_kind`.
    pub kind: u32,
    pub ordinal: u32,
    /// GPU ordinal, -1 for a CPU instance.
    pub device: i32,
    pub threads: u32,
    pub max_rows: u32,
    pub profiles: &'a [String],
    /// Kind and id.
    pub secondary_devices: &'a [(String, i64)],
    /// The executing thread is bound to it.
    pub host_policy: &'a HostPolicy,
    /// Share of the GPU's memory that may be in use when the instance is opened.
    pub load_limit: Option<f64>,
    /// Streams of a GPU instance; else empty.
    pub streams: InstanceStreams,
    /// Nice value of the executing thread.
    pub nice: i32,
    /// Drain time: how long a closing instance may take.
    pub drain: Duration,
}

/// An [`InstanceDesc`] with everything it points at.
pub struct InstanceHold {
    desc: Box<InstanceDesc>,
    pub scope: Arc<Scope>,
    /// Name, host policy, profiles, kinds of secondary devices.
    _texts: Box<[CString]>,
    _profiles: Box<[Str]>,
    _secondary: Box<[SecondaryDevice]>,
    _cores: Box<[u32]>,
}

impl InstanceHold {
    /// `model` is the scope of the model.
    pub fn new(facts: &InstanceFacts<'_>, model: &Scope) -> Self {
        let scope = Scope::for_instance(facts.name, model);
        let kinds = facts.secondary_devices.iter().map(|(kind, _)| kind);
        let texts = facts.profiles.iter().chain(kinds).map(|text| c_text(text));
        let policy = facts.host_policy;
        let cores: Box<[u32]> = policy.cores().into();
        let policy_json = serde_json::json!({ &*policy.name: policy.settings() }).to_string();
        let own = [c_text(facts.name), c_text(&policy_json)];
        let texts: Box<[CString]> = own.into_iter().chain(texts).collect();
        let (profiles, kinds) = texts[2..].split_at(facts.profiles.len());
        let profiles: Box<[Str]> = profiles.iter().map(str_view).collect();
        let secondary: Box<[SecondaryDevice]> = (kinds.iter().zip(facts.secondary_devices))
            .map(|(kind, (_, id))| SecondaryDevice { kind: str_view(kind), id: *id })
            .collect();
        let [cu_context, cu_stream, cu_copy_in, cu_copy_out] = facts.streams.handles();
        let desc = Box::new(InstanceDesc {
            size: std::mem::size_of::<InstanceDesc>() as u64,
            scope: scope.handle(),
            name: str_view(&texts[0]),
            host_policy_json: str_view(&texts[1]),
            kind: facts.kind,
            ordinal: facts.ordinal,
            device_id: facts.device,
            passive: 0,
            device_uuid: facts.streams.gpu().map_or([0; 16], |gpu| gpu.device.uuid),
            cpus: if cores.is_empty() { null() } else { cores.as_ptr() },
            n_cpus: cores.len() as u32,
            threads: facts.threads.max(1),
            numa_node: policy.node().map_or(-1, |node| node as i32),
            max_rows: facts.max_rows.max(1),
            cu_context,
            cu_stream,
            cu_copy_in,
            cu_copy_out,
            profiles: profiles.as_ptr(),
            n_profiles: profiles.len() as u32,
            n_secondary: secondary.len() as u32,
            secondary: secondary.as_ptr(),
            reserved: [0; 4],
        });
        let (_texts, _profiles, _secondary, _cores) = (texts, profiles, secondary, cores);
        Self { desc, scope, _texts, _profiles, _secondary, _cores }
    }

    pub fn desc(&self) -> *const InstanceDesc {
        &*self.desc
    }
}

/// A version directory, and the platform of which a model is looked for.
pub struct ProbeFacts<'a> {
    pub model: &'a str,
    pub version: i64,
    pub version_dir: &'a Path,
    pub platform: &'a str,
    pub default_file: &'a str,
    /// Names in the directory, and whether each is a directory.
    pub entries: &'a [(String, bool)],
}

/// A [`ProbeDesc`] with everything it points at.
pub struct ProbeHold {
    desc: ProbeDesc,
    _texts: Vec<CString>,
    _entries: Vec<DirEntry>,
}

impl ProbeHold {
    pub fn new(facts: &ProbeFacts<'_>) -> Self {
        let dir = facts.version_dir.to_string_lossy();
        let texts = [facts.model, &dir, facts.platform, facts.default_file];
        let names = facts.entries.iter().map(|(name, _)| &**name);
        let texts: Vec<CString> = texts.into_iter().chain(names).map(c_text).collect();
        let entries: Vec<_> = texts[4..]
            .iter()
            .zip(facts.entries)
            .map(|(name, (_, is_dir))| DirEntry {
                name: str_view(name),
                is_dir: u32::from(*is_dir),
                pad: 0,
            })
            .collect();
        let desc = ProbeDesc {
            size: std::mem::size_of::<ProbeDesc>() as u64,
            name: str_view(&texts[0]),
            version: facts.version,
            version_dir: str_view(&texts[1]),
            platform: str_view(&texts[2]),
            default_file: str_view(&texts[3]),
            entries: entries.as_ptr(),
            n_entries: entries.len() as u32,
            pad: 0,
            reserved: [0; 4],
        };
        Self { desc, _texts: texts, _entries: entries }
    }

    pub fn desc(&self) -> *const ProbeDesc {
        &raw const self.desc
    }
}
