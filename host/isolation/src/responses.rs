//! Reads responses of a child process, validates them, and passes them on.

use super::exit_reason::KillReason;
use super::facts;
use super::messages::{OutputMessage, ResponseMessage};
use super::outstanding::OutstandingRequests;
use super::params;
use super::process::Process;
use super::spin::Spin;
use super::wire::{ReceiveOutcome, Receiver, WakeCause};
use super::work_channel::{
    MESSAGE, ON_SOCKET, corrupt_ring_error, decode_message, receive_long,
    unannounced_message_error, unknown_record_error,
};
use bytes::Bytes;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use trtserver_base::arena::ArenaReader;
use trtserver_base::arena::ring::{RingConsumer, RingCorruption};
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_plugin_host::batch::outputs::ResponseBuilder;
use trtserver_request::completion::InlineCompletion;

/// How long the thread that has sent a batch polls for the responses: small models respond sooner
/// than a thread wakes up.
const SPIN: Duration = Duration::from_micros(50);

/// What a child sends over a work connection: read by a thread of its own, or by a thread that has
/// sent a batch and polls.
pub struct Responses {
    state: Mutex<ReaderState>,
    /// The arena of the outputs.
    memory: Arc<ArenaReader>,
    /// Output names by position in `messages::ModelFacts::outputs`.
    names: Arc<[String]>,
    /// Time that the child took for the last execution.
    execution_ns: AtomicU64,
}

/// Locked while responses are delivered, which keeps their order.
struct ReaderState {
    ring: RingConsumer,
    buffer: Vec<u8>,
    /// The reader sleeps, or is about to.
    sleeping: bool,
    spin: Spin,
}

/// Why reading ends.
enum ReadEnd {
    Violation(String),
    Closed,
    TimedOut,
}

impl Responses {
    pub fn new(ring: RingConsumer, memory: &Arc<ArenaReader>, names: &Arc<[String]>) -> Arc<Self> {
        let spin = Spin::new(SPIN);
        let state = ReaderState { ring, buffer: Vec::new(), sleeping: false, spin };
        let (memory, names) = (Arc::clone(memory), Arc::clone(names));
        let execution_ns = AtomicU64::new(0);
        Arc::new(Self { state: Mutex::new(state), memory, names, execution_ns })
    }

    /// Time that the child took for the last execution; 0 before the first.
    pub fn execution_ns(&self) -> u64 {
        self.execution_ns.load(Ordering::Relaxed)
    }

    /// Delivers the responses that are there. If `to_the_end`, polls for a short time until nothing
    /// is outstanding, if that mostly succeeds, and leaves later responses to the reader. Otherwise
    /// the child does not wake the reader, and this thread has to poll again.
    pub fn poll(&self, to_the_end: bool, outstanding: &OutstandingRequests, process: &Process) {
        let _on_panic = KillOnPanic(process);
        // Another thread reads.
        let Some(mut state) = self.state.try_lock() else { return };
        let ReaderState { ring, buffer, sleeping, spin } = &mut *state;
        ring.awake();
        loop {
            match ring.peek() {
                // It is left to the reader, which the message on the socket wakes.
                Ok(Some(ON_SOCKET)) => return,
                Ok(None) if !to_the_end => return,
                Ok(None) => {
                    let polls = !outstanding.is_empty();
                    if polls && spin.until(|| !ring.is_empty()) {
                        continue;
                    }
                    if !*sleeping || ring.prepare_sleep() {
                        return;
                    }
                }
                Ok(Some(_)) | Err(RingCorruption) => {
                    if let Err(ReadEnd::Violation(what)) =
                        self.next(ring, buffer, None, outstanding, process)
                    {
                        return process.kill(KillReason::ProtocolViolation(what));
                    }
                }
            }
        }
    }

    /// Delivers the next response in the ring; false if there is none.
    fn next(
        &self,
        ring: &mut RingConsumer,
        buffer: &mut Vec<u8>,
        socket: Option<&mut Receiver>,
        outstanding: &OutstandingRequests,
        process: &Process,
    ) -> Result<bool, ReadEnd> {
        let is_reader = socket.is_some();
        let malformed = |e: Error| ReadEnd::Violation(format!("sent a malformed response ({e})"));
        let damaged = |e: RingCorruption| malformed(corrupt_ring_error(e));
        let long = match (ring.peek().map_err(damaged)?, socket) {
            (Some(ON_SOCKET), Some(socket)) => match receive_long(socket).map_err(malformed)? {
                ReceiveOutcome::Message(response) => Some(response),
                ReceiveOutcome::Closed => return Err(ReadEnd::Closed),
                // Its record stays until the message is complete.
                ReceiveOutcome::TimedOut => return Err(ReadEnd::TimedOut),
            },
            _ => None,
        };
        let kind = ring.pop(buffer).map_err(damaged)?;
        let response = match (long, kind) {
            (Some(response), _) => response,
            (None, None) => return Ok(false),
            (None, Some(MESSAGE)) => decode_message(buffer).map_err(malformed)?,
            (None, Some(kind)) => return Err(malformed(unknown_record_error(kind))),
        };
        self.deliver(outstanding, process, response, is_reader).map_err(ReadEnd::Violation)?;
        Ok(true)
    }

