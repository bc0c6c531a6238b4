//! `TRITONBACKEND_Response`, which is also `TRITONSERVER_InferenceResponse`.

use super::arrived::Arrived;
use super::output::{Buffered, Output, set_param};
use super::parameter::Value;
use super::reply::{Reply, Target};
use crate::fault::{Fault, Result};
use crate::handles::{self, Kind, Live, Object, create};
use smallvec::SmallVec;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub struct Response {
    pub side: Side,
}

/// Who made a response.
pub enum Side {
    /// The backend, for a request that it executes.
    Built(Built),
    /// Another model, for a request that the backend has made.
    Arrived(Arrived),
}

impl Object for Response {
    const KIND: Kind = Kind::Response;
}

/// A response that a backend builds.
pub struct Built {
    /// One reference of it.
    reply: Live<Reply>,
    target: Target,
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    outputs: SmallVec<[Live<Output>; 4]>,
    /// Parameters of a buffered response; a response of the host keeps its own.
    params: Vec<(CString, Value)>,
}

impl Response {
    /// # Errors
    /// The response is one of nested inference, which its receiver only reads.
    pub fn built(&self) -> Result<&Built> {
        match &self.side {
            Side::Built(built) => Ok(built),
            Side::Arrived(arrived) => Err(of_other(arrived)),
        }
    }

    fn into_built(self) -> Result<Built> {
        match self.side {
            Side::Built(built) => Ok(built),
            Side::Arrived(arrived) => Err(of_other(&arrived)),
        }
    }

    /// # Errors
    /// The backend built the response itself.
    pub fn arrived(&self) -> Result<&Arrived> {
        match &self.side {
            Side::Arrived(arrived) => Ok(arrived),
            Side::Built(_) => Err(Fault::misuse("the response is one that this backend builds")),
        }
    }
}

fn of_other(arrived: &Arrived) -> Fault {
    let model = arrived.model.to_string_lossy();
    Fault::misuse(format_args!("the response is one of model '{model}', which can only be read"))
}

impl Built {
    /// Begins a response; takes one reference of the reply.
    pub fn create(reply: Live<Reply>) -> Result<Live<Response>> {
        let target = reply.begin()?;
        reply.retain();
        let built = Built { reply, target, contents: Mutex::default() };
        Ok(create(Response { side: Side::Built(built) }))
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add_output(&self, name: &CStr, dtype: u32, shape: &[i64]) -> Live<Output> {
        let response = match self.target {
            Target::Direct(response) => response,
            Target::Buffered | Target::Discarded => std::ptr::null_mut(),
        };
        let output = create(Output::new(response, name, dtype, shape));
        self.lock().outputs.push(output);
        output
    }

    pub fn add_param(&self, name: &CStr, value: Value) -> Result<()> {
        match self.target {
            Target::Direct(response) => set_param(response, name, &value),
            Target::Buffered => {
                self.lock().params.push((name.to_owned(), value));
                Ok(())
            }
            Target::Discarded => Ok(()),
        }
    }

    /// The output at a position.
    pub fn output(&self, index: u32) -> Result<Live<Output>> {
        let contents = self.lock();
        let found = contents.outputs.get(index as usize).copied();
        found.ok_or_else(|| {
            let n = contents.outputs.len();
            Fault::invalid(format_args!(
                "the response has {n} outputs, index {index} is none of them"
            ))
        })
    }

    pub fn output_named(&self, name: &CStr) -> Result<Live<Output>> {
        let contents = self.lock();
        let found = contents.outputs.iter().find(|o| o.name.bytes() == name.to_bytes());
        found.copied().ok_or_else(|| {
            let name = name.to_string_lossy();
            Fault::not_found(format_args!("the response has no output '{name}'"))
        })
    }
}

/// Sends a response. Its handle is invalid afterwards, also on failure.
pub fn send(response: *mut Response, last: bool, fault: Option<Fault>) -> Result<()> {
    handles::get(response)?.built()?;
    let Built { reply, target, contents } = handles::free(response)?.into_built()?;
    let contents = contents.into_inner().unwrap_or_else(PoisonError::into_inner);
    let sent = match target {
        Target::Direct(response) => {
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
        Target::Buffered => {
            let outputs = contents.outputs.iter().filter_map(|o| take(*o)).collect();
            reply.send_buffered(Buffered { outputs, params: contents.params, last, fault })
        }
        Target::Discarded => {
            if last {
                let _ = reply.finish(None);
            }
            Ok(())
        }
    };
    for output in contents.outputs {
        take(output);
    }
    reply.release();
    sent
}

/// Drops a response that was not sent.
pub fn delete(response: *mut Response) -> Result<()> {
    handles::get(response)?.built()?;
    let Built { reply, target, contents } = handles::free(response)?.into_built()?;
    let contents = contents.into_inner().unwrap_or_else(PoisonError::into_inner);
    for output in contents.outputs {
        take(output);
    }
    let dropped = match target {
        Target::Direct(response) => reply.discard(response),
        Target::Buffered | Target::Discarded => Ok(()),
    };
    reply.release();
    dropped
}

/// Ends the life of an output's handle.
fn take(output: Live<Output>) -> Option<Output> {
    let output = handles::free(output.raw()).ok()?;
    output.free_attributes();
    Some(output)
}
