//! A model's signature: its declared input and output tensors, prepared for fast checks.

use super::batch_input::BatchInput;
use super::class_labels::ClassLabels;
use super::dtype::DType;
use super::state_spec::StateSpec;
use super::tensor::{Shape, ShapeText};
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerOwner;
use trtserver_proto::v2::{DataType, ModelConfig, ModelTensorReshape};

/// One declared tensor.
#[derive(Clone, Debug)]
pub struct TensorSpec {
    pub name: Arc<str>,
    pub dtype: DType,
    /// As clients see it, without the batch dimension; -1 = variable.
    pub dims: Vec<i64>,
    /// As the model sees it; differs from `dims` where the configuration reshapes.
    pub model_dims: Vec<i64>,
    pub optional: bool,
    /// Shape tensors never carry a batch dimension.
    pub shape_tensor: bool,
    /// Requests whose shapes differ here may still share a batch.
    pub ragged: bool,
    /// Number of the input whose shapes cut this output (`batch_output`).
    pub cut_like: Option<usize>,
    /// Outputs have a role, and are optional, only in the child process of an isolated model: there
    /// states are outputs, too, and the host checks for missing outputs.
    pub role: InputRole,
    /// Class labels of an output.
    pub labels: Option<Arc<ClassLabels>>,
}

/// Source of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputRole {
    /// The client.
    #[default]
    Declared,
    /// The sequence scheduler: START, END, READY or the correlation id.
    Control,
    /// The sequence scheduler: the implicit state that the sequence's previous request wrote.
    State,
    /// The scheduler: it describes the requests of the batch.
    Batch,
}

impl TensorSpec {
    /// A required tensor that is not reshaped, ragged or a shape tensor.
    pub fn new(name: &str, dtype: DType, dims: &[i64]) -> Self {
        Self {
            name: name.into(),
            dtype,
            dims: dims.to_vec(),
            model_dims: dims.to_vec(),
            optional: false,
            shape_tensor: false,
            ragged: false,
            cut_like: None,
            role: InputRole::Declared,
            labels: None,
        }
    }
}

/// All tensors of one model.
#[derive(Clone, Debug, Default)]
pub struct ModelSignature {
    pub model: Arc<str>,
    /// 0 = the model has no batch dimension.
    pub max_batch_size: u32,
    /// It is a default, and not in the model's configuration file.
    pub completed_batch_size: bool,
    pub inputs: Vec<TensorSpec>,
    pub outputs: Vec<TensorSpec>,
    /// Inputs that the host adds and clients never see: controls and states of sequences, batch
    /// inputs. Their numbers follow the numbers of `inputs`.
    pub hidden: Vec<TensorSpec>,
    /// Batch inputs. In the child process of an isolated model they are inputs like others.
    pub batch_inputs: Vec<BatchInput>,
    /// Outputs may differ from the configuration: clients get the data type and the shape that the
    /// backend sends.
    pub free_outputs: bool,
    /// Implicit states.
    pub states: Vec<StateSpec>,
    /// What its tensors are entered under in the ledger.
    pub owner: LedgerOwner,
}

impl ModelSignature {
    /// From a checked configuration. `labels` returns the labels of an output by name, if any.
    pub fn new(
        config: &ModelConfig,
        labels: impl Fn(&str) -> Option<Arc<ClassLabels>>,
    ) -> Result<Self> {
        let spec = |name: &str, dtype: i32, dims: &[i64], reshape: &Option<ModelTensorReshape>| {
            let dtype =
                DataType::try_from(dtype).ok().and_then(DType::from_proto).ok_or_else(|| {
                    Error::invalid(format!(
                        "model '{}', tensor '{name}': unknown data type {dtype}",
                        config.name
                    ))
                })?;
            let model_dims = reshape.as_ref().map_or(dims.to_vec(), |r| r.shape.clone());
            Ok(TensorSpec { model_dims, ..TensorSpec::new(name, dtype, dims) })
        };
        let inputs = config.input.iter().map(|i| {
            let spec = spec(&i.name, i.data_type, &i.dims, &i.reshape)?;
            Ok(TensorSpec {
                optional: i.optional,
                shape_tensor: i.is_shape_tensor,
                ragged: i.allow_ragged_batch,
                ..spec
            })
        });
        let outputs = config.output.iter().map(|o| {
            let spec = spec(&o.name, o.data_type, &o.dims, &o.reshape)?;
            Ok(TensorSpec { shape_tensor: o.is_shape_tensor, labels: labels(&o.name), ..spec })
        });
        let mut signature = Self {
            model: config.name.as_str().into(),
            max_batch_size: config.max_batch_size.max(0) as u32,
            completed_batch_size: false,
            inputs: inputs.collect::<Result<_>>()?,
            outputs: outputs.collect::<Result<_>>()?,
            hidden: Vec::new(),
            batch_inputs: Vec::new(),
            free_outputs: false,
            states: Vec::new(),
            owner: LedgerOwner::default(),
        };
        signature.cut_outputs(config);
        Ok(signature)
    }

    /// Notes which outputs are cut by the shapes of which inputs (`batch_output`); the
    /// configuration is checked.
    pub fn cut_outputs(&mut self, config: &ModelConfig) {
        for batch in &config.batch_output {
            let source = batch.source_input.first().and_then(|source| self.input(source));
            let targets =
                |output: &&mut TensorSpec| batch.target_name.iter().any(|t| **t == *output.name);
            self.outputs.iter_mut().filter(targets).for_each(|output| output.cut_like = source);
        }
    }

