// SPDX-License-Identifier: Apache-2.0
//! OUTPUT0 = INPUT0 + INPUT1 and OUTPUT1 = INPUT0 - INPUT1, all FP32: a whole backend in safe Rust.

use std::sync::Arc;
use trtserver_plugin_api::author::*;
use trtserver_plugin_api::{export_backend, trts_info};

/// What there is once per server: settings of all models, a framework's library, a pool of threads.
struct AddSub;

impl Backend for AddSub {
    type Model = Loaded;

    const INFO: BackendInfo = BackendInfo {
        // Models of this platform need no file; `default_file: "model.bin"` would ask for one.
        platforms: &[Platform { name: "rust_addsub", default_file: "" }],
        ..BackendInfo::new("rust_addsub", env!("CARGO_PKG_VERSION"))
    };

    fn open(_: &BackendContext) -> Result<Self, Error> {
        Ok(AddSub)
    }
}

/// What the instances of one version of a model share, such as its weights.
struct Loaded;

impl Model for Loaded {
    type Backend = AddSub;
    type Instance = Worker;

    fn open(_: &Arc<AddSub>, context: &ModelContext) -> Result<Self, Error> {
        // What is wrong with a configuration is said when the model is loaded, not to its callers.
        for tensor in context.inputs().chain(context.outputs()) {
            if tensor.dtype() != Dtype::Fp32 {
                return Err(Error::invalid(format_args!(
                    "model '{}': tensor '{}' is {}, this backend computes FP32",
                    context.name(),
                    tensor.name(),
                    tensor.dtype()
                )));
            }
        }
        trts_info!(context.log(), "model '{}' is ready to add", context.name());
        Ok(Loaded)
    }
}

/// What executes, on a thread of its own.
struct Worker;

impl Instance for Worker {
    type Model = Loaded;

    fn open(_: &Arc<Loaded>, _: &InstanceContext) -> Result<Self, Error> {
        Ok(Worker)
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        for request in batch.requests() {
            // An invalid request must not fail the others in its batch.
            if let Err(error) = add_and_subtract(request) {
                request.fail(error);
            }
        }
        Ok(())
    }
}

fn add_and_subtract(request: Request<'_>) -> Result<(), Error> {
    let (a, b) = (request.required_input("INPUT0")?, request.required_input("INPUT1")?);
    if a.shape() != b.shape() {
        return Err(Error::invalid("INPUT0 and INPUT1 differ in shape").by_client());
    }
    let (x, y) = (a.as_slice::<f32>()?, b.as_slice::<f32>()?);
    let mut response = request.new_response()?;
    // Memory of the response, sent without a copy; empty if the output was not requested.
    let sums = response.output_slice::<f32>("OUTPUT0", a.shape())?;
    for ((to, x), y) in sums.iter_mut().zip(x).zip(y) {
        *to = x + y;
    }
    let differences = response.output_slice::<f32>("OUTPUT1", a.shape())?;
    for ((to, x), y) in differences.iter_mut().zip(x).zip(y) {
        *to = x - y;
    }
    response.send()
}

export_backend!(AddSub);

#[cfg(test)]
mod tests;
