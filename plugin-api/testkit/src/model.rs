//! Models as a backend is asked to open them: specifications, and the descriptors made of them.

use crate::host::ScopeId;
use crate::text::{Params, as_str, c_text};
use std::ffi::CString;
use std::ptr::{null, null_mut};
use trtserver_plugin_api::abi::descriptors::{InstanceDesc, ModelDesc, TensorDecl, instance_kind};
use trtserver_plugin_api::abi::types::{Bytes, dtype, tensor_flags};
use trtserver_plugin_api::author::Dtype;

/// A tensor as the model configuration declares it.
#[derive(Clone, Debug, Default)]
pub struct TensorSpec {
    /// As clients and the configuration call it.
    pub name: String,
    /// One of `abi::types::dtype`.
    pub dtype: u32,
    /// Without the batch dimension; -1 = variable.
    pub dims: Vec<i64>,
    /// Where the configuration reshapes; else the same as `dims`.
    pub model_dims: Vec<i64>,
    /// Bits of `abi::types::tensor_flags`.
    pub flags: u32,
}

impl TensorSpec {
    /// A tensor that the configuration does not reshape.
    pub fn new(name: &str, dtype: u32, dims: &[i64]) -> Self {
        Self::reshaped(name, dtype, dims, dims)
    }

    /// A tensor that has other dimensions for the model than for clients.
    pub fn reshaped(name: &str, dtype: u32, dims: &[i64], model_dims: &[i64]) -> Self {
        let (dims, model_dims) = (dims.to_vec(), model_dims.to_vec());
        Self { name: name.to_owned(), dtype, dims, model_dims, flags: 0 }
    }
}

/// One version of a model.
#[derive(Clone, Debug)]
pub struct ModelSpec {
    /// Of the model.
    pub name: String,
    /// Number of the version.
    pub version: i64,
    /// The model's directory.
    pub dir: String,
    /// The version's directory.
    pub version_dir: String,
    /// Model file or directory inside `version_dir`.
    pub file: String,
    /// The serialized `ModelConfig`, and the same as JSON.
    pub config_pb: Vec<u8>,
    /// The effective `ModelConfig` as JSON.
    pub config_json: String,
    /// Keys and values of the model's parameters.
    pub parameters: Vec<(String, String)>,
    /// Rows; 0 = tensors have no batch dimension.
    pub max_batch_size: i32,
    /// In the order of the configuration.
    pub inputs: Vec<TensorSpec>,
    /// In the order of the configuration.
    pub outputs: Vec<TensorSpec>,
    /// States of sequences that the model writes; not in the descriptor's outputs.
    pub states: Vec<TensorSpec>,
    /// `optimization.graph.level`; 0 when unset.
    pub graph_level: i32,
    /// Number of instances that the host says that it will open.
    pub instances: u32,
    /// Threads that the framework may use for each instance.
    pub threads: u32,
    /// Outputs are not checked, for models that produce what they do not declare.
    pub accepts_any_output: bool,
}

