//! The tensors of one ensemble request, and which steps can run. Without locks: [`super::run`] has
//! the lock.

use super::graph::EnsembleGraph;
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_request::{
    DType, InferResponse, InputTensor, ModelSignature, RequestedOutput, Shape, TensorData,
    TensorSpec,
};

/// An ensemble tensor.
#[derive(Clone, Debug)]
pub struct EnsembleTensor {
    pub dtype: DType,
    pub shape: Shape,
    pub data: TensorData,
    /// The first dimension is the batch dimension.
    pub batched: bool,
    /// The shape may differ from the configuration of the model that sent the tensor.
    pub free: bool,
}

impl EnsembleTensor {
    /// The shape for a model with `dims` dimensions and, if it `batches`, a batch dimension before
    /// them. Where only one of ensemble and model batches, a batch dimension of 1 is added or
    /// removed, unless the tensor fits as it is.
    pub fn shape_for(&self, dims: usize, batches: bool) -> Shape {
        match (self.batched, batches) {
            (false, true) if self.shape.len() == dims => {
                std::iter::once(1).chain(self.shape.iter().copied()).collect()
            }
            (true, false) if self.shape.len() == dims + 1 && self.shape[0] == 1 => {
                self.shape[1..].into()
            }
            _ => self.shape.clone(),
        }
    }
}

#[derive(Clone, Debug)]
enum TensorState {
    Pending,
    Present(EnsembleTensor),
    /// An optional input or an output that was left out.
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepState {
    /// No requested output depends on it, or it belongs to another pool.
    Unneeded,
    /// It is executed for each response of a decoupled step.
    PerResponse,
    Waiting,
    Taken,
}

/// The inputs of a step: name and tensor.
pub type StepInputs = SmallVec<[(Arc<str>, EnsembleTensor); 4]>;

/// Tensors of one ensemble request, with the number of reads that each still has. A request has one
/// pool; if steps are decoupled, another one for each of their responses, which takes the tensors
/// that depend on no decoupled step from the first.
pub struct TensorPool {
    /// The decoupled step whose response the pool is for.
    source: Option<usize>,
    tensors: Vec<TensorState>,
    /// How often each tensor will still be read, by steps and by the response.
    uses: Vec<usize>,
    steps: Vec<StepState>,
}

impl TensorPool {
    /// Starts with the ensemble's inputs. A request for no output, which v1 allows, has all of them
    /// computed.
    pub fn new(
        graph: &EnsembleGraph,
        inputs: &[InputTensor],
        requested: &[RequestedOutput],
    ) -> Self {
        let signature = &graph.signature;
        let requested: Vec<usize> = match requested {
            [] => graph.outputs.clone(),
            some => some.iter().map(|w| graph.outputs[w.index()]).collect(),
        };
        let needed = graph.needed(requested.iter().copied());
        let mut uses = vec![0; graph.tensors];
        let mut steps = Vec::with_capacity(graph.steps.len());
        for ((step, needed), source) in graph.steps.iter().zip(needed).zip(&graph.step_source) {
            steps.push(match (needed, source) {
                (false, _) => StepState::Unneeded,
                (true, None) => StepState::Waiting,
                (true, Some(_)) => StepState::PerResponse,
            });
            if needed {
                step.reads.iter().for_each(|(_, tensor)| uses[*tensor] += 1);
            }
        }
        requested.iter().for_each(|tensor| uses[*tensor] += 1);
        let tensors = vec![TensorState::Pending; graph.tensors];
        let mut pool = Self { source: None, tensors, uses, steps };
        for (index, (spec, tensor)) in signature.inputs.iter().zip(&graph.inputs).enumerate() {
            let given = inputs.iter().find(|i| i.index == index).map(|input| EnsembleTensor {
                dtype: input.dtype,
                shape: signature.to_model(spec, &input.shape),
                data: input.data.clone(),
                batched: has_batch(signature, spec),
                free: false,
            });
            pool.put(*tensor, given);
        }
        pool
    }

    /// A pool for a response of the decoupled step `source`. `uses`: the uses that the request's
    /// pool counted when it was new.
    pub fn for_response(&self, graph: &EnsembleGraph, source: usize, uses: &[usize]) -> Self {
        let state = |(state, of): (&StepState, &Option<usize>)| match state {
            StepState::PerResponse if *of == Some(source) => StepState::Waiting,
            _ => StepState::Unneeded,
        };
        Self {
            source: Some(source),
            tensors: vec![TensorState::Pending; graph.tensors],
            uses: uses.to_vec(),
            steps: self.steps.iter().zip(&graph.step_source).map(state).collect(),
        }
    }

    /// How often each tensor will be read.
    pub fn uses(&self) -> &[usize] {
        &self.uses
    }

    /// All of these tensors have a value, or never get one; `root` is the request's pool, if this is
    /// another one.
    pub fn has(&self, graph: &EnsembleGraph, tensors: &[usize], root: Option<&Self>) -> bool {
        tensors.iter().all(|tensor| self.is_settled(graph, *tensor, root))
    }

