//! Requests of the probe to models of the server: the commands `infer`, `infer_cancelled`,
//! `status`, `load` and `unload`.

use crate::commands::{self, Commands};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;
use trtserver_plugin_api::author::{
    Dtype, Error, InferenceRequest, InferenceResponse, Responder, Scope,
};
use trtserver_plugin_api::trts_info;

/// Inputs of the executed request: name, type, shape, bytes.
pub type Inputs = Vec<(String, Dtype, Vec<i64>, Vec<u8>)>;

/// Does what the commands say. The responses of the model that was called, or an error with the
/// text of a status.
pub fn call(
    log: &Scope,
    commands: &Commands,
    inputs: &Inputs,
    is_cancelled: impl Fn() -> bool,
) -> Result<Vec<InferenceResponse>, Error> {
    if let Some(model) = &commands.load {
        let config = commands.load_config.as_deref();
        log.load_model(model, config, &[])?;
    }
    if let Some(model) = &commands.unload {
        log.unload_model(model, false)?;
    }
    if let Some(model) = &commands.status {
        let status = log.model_status(model, None)?;
        return Err(Error::invalid(format!("{status:?}")));
    }
    let Some(model) = &commands.infer else { return Ok(Vec::new()) };
    let mut request = InferenceRequest::new(model).id("nested").sequence(7, true, true);
    for (name, dtype, shape, bytes) in inputs {
        request = request.input(name, *dtype, shape, bytes.clone());
    }
    if let Some(n) = commands.infer_responses {
        request = request.param("responses", n);
    }
    if let Some(file) = &commands.infer_until_file {
        return call_slowly(log, &request, file);
    }
    let call = log.infer(&request)?;
    if commands.infer_cancelled {
        call.cancel();
    }
    let mut responses = Vec::new();
    loop {
        match call.next_within(Duration::from_millis(10)) {
            Some(Some(response)) => responses.push(response?),
            Some(None) => return Ok(responses),
            None if is_cancelled() => call.cancel(),
            None => {}
        }
    }
}

/// The responses of a request whose handler blocks until `file` exists.
fn call_slowly(
    log: &Scope,
    request: &InferenceRequest,
    file: &Path,
) -> Result<Vec<InferenceResponse>, Error> {
    let (send, responses) = channel();
    let (of_handler, file) = (log.clone(), file.to_owned());
    log.infer_with(request, move |response, _| {
        trts_info!(of_handler, "the handler of the probe waits");
        let waited = commands::wait_for_file(&file);
        let _ = send.send(waited.and(response));
    })?;
    responses.iter().filter(|response| *response != Ok(InferenceResponse::default())).collect()
}

/// Answers with the outputs of the first response, and with parameters as [`Commands`] says.
pub fn respond(responder: &Responder, responses: &[InferenceResponse]) -> Result<(), Error> {
    let mut response = responder.new_response()?;
    response.param("responses", responses.len() as i64)?;
    if let Some(first) = responses.first() {
        response.param("version", first.version.unwrap_or(-1))?;
        for (key, value) in &first.params {
            response.param(&format!("of_{key}"), value.as_str())?;
        }
    }
    for (name, dtype, shape, bytes) in responses.iter().take(1).flat_map(|r| &r.outputs) {
        response.put_bytes(name, *dtype, shape, bytes)?;
    }
    response.send()
}

impl Commands {
    /// Whether the request calls the server.
    pub fn calls(&self) -> bool {
        [&self.infer, &self.status, &self.load, &self.unload].iter().any(|c| c.is_some())
    }
}