impl ModelSpec {
    /// Version 1 of a model without tensors, parameters and batches.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: 1,
            dir: String::new(),
            version_dir: String::new(),
            file: String::new(),
            config_pb: Vec::new(),
            config_json: "{}".to_owned(),
            parameters: Vec::new(),
            max_batch_size: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            states: Vec::new(),
            graph_level: 0,
            instances: 1,
            threads: 1,
            accepts_any_output: false,
        }
    }

    /// With this maximum; 0 = tensors have no batch dimension.
    pub fn max_batch_size(mut self, rows: i32) -> Self {
        self.max_batch_size = rows;
        self
    }

    /// With one more input.
    pub fn input(mut self, name: &str, dtype: u32, dims: &[i64]) -> Self {
        self.inputs.push(TensorSpec::new(name, dtype, dims));
        self
    }

    /// With one more output.
    pub fn output(mut self, name: &str, dtype: u32, dims: &[i64]) -> Self {
        self.outputs.push(TensorSpec::new(name, dtype, dims));
        self
    }

    /// With one more parameter.
    pub fn parameter(mut self, key: &str, value: &str) -> Self {
        self.parameters.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Checks a produced output. Returns whether its first dimension counts rows.
    pub(crate) fn check_output(
        &self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        bytes: u64,
        rows: u32,
    ) -> Result<bool, String> {
        if self.accepts_any_output {
            return Ok(self.max_batch_size > 0);
        }
        let model = &self.name;
        let declared = self.outputs.iter().chain(&self.states).find(|t| t.name == name);
        let Some(declared) = declared else {
            return Err(format!("model '{model}' does not declare output '{name}'"));
        };
        let text = |what: String| Err(format!("output '{name}' of model '{model}' {what}"));
        if declared.dtype != dtype {
            let (found, expected) = (Dtype::from_abi(dtype), Dtype::from_abi(declared.dtype));
            return text(format!("has data type {found}, expected {expected}"));
        }
        let batched = self.max_batch_size > 0 && declared.flags & tensor_flags::SHAPE_TENSOR == 0;
        let mut dims = shape;
        if batched {
            match shape.split_first() {
                Some((first, rest)) if *first == i64::from(rows) => dims = rest,
                _ => return text(format!("has shape {shape:?}, expected {rows} rows")),
            }
        }
        let fits = |declared: &[i64]| {
            declared.len() == dims.len()
                && declared.iter().zip(dims).all(|(d, n)| *n >= 0 && (*d < 0 || d == n))
        };
        if !fits(&declared.model_dims) && !fits(&declared.dims) {
            return text(format!("has shape {shape:?}, expected {:?}", declared.model_dims));
        }
        if let Some(size) = element_size(dtype) {
            let expected = element_count(shape).and_then(|n| n.checked_mul(size));
            if expected.map(|n| n as u64) != Some(bytes) {
                return text(format!(
                    "of shape {shape:?} has {bytes} bytes, expected {expected:?}"
                ));
            }
        }
        Ok(batched)
    }
}

/// Bytes of an element; `None` for strings and unknown types.
pub fn element_size(kind: u32) -> Option<usize> {
    match kind {
        dtype::BOOL | dtype::UINT8 | dtype::INT8 => Some(1),
        dtype::UINT16 | dtype::INT16 | dtype::FP16 | dtype::BF16 => Some(2),
        dtype::UINT32 | dtype::INT32 | dtype::FP32 => Some(4),
        dtype::UINT64 | dtype::INT64 | dtype::FP64 => Some(8),
        _ => None,
    }
}

pub(crate) fn element_count(shape: &[i64]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, d| n.checked_mul(usize::try_from(*d).ok()?))
}

/// One instance of a model.
#[derive(Clone, Copy, Debug)]
pub struct InstanceSpec {
    /// One of `abi::descriptors::instance_kind`.
    pub kind: u32,
    /// Number among the model's instances, from 0.
    pub ordinal: u32,
    /// -1 for a CPU instance.
    pub device_id: i32,
    /// Threads that the framework may use for this instance.
    pub threads: u32,
}

impl Default for InstanceSpec {
    fn default() -> Self {
        Self { kind: instance_kind::CPU, ordinal: 0, device_id: -1, threads: 1 }
    }
}

struct Decls {
    list: Vec<TensorDecl>,
    _names: Vec<CString>,
}

impl Decls {
    fn new(specs: &[TensorSpec]) -> Self {
        let names: Vec<CString> = specs.iter().map(|spec| c_text(&spec.name)).collect();
        let decl = |(spec, name): (&TensorSpec, &CString)| TensorDecl {
            name: as_str(name),
            dtype: spec.dtype,
            rank: spec.dims.len() as u32,
            dims: spec.dims.as_ptr(),
            model_dims: spec.model_dims.as_ptr(),
            model_rank: spec.model_dims.len() as u32,
            flags: spec.flags,
        };
        Self { list: specs.iter().zip(&names).map(decl).collect(), _names: names }
    }
}

