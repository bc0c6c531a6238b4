//! Inference over protocol v1 (TRTIS 2019), HTTP or gRPC.

use crate::{Best, INPUT, OUTPUT};
use trtserver_client::blocking::v1::Context;
use trtserver_client::v1::{ContextOptions, OutputFormat, RunOptions};
use trtserver_client::{Bytes, Error, Result, Settings};

/// The context asks the server for the tensors of the model, and fills in their shapes.
pub fn classify_v1(settings: &Settings, model: &str, picture: Bytes) -> Result<Best> {
    let context = Context::new(settings, &ContextOptions::new(model))?;
    let mut run = context.new_run();
    let outputs = vec![(OUTPUT.to_owned(), OutputFormat::Class(1))];
    run.set_options(&RunOptions { batch_size: 1, outputs, ..RunOptions::default() })?;
    run.input(INPUT)?.set_raw(picture)?;
    let mut results = context.run(&run)?;
    let class = results.output(OUTPUT)?.class_at_cursor(0);
    let class = class.map_err(|_| Error::invalid(format!("no {OUTPUT} in the response")))?;
    Ok(Best { label: class.label, score: class.value.into() })
}
