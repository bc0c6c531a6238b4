//! A running sum for each sequence, identified by batch slot, correlation id or state.

use crate::Echo;
use crate::commands::{Accumulate, Commands};
use crate::report::{BATCH, control, report};
use crate::respond::counterpart;
use std::collections::HashMap;
use trtserver_plugin_api::author::{Batch, Error, Request, Tensor};

/// The sums so far.
#[derive(Default)]
pub struct Sums {
    /// By position in the batch.
    slots: Vec<i32>,
    /// By correlation id.
    sequences: HashMap<String, i32>,
}

impl Sums {
    /// Adds INPUT0 (INT32), element by element, and responds with the sum after each.
    pub fn respond(
        &mut self,
        model: &Echo,
        batch: &Batch<'_>,
        (position, request): (usize, Request<'_>),
        mode: Accumulate,
        commands: &Commands,
    ) -> Result<(), Error> {
        let input = request.required_input("INPUT0")?;
        let state = request.inputs().find(|input| input.is_state());
        let mut values = input.to_vec::<i32>()?;
        let mut carried = 0;
        if control(request, "READY") == Some(false) {
            values.fill(0); // an idle slot
        } else {
            let id = correlation(request);
            let sum = match mode {
                Accumulate::Slot => {
                    self.slots.resize(self.slots.len().max(position + 1), 0);
                    &mut self.slots[position]
                }
                Accumulate::CorrId => self.sequences.entry(id.clone()).or_insert(0),
                Accumulate::State => {
                    let before = state.map(Tensor::to_vec::<i32>).transpose()?;
                    carried = before.and_then(|v| v.first().copied()).unwrap_or(0);
                    &mut carried
                }
            };
            // The host resets states.
            let start = control(request, "START").unwrap_or(request.sequence_start());
            if start && mode != Accumulate::State {
                *sum = model.base;
            }
            for value in &mut values {
                *sum = sum.wrapping_add(*value);
                *value = *sum;
            }
            if mode == Accumulate::CorrId
                && control(request, "END").unwrap_or(request.sequence_end())
            {
                self.sequences.remove(&id);
            }
        }
        let mut response = request.new_response()?;
        response.put(counterpart(model, input).unwrap_or("OUTPUT0"), input.shape(), &values)?;
        if let Some(state) = state {
            for output in request.requested_outputs().filter(|output| output.index().is_none()) {
                response.put(output.name(), state.shape(), &vec![carried; state.elements()])?;
            }
        }
        if commands.reports() {
            let (dtype, shape, bytes) = report(model, batch, request.batch_size())?;
            response.put_bytes(BATCH, dtype, &shape, &bytes)?;
        }
        response.send()
    }
}

/// The correlation id from the control tensor CORRID if there is one, else from the request.
fn correlation(request: Request<'_>) -> String {
    match request.input("CORRID") {
        Some(id) => format!("{:?}", id.to_bytes()),
        None => format!("{} {}", request.correlation_id(), request.correlation_id_string()),
    }
}
