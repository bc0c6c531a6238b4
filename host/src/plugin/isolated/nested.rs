//! Nested inference of a child: sends the requests of its backend to the models of the server, and the responses to the child.
//!
//! Tensors travel in the messages. When the connection ends, what is open is cancelled.

use super::messages::{
    LoadModel, ModelStatus, NamedTensor, NestedCall, NestedData, NestedInfer, NestedReply,
    UnloadModel, nested_call,
};
use super::process::Process;
use super::{facts, params};
use crate::error::{Error, Result};
use crate::ledger::Holder;
use crate::plugin::nested::{Cancel, Deliver, Delivery, NestedInput, NestedRequest, server};
use crate::request::buffer::AlignedBuf;
use crate::request::dtype::DType;
use crate::request::{CorrelationId, InferResponse, Sequence};
use crate::sync::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

/// Calls of one child. Dropping it cancels its requests and waits for their last responses.
pub struct NestedCalls {
    process: Arc<Process>,
    delivery: Delivery,
    open: Arc<Mutex<HashMap<u64, Option<Cancel>>>>,
}

impl NestedCalls {
    pub fn new(process: &Arc<Process>) -> Self {
        Self { process: Arc::clone(process), delivery: Delivery::default(), open: Arc::default() }
    }

    /// Does what the child asks, without waiting.
    pub fn call(&self, NestedCall { number, kind }: NestedCall) {
        match kind {
            Some(nested_call::Kind::Infer(infer)) => self.infer(number, infer),
            Some(nested_call::Kind::Cancel(_)) => {
                let cancel = self.open.lock().get(&number).cloned().flatten();
                if let Some(cancel) = cancel {
                    cancel();
                }
            }
            Some(nested_call::Kind::Status(query)) => {
                let status = server().and_then(|server| server.status(&query.model, query.version));
                let status = status.map(|status| ModelStatus {
                    version: status.version,
                    ready: status.ready,
                    decoupled: status.decoupled,
                });
                reply(&self.process, number, status.map(|status| (None, Some(status))), true);
            }
            Some(nested_call::Kind::Load(LoadModel { model, config, files })) => {
                let files = files.into_iter().map(|file| (file.key, file.content)).collect();
                self.change(number, move || server()?.load(&model, config, files));
            }
            Some(nested_call::Kind::Unload(UnloadModel { model, dependents })) => {
                self.change(number, move || server()?.unload(&model, dependents));
            }
            None => {
                let error = Error::unsupported("the nested call is unknown");
                reply(&self.process, number, Err(error), true);
            }
        }
    }

    fn infer(&self, number: u64, infer: NestedInfer) {
        // Entered first: a response may come before `infer` returns.
        self.open.lock().insert(number, None);
        let (process, open) = (Arc::clone(&self.process), Arc::clone(&self.open));
        let handler = Arc::new(Forward { process, open, number });
        let sent = request(infer).and_then(|request| {
            self.delivery.infer(&self.process.label, server()?, request, handler)
        });
        match sent {
            Ok(cancel) => {
                if let Some(place) = self.open.lock().get_mut(&number) {
                    *place = Some(cancel);
                }
            }
            Err(e) => {
                self.open.lock().remove(&number);
                reply(&self.process, number, Err(e), true);
            }
        }
    }

    /// Changes a model on a thread of its own, since the change may take long.
    fn change(&self, number: u64, change: impl FnOnce() -> Result<()> + Send + 'static) {
        let process = Arc::clone(&self.process);
        let run = move || reply(&process, number, change().map(|()| (None, None)), true);
        let started = thread::Builder::new().name("nested-change".to_owned()).spawn(run);
        if let Err(e) = started {
            let error = Error::unavailable(format!("cannot start a thread: {e}"));
            reply(&self.process, number, Err(error), true);
        }
    }
}

/// Sends the responses of a request to the child.
struct Forward {
    process: Arc<Process>,
    open: Arc<Mutex<HashMap<u64, Option<Cancel>>>>,
    number: u64,
}

impl Deliver for Forward {
    fn deliver(&self, response: Result<Option<InferResponse>>, last: bool) {
        if last {
            self.open.lock().remove(&self.number);
        }
        let data = response.and_then(|response| response.map(data).transpose());
        reply(&self.process, self.number, data.map(|data| (data, None)), last);
    }
}

type Outcome = Result<(Option<NestedData>, Option<ModelStatus>)>;

/// Sends a reply, or why it cannot be sent.
fn reply(process: &Process, number: u64, outcome: Outcome, last: bool) {
    let failed = |e: &Error| NestedReply {
        number,
        failure: Some(facts::failure(e)),
        last: true,
        ..Default::default()
    };
    let message = match outcome {
        Ok((data, status)) => NestedReply { number, failure: None, last, data, status },
        Err(e) => failed(&e),
    };
    if let Err(e) = process.reply_nested(message) {
        // Too long. Other errors show at the next control request.
        let _ = process.reply_nested(failed(&e));
    }
}

fn request(infer: NestedInfer) -> Result<NestedRequest> {
    let NestedInfer { model, version, id, sequence, sequence_text, .. } = infer;
    let sequence_id = match (sequence_text.is_empty(), sequence) {
        (false, _) => CorrelationId::Text(sequence_text),
        (true, 0) => CorrelationId::None,
        (true, number) => CorrelationId::Number(number),
    };
    let inputs = infer.inputs.into_iter().map(|input| {
        let (dtype, shape, bytes) = (DType::from_number(input.dtype), input.shape, input.data);
        let dtype = dtype.ok_or_else(|| {
            let (name, number) = (&input.name, input.dtype);
            Error::invalid(format!("input '{name}' for model '{model}': {number} is no data type"))
        })?;
        let data = AlignedBuf::try_copy(None, &[&bytes], Holder::Backend);
        let data = data.map_err(|e| e.refuse("an input of a nested request"))?;
        Ok(NestedInput {
            dtype,
            shape: shape[..].into(),
            data: data.into_bytes().into(),
            name: input.name,
        })
    });
    let inputs = inputs.collect::<Result<_>>()?;
    Ok(NestedRequest {
        model,
        version,
        id,
        sequence: Sequence {
            id: sequence_id,
            start: infer.sequence_start,
            end: infer.sequence_end,
        },
        priority: infer.priority,
        timeout_us: infer.timeout_us,
        deadline_ns: infer.deadline_ns,
        parameters: infer.params.into_iter().filter_map(params::decode).collect(),
        inputs,
        outputs: infer.outputs,
    })
}

fn data(response: InferResponse) -> Result<NestedData> {
    let outputs = response.outputs.iter().map(|output| {
        let data = output.data.to_cpu()?;
        Ok(NamedTensor {
            name: output.name.to_string(),
            dtype: output.dtype.number(),
            shape: output.shape.to_vec(),
            data,
        })
    });
    Ok(NestedData {
        outputs: outputs.collect::<Result<_>>()?,
        params: response.parameters.into_iter().map(params::encode).collect(),
    })
}