/// A descriptor with everything it points at.
pub(crate) struct ModelDescriptor {
    pub desc: Box<ModelDesc>,
    pub spec: Box<ModelSpec>,
    _texts: Vec<CString>,
    _tensors: [Decls; 2],
    _params: [Params; 2],
}

// SAFETY: what the pointers lead to is owned by the descriptor and not changed.
unsafe impl Send for ModelDescriptor {}
// SAFETY: the descriptor owns all that its pointers lead to and never changes it, so threads only
// read.
unsafe impl Sync for ModelDescriptor {}

impl ModelDescriptor {
    pub fn new(
        spec: &ModelSpec,
        settings: &[(String, String)],
        scope: ScopeId,
        autocomplete: bool,
    ) -> Self {
        let spec = Box::new(spec.clone());
        let (inputs, outputs) = (Decls::new(&spec.inputs), Decls::new(&spec.outputs));
        let (settings, params) = (Params::new(settings), Params::new(&spec.parameters));
        let texts: Vec<CString> =
            [&spec.name, &spec.dir, &spec.version_dir, &spec.file, &spec.config_json]
                .into_iter()
                .map(|text| c_text(text))
                .collect();
        let desc = Box::new(ModelDesc {
            size: size_of::<ModelDesc>() as u64,
            scope: scope.handle(),
            name: as_str(&texts[0]),
            version: spec.version,
            dir: as_str(&texts[1]),
            version_dir: as_str(&texts[2]),
            file: as_str(&texts[3]),
            config_pb: Bytes { p: spec.config_pb.as_ptr(), n: spec.config_pb.len() as u64 },
            config_json: as_str(&texts[4]),
            settings: settings.list.as_ptr(),
            n_settings: settings.list.len() as u32,
            autocomplete: autocomplete.into(),
            params: params.list.as_ptr(),
            n_params: params.list.len() as u32,
            max_batch_size: spec.max_batch_size,
            inputs: inputs.list.as_ptr(),
            outputs: outputs.list.as_ptr(),
            n_inputs: inputs.list.len() as u32,
            n_outputs: outputs.list.len() as u32,
            graph_level: spec.graph_level,
            n_instances: spec.instances,
            threads: spec.threads,
            pad: 0,
            state: null_mut(),
            reserved: [0; 4],
        });
        Self { desc, spec, _texts: texts, _tensors: [inputs, outputs], _params: [settings, params] }
    }
}

/// A descriptor with everything it points at.
pub(crate) struct InstanceDescriptor {
    pub desc: Box<InstanceDesc>,
    _name: CString,
}

// SAFETY: the descriptor owns all that its pointers lead to, which moves to the other thread with
// it.
unsafe impl Send for InstanceDescriptor {}

impl InstanceDescriptor {
    pub fn new(spec: &InstanceSpec, name: &str, max_rows: u32, scope: ScopeId) -> Self {
        let name = c_text(name);
        let desc = Box::new(InstanceDesc {
            size: size_of::<InstanceDesc>() as u64,
            scope: scope.handle(),
            name: as_str(&name),
            host_policy_json: crate::text::literal_str(c"{}"),
            kind: spec.kind,
            ordinal: spec.ordinal,
            device_id: spec.device_id,
            passive: 0,
            device_uuid: [0; 16],
            cpus: null(),
            n_cpus: 0,
            threads: spec.threads,
            numa_node: -1,
            max_rows,
            cu_context: null_mut(),
            cu_stream: null_mut(),
            cu_copy_in: null_mut(),
            cu_copy_out: null_mut(),
            profiles: null(),
            n_profiles: 0,
            n_secondary: 0,
            secondary: null(),
            reserved: [0; 4],
        });
        Self { desc, _name: name }
    }
}