    fn is_settled(&self, graph: &EnsembleGraph, tensor: usize, root: Option<&Self>) -> bool {
        !matches!(self.state(graph, tensor, root), TensorState::Pending)
    }

    /// A tensor of this pool, or of the request's pool `root`.
    fn state<'p>(
        &'p self,
        graph: &EnsembleGraph,
        tensor: usize,
        root: Option<&'p Self>,
    ) -> &'p TensorState {
        match root {
            Some(root) if graph.tensor_source[tensor] != self.source => &root.tensors[tensor],
            _ => &self.tensors[tensor],
        }
    }

    /// Reads a tensor of this pool, or of the request's pool `root`, where it stays.
    pub fn take(
        &mut self,
        graph: &EnsembleGraph,
        tensor: usize,
        root: Option<&Self>,
    ) -> Option<EnsembleTensor> {
        match root {
            Some(root) if graph.tensor_source[tensor] != self.source => {
                match &root.tensors[tensor] {
                    TensorState::Present(tensor) => Some(tensor.clone()),
                    TensorState::Pending | TensorState::Absent => None,
                }
            }
            _ => self.read(tensor),
        }
    }

    /// Sets a tensor that will be read.
    fn put(&mut self, tensor: usize, value: Option<EnsembleTensor>) {
        if self.uses[tensor] > 0 {
            self.tensors[tensor] = value.map_or(TensorState::Absent, TensorState::Present);
        }
    }

    /// Whether a tensor will be read.
    pub fn is_read(&self, tensor: usize) -> bool {
        self.uses[tensor] > 0
    }

    /// Whether a tensor will be read once.
    pub fn is_read_once(&self, tensor: usize) -> bool {
        self.uses[tensor] == 1
    }

    /// Sets the tensors that `step` wrote. Outputs that the model left out become absent.
    pub fn store(
        &mut self,
        graph: &EnsembleGraph,
        step: usize,
        signature: &ModelSignature,
        response: &InferResponse,
    ) {
        for (name, tensor) in &graph.steps[step].writes {
            let output = response.outputs.iter().find(|o| o.name == *name);
            let spec = signature.output(name).map(|index| &signature.outputs[index]);
            let batched = spec.is_some_and(|spec| has_batch(signature, spec));
            let free = spec.is_some_and(|spec| signature.has_free_shape(spec));
            let value = output.map(|o| EnsembleTensor {
                dtype: o.dtype,
                shape: o.shape.clone(),
                data: o.data.clone(),
                batched,
                free,
            });
            self.put(*tensor, value);
        }
    }

    /// Takes the steps that can run now: each of their tensors has a value or never gets one. The
    /// check of a step's request refuses it without an input that its model requires. `root` is the
    /// request's pool, if this is another one.
    pub fn take_ready(
        &mut self,
        graph: &EnsembleGraph,
        root: Option<&Self>,
        mut take: impl FnMut(usize, StepInputs),
    ) {
        for (index, step) in graph.steps.iter().enumerate() {
            let settled = |(_, tensor): &(Arc<str>, usize)| self.is_settled(graph, *tensor, root);
            if self.steps[index] == StepState::Waiting && step.reads.iter().all(settled) {
                self.steps[index] = StepState::Taken;
                let read = step.reads.iter().filter_map(|(name, tensor)| {
                    Some((Arc::clone(name), self.take(graph, *tensor, root)?))
                });
                take(index, read.collect());
            }
        }
    }

    /// No step waits for its inputs.
    pub fn is_done(&self) -> bool {
        !self.steps.contains(&StepState::Waiting)
    }

    /// Reads a tensor. The last read removes it, so that its memory is freed before the request
    /// ends.
    pub fn read(&mut self, tensor: usize) -> Option<EnsembleTensor> {
        self.uses[tensor] = self.uses[tensor].saturating_sub(1);
        let slot = match self.uses[tensor] {
            0 => std::mem::replace(&mut self.tensors[tensor], TensorState::Pending),
            _ => self.tensors[tensor].clone(),
        };
        match slot {
            TensorState::Present(tensor) => Some(tensor),
            TensorState::Pending | TensorState::Absent => None,
        }
    }

    /// Removes all tensors. No step can run any more.
    pub fn take_all(&mut self) -> Vec<EnsembleTensor> {
        let slots =
            self.tensors.iter_mut().map(|slot| std::mem::replace(slot, TensorState::Pending));
        let full = slots.filter_map(|slot| match slot {
            TensorState::Present(tensor) => Some(tensor),
            TensorState::Pending | TensorState::Absent => None,
        });
        full.collect()
    }
}

pub fn has_batch(signature: &ModelSignature, spec: &TensorSpec) -> bool {
    signature.batching() && !spec.shape_tensor
}
