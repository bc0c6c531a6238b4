//! `TRITONBACKEND_Response`, which is also `TRITONSERVER_InferenceResponse`.

use super::output::{BufferedResponse, OutputObject, set_param};
use super::parameter::ParameterValue;
use super::received_response::ReceivedResponse;
use super::reply::{ReplyTarget, RequestReply};
use crate::fault::{Result, TritonFault};
use crate::handles::{self, LiveObject, ObjectKind, TypedObject, create_object};
use smallvec::SmallVec;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub struct ResponseObject {
    pub side: ResponseSide,
}

/// Who made a response.
pub enum ResponseSide {
    /// The backend, for a request that it executes.
    BuiltResponse(BuiltResponse),
    /// Another model, for a request that the backend has made.
    ReceivedResponse(ReceivedResponse),
}

impl TypedObject for ResponseObject {
    const KIND: ObjectKind = ObjectKind::Response;
}

/// A response that a backend builds.
pub struct BuiltResponse {
    /// One reference of it.
    reply: LiveObject<RequestReply>,
    target: ReplyTarget,
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    outputs: SmallVec<[LiveObject<OutputObject>; 4]>,
    /// Parameters of a buffered response; a response of the host keeps its own.
    params: Vec<(CString, ParameterValue)>,
}

impl ResponseObject {
    /// # Errors
    /// The response is one of nested inference, which its receiver only reads.
    pub fn built(&self) -> Result<&BuiltResponse> {
        match &self.side {
            ResponseSide::BuiltResponse(built) => Ok(built),
            ResponseSide::ReceivedResponse(arrived) => Err(not_own_response(arrived)),
        }
    }

    fn into_built(self) -> Result<BuiltResponse> {
        match self.side {
            ResponseSide::BuiltResponse(built) => Ok(built),
            ResponseSide::ReceivedResponse(arrived) => Err(not_own_response(&arrived)),
        }
    }

    /// # Errors
    /// The backend built the response itself.
    pub fn arrived(&self) -> Result<&ReceivedResponse> {
        match &self.side {
            ResponseSide::ReceivedResponse(arrived) => Ok(arrived),
            ResponseSide::BuiltResponse(_) => {
                Err(TritonFault::misuse("the response is one that this backend builds"))
            }
        }
    }
}

fn not_own_response(arrived: &ReceivedResponse) -> TritonFault {
    let model = arrived.model.to_string_lossy();
    TritonFault::misuse(format_args!(
        "the response is one of model '{model}', which can only be read"
    ))
}

impl BuiltResponse {
    /// Begins a response; takes one reference of the reply.
    pub fn create(reply: LiveObject<RequestReply>) -> Result<LiveObject<ResponseObject>> {
        let target = reply.begin()?;
        reply.retain();
        let built = BuiltResponse { reply, target, contents: Mutex::default() };
        Ok(create_object(ResponseObject { side: ResponseSide::BuiltResponse(built) }))
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add_output(&self, name: &CStr, dtype: u32, shape: &[i64]) -> LiveObject<OutputObject> {
        let response = match self.target {
            ReplyTarget::Direct(response) => response,
            ReplyTarget::BufferedResponse | ReplyTarget::Discarded => std::ptr::null_mut(),
        };
        let output = create_object(OutputObject::new(response, name, dtype, shape));
        self.lock().outputs.push(output);
        output
    }

    pub fn add_param(&self, name: &CStr, value: ParameterValue) -> Result<()> {
        match self.target {
            ReplyTarget::Direct(response) => set_param(response, name, &value),
            ReplyTarget::BufferedResponse => {
                self.lock().params.push((name.to_owned(), value));
                Ok(())
            }
            ReplyTarget::Discarded => Ok(()),
        }
    }

    /// The output at a position.
    pub fn output(&self, index: u32) -> Result<LiveObject<OutputObject>> {
        let contents = self.lock();
        let found = contents.outputs.get(index as usize).copied();
        found.ok_or_else(|| {
            let n = contents.outputs.len();
            TritonFault::invalid(format_args!(
                "the response has {n} outputs, index {index} is none of them"
            ))
        })
    }

    pub fn output_named(&self, name: &CStr) -> Result<LiveObject<OutputObject>> {
        let contents = self.lock();
        let found = contents.outputs.iter().find(|o| o.name.bytes() == name.to_bytes());
        found.copied().ok_or_else(|| {
            let name = name.to_string_lossy();
            TritonFault::not_found(format_args!("the response has no output '{name}'"))
        })
    }
}

/// Sends a response. Its handle is invalid afterwards, also on failure.
pub fn send_response(
    response: *mut ResponseObject,
    last: bool,
    fault: Option<TritonFault>,
) -> Result<()> {
    handles::get_object(response)?.built()?;
    let BuiltResponse { reply, target, contents } = handles::free_object(response)?.into_built()?;
    let contents = contents.into_inner().unwrap_or_else(PoisonError::into_inner);
    let sent = match target {
        ReplyTarget::Direct(response) => {
            let completed = match fault {
                Some(fault) => Err((fault, false)),
                None => {
                    let completed = contents.outputs.iter().try_for_each(|o| o.complete());
                    completed.and_then(|()| reply.put_states(response)).map_err(|f| (f, true))
                }
            };
            match completed {
                Ok(()) => reply.send(response, last, None),
                Err((fault, ours)) => {
                    let sent = reply.send(response, last, Some(&fault));
                    if ours { sent.and(Err(fault)) } else { sent }
                }
            }
        }
        ReplyTarget::BufferedResponse => {
            let outputs = contents.outputs.iter().filter_map(|o| take_response(*o)).collect();
            reply.send_buffered(BufferedResponse { outputs, params: contents.params, last, fault })
        }
        ReplyTarget::Discarded => {
            if last {
                let _ = reply.finish(None);
            }
            Ok(())
        }
    };
    for output in contents.outputs {
        take_response(output);
    }
    reply.release();
    sent
}

/// Drops a response that was not sent.
pub fn delete_response(response: *mut ResponseObject) -> Result<()> {
    handles::get_object(response)?.built()?;
    let BuiltResponse { reply, target, contents } = handles::free_object(response)?.into_built()?;
    let contents = contents.into_inner().unwrap_or_else(PoisonError::into_inner);
    for output in contents.outputs {
        take_response(output);
    }
    let dropped = match target {
        ReplyTarget::Direct(response) => reply.discard(response),
        ReplyTarget::BufferedResponse | ReplyTarget::Discarded => Ok(()),
    };
    reply.release();
    dropped
}

/// Ends the life of an output's handle.
fn take_response(output: LiveObject<OutputObject>) -> Option<OutputObject> {
    let output = handles::free_object(output.raw()).ok()?;
    output.free_attributes();
    Some(output)
}
