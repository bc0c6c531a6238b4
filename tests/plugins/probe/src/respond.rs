//! Responds to one request.

use crate::Echo;
use crate::cancelled::Cancelled;
use crate::commands::{Commands, Garbage};
use crate::report::{BATCH, report};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trtserver_plugin_api::author::{
    Backlog, Batch, Dtype, Error, Request, Responder, Response, Tensor,
};

/// When the response is sent.
pub enum Responded {
    Now,
    Later(JoinHandle<()>),
}

/// Outputs of one response: name, type, shape, bytes.
type Outputs = Vec<(String, Dtype, Vec<i64>, Vec<u8>)>;

const MAX_WAIT: Duration = Duration::from_secs(10);

pub fn respond(
    model: &Echo,
    batch: &Batch<'_>,
    request: Request<'_>,
    commands: &Commands,
    cancelled: &Arc<Cancelled>,
) -> Result<Responded, Error> {
    let fails = |last: bool| commands.fail_in.is_none() && commands.fail_last == last;
    if let Some(text) = commands.fail.as_deref().filter(|_| fails(false)) {
        return Err(commands.error(text));
    }
    if commands.needs_deadline && request.deadline_ns().is_none() {
        return Err(Error::invalid("the request has no deadline"));
    }
    if commands.garbage.is_none() && !commands.detach && !commands.waits() {
        for last in ends(commands) {
            if let Some(text) = commands.fail.as_deref().filter(|_| last && fails(true)) {
                return Err(commands.error(text));
            }
            let mut response = request.new_response()?;
            echo(model, request, commands, &mut response)?;
            if commands.reports() {
                let (dtype, shape, bytes) = report(model, batch, request.batch_size())?;
                response.put_bytes(BATCH, dtype, &shape, &bytes)?;
            }
            if last {
                response.send()?;
            } else if !commands.try_more {
                response.send_more()?;
            } else if response.try_send_more()?.is_some() {
                let Backlog { bytes, responses, limit, .. } = request.backlog()?;
                return Err(Error::unavailable(format!(
                    "{responses} responses of {bytes} bytes are unread, the limit is {limit}"
                )));
            }
        }
        if commands.responses == Some(0) {
            request.finish();
        }
        return Ok(Responded::Now);
    }
    if commands.detach {
        return detached(model, request, commands, cancelled).map(Responded::Later);
    }
    if commands.until_notified {
        return cancelled.wait(request.key(), MAX_WAIT).map(|()| Responded::Now);
    }
    if commands.until_cancelled {
        for _ in 0..commands.responses.unwrap_or(0) {
            let mut response = request.new_response()?;
            echo(model, request, commands, &mut response)?;
            response.send_more()?;
        }
        return wait(|| request.is_cancelled()).map(|()| Responded::Now);
    }
    match commands.garbage {
        Some(Garbage::Never) => {}
        Some(garbage) => {
            let mut response = request.new_response()?;
            for (name, dtype, shape, bytes) in spoiled(outputs(model, request), garbage) {
                response.put_bytes(&name, dtype, &shape, &bytes)?;
            }
            response.send()?;
            if garbage == Garbage::Twice {
                // The author side refuses the second response; the second end reaches the host.
                drop(request.new_response());
                request.finish();
            }
        }
        None => {}
    }
    Ok(Responded::Now)
}

/// For each response, whether it is the last.
fn ends(commands: &Commands) -> impl Iterator<Item = bool> + use<> {
    let n = commands.responses.unwrap_or(1);
    (1..=n).map(move |i| i == n)
}

/// The output that echoes an input.
pub fn counterpart<'m>(model: &'m Echo, input: Tensor<'_>) -> Option<&'m str> {
    let position = input.index().or_else(|| model.inputs.get(input.name()).copied())?;
    model.outputs.get(position).map(String::as_str).filter(|name| *name != BATCH)
}

