//! The tensors of one request on its way through an ensemble, and which steps can run. Pure: the run has the lock.

use super::graph::Graph;
use crate::request::{
    DType, InferResponse, InputTensor, RequestedOutput, Shape, Signature, TensorSpec,
};
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::Arc;

/// A tensor between two steps.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub dtype: DType,
    pub shape: Shape,
    pub data: Bytes,
    /// Its first dimension is the batch.
    pub batched: bool,
}

impl Tensor {
    /// The shape for somebody who has `dims` and, if he `batches`, a batch dimension before them. An ensemble without
    /// batches may use models with them: then the dimension is added or, where it is 1, taken away, unless the tensor
    /// fits as it is.
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
enum Slot {
    /// Not yet.
    Open,
    Full(Tensor),
    /// There will be none: an optional input that the caller left out, or an output that a model left out.
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// No output that the caller asked for depends on it.
    Unneeded,
    Waiting,
    Taken,
}

/// What a step reads: name of the model's input, and the tensor.
pub type Read = SmallVec<[(Arc<str>, Tensor); 4]>;

/// See the module text.
pub struct Pool {
    slots: Vec<Slot>,
    /// How often a tensor will still be read; the caller's answer reads too.
    uses: Vec<usize>,
    steps: Vec<Progress>,
}

impl Pool {
    /// With the ensemble's inputs in it. A caller who asks for no output (v1 allows it) has all of them computed.
    pub fn new(graph: &Graph, inputs: &[InputTensor], wanted: &[RequestedOutput]) -> Self {
        let signature = &graph.signature;
        let wanted: Vec<usize> = match wanted {
            [] => graph.outputs.clone(),
            some => some.iter().map(|w| graph.outputs[w.index]).collect(),
        };
        let needed = graph.needed(wanted.iter().copied());
        let mut uses = vec![0; graph.tensors];
        let mut steps = Vec::with_capacity(graph.steps.len());
        for (step, needed) in graph.steps.iter().zip(needed) {
            steps.push(if needed { Progress::Waiting } else { Progress::Unneeded });
            if needed {
                step.reads.iter().for_each(|(_, tensor)| uses[*tensor] += 1);
            }
        }
        wanted.iter().for_each(|tensor| uses[*tensor] += 1);
        let mut pool = Self { slots: vec![Slot::Open; graph.tensors], uses, steps };
        for (index, (spec, tensor)) in signature.inputs.iter().zip(&graph.inputs).enumerate() {
            let given = inputs.iter().find(|i| i.index == index).map(|input| Tensor {
                dtype: input.dtype,
                shape: signature.to_model(spec, &input.shape),
                data: input.data.clone(),
                batched: has_batch(signature, spec),
            });
            pool.put(*tensor, given);
        }
        pool
    }

    /// Fills a slot, if anybody is going to read it.
    fn put(&mut self, tensor: usize, value: Option<Tensor>) {
        if self.uses[tensor] > 0 {
            self.slots[tensor] = value.map_or(Slot::Absent, Slot::Full);
        }
    }

    /// Whether somebody is going to read it.
    pub fn is_read(&self, tensor: usize) -> bool {
        self.uses[tensor] > 0
    }

    /// What `step` wrote. Outputs that the model left out are absent from now on.
    pub fn store(
        &mut self,
        graph: &Graph,
        step: usize,
        signature: &Signature,
        response: &InferResponse,
    ) {
        for (name, tensor) in &graph.steps[step].writes {
            let output = response.outputs.iter().find(|o| o.name == *name);
            let batched = signature
                .output(name)
                .is_some_and(|index| has_batch(signature, &signature.outputs[index]));
            let value = output.map(|o| Tensor {
                dtype: o.dtype,
                shape: o.shape.clone(),
                data: o.data.clone(),
                batched,
            });
            self.put(*tensor, value);
        }
    }

    /// Takes the steps that can run now, with what they read. `optional` tells whether a step's input may be absent.
    pub fn take_ready(
        &mut self,
        graph: &Graph,
        optional: impl Fn(usize, &str) -> bool,
    ) -> Vec<(usize, Read)> {
        let mut ready = Vec::new();
        for (place, step) in graph.steps.iter().enumerate() {
            let there = |(name, tensor): &(Arc<str>, usize)| match self.slots[*tensor] {
                Slot::Open => false,
                Slot::Full(_) => true,
                Slot::Absent => optional(place, name),
            };
            if self.steps[place] == Progress::Waiting && step.reads.iter().all(there) {
                self.steps[place] = Progress::Taken;
                let read = step.reads.iter();
                let read = read.filter_map(|(name, t)| Some((Arc::clone(name), self.read(*t)?)));
                ready.push((place, read.collect()));
            }
        }
        ready
    }

    /// Reads a tensor. The last reader takes it away: what nobody needs any more does not wait for the end.
    pub fn read(&mut self, tensor: usize) -> Option<Tensor> {
        self.uses[tensor] = self.uses[tensor].saturating_sub(1);
        let slot = match self.uses[tensor] {
            0 => std::mem::replace(&mut self.slots[tensor], Slot::Open),
            _ => self.slots[tensor].clone(),
        };
        match slot {
            Slot::Full(tensor) => Some(tensor),
            Slot::Open | Slot::Absent => None,
        }
    }

    /// Gives all tensors away; no step can run any more.
    pub fn take_all(&mut self) -> Vec<Tensor> {
        let slots = self.slots.iter_mut().map(|slot| std::mem::replace(slot, Slot::Open));
        let full = slots.filter_map(|slot| match slot {
            Slot::Full(tensor) => Some(tensor),
            Slot::Open | Slot::Absent => None,
        });
        full.collect()
    }
}

pub fn has_batch(signature: &Signature, spec: &TensorSpec) -> bool {
    signature.batching() && !spec.shape_tensor
}