    /// Delivers a response to its request. The reader sends the only outstanding one itself.
    ///
    /// # Errors
    /// A protocol violation, or a model that is broken: why the child has to be killed. Faults in
    /// outputs are errors of the request instead.
    fn deliver(
        &self,
        outstanding: &OutstandingRequests,
        process: &Process,
        response: ResponseMessage,
        is_reader: bool,
    ) -> Result<(), String> {
        let ResponseMessage { key, last, data, failure, times, execution_ns, part, activities } =
            response;
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
        if last {
            self.execution_ns.store(execution_ns, Ordering::Relaxed);
        }
        let completes = is_reader && last && outstanding.is_empty();
        let _completes = completes.then(InlineCompletion::grant);
        let responder = &target.responder;
        if let Some(trace) = responder.trace() {
            // The child is not trusted; the trace limits names and their number.
            let now = now_ns();
            activities.iter().for_each(|it| trace.report(&it.name, it.at_ns.min(now)));
        }
        if let (Some(execution), Some(part)) = (responder.execution(), part)
            && !responder.is_in_part()
        {
            // The child is not trusted.
            let start_ns = part.start_ns.min(now_ns()).max(execution.start_ns);
            let rows = part.rows.min(execution.rows);
            responder.executed_in_part(part.first, &execution.part(part.first, rows, start_ns));
        }
        if let Some(execution) = responder.counted_execution()
            && let [_, compute, output, ..] = times[..]
        {
            execution.note_times(compute, output);
        }
        match (failure, outputs) {
            // The responder refuses a response after the final one, as for a local backend.
            (Some(failure), _) => {
                drop(responder.finish(Err(facts::failure_error(&failure))));
                if failure.model_broken {
                    return Err(format!("reported that its model is broken ({})", failure.text));
                }
            }
            (None, None) => drop(responder.finish(Ok(None))),
            (None, Some(outputs)) => {
                let mut building = ResponseBuilder::new(Arc::clone(responder), None);
                building.parameters.extend(params.into_iter().filter_map(params::decode_parameter));
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

    fn name(&self, output: &OutputMessage) -> Option<&str> {
        self.names.get(output.index as usize).map(String::as_str)
    }

    fn data(&self, output: &OutputMessage) -> Result<Bytes, String> {
        if output.in_destination || (output.offset, output.bytes) == (0, 0) {
            return Ok(Bytes::new());
        }
        self.memory
            .bytes(output.offset, output.bytes, Some(output.slot))
            .map_err(|e| format!("sent an invalid memory range ({e})"))
    }
}

/// The thread that reads responses while no other polls for them.
pub struct ResponseReader {
    responses: Arc<Responses>,
    socket: Receiver,
    /// The response deadline.
    limit: Option<Duration>,
}

impl ResponseReader {
    pub fn new(
        responses: &Arc<Responses>,
        mut socket: Receiver,
        limit: Option<Duration>,
    ) -> Result<Self> {
        socket.set_timeout(limit)?;
        Ok(Self { responses: Arc::clone(responses), socket, limit })
    }

    /// Reads until the child is gone or is killed.
    pub fn read(&mut self, outstanding: &OutstandingRequests, process: &Process) {
        let _on_panic = KillOnPanic(process);
        loop {
            let reason = match self.step(outstanding, process) {
                Ok(()) => continue,
                Err(ReadEnd::Violation(what)) => KillReason::ProtocolViolation(what),
                Err(ReadEnd::TimedOut) => {
                    let Some(limit) = self.limit else { continue };
                    match outstanding.time_left(limit) {
                        Some(left) => {
                            drop(self.socket.set_timeout(Some(left)));
                            continue;
                        }
                        None => KillReason::ResponseTimeout(limit),
                    }
                }
                // The instance was closed.
                Err(ReadEnd::Closed) if outstanding.is_closed() => return,
                Err(ReadEnd::Closed) => return process.connection_lost("closed a work connection"),
            };
            return process.kill(reason);
        }
    }

    /// Delivers what is in the ring, then sleeps once.
    fn step(
        &mut self,
        outstanding: &OutstandingRequests,
        process: &Process,
    ) -> Result<(), ReadEnd> {
        let malformed = |e: Error| ReadEnd::Violation(format!("sent a malformed response ({e})"));
        let responses = &*self.responses;
        let mut state = responses.state.lock();
        let ReaderState { ring, buffer, sleeping, .. } = &mut *state;
        while responses.next(ring, buffer, Some(&mut self.socket), outstanding, process)? {
            while self.socket.file().is_some() {}
        }
        if !ring.prepare_sleep() {
            return Ok(());
        }
        *sleeping = true;
        drop(state);
        let woken = self.socket.wait();
        let mut state = responses.state.lock();
        state.sleeping = false;
        state.ring.awake();
        match woken.map_err(malformed)? {
            // Responses that were sent before the end are delivered first.
            _ if !state.ring.is_empty() => Ok(()),
            // Another thread has delivered them. A child that only wakes this thread does not
            // extend its deadline.
            ReceiveOutcome::Message(WakeCause::ByPeer) => {
                let late = self.limit.is_some_and(|limit| outstanding.time_left(limit).is_none());
                if late { Err(ReadEnd::TimedOut) } else { Ok(()) }
            }
            ReceiveOutcome::Message(WakeCause::ByMessage) => {
                Err(malformed(unannounced_message_error()))
            }
            ReceiveOutcome::Closed => Err(ReadEnd::Closed),
            ReceiveOutcome::TimedOut => Err(ReadEnd::TimedOut),
        }
    }
}

/// After a panic of the reading thread no response would arrive any more; killing the child fails
/// its requests.
struct KillOnPanic<'a>(&'a Process);

impl Drop for KillOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let what = "sent a response that made the server fail";
            self.0.kill(KillReason::ProtocolViolation(what.into()));
        }
    }
}
