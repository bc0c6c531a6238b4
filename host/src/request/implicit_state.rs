//! Implicit state: what the host keeps between the steps of a sequence (contract/v2 §4.11).

use super::CorrelationId;
use super::dtype::DType;
use super::signature::Signature;
use super::tensor::{InputTensor, Shape};
use crate::error::Error;
use crate::sync::{Mutex, MutexGuard};
use bytes::Bytes;
use std::sync::Arc;

/// One state: written as an output of one step, read as an input of the next.
#[derive(Clone, Debug)]
pub struct StateSpec {
    /// Number of the hidden input that reads it.
    pub input: usize,
    /// Name of the output that writes it.
    pub output: Arc<str>,
    pub dtype: DType,
    /// Without the batch dimension; -1 = variable.
    pub dims: Vec<i64>,
    /// What a sequence begins with, in the full shape of one row.
    pub initial: StateTensor,
}

/// A state's tensor: one row, batch dimension first when the model batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateTensor {
    pub shape: Shape,
    pub data: Bytes,
}

/// What a step of a sequence is told whose earlier steps were forgotten.
pub fn lost(model: &str, sequence: &CorrelationId) -> Error {
    Error::unavailable(format!(
        "sequence {sequence} of model '{model}' cannot go on: the process that held its state has ended; start \
         it again"
    ))
}

/// The states of one sequence, by number of the state; empty = as at the beginning.
#[derive(Clone, Debug, Default)]
pub struct ImplicitState(Arc<Mutex<Vec<Option<StateTensor>>>>);

impl ImplicitState {
    /// The sequence begins (again).
    pub fn reset(&self) {
        self.lock().clear();
    }

    /// Appends the state inputs of the next step.
    pub fn inputs(&self, signature: &Signature, inputs: &mut impl Extend<InputTensor>) {
        let values = self.lock();
        inputs.extend(signature.states.iter().enumerate().map(|(i, spec)| {
            let value = values.get(i).and_then(Option::as_ref).unwrap_or(&spec.initial);
            let StateTensor { shape, data } = value.clone();
            InputTensor { index: spec.input, dtype: spec.dtype, shape, data }
        }));
    }

    /// A step has ended well: what it wrote counts from the next step on. States that it did not write stay.
    pub fn store(&self, written: impl IntoIterator<Item = (usize, StateTensor)>) {
        let mut values = self.lock();
        for (state, value) in written {
            if values.len() <= state {
                values.resize(state + 1, None);
            }
            values[state] = Some(value);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<StateTensor>>> {
        self.0.lock()
    }
}
