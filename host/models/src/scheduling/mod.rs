//! Queue policy of a model, and the inputs that the host adds for sequences and batches, from its
//! checked configuration.

mod batch_inputs;
mod controls;
mod hidden_inputs;
mod states;

use super::load_limits::LoadMemory;
use trtserver_base::error::Result;
use trtserver_model_config::named_states;
use trtserver_model_files::FilePlaces;
use trtserver_proto::v2::model_config::SchedulingChoice;
use trtserver_proto::v2::model_queue_policy as wire;
use trtserver_proto::v2::model_sequence_batching::StrategyChoice;
use trtserver_proto::v2::{
    ModelConfig, ModelDynamicBatching, ModelQueuePolicy, ModelSequenceBatching,
};
use trtserver_request::ModelSignature;
use trtserver_scheduler::batcher::settings::{
    BatchingSettings, DynamicSettings, QueuePolicy, SequenceSettings, SequenceStrategy,
    TimeoutAction,
};
use trtserver_scheduler::{SchedulingPolicy, SequenceControls};

/// How the requests of a model are queued and batched.
pub struct SchedulingPlan {
    sequences: Option<(ModelSequenceBatching, SequenceControls)>,
    dynamic: Option<ModelDynamicBatching>,
    max_batch_size: u32,
    /// Responses are sent in the order of the requests.
    pub in_order: bool,
}

impl SchedulingPlan {
    /// Reads the policy, and adds the inputs for controls, states and batches to `signature`.
    /// `places` are those of the model's files; `memory` limits the initial states.
    ///
    /// # Errors
    /// An initial state with an unreadable file, of a size or type that does not match, or too
    /// large.
    pub fn new(
        config: &ModelConfig,
        signature: &mut ModelSignature,
        places: &FilePlaces,
        memory: &mut LoadMemory,
    ) -> Result<Self> {
        let mut scheduling = Self {
            sequences: None,
            dynamic: None,
            max_batch_size: signature.max_batch_size,
            in_order: false,
        };
        match &config.scheduling_choice {
            Some(SchedulingChoice::DynamicBatching(dynamic)) => {
                scheduling.in_order = dynamic.preserve_ordering;
                scheduling.dynamic = Some(dynamic.clone());
            }
            Some(SchedulingChoice::SequenceBatching(sequence)) => {
                if let Some(StrategyChoice::Oldest(oldest)) = &sequence.strategy_choice {
                    scheduling.in_order = oldest.preserve_ordering;
                }
                let controls = controls::add_sequence_controls(sequence, signature);
                for state in named_states(sequence) {
                    let spec = states::add_implicit_states(state, signature, places, memory)?;
                    signature.states.push(spec);
                }
                scheduling.sequences = Some((sequence.clone(), controls));
            }
            Some(SchedulingChoice::EnsembleScheduling(_)) | None => {}
        }
        batch_inputs::add_batch_inputs(config, signature);
        Ok(scheduling)
    }

    /// Queue policy of one version.
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
                    fair: false,
                }
            },
        ))
    }

    /// `None` for a model without a batch dimension, which is never batched.
    fn batching(&self, preferred: &[i32], delay_us: u64) -> Option<BatchingSettings> {
        if self.max_batch_size == 0 {
            return None;
        }
        let mut preferred: Vec<u32> =
            preferred.iter().filter_map(|n| u32::try_from(*n).ok()).collect();
        preferred.sort_unstable();
        preferred.dedup();
        let delay_ns = delay_us.saturating_mul(1000);
        Some(BatchingSettings { max_rows: self.max_batch_size, preferred, delay_ns })
    }

    fn sequence_settings(&self, s: &ModelSequenceBatching, instances: usize) -> SequenceSettings {
        let rows = self.max_batch_size.max(1);
        let idle_ns = s.max_sequence_idle_microseconds.saturating_mul(1000);
        match &s.strategy_choice {
            Some(StrategyChoice::Oldest(oldest)) => {
                let delay_us = oldest.max_queue_delay_microseconds;
                let batching = self.batching(&oldest.preferred_batch_size, delay_us);
                let unbatched = BatchingSettings { max_rows: 1, preferred: vec![1], delay_ns: 0 };
                let slots = match oldest.max_candidate_sequences {
                    n if n > 0 => n as usize,
                    _ => rows as usize,
                };
                let strategy = SequenceStrategy::Oldest(batching.unwrap_or(unbatched));
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
                // `f32` rounds large numbers of slots, possibly up.
                let min_ready = min_ready.min(slots);
                let strategy = SequenceStrategy::Direct { delay_ns, min_ready };
                SequenceSettings { instances, slots, idle_ns, strategy }
            }
        }
    }

    /// Instances execute one batch at a time: requests of one sequence must not overlap.
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

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
