//! A batch as a library sees it: the array of payloads and the small arrays that they point into.
//!
//! Names point into the model, shapes into the host's views. Reused from batch to batch, so that
//! executing allocates nothing.

use crate::callback_context::CallbackContexts;
use crate::custom_h::{Payload, PayloadA};
use crate::model::CustomModel;
use std::ffi::{c_char, c_int};
use std::ptr;
use trtserver_plugin_api::author::{Request, RequestedOutput, Tensor};

#[derive(Default)]
pub struct PayloadArray {
    names: Vec<*const c_char>,
    ranks: Vec<usize>,
    shapes: Vec<*const i64>,
    outputs: Vec<*const c_char>,
    payloads: Vec<Payload>,
    /// The same payloads for generation A.
    short: Vec<PayloadA>,
}

impl PayloadArray {
    /// Fills the arrays; valid until the next batch, and as long as requests and model are.
    pub fn fill<'a>(
        &mut self,
        model: &CustomModel,
        requests: impl Iterator<Item = Request<'a>>,
        contexts: CallbackContexts,
    ) {
        self.names.clear();
        self.ranks.clear();
        self.shapes.clear();
        self.outputs.clear();
        self.payloads.clear();
        self.short.clear();
        for (at, request) in requests.enumerate() {
            let (inputs, outputs) = (self.names.len(), self.outputs.len());
            request.inputs().for_each(|input| self.input(model, input));
            request.requested_outputs().for_each(|output| self.output(model, output));
            self.payloads.push(Payload {
                batch_size: request.batch_size() as u32,
                input_cnt: (self.names.len() - inputs) as u32,
                input_names: ptr::null(),
                input_shape_dim_cnts: ptr::null(),
                input_shape_dims: ptr::null(),
                output_cnt: (self.outputs.len() - outputs) as u32,
                required_output_names: ptr::null(),
                input_context: contexts.for_payload(at),
                output_context: contexts.for_payload(at),
                error_code: 0,
            });
        }
        self.point();
    }

    /// Sequence controls and states can be read by name, but are not listed.
    fn input(&mut self, model: &CustomModel, input: Tensor<'_>) {
        let declared = input.index().and_then(|at| model.inputs.get(at));
        let Some(declared) = declared.filter(|_| !input.is_control() && !input.is_state()) else {
            return;
        };
        let shape = input.shape();
        let shape = shape.get(usize::from(declared.batched)..).unwrap_or(&[]);
        self.names.push(declared.name.as_ptr());
        self.ranks.push(shape.len());
        self.shapes.push(shape.as_ptr());
    }

    fn output(&mut self, model: &CustomModel, output: RequestedOutput<'_>) {
        let declared = match output.index() {
            Some(at) => model.outputs.get(at),
            None => model.outputs.iter().find(|(name, _)| name.is(output.name())),
        };
        self.outputs.extend(declared.map(|(name, _)| name.as_ptr()));
    }

    /// The arrays no longer grow, so pointers into them are stable.
    fn point(&mut self) {
        let (mut input, mut output) = (0, 0);
        for payload in &mut self.payloads {
            let inputs = input..input + payload.input_cnt as usize;
            if !inputs.is_empty() {
                payload.input_names = self.names[inputs.clone()].as_ptr();
                payload.input_shape_dim_cnts = self.ranks[inputs.clone()].as_ptr();
                payload.input_shape_dims = self.shapes[inputs.clone()].as_ptr();
            }
            let outputs = output..output + payload.output_cnt as usize;
            if !outputs.is_empty() {
                payload.required_output_names = self.outputs[outputs.clone()].as_ptr();
            }
            (input, output) = (inputs.end, outputs.end);
        }
    }

    pub fn array(&mut self) -> *mut Payload {
        self.payloads.as_mut_ptr()
    }

    pub fn array_a(&mut self) -> *mut PayloadA {
        self.short.extend(self.payloads.iter().map(|payload| PayloadA {
            batch_size: payload.batch_size,
            output_cnt: payload.output_cnt,
            required_output_names: payload.required_output_names,
            input_context: payload.input_context,
            output_context: payload.output_context,
            error_code: 0,
        }));
        self.short.as_mut_ptr()
    }

    /// The error code that the library set in a payload.
    pub fn error_code(&self, at: usize) -> c_int {
        match self.short.get(at) {
            Some(short) => short.error_code,
            None => self.payloads.get(at).map_or(0, |payload| payload.error_code),
        }
    }
}
