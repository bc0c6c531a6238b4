//! A checked configuration into the policy of its queue, and the inputs that the host adds for sequences.

use super::config::stays_inside;
use crate::error::{Error, Result};
use crate::request::buffer::AlignedBuf;
use crate::request::state::{StateSpec, StateValue};
use crate::request::strings;
use crate::request::tensor::element_count;
use crate::request::{DType, Role, Shape, ShapeText, Signature, TensorSpec};
use crate::scheduler::batcher::settings::{
    Batching, DynamicSettings, QueuePolicy, SequenceSettings, Strategy, TimeoutAction,
};
use crate::scheduler::{Controls, Corrid, Flag, SchedulingPolicy};
use bytes::Bytes;
use std::path::Path;
use trtserver_proto::v2::model_config::SchedulingChoice;
use trtserver_proto::v2::model_queue_policy as wire;
use trtserver_proto::v2::model_sequence_batching::control::Kind;
use trtserver_proto::v2::model_sequence_batching::initial_state::StateData;
use trtserver_proto::v2::model_sequence_batching::{Control, InitialState, State, StrategyChoice};
use trtserver_proto::v2::{
    ModelConfig, ModelDynamicBatching, ModelQueuePolicy, ModelSequenceBatching,
};

/// Where initial states lie inside a model's directory.
const INITIAL_STATE_DIR: &str = "initial_state";

/// How the requests of a model wait.
pub struct Schedule {
    sequences: Option<(ModelSequenceBatching, Controls)>,
    dynamic: Option<ModelDynamicBatching>,
    max_batch_size: u32,
    /// Responses leave in the order of arrival.
    pub in_order: bool,
}

impl Schedule {
    /// Reads the policy and adds the hidden inputs to `signature`. `dir` is the model's directory.
    ///
    /// # Errors
    /// A state that cannot be: its file, its size, its type.
    pub fn new(config: &ModelConfig, signature: &mut Signature, dir: &Path) -> Result<Self> {
        let mut schedule = Self {
            sequences: None,
            dynamic: None,
            max_batch_size: signature.max_batch_size,
            in_order: false,
        };
        match &config.scheduling_choice {
            Some(SchedulingChoice::DynamicBatching(dynamic)) => {
                schedule.in_order = dynamic.preserve_ordering;
                schedule.dynamic = Some(dynamic.clone());
            }
            Some(SchedulingChoice::SequenceBatching(sequence)) => {
                if let Some(StrategyChoice::Oldest(oldest)) = &sequence.strategy_choice {
                    schedule.in_order = oldest.preserve_ordering;
                }
                let controls = controls(sequence, signature);
                for state in &sequence.state {
                    let spec = state_spec(state, signature, dir)?;
                    signature.states.push(spec);
                }
                schedule.sequences = Some((sequence.clone(), controls));
            }
            Some(SchedulingChoice::EnsembleScheduling(_)) | None => {}
        }
        Ok(schedule)
    }

    /// The policy of one version's queue.
    pub fn policy(&self, instances: usize) -> SchedulingPolicy {
        if let Some((sequence, controls)) = &self.sequences {
            let settings = self.sequence_settings(sequence, instances);
            return SchedulingPolicy::Sequence(settings, Box::new(controls.clone()));
        }
        SchedulingPolicy::Dynamic(self.dynamic.as_ref().map_or_else(
            DynamicSettings::default,
            |dynamic| {
                let preferred = &dynamic.preferred_batch_size;
                let delay_us = dynamic.max_queue_delay_microseconds;
                let levels = dynamic.priority_queue_policy.iter();
                DynamicSettings {
                    batching: self.batching(preferred, delay_us),
                    levels: dynamic.priority_levels,
                    default_level: dynamic.default_priority_level,
                    default_policy: dynamic
                        .default_queue_policy
                        .as_ref()
                        .map_or_else(<_>::default, queue_policy),
                    policies: levels
                        .map(|(level, policy)| (*level, queue_policy(policy)))
                        .collect(),
                }
            },
        ))
    }

