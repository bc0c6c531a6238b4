//! Reads what a process answers, believes none of it, and passes on what is right.

use super::exit_reason::Why;
use super::facts;
use super::messages::{Answer, Output, Param, param};
use super::wire::{Received, Receiver};
use super::work_connection::Line;
use crate::arena::Reader;
use crate::error::Result;
use crate::plugin::batch::outputs::Building;
use crate::request::Parameter;
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What small models take for an answer; a thread that sleeps takes as long to wake up.
const SPIN: Duration = Duration::from_micros(50);

/// One instance's work connection, as the host reads it.
pub struct Answers {
    receiver: Receiver,
    /// The outputs lie in here.
    memory: Arc<Reader>,
    /// By number, see `messages::ModelFacts::outputs`.
    names: Arc<[String]>,
    /// How long the process may owe an answer without giving one.
    limit: Option<Duration>,
}

impl Answers {
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

    /// Until the process is gone, or must go; or until it owes nothing more, if that is `enough`.
    pub fn read(&mut self, line: &Line, enough: bool) {
        let _unread = Unread(line);
        let why = loop {
            if enough && !line.owes() {
                return;
            }
            match self.receiver.receive::<Answer>() {
                Ok(Received::Message(answer)) => {
                    if let Err(what) = self.pass_on(line, answer) {
                        break Why::Nonsense(what);
                    }
                }
                Ok(Received::Silence) => {
                    let Some(limit) = self.limit else { continue };
                    match line.patience(limit) {
                        Some(left) => drop(self.receiver.set_timeout(Some(left))),
                        None => break Why::Silent(limit),
                    }
                }
                Ok(Received::Closed) => {
                    return line.process.lost("closed a connection for answers");
                }
                Err(e) => break Why::Nonsense(format!("sent what is no answer ({e})")),
            }
            while self.receiver.file().is_some() {}
        };
        line.process.kill(why);
    }

    /// Answers the caller; the error is a fault of the process, not of the answer.
    fn pass_on(&self, line: &Line, answer: Answer) -> Result<(), String> {
        let Answer { key, last, response, failure, times } = answer;
        let last = last || failure.is_some();
        let (outputs, params) =
            response.map_or((None, Vec::new()), |r| (Some(r.outputs), r.params));
        // All that was lent is taken first, so that it goes back whatever follows.
        let data = outputs.iter().flatten().map(|output| self.data(output));
        let data: SmallVec<[Bytes; 4]> = data.collect::<Result<_, _>>()?;
        if let Some(bad) = outputs.iter().flatten().find(|o| self.name(o).is_none()) {
            return Err(format!("answered with an output number {}", bad.index));
        }
        if failure.is_none() && outputs.is_none() && !last {
            return Err("answered nothing".into());
        }
        let Some(answered) = line.answered(key, last) else {
            return Err(format!("answered request {key}, which it does not have"));
        };
        let reply = &answered.reply;
        if let Some(execution) = reply.execution()
            && let [_, compute, output, ..] = times[..]
        {
            execution.note_times(compute, output);
        }
        match (failure, outputs) {
            // An answer that the reply does not take came after its end, as in any process.
            (Some(failure), _) => drop(reply.finish(Err(facts::error(&failure)))),
            (None, None) => drop(reply.finish(Ok(None))),
            (None, Some(outputs)) => {
                let mut building = Building::new(Arc::clone(reply));
                building.parameters.extend(params.into_iter().filter_map(parameter));
                let mut fault = None;
                for (output, data) in outputs.iter().zip(data) {
                    let name = self.name(output).unwrap_or_default();
                    let adopted = building.adopt_bytes(name, output.dtype, &output.shape, data);
                    fault = fault.or(adopted.err());
                }
                if fault.is_none() {
                    line.process.answered.store(true, Ordering::Relaxed);
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
        if (output.offset, output.bytes) == (0, 0) {
            return Ok(Bytes::new());
        }
        self.memory
            .bytes(output.offset, output.bytes, Some(output.slot))
            .map_err(|e| format!("answered with memory that is none ({e})"))
    }
}

/// Nobody reads any more after a panic: who waits for answers must not wait for ever.
struct Unread<'a>(&'a Line);

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0
                .process
                .kill(Why::Nonsense("gave an answer over which the server failed".into()));
        }
    }
}

fn parameter(param: Param) -> Option<(String, Parameter)> {
    let value = match param.value? {
        param::Value::String(text) => Parameter::String(text),
        param::Value::Int(number) => Parameter::Int(number),
        param::Value::Bool(yes) => Parameter::Bool(yes),
        param::Value::Double(number) => Parameter::Double(number),
    };
    Some((param.key, value))
}