    /// The requests of a batch are executed together or not at all, because batch inputs describe
    /// all of them.
    pub fn keeps_batches(&self) -> bool {
        self.hidden.iter().any(|input| input.role == InputRole::Batch)
    }

    /// The signature of one version: a copy whose tensors are entered under `owner`.
    pub fn with_owner(&self, owner: LedgerOwner) -> Arc<Self> {
        Arc::new(Self { owner, ..self.clone() })
    }

    /// Whether clients see the same tensors: a request that was read for one model can be executed
    /// by the other.
    pub fn has_same_tensors(&self, other: &Self) -> bool {
        let alike = |a: &[TensorSpec], b: &[TensorSpec]| {
            let alike = |(a, b): (&TensorSpec, &TensorSpec)| {
                (&a.name, a.dtype, &a.dims) == (&b.name, b.dtype, &b.dims)
            };
            a.len() == b.len() && a.iter().zip(b).all(alike)
        };
        self.max_batch_size == other.max_batch_size
            && alike(&self.inputs, &other.inputs)
            && alike(&self.outputs, &other.outputs)
    }

    /// Input number `index`, declared or hidden.
    pub fn input_spec(&self, index: usize) -> &TensorSpec {
        self.inputs.get(index).unwrap_or_else(|| &self.hidden[index - self.inputs.len()])
    }

    /// Number of the state that the model writes as output `name`.
    pub fn state(&self, name: &str) -> Option<usize> {
        self.states.iter().position(|s| &*s.output == name)
    }

    /// An input is a tensor of strings, whose check takes as long as the tensor.
    pub fn takes_strings(&self) -> bool {
        self.inputs.iter().any(|input| input.dtype.size().is_none())
    }

    pub fn batching(&self) -> bool {
        self.max_batch_size > 0
    }

    /// What ends the refusal of a request with more rows than `max_batch_size`.
    pub fn batch_size_advice(&self) -> String {
        let size = self.max_batch_size;
        match self.completed_batch_size {
            true => format!(
                "; its configuration file has no max_batch_size, and {size} is the default: a max_batch_size in config.pbtxt \
                 or --backend-config=default-max-batch-size=N sets another"
            ),
            false => String::new(),
        }
    }

    pub fn input(&self, name: &str) -> Option<usize> {
        self.inputs.iter().position(|i| &*i.name == name)
    }

    pub fn output(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|o| &*o.name == name)
    }

    /// Declared shape with the batch dimension as -1, as metadata and messages show it.
    pub fn full_dims(&self, spec: &TensorSpec) -> Shape {
        let batch = (self.batching() && !spec.shape_tensor).then_some(-1);
        batch.into_iter().chain(spec.dims.iter().copied()).collect()
    }

    /// Converts a shape as clients see it to the model's; both batch first. Variable dimensions
    /// keep their order.
    pub fn to_model(&self, spec: &TensorSpec, shape: &[i64]) -> Shape {
        self.convert(spec, shape, &spec.dims, &spec.model_dims)
    }

    /// Whether an output is free: it may have another data type than configured, and be left out.
    /// An implicit state is an input of the model as well, and never free.
    pub fn is_free(&self, spec: &TensorSpec) -> bool {
        self.free_outputs && spec.role == InputRole::Declared && self.state(&spec.name).is_none()
    }

    /// Whether a free output may also have another shape. One that the configuration reshapes has
    /// no other shape for clients.
    pub fn has_free_shape(&self, spec: &TensorSpec) -> bool {
        self.is_free(spec) && spec.dims == spec.model_dims
    }

    /// Converts a shape that the model produced to the one that clients see.
    ///
    /// # Errors
    /// The shape does not match the declaration.
    pub fn to_caller(&self, spec: &TensorSpec, shape: &[i64]) -> Result<Shape> {
        let batched = self.batching() && !spec.shape_tensor;
        let item = if batched { shape.get(1..).unwrap_or(&[]) } else { shape };
        if (batched && shape.is_empty()) || !dims_match(&spec.model_dims, item) {
            let declared: Shape =
                batched.then_some(-1).into_iter().chain(spec.model_dims.iter().copied()).collect();
            return Err(Error::invalid(format!(
                "output '{}' for model '{}' has shape {} but model configuration specifies shape {}",
                spec.name,
                self.model,
                ShapeText(shape),
                ShapeText(&declared),
            )));
        }
        Ok(self.convert(spec, shape, &spec.model_dims, &spec.dims))
    }

    fn convert(&self, spec: &TensorSpec, shape: &[i64], from: &[i64], to: &[i64]) -> Shape {
        if from == to {
            return shape.into();
        }
        let batched = self.batching() && !spec.shape_tensor && !shape.is_empty();
        let (batch, item) = shape.split_at(usize::from(batched));
        let mut variable =
            from.iter().zip(item).filter(|(declared, _)| **declared == -1).map(|(_, &d)| d);
        let rest = to.iter().map(|&d| if d == -1 { variable.next().unwrap_or(1) } else { d });
        batch.iter().copied().chain(rest.collect::<Shape>()).collect()
    }
}

/// Whether `got` matches the declared dimensions; -1 matches any non-negative value.
pub fn dims_match(declared: &[i64], got: &[i64]) -> bool {
    declared.len() == got.len()
        && declared.iter().zip(got).all(|(&want, &d)| d == want || (want == -1 && d >= 0))
}

#[cfg(test)]
#[path = "signature_tests.rs"]
mod tests;
