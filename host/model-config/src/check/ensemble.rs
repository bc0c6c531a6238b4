//! Checks of an ensemble's own configuration: its steps and the tensors that connect them.
//! `ensemble::check_steps` compares it with the models of the steps when it is loaded.

use std::collections::{BTreeMap, BTreeSet};

use trtserver_proto::v2::model_config::SchedulingChoice;
use trtserver_proto::v2::{ModelConfig, ModelEnsembling};

use super::super::ConfigError;
use super::refuse_config;

pub(super) fn check_ensemble(config: &ModelConfig) -> Result<(), ConfigError> {
    let Some(SchedulingChoice::EnsembleScheduling(ensemble)) = &config.scheduling_choice else {
        return Ok(());
    };
    let name = &config.name;
    let forbidden = [
        ("instance group", config.instance_group.is_empty()),
        ("optimization", config.optimization.is_none()),
    ];
    if let Some((what, _)) = forbidden.iter().find(|(_, absent)| !absent) {
        return refuse_config(format!("{what} should not be specified for ensemble '{name}'"));
    }
    if !config.model_warmup.is_empty() {
        return refuse_config(format!("model_warmup can not be specified for ensemble '{name}'"));
    }
    check_ensemble_steps(name, ensemble)?;
    check_connections(config, ensemble)
}

fn check_ensemble_steps(name: &str, ensemble: &ModelEnsembling) -> Result<(), ConfigError> {
    if ensemble.step.is_empty() {
        return refuse_config(format!("must specify 'step' for ensemble '{name}'"));
    }
    for (position, step) in ensemble.step.iter().enumerate() {
        let required = [
            ("model_name", step.model_name.is_empty()),
            ("input_map", step.input_map.is_empty()),
            ("output_map", step.output_map.is_empty()),
        ];
        if let Some((field, _)) = required.iter().find(|(_, empty)| *empty) {
            return refuse_config(format!(
                "must specify '{field}' in step {position} of ensemble '{name}'"
            ));
        }
    }
    Ok(())
}

fn check_connections(config: &ModelConfig, ensemble: &ModelEnsembling) -> Result<(), ConfigError> {
    let name = &config.name;
    let inputs: BTreeSet<&str> = config.input.iter().map(|input| input.name.as_str()).collect();
    let mut read = BTreeSet::new();
    let mut writer: BTreeMap<&str, usize> = BTreeMap::new();
    for (position, step) in ensemble.step.iter().enumerate() {
        read.extend(step.input_map.values().map(String::as_str));
        for tensor in step.output_map.values().map(String::as_str) {
            if inputs.contains(tensor) || writer.insert(tensor, position).is_some() {
                return refuse_config(format!(
                    "ensemble tensor '{tensor}' can appear in an output map only once for \
                     ensemble '{name}' step {position}"
                ));
            }
        }
    }
    if let Some(unread) = config.input.iter().find(|input| !read.contains(input.name.as_str())) {
        let input = &unread.name;
        return refuse_config(format!("ensemble input '{input}' for ensemble {name}' is not used"));
    }
    for output in config.output.iter().map(|output| output.name.as_str()) {
        let mentioned = writer.contains_key(output) || read.contains(output);
        if !mentioned {
            return refuse_config(format!(
                "ensemble output '{output}' for ensemble {name}' is not used"
            ));
        }
    }

    let written = reachable_tensors(&inputs, ensemble);
    for output in config.output.iter().map(|output| output.name.as_str()) {
        if written.contains(output) {
            continue;
        }
        let unwritten_source = |tensor: &str| {
            let position = writer.get(tensor)?;
            let mut sources = ensemble.step[*position].input_map.values();
            sources.find(|t| !written.contains(t.as_str())).map(String::as_str)
        };
        // Follows unwritten tensors back to their origin: a tensor that no step writes, or one of a
        // cycle.
        let mut seen = BTreeSet::new();
        let mut origin = unwritten_source(output);
        while let Some(next) = origin.and_then(unwritten_source).filter(|next| seen.insert(*next)) {
            origin = Some(next);
        }
        let why = origin.map_or(String::new(), |tensor| {
            format!(": at least one of its depending tensors, '{tensor}', is not connected")
        });
        return refuse_config(format!(
            "output '{output}' for ensemble '{name}' is not written{why}"
        ));
    }
    let outputs: BTreeSet<&str> = config.output.iter().map(|output| output.name.as_str()).collect();
    let unused = |tensor: &&str| !read.contains(tensor) && !outputs.contains(tensor);
    if let Some(tensor) = writer.keys().find(|tensor| unused(tensor)) {
        return refuse_config(format!("ensemble tensor '{tensor}' is unused in ensemble '{name}'"));
    }
    Ok(())
}

/// The tensors that are written when the inputs are: a step writes its outputs once all its inputs
/// are written.
fn reachable_tensors<'a>(
    inputs: &BTreeSet<&'a str>,
    ensemble: &'a ModelEnsembling,
) -> BTreeSet<&'a str> {
    let mut written = inputs.clone();
    let mut waiting: Vec<_> = ensemble.step.iter().collect();
    loop {
        let before = waiting.len();
        waiting.retain(|step| {
            let ready = step.input_map.values().all(|tensor| written.contains(tensor.as_str()));
            if ready {
                written.extend(step.output_map.values().map(String::as_str));
            }
            !ready
        });
        if waiting.len() == before {
            return written;
        }
    }
}

#[cfg(test)]
#[path = "ensemble_tests.rs"]
mod tests;
