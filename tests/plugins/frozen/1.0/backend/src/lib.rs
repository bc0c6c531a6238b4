//! A backend of the time of interface 1.0: OUTPUT0 = 2 × INPUT0, FP32.

use std::sync::Arc;
use trtserver_plugin_api::author::*;
use trtserver_plugin_api::export_backend;

struct Doubler;

impl Backend for Doubler {
    type Model = Doubled;
    const ABOUT: Description = Description {
        platforms: &[Platform { name: "frozen_rust", default_file: "" }],
        ..Description::new("frozen_rust", "0.9")
    };
    fn open(_: &BackendContext) -> Result<Self, Error> {
        Ok(Doubler)
    }
}

struct Doubled;

impl Model for Doubled {
    type Backend = Doubler;
    type Instance = Worker;
    fn open(_: &Arc<Doubler>, _: &ModelContext) -> Result<Self, Error> {
        Ok(Doubled)
    }
}

struct Worker;

impl Instance for Worker {
    type Model = Doubled;
    fn open(_: &Arc<Doubled>, _: &InstanceContext) -> Result<Self, Error> {
        Ok(Worker)
    }
    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        for call in batch.calls() {
            if let Err(error) = double(call) {
                call.fail(error);
            }
        }
        Ok(())
    }
}

fn double(call: Call<'_>) -> Result<(), Error> {
    let input = call.need("INPUT0")?;
    let mut response = call.respond()?;
    let output = response.output_slice::<f32>("OUTPUT0", input.shape())?;
    for (to, from) in output.iter_mut().zip(input.as_slice::<f32>()?) {
        *to = from + from;
    }
    response.send()
}

export_backend!(Doubler);