    /// A model without a batch dimension is never batched.
    fn batching(&self, preferred: &[i32], delay_us: u64) -> Option<Batching> {
        if self.max_batch_size == 0 {
            return None;
        }
        let mut preferred: Vec<u32> =
            preferred.iter().filter_map(|n| u32::try_from(*n).ok()).collect();
        preferred.sort_unstable();
        preferred.dedup();
        let delay_ns = delay_us.saturating_mul(1000);
        Some(Batching { max_rows: self.max_batch_size, preferred, delay_ns })
    }

    fn sequence_settings(&self, s: &ModelSequenceBatching, instances: usize) -> SequenceSettings {
        let rows = self.max_batch_size.max(1);
        let idle_ns = s.max_sequence_idle_microseconds.saturating_mul(1000);
        match &s.strategy_choice {
            Some(StrategyChoice::Oldest(oldest)) => {
                let delay_us = oldest.max_queue_delay_microseconds;
                let batching = self.batching(&oldest.preferred_batch_size, delay_us);
                let alone = Batching { max_rows: 1, preferred: vec![1], delay_ns: 0 };
                let slots = match oldest.max_candidate_sequences {
                    n if n > 0 => n as usize,
                    _ => rows as usize,
                };
                let strategy = Strategy::Oldest(batching.unwrap_or(alone));
                SequenceSettings { instances, slots, idle_ns, strategy }
            }
            other => {
                let direct = match other {
                    Some(StrategyChoice::Direct(direct)) => *direct,
                    _ => Default::default(),
                };
                let slots = rows as usize;
                let delay_ns = direct.max_queue_delay_microseconds.saturating_mul(1000);
                let min_ready = (direct.minimum_slot_utilization * slots as f32).ceil() as usize;
                // Large numbers of slots are rounded on the way.
                let min_ready = min_ready.min(slots);
                let strategy = Strategy::Direct { delay_ns, min_ready };
                SequenceSettings { instances, slots, idle_ns, strategy }
            }
        }
    }

    /// Requests of one sequence are never executed two at a time.
    pub fn one_at_a_time(&self) -> bool {
        self.sequences.is_some()
    }
}

fn queue_policy(policy: &ModelQueuePolicy) -> QueuePolicy {
    QueuePolicy {
        max_size: policy.max_queue_size,
        timeout_us: policy.default_timeout_microseconds,
        action: match policy.timeout_action() {
            wire::TimeoutAction::Reject => TimeoutAction::Reject,
            wire::TimeoutAction::Delay => TimeoutAction::Delay,
        },
        allow_override: policy.allow_timeout_override,
    }
}

/// Declares an input that callers do not see; gives its number.
fn hide(signature: &mut Signature, name: &str, dtype: DType, dims: &[i64], role: Role) -> usize {
    signature.hidden.push(TensorSpec { role, ..TensorSpec::new(name, dtype, dims) });
    signature.inputs.len() + signature.hidden.len() - 1
}

/// The control tensors, whose rules `config` has checked.
fn controls(sequence: &ModelSequenceBatching, signature: &mut Signature) -> Controls {
    let mut controls = Controls::default();
    for input in &sequence.control_input {
        for control in &input.control {
            if control.kind() == Kind::ControlSequenceCorrid {
                let dtype = DType::from_proto(control.data_type()).unwrap_or(DType::Uint64);
                let number = hide(signature, &input.name, dtype, &[1], Role::Control);
                let name = input.name.as_str().into();
                controls.corrid = Some(Corrid { input: number, name, dtype });
                continue;
            }
            let (dtype, no_yes) = values(control);
            let number = hide(signature, &input.name, dtype, &[1], Role::Control);
            let flag = Some(Flag { input: number, dtype, no_yes });
            match control.kind() {
                Kind::ControlSequenceStart => controls.start = flag,
                Kind::ControlSequenceEnd => controls.end = flag,
                _ => controls.ready = flag,
            }
        }
    }
    controls
}