/// Output i is input i, copied directly into the response.
fn echo(
    model: &Echo,
    request: Request<'_>,
    commands: &Commands,
    response: &mut Response<'_>,
) -> Result<(), Error> {
    for input in request.inputs() {
        let Some(output) = counterpart(model, input) else { continue };
        if commands.adopt {
            let bytes = input.to_bytes();
            response.adopt(output, input.dtype(), input.shape(), bytes)?;
            continue;
        }
        let to = response.output(output, input.dtype(), input.shape(), input.byte_size())?;
        if to.len() != input.byte_size() {
            continue; // not requested
        }
        let mut at = 0;
        for part in input.parts() {
            to[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        if model.base != 0 && input.dtype() == Dtype::Fp32 {
            for value in to.as_chunks_mut::<4>().0 {
                *value = (f32::from_ne_bytes(*value) + model.base as f32).to_ne_bytes();
            }
        }
    }
    Ok(())
}

/// The same as owned values, for responses that are sent later or invalid.
fn outputs(model: &Echo, request: Request<'_>) -> Outputs {
    let inputs = request.inputs().filter_map(|input| {
        let name = counterpart(model, input)?.to_owned();
        Some((name, input.dtype(), input.shape().to_vec(), input.to_bytes()))
    });
    inputs.collect()
}

fn spoiled(mut outputs: Outputs, garbage: Garbage) -> Outputs {
    match garbage {
        Garbage::WrongDtype => outputs.iter_mut().for_each(|output| output.1 = sibling(output.1)),
        Garbage::WrongShape => outputs.iter_mut().for_each(|output| output.2.push(1)),
        Garbage::UnknownOutput => {
            outputs.push(("NOT_AN_OUTPUT".into(), Dtype::Uint8, vec![1], vec![0]));
        }
        Garbage::MissingOutput => drop(outputs.drain(..outputs.len().min(1))),
        Garbage::Short => outputs.iter_mut().for_each(|output| {
            output.3.pop();
        }),
        Garbage::Twice | Garbage::Never => {}
    }
    outputs
}

/// Another type of the same size.
fn sibling(dtype: Dtype) -> Dtype {
    match dtype {
        Dtype::Fp32 => Dtype::Int32,
        Dtype::Fp64 => Dtype::Int64,
        Dtype::Fp16 => Dtype::Int16,
        Dtype::Uint8 => Dtype::Int8,
        Dtype::Int64 => Dtype::Fp64,
        Dtype::Int32 => Dtype::Fp32,
        _ => Dtype::Uint8,
    }
}

fn wait(is_cancelled: impl Fn() -> bool) -> Result<(), Error> {
    let begin = Instant::now();
    while begin.elapsed() < MAX_WAIT {
        if is_cancelled() {
            return Err(Error::cancelled("cancelled while the probe was waiting for it"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(Error::deadline("the probe waited 10 s and was not cancelled"))
}

/// Responds on another thread, shortly after `execute` has returned.
fn detached(
    model: &Echo,
    request: Request<'_>,
    commands: &Commands,
    cancelled: &Arc<Cancelled>,
) -> Result<JoinHandle<()>, Error> {
    let (key, cancelled) = (request.key(), Arc::clone(cancelled));
    let outputs = outputs(model, request);
    let responder = request.detach()?;
    let commands = commands.clone();
    let work = move || {
        std::thread::sleep(Duration::from_millis(5));
        if commands.garbage == Some(Garbage::Never) {
            return;
        }
        if commands.waits() {
            let waited = if commands.until_notified {
                cancelled.wait(key, MAX_WAIT)
            } else {
                wait(|| responder.is_cancelled())
            };
            if let Err(error) = waited {
                responder.fail(error);
            }
            return;
        }
        if let Err(error) = respond_detached(&responder, &outputs, &commands) {
            responder.fail(error);
        }
    };
    std::thread::Builder::new()
        .name("probe-respond".into())
        .spawn(work)
        .map_err(|error| Error::from(error).context("cannot start a thread for the response"))
}

fn respond_detached(
    responder: &Responder,
    outputs: &Outputs,
    commands: &Commands,
) -> Result<(), Error> {
    for last in ends(commands) {
        let mut response = responder.new_response()?;
        for (name, dtype, shape, bytes) in outputs {
            response.put_bytes(name, *dtype, shape, bytes)?;
        }
        if last { response.send()? } else { response.send_more()? }
    }
    Ok(())
}
