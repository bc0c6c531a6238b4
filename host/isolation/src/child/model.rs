//! The model of the child: decodes the facts of the model and opens it.

use super::unread::Streams;
use crate::facts::host_policy;
use crate::messages;
use prost::Message;
use std::path::Path;
use std::sync::Arc;
use trtserver_base::arena::{Arena, ArenaReader};
use trtserver_base::error::{Error, Result};
use trtserver_device::StreamPriority;
use trtserver_plugin_api::abi::types::tensor_flags;
use trtserver_plugin_host::backend::PluginBackend;
use trtserver_plugin_host::model::BackendModel;
use trtserver_plugin_host::{CancelFlag, ModelFacts, TensorNames};
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;
use trtserver_proto::v2::model_optimization_policy::ModelPriority;
use trtserver_proto::v2::model_sequence_batching::StrategyChoice;
use trtserver_request::{DType, InputRole, ModelSignature, TensorSpec};
use trtserver_request_trace::Tracer;

/// Facts of a model version, decoded.
pub struct Facts<'a> {
    message: &'a messages::ModelFacts,
    pub config: ModelConfig,
    /// Signature as the configuration declares it.
    declared: ModelSignature,
}

impl<'a> Facts<'a> {
    pub fn new(message: &'a messages::ModelFacts) -> Result<Self> {
        let config = ModelConfig::decode(&*message.config).map_err(|e| {
            Error::internal(format!("model '{}': its configuration is damaged: {e}", message.name))
        })?;
        let declared = |specs: &[messages::TensorSpec], n: u32| {
            let specs = specs.iter().take(n as usize);
            let spec = |s: &messages::TensorSpec| {
                let dims = if s.caller_dims.is_empty() { &s.dims } else { &s.caller_dims };
                Ok(TensorSpec { dims: dims.clone(), ..spec(&message.name, s)? })
            };
            specs.map(spec).collect::<Result<Vec<_>>>()
        };
        let declared = ModelSignature {
            inputs: declared(&message.inputs, message.n_declared_inputs)?,
            outputs: declared(&message.outputs, message.n_declared_outputs)?,
            ..empty(message, &config)
        };
        Ok(Self { message, config, declared })
    }

    /// Calls `show` with the facts as the backend takes them.
    pub fn with<T>(&self, show: impl FnOnce(&ModelFacts<'_>) -> T) -> T {
        let message = self.message;
        show(&ModelFacts {
            name: &message.name,
            version: message.version,
            dir: Path::new(&message.dir),
            version_dir: Path::new(&message.version_dir),
            file: &message.file,
            config: &self.config,
            signature: &self.declared,
            n_instances: message.n_instances,
            threads: message.threads,
            // The thread is bound to it.
            host_policy: None,
            // It was completed by another process.
            state: std::ptr::null_mut(),
        })
    }

    /// The signature of request messages: tensors as the model sees them, and tensors that the host
    /// adds.
    fn message_signature(&self) -> Result<ModelSignature> {
        let message = self.message;
        let all = |specs: &[messages::TensorSpec]| {
            specs.iter().map(|s| spec(&message.name, s)).collect::<Result<Vec<_>>>()
        };
        let mut inputs = all(&message.inputs)?;
        let hidden = inputs.split_off(inputs.len().min(message.n_declared_inputs as usize));
        let mut outputs = all(&message.outputs)?;
        let declared = message.n_declared_outputs as usize;
        for (i, output) in outputs.iter_mut().enumerate() {
            output.role = if i < declared { InputRole::Declared } else { InputRole::State };
            // The host checks for missing outputs, since it knows the requested ones.
            output.optional = true;
        }
        let mut signature =
            ModelSignature { inputs, hidden, outputs, ..empty(message, &self.config) };
        signature.cut_outputs(&self.config);
        Ok(signature)
    }
}

fn empty(message: &messages::ModelFacts, config: &ModelConfig) -> ModelSignature {
    ModelSignature {
        model: message.name.as_str().into(),
        max_batch_size: config.max_batch_size.max(0) as u32,
        ..ModelSignature::default()
    }
}

fn spec(model: &str, message: &messages::TensorSpec) -> Result<TensorSpec> {
    let Some(dtype) = DType::from_number(message.dtype) else {
        return Err(Error::internal(format!(
            "model '{model}', tensor '{}': unknown data type {}",
            message.name, message.dtype
        )));
    };
    let has = |flag| message.flags & flag != 0;
    Ok(TensorSpec {
        optional: has(tensor_flags::OPTIONAL),
        shape_tensor: has(tensor_flags::SHAPE_TENSOR),
        ragged: has(tensor_flags::RAGGED),
        role: match () {
            () if has(tensor_flags::CONTROL) => InputRole::Control,
            () if has(tensor_flags::STATE) => InputRole::State,
            () if has(tensor_flags::BATCH) => InputRole::Batch,
            () => InputRole::Declared,
        },
        ..TensorSpec::new(&message.name, dtype, &message.dims)
    })
}

/// Responses leave in the order of the requests.
fn preserves_order(config: &ModelConfig) -> bool {
    match &config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(dynamic)) => dynamic.preserve_ordering,
        Some(SchedulingChoice::SequenceBatching(sequences)) => match &sequences.strategy_choice {
            Some(StrategyChoice::Oldest(oldest)) => oldest.preserve_ordering,
            _ => false,
        },
        _ => false,
    }
}

/// Stream priority, by the same rule as for local instances.
fn priority(config: &ModelConfig) -> StreamPriority {
    match config.optimization.as_ref().map(|o| o.priority()) {
        Some(ModelPriority::PriorityMax) => StreamPriority::Greatest,
        Some(ModelPriority::PriorityMin) => StreamPriority::Least,
        Some(ModelPriority::PriorityDefault) | None => StreamPriority::Default,
    }
}

/// The open model, and what its instances share.
pub struct OpenModel {
    pub model: Arc<BackendModel>,
    pub version: i64,
    pub signature: Arc<ModelSignature>,
    pub names: Arc<TensorNames>,
    pub decoupled: bool,
    /// Priority of the GPU streams.
    pub priority: StreamPriority,
    /// The arena of the inputs.
    pub reader: Arc<ArenaReader>,
    /// The arena of the outputs.
    pub arena: Arc<Arena>,
    /// The streams of its requests.
    pub streams: Streams,
    /// For traced requests, whose traces the server has.
    pub tracer: Arc<Tracer>,
}

impl OpenModel {
    pub fn new(
        backend: &Arc<PluginBackend>,
        message: &messages::ModelFacts,
        reader: Arc<ArenaReader>,
        arena: Arc<Arena>,
    ) -> Result<Self> {
        let facts = Facts::new(message)?;
        let mut signature = facts.message_signature()?;
        signature.free_outputs = backend.facts.has_free_outputs();
        let signature = Arc::new(signature);
        let names = Arc::new(TensorNames::new(&signature));
        let priority = priority(&facts.config);
        let policy = facts.config.model_transaction_policy.as_ref();
        let decoupled = policy.is_some_and(|policy| policy.decoupled);
        // Threads that the backend starts now inherit it.
        host_policy("", &message.host_settings)?.bind_thread()?;
        let model = facts
            .with(|facts| BackendModel::open_locally(backend, facts, &CancelFlag::default()))?;
        let (version, streams) = (message.version, Streams::new(preserves_order(&facts.config)));
        let tracer = Tracer::off();
        Ok(Self {
            model,
            version,
            signature,
            names,
            decoupled,
            priority,
            reader,
            arena,
            streams,
            tracer,
        })
    }
}
