//! What is known of a model before the load starts: its tensors, batching and scheduling, from its
//! configuration.

use trtserver_proto::v2;
use trtserver_proto::v2::model_config::SchedulingChoice;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelTensor {
    pub name: String,
    /// As v2 names it, such as FP32 or BYTES.
    pub datatype: String,
    /// Shape of one batch item; -1 where any size is allowed.
    pub shape: Vec<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    Default,
    Dynamic,
    Sequence,
    /// `sequences`: one of the steps is stateful.
    Ensemble {
        sequences: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredModel {
    pub name: String,
    /// Empty: the server chooses.
    pub version: String,
    /// 0: the model does not batch.
    pub max_batch_size: usize,
    pub inputs: Vec<ModelTensor>,
    pub outputs: Vec<ModelTensor>,
    pub scheduling: Scheduling,
    pub decoupled: bool,
    /// Models and versions of an ensemble's steps.
    pub composing: Vec<(String, i64)>,
}

impl MeasuredModel {
    /// `config_of` gives the configurations of the steps of an ensemble.
    ///
    /// # Errors
    /// A configuration cannot be had.
    pub fn new(
        config: &v2::ModelConfig,
        version: &str,
        config_of: &mut dyn FnMut(&str, i64) -> Result<v2::ModelConfig, String>,
    ) -> Result<Self, String> {
        let tensor = |name: &str, datatype: v2::DataType, dims: &[i64]| ModelTensor {
            name: name.to_owned(),
            datatype: match datatype.as_str_name().trim_start_matches("TYPE_") {
                "STRING" => "BYTES".to_owned(),
                name => name.to_owned(),
            },
            shape: dims.to_vec(),
        };
        let inputs = config.input.iter().map(|t| tensor(&t.name, t.data_type(), &t.dims));
        let outputs = config.output.iter().map(|t| tensor(&t.name, t.data_type(), &t.dims));
        let mut composing = Vec::new();
        let sequences = steps(config, config_of, &mut composing, 0)?;
        let scheduling = match &config.scheduling_choice {
            Some(SchedulingChoice::DynamicBatching(_)) => Scheduling::Dynamic,
            Some(SchedulingChoice::SequenceBatching(_)) => Scheduling::Sequence,
            Some(SchedulingChoice::EnsembleScheduling(_)) => Scheduling::Ensemble { sequences },
            None => Scheduling::Default,
        };
        Ok(MeasuredModel {
            name: config.name.clone(),
            version: version.to_owned(),
            max_batch_size: usize::try_from(config.max_batch_size).unwrap_or(0),
            inputs: inputs.collect(),
            outputs: outputs.collect(),
            scheduling,
            decoupled: config.model_transaction_policy.as_ref().is_some_and(|p| p.decoupled),
            composing,
        })
    }

    pub fn is_stateful(&self) -> bool {
        matches!(self.scheduling, Scheduling::Sequence | Scheduling::Ensemble { sequences: true })
    }
}

/// Collects the steps of an ensemble and of the ensembles among them. Returns whether a step is
/// stateful.
fn steps(
    config: &v2::ModelConfig,
    config_of: &mut dyn FnMut(&str, i64) -> Result<v2::ModelConfig, String>,
    composing: &mut Vec<(String, i64)>,
    depth: usize,
) -> Result<bool, String> {
    /// An ensemble that contains itself does not load; this is for servers that are not ours.
    const DEPTH: usize = 16;
    let Some(SchedulingChoice::EnsembleScheduling(ensemble)) = &config.scheduling_choice else {
        return Ok(matches!(config.scheduling_choice, Some(SchedulingChoice::SequenceBatching(_))));
    };
    if depth > DEPTH {
        return Err(format!(
            "ensemble '{}': more than {DEPTH} ensembles in each other",
            config.name
        ));
    }
    let mut sequences = false;
    for step in &ensemble.step {
        let model = (step.model_name.clone(), step.model_version);
        if !composing.contains(&model) {
            composing.push(model);
        }
        let config = config_of(&step.model_name, step.model_version)?;
        sequences |= steps(&config, config_of, composing, depth + 1)?;
    }
    Ok(sequences)
}

/// Bytes of one element; `None` for BYTES.
pub fn element_size(datatype: &str) -> Option<usize> {
    Some(match datatype {
        "BOOL" | "UINT8" | "INT8" => 1,
        "UINT16" | "INT16" | "FP16" | "BF16" => 2,
        "UINT32" | "INT32" | "FP32" => 4,
        "UINT64" | "INT64" | "FP64" => 8,
        _ => return None,
    })
}