/// Type of a flag, and its values for no and yes.
fn values(control: &Control) -> (DType, [Bytes; 2]) {
    let bytes = |value: &[u8]| AlignedBuf::copy_of(&[value]).into_bytes();
    if let [no, yes] = *control.int32_false_true {
        return (DType::Int32, [no, yes].map(|v| bytes(&v.to_le_bytes())));
    }
    if let [no, yes] = *control.fp32_false_true {
        return (DType::Fp32, [no, yes].map(|v| bytes(&v.to_le_bytes())));
    }
    let no = control.bool_false_true.first().copied().unwrap_or(false);
    let yes = control.bool_false_true.get(1).copied().unwrap_or(true);
    (DType::Bool, [no, yes].map(|v| bytes(&[u8::from(v)])))
}

fn state_spec(state: &State, signature: &mut Signature, dir: &Path) -> Result<StateSpec> {
    let (model, name) = (signature.model.clone(), &state.input_name);
    let dtype = DType::from_proto(state.data_type()).ok_or_else(|| {
        Error::invalid(format!("state '{name}' of model '{model}' must specify 'data_type'"))
    })?;
    let initial = match state.initial_state.first() {
        Some(initial) => initial_state(initial, state, dtype, dir, &model)?,
        None => {
            let shape: Shape = state.dims.iter().map(|d| if *d < 0 { 1 } else { *d }).collect();
            zeros(&shape, dtype, name, &model)?
        }
    };
    let row = signature.batching().then_some(1);
    let shape = row.into_iter().chain(initial.shape).collect();
    Ok(StateSpec {
        input: hide(signature, name, dtype, &state.dims, Role::State),
        output: state.output_name.as_str().into(),
        dtype,
        dims: state.dims.clone(),
        initial: StateValue { shape, data: initial.data },
    })
}

fn zeros(shape: &[i64], dtype: DType, state: &str, model: &str) -> Result<StateValue> {
    // No string is a length of zero.
    let bytes = element_count(shape).and_then(|n| n.checked_mul(dtype.size().unwrap_or(4)));
    let Some(data) = bytes.and_then(AlignedBuf::try_new) else {
        return Err(Error::invalid(format!(
            "initial state of state '{state}' of model '{model}': shape {} of {} does not fit into memory",
            ShapeText(shape),
            dtype.config_name()
        )));
    };
    Ok(StateValue { shape: shape.into(), data: data.into_bytes() })
}

fn initial_state(
    initial: &InitialState,
    state: &State,
    dtype: DType,
    dir: &Path,
    model: &str,
) -> Result<StateValue> {
    let name = &state.input_name;
    let shape: Shape = initial.dims.iter().copied().collect();
    let file = match &initial.state_data {
        Some(StateData::DataFile(file)) => file,
        _ => return zeros(&shape, dtype, name, model),
    };
    if !stays_inside(file) {
        return Err(Error::invalid(format!(
            "initial state '{}' of model '{model}': file '{file}' must lie inside the model's \
             '{INITIAL_STATE_DIR}' directory",
            initial.name
        )));
    }
    let path = dir.join(INITIAL_STATE_DIR).join(file);
    let data = std::fs::read(&path).map_err(|e| {
        Error::invalid(format!(
            "failed to read initial state file '{}' of state '{name}' of model '{model}': {e}",
            path.display()
        ))
    })?;
    let elements = element_count(&shape).unwrap_or(0);
    let fits = match dtype.size() {
        Some(size) => elements.checked_mul(size) == Some(data.len()),
        None => strings::check(&data, elements).is_ok_and(|end| end == data.len()),
    };
    if !fits {
        let expected = dtype.size().map_or(0, |size| elements.saturating_mul(size));
        return Err(Error::invalid(format!(
            "initial state of state '{name}' of model '{model}': shape {} of {} needs {expected} bytes, \
             file '{}' has {}",
            ShapeText(&shape),
            dtype.config_name(),
            path.display(),
            data.len()
        )));
    }
    Ok(StateValue { shape, data: AlignedBuf::copy_of(&[&data]).into_bytes() })
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
