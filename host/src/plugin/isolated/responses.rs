//! Reads responses of a child process, validates them, and passes them on.

use super::exit_reason::KillReason;
use super::facts;
use super::messages::{Output, Response};
use super::outstanding::OutstandingRequests;
use super::params;
use super::process::Process;
use super::wire::{Received, Receiver};
use crate::arena::Reader;
use crate::error::Result;
use crate::plugin::batch::outputs::ResponseBuilder;
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Poll time: small models respond about as fast as a sleeping thread wakes up.
const SPIN: Duration = Duration::from_micros(50);

/// The host's receiving side of a work connection.
pub struct ResponseReader {
    receiver: Receiver,
    /// The arena of the outputs.
    memory: Arc<Reader>,
    /// Output names by position in `messages::ModelFacts::outputs`.
    names: Arc<[String]>,
    /// The response deadline.
    limit: Option<Duration>,
}

impl ResponseReader {
    pub fn new(
        mut receiver: Receiver,
        memory: &Arc<Reader>,
        names: &Arc<[String]>,
        limit: Option<Duration>,
    ) -> Result<Self> {
        receiver.set_timeout(limit)?;
        receiver.set_spin(SPIN);
        Ok(Self { receiver, memory: Arc::clone(memory), names: Arc::clone(names), limit })
    }

    /// Reads until the child is gone or is killed; with `until_idle` also until nothing is outstanding.
    pub fn read(&mut self, outstanding: &OutstandingRequests, process: &Process, until_idle: bool) {
        let _on_panic = KillOnPanic(process);
        let reason = loop {
            if until_idle && outstanding.is_empty() {
                return;
            }
            match self.receiver.receive::<Response>() {
                Ok(Received::Message(response)) => {
                    if let Err(what) = self.deliver(outstanding, process, response) {
                        break KillReason::ProtocolViolation(what);
                    }
                }
                Ok(Received::TimedOut) => {
                    let Some(limit) = self.limit else { continue };
                    match outstanding.time_left(limit) {
                        Some(left) => drop(self.receiver.set_timeout(Some(left))),
                        None => break KillReason::ResponseTimeout(limit),
                    }
                }
                // The instance was closed.
                Ok(Received::Closed) if outstanding.is_closed() => return,
                Ok(Received::Closed) => {
                    return process.connection_lost("closed a work connection");
                }
                Err(e) => {
                    break KillReason::ProtocolViolation(format!(
                        "sent a malformed response ({e})"
                    ));
                }
            }
            while self.receiver.file().is_some() {}
        };
        process.kill(reason);
    }

    /// Delivers a response to its request.
    ///
    /// # Errors
    /// A protocol violation, or a model that is broken: why the child has to be killed. Faults in outputs are errors of the
    /// request instead.
    fn deliver(
        &self,
        outstanding: &OutstandingRequests,
        process: &Process,
        response: Response,
    ) -> Result<(), String> {
        let Response { key, last, data, failure, times } = response;
        let last = last || failure.is_some();
        let (outputs, params) = data.map_or((None, Vec::new()), |d| (Some(d.outputs), d.params));
        // All outputs are read first, so that their references are released also after an error.
        let data = outputs.iter().flatten().map(|output| self.data(output));
        let data: SmallVec<[Bytes; 4]> = data.collect::<Result<_, _>>()?;
        if let Some(bad) = outputs.iter().flatten().find(|o| self.name(o).is_none()) {
            return Err(format!(
                "responded with output number {}, which does not exist",
                bad.index
            ));
        }
        if failure.is_none() && outputs.is_none() && !last {
            return Err("sent an empty response".into());
        }
        let Some(target) = outstanding.target(key, last) else {
            return Err(format!("responded to request {key}, which is not outstanding"));
        };
        let responder = &target.responder;
        if let Some(execution) = responder.execution()
            && let [_, compute, output, ..] = times[..]
        {
            execution.note_times(compute, output);
        }
        match (failure, outputs) {
            // The responder refuses a response after the final one, as for a local backend.
            (Some(failure), _) => {
                drop(responder.finish(Err(facts::error(&failure))));
                if failure.model_broken {
                    return Err(format!("reported that its model is broken ({})", failure.text));
                }
            }
            (None, None) => drop(responder.finish(Ok(None))),
            (None, Some(outputs)) => {
                let mut building = ResponseBuilder::new(Arc::clone(responder), None);
                building.parameters.extend(params.into_iter().filter_map(params::decode));
                let mut fault = None;
                for (output, data) in outputs.iter().zip(data) {
                    let name = self.name(output).unwrap_or_default();
                    let (dtype, shape) = (output.dtype, &output.shape);
                    let added = match output.in_destination {
                        true => building.add_written(name, dtype, shape, output.bytes),
                        false => building.adopt_bytes(name, dtype, shape, data),
                    };
                    fault = fault.or(added.err());
                }
                if fault.is_none() {
                    process.responded.store(true, Ordering::Relaxed);
                }
                drop(building.send(last, fault));
            }
        }
        Ok(())
    }

    fn name(&self, output: &Output) -> Option<&str> {
        self.names.get(output.index as usize).map(String::as_str)
    }

    fn data(&self, output: &Output) -> Result<Bytes, String> {
        if output.in_destination || (output.offset, output.bytes) == (0, 0) {
            return Ok(Bytes::new());
        }
        self.memory
            .bytes(output.offset, output.bytes, Some(output.slot))
            .map_err(|e| format!("sent an invalid memory range ({e})"))
    }
}

/// After a panic of the reading thread no response would arrive any more; killing the child fails its requests.
struct KillOnPanic<'a>(&'a Process);

impl Drop for KillOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let what = "sent a response that made the server fail";
            self.0.kill(KillReason::ProtocolViolation(what.into()));
        }
    }
}
