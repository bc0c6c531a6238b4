//! Inference over protocol v2 (Open Inference Protocol), HTTP or gRPC.

use crate::{Best, INPUT, OUTPUT};
use trtserver_client::blocking::v2::BlockingClient;
use trtserver_client::v2::{InferRequest, InferRequestedOutput, Input};
use trtserver_client::{Bytes, Error, Result, Settings};

pub fn classify_v2(settings: &Settings, model: &str, picture: Bytes) -> Result<Best> {
    let client = BlockingClient::new(settings)?;
    let request = InferRequest::new(model)
        .input(Input::new(INPUT, "FP32", [1, 1, 8, 8], picture))
        .output(InferRequestedOutput::classes(OUTPUT, 1));
    let response = client.infer(&request)?;
    let class = response.output(OUTPUT)?.classes()?.into_iter().next();
    let class = class.ok_or_else(|| Error::invalid(format!("no {OUTPUT} in the response")))?;
    Ok(Best { label: class.label, score: class.value })
}
