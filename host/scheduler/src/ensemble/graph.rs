//! The graph of an ensemble: which step reads and writes which tensors, and which steps an output
//! needs.

use super::step_model::StepModel;
use std::collections::HashMap;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_request::{DType, ModelSignature};

/// A step as configured. The maps are pairs of the model's name and the ensemble tensor.
#[derive(Clone, Debug, Default)]
pub struct StepPlan {
    pub model: String,
    /// `None`: the highest version that is served.
    pub version: Option<i64>,
    pub inputs: Vec<(String, String)>,
    pub outputs: Vec<(String, String)>,
}

/// A step with its ensemble tensors as indices.
#[derive(Debug)]
pub struct EnsembleStep {
    pub model: Arc<str>,
    pub version: Option<i64>,
    /// The model's inputs by name, since the model may be replaced by one with other inputs, and
    /// the tensors they read.
    pub reads: Vec<(Arc<str>, usize)>,
    pub writes: Vec<(Arc<str>, usize)>,
}

/// Steps and tensors of an ensemble by index, and which step reads and writes which tensor.
#[derive(Debug)]
pub struct EnsembleGraph {
    /// Name of the ensemble.
    pub name: Arc<str>,
    pub steps: Vec<EnsembleStep>,
    pub signature: Arc<ModelSignature>,
    /// Number of ensemble tensors.
    pub tensors: usize,
    /// The tensor of each input and output of the ensemble.
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
    /// The step that writes a tensor; none for the ensemble's inputs.
    pub writer: Vec<Option<usize>>,
    /// Whether the model of a step is decoupled.
    pub decoupled: Vec<bool>,
    /// The decoupled step for each of whose responses a step is executed, and for each of whose
    /// responses there is a value of a tensor.
    pub step_source: Vec<Option<usize>>,
    pub tensor_source: Vec<Option<usize>>,
}

impl EnsembleGraph {
    /// `decoupled`: whether the model of each step is.
    ///
    /// # Errors
    /// Two steps write one tensor, which the checks of the configuration exclude. A step, or a
    /// response, takes tensors that depend on different decoupled steps.
    pub fn new<'a>(
        signature: &'a Arc<ModelSignature>,
        plans: &'a [StepPlan],
        decoupled: &[bool],
    ) -> Result<Self> {
        let mut numbers: HashMap<&'a str, usize> = HashMap::new();
        let mut number = |name: &'a str| {
            let next = numbers.len();
            *numbers.entry(name).or_insert(next)
        };
        let inputs = signature.inputs.iter().map(|i| number(&i.name)).collect();
        let outputs = signature.outputs.iter().map(|o| number(&o.name)).collect();
        let mut steps = Vec::with_capacity(plans.len());
        for plan in plans {
            let mut tensors = |map: &'a [(String, String)]| {
                let one =
                    |(own, tensor): &'a (String, String)| (own.as_str().into(), number(tensor));
                map.iter().map(one).collect()
            };
            let (reads, writes) = (tensors(&plan.inputs), tensors(&plan.outputs));
            let model = plan.model.as_str().into();
            steps.push(EnsembleStep { model, version: plan.version, reads, writes });
        }
        let tensors = numbers.len();
        let mut writer = vec![None; tensors];
        for (place, step) in steps.iter().enumerate() {
            for (name, tensor) in &step.writes {
                if writer[*tensor].replace(place).is_some() {
                    return Err(Error::invalid(format!(
                        "ensemble '{}': step {place} writes with output '{name}' what another step writes",
                        signature.model
                    )));
                }
            }
        }
        let none = vec![None; steps.len()];
        let mut graph = Self {
            name: Arc::clone(&signature.model),
            steps,
            signature: Arc::clone(signature),
            tensors,
            inputs,
            outputs,
            writer,
            decoupled: decoupled.to_vec(),
            step_source: none,
            tensor_source: vec![None; tensors],
        };
        if graph.is_decoupled() {
            graph.find_sources()?;
        }
        Ok(graph)
    }

    /// The ensemble may send any number of responses.
    pub fn is_decoupled(&self) -> bool {
        self.decoupled.contains(&true)
    }

    fn find_sources(&mut self) -> Result<()> {
        // Each round settles at least one step more, because steps form no circle.
        for _ in 0..self.steps.len() {
            for step in 0..self.steps.len() {
                let reads = self.steps[step].reads.iter().map(|(_, tensor)| *tensor);
                let source = self.one_source(reads).map_err(|[a, b]| {
                    Error::invalid(format!(
                        "in ensemble {}, step of model '{}' receives inputs originated from different decoupled \
                         models '{}' and '{}'",
                        self.name, self.steps[step].model, self.steps[a].model, self.steps[b].model
                    ))
                })?;
                self.step_source[step] = source;
                let written = if self.decoupled[step] { Some(step) } else { source };
                for (_, tensor) in &self.steps[step].writes {
                    self.tensor_source[*tensor] = written;
                }
            }
        }
        let outputs = self.one_source(self.outputs.iter().copied());
        outputs.map(drop).map_err(|[a, b]| {
            Error::invalid(format!(
                "in ensemble {}, outputs originate from different decoupled models '{}' and '{}'",
                self.name, self.steps[a].model, self.steps[b].model
            ))
        })
    }

    /// The decoupled step that these tensors depend on, or two of them.
    fn one_source(
        &self,
        tensors: impl Iterator<Item = usize>,
    ) -> std::result::Result<Option<usize>, [usize; 2]> {
        let mut found = None;
        for source in tensors.filter_map(|tensor| self.tensor_source[tensor]) {
            match found {
                Some(other) if other != source => return Err([other, source]),
                _ => found = Some(source),
            }
        }
        Ok(found)
    }

    /// The decoupled step for each of whose responses there is a response of the ensemble with
    /// these tensors.
    pub fn response_source(&self, tensors: impl Iterator<Item = usize>) -> Option<usize> {
        self.one_source(tensors).unwrap_or(None)
    }

    /// The steps that read what `step` writes, directly.
    pub fn readers(&self, step: usize) -> Vec<usize> {
        let writes = |tensor: usize| self.writer[tensor] == Some(step);
        let reads = |reader: &EnsembleStep| reader.reads.iter().any(|(_, tensor)| writes(*tensor));
        (0..self.steps.len()).filter(|reader| reads(&self.steps[*reader])).collect()
    }

    /// All steps that read a tensor take it in GPU memory; `models` are those of the steps.
    pub fn is_read_on_gpus(&self, tensor: usize, models: &[Arc<dyn StepModel>]) -> bool {
        let takes = |model: &dyn StepModel, name: &str| {
            let signature = model.signature();
            let spec = signature.input(name).map(|index| &signature.inputs[index]);
            let fits = spec.is_some_and(|spec| spec.dtype != DType::String && !spec.shape_tensor);
            fits && model.reads_on_gpu(name)
        };
        let mut steps = self.steps.iter().zip(models);
        steps.all(|(step, model)| {
            let mut reads = step.reads.iter().filter(|(_, read)| *read == tensor);
            reads.all(|(name, _)| takes(&**model, name))
        })
    }

    /// For each step, whether the tensors `requested` depend on it.
    pub fn needed(&self, requested: impl Iterator<Item = usize>) -> Vec<bool> {
        let mut needed = vec![false; self.steps.len()];
        let mut open: Vec<usize> = requested.collect();
        while let Some(tensor) = open.pop() {
            let Some(step) = self.writer[tensor] else { continue };
            if !std::mem::replace(&mut needed[step], true) {
                open.extend(self.steps[step].reads.iter().map(|(_, tensor)| *tensor));
            }
        }
        needed
    }
}
