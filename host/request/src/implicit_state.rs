//! Implicit state: tensors that the host keeps between the requests of a sequence
//! (docs/protocol/v2.md §4.11).

use super::sequence::CorrelationId;
use super::signature::ModelSignature;
use super::state_spec::StateTensor;
use super::tensor::InputTensor;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use trtserver_base::error::Error;

/// The error for a request of a sequence whose state was lost with its process.
pub fn lost_state_error(model: &str, sequence: &CorrelationId) -> Error {
    Error::unavailable(format!(
        "sequence {sequence} of model '{model}' cannot continue: its state was lost when the model's process ended; \
         start a new sequence"
    ))
}

/// The states of one sequence, by number of the state; absent = initial value.
#[derive(Clone, Debug, Default)]
pub struct ImplicitState(Arc<Mutex<Vec<Option<StateTensor>>>>);

impl ImplicitState {
    /// Returns all states to their initial values, at the start of a sequence.
    pub fn reset(&self) {
        self.lock().clear();
    }

    /// Appends the state inputs of the next request.
    pub fn inputs(&self, signature: &ModelSignature, inputs: &mut impl Extend<InputTensor>) {
        let values = self.lock();
        inputs.extend(signature.states.iter().enumerate().map(|(i, spec)| {
            let value = values.get(i).and_then(Option::as_ref).unwrap_or(&spec.initial);
            let StateTensor { shape, data } = value.clone();
            InputTensor { index: spec.input, dtype: spec.dtype, shape, data }
        }));
    }

    /// Stores what a successful request wrote, for the next one. States that it did not write keep
    /// their values.
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
