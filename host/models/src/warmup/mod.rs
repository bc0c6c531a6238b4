//! Warm-up samples from `model_warmup` of a configuration. Their files are read once per load.

mod data;

use super::load_limits::LoadMemory;
use crate::instance::warmup::WarmupSample;
use data::WarmupSource;
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_base::ledger::LedgerHolder;
use trtserver_model_config::ConfigError;
use trtserver_model_files::FilePlaces;
use trtserver_proto::v2::{DataType, ModelConfig, ModelWarmup, model_warmup};
use trtserver_request::signature::dims_match;
use trtserver_request::{
    DType, InputRole, InputTensor, ModelSignature, Shape, ShapeText, TensorSpec,
};

/// The samples of `config` in order, without those of batch size 0. `places` are those of the
/// model's files; `memory` limits their size.
pub fn build_samples(
    config: &ModelConfig,
    signature: &ModelSignature,
    places: &FilePlaces,
    memory: &mut LoadMemory,
) -> Result<Arc<[WarmupSample]>, ConfigError> {
    let mut source = WarmupSource::new(places, memory, signature.owner.tag(LedgerHolder::WarmUp));
    let mut samples = Vec::new();
    for setting in &config.model_warmup {
        if setting.batch_size == 0 {
            tracing::debug!(
                "model '{}': skipping warmup sample '{}', whose batch_size is 0",
                config.name,
                setting.name
            );
            continue;
        }
        samples.push(WarmupEntry { setting, signature }.build(&mut source)?);
    }
    Ok(samples.into())
}

/// One entry of `model_warmup`, and the signature it must match.
struct WarmupEntry<'a> {
    setting: &'a ModelWarmup,
    signature: &'a ModelSignature,
}

impl WarmupEntry<'_> {
    fn build(&self, source: &mut WarmupSource<'_>) -> Result<WarmupSample, ConfigError> {
        let ModelWarmup { name, count, .. } = self.setting;
        let calls = self.calls();
        for input in self.setting.inputs.keys() {
            if self.specs().all(|(_, spec)| *spec.name != **input) {
                let names: Vec<&str> = self.specs().map(|(_, spec)| &*spec.name).collect();
                self.warn(format_args!(
                    "input '{input}' is not used: the model's inputs are: {}",
                    names.join(", ")
                ));
            }
        }
        source.requests(calls)?;
        let mut inputs = SmallVec::new();
        for (index, spec) in self.specs() {
            let tensor = match self.setting.inputs.get(&*spec.name) {
                Some(input) => self.sample_tensor(index, spec, input, source)?,
                None if spec.role != InputRole::Declared => {
                    self.default_tensor(index, spec, source)?
                }
                None if spec.optional => continue,
                None => return self.refuse(format!("input '{}' is missing", spec.name)),
            };
            inputs.push(tensor);
        }
        let runs = (*count).max(1);
        Ok(WarmupSample { name: name.as_str().into(), runs, calls, inputs })
    }

    /// Requests of one run: the batch size, as far as the model has it. Triton leaves it to the
    /// backend whether it executes more.
    fn calls(&self) -> u32 {
        let (asked, max) = (self.setting.batch_size, self.signature.max_batch_size.max(1));
        if asked > max && self.signature.batching() {
            self.warn(format_args!(
                "batch_size {asked} exceeds the model's max_batch_size {max}, with which it runs"
            ));
        } else if asked > max {
            self.warn(format_args!(
                "batch_size {asked} has no effect, since the model does not support batching: it runs with 1"
            ));
        }
        asked.min(max)
    }

    /// All inputs with their index, including sequence controls and states, without batch inputs,
    /// which the host adds to each batch.
    fn specs(&self) -> impl Iterator<Item = (usize, &TensorSpec)> {
        let all = self.signature.inputs.iter().chain(&self.signature.hidden).enumerate();
        all.filter(|(_, spec)| spec.role != InputRole::Batch)
    }

    fn sample_tensor(
        &self,
        index: usize,
        spec: &TensorSpec,
        input: &model_warmup::Input,
        source: &mut WarmupSource<'_>,
    ) -> Result<InputTensor, ConfigError> {
        let dtype = DataType::try_from(input.data_type).ok().and_then(DType::from_proto);
        if dtype != Some(spec.dtype) {
            return self.refuse(format!(
                "input '{}' has data_type {}, but the model expects {}",
                spec.name,
                input.data_type().as_str_name(),
                spec.dtype.config_name()
            ));
        }
        if !dims_match(&spec.dims, &input.dims) {
            return self.refuse(format!(
                "input '{}' has dims {}, but the model expects {}",
                spec.name,
                ShapeText(&input.dims),
                ShapeText(&spec.dims)
            ));
        }
        let shape = self.shape(spec, &input.dims);
        let data = source.bytes(spec.dtype, &shape, input.input_data_type.as_ref());
        let data = data.map_err(|e| ConfigError {
            message: format!(
                "{} for input '{}' of warmup sample '{}' for {}",
                e.message, spec.name, self.setting.name, self.signature.model
            ),
            ..e
        })?;
        if let Some(surplus) = source.take_surplus() {
            self.warn(format_args!("data of input '{}': {surplus}", spec.name));
        }
        Ok(InputTensor { index, dtype: spec.dtype, shape, data: data.into() })
    }

    /// An input that the host adds and the sample leaves out: the initial state, or a control input
    /// of zeros.
    fn default_tensor(
        &self,
        index: usize,
        spec: &TensorSpec,
        source: &mut WarmupSource<'_>,
    ) -> Result<InputTensor, ConfigError> {
        let dtype = spec.dtype;
        if let Some(state) = self.signature.states.iter().find(|s| s.input == index) {
            let (shape, data) = (state.initial.shape.clone(), state.initial.data.clone());
            return Ok(InputTensor { index, dtype, shape, data });
        }
        // A control input has one value, so a variable dimension is 1.
        let dims: Shape = spec.dims.iter().map(|d| if *d < 0 { 1 } else { *d }).collect();
        let shape = self.shape(spec, &dims);
        let data = source.zeros(dtype, &shape)?.into();
        Ok(InputTensor { index, dtype, shape, data })
    }

    /// Shape of a batch of one, with the batch dimension if the input has one.
    fn shape(&self, spec: &TensorSpec, dims: &[i64]) -> Shape {
        let batch = (self.signature.batching() && !spec.shape_tensor).then_some(1);
        batch.into_iter().chain(dims.iter().copied()).collect()
    }

    fn warn(&self, what: std::fmt::Arguments<'_>) {
        let (model, sample) = (&self.signature.model, &self.setting.name);
        tracing::warn!("model '{model}', warmup sample '{sample}': {what}");
    }

    fn refuse<T>(&self, why: String) -> Result<T, ConfigError> {
        let (model, sample) = (&self.signature.model, &self.setting.name);
        Err(ConfigError::invalid(format!("model '{model}', warmup sample '{sample}': {why}")))
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
