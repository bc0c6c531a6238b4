//! Reads the control connection: handles log levels, cancellations and requests for metrics at once,
//! and passes the rest on as jobs.

use super::control::{self, Control};
use super::instance::Instances;
use super::log;
use super::metrics::Forwarder;
use crate::messages::{
    ControlRequest, ControlResponse, Handshake, InstanceFacts, ModelFacts, ProbeFacts,
    control_request,
};
use crate::wire::{ReceiveOutcome, Receiver};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use trtserver_base::error::Error;

/// A job for the main thread.
pub struct MainThreadJob {
    pub number: u64,
    pub kind: JobKind,
}

pub enum JobKind {
    Handshake(Handshake),
    Describe,
    OpenBackend,
    Complete(ModelFacts),
    Probe(ProbeFacts),
    OpenModel(ModelFacts, [Option<OwnedFd>; 2]),
    OpenInstance(InstanceFacts, [Option<OwnedFd>; 2]),
    Close,
}

/// The thread that reads the control connection.
pub struct ControlReader {
    pub receiver: Receiver,
    pub jobs: Sender<MainThreadJob>,
    pub control: Arc<Control>,
    pub instances: Arc<Instances>,
    pub forwarder: &'static Forwarder,
}

impl ControlReader {
    pub fn run(mut self) {
        loop {
            match self.receiver.receive::<ControlRequest>() {
                Ok(ReceiveOutcome::Message(request)) => self.handle(request),
                Ok(ReceiveOutcome::TimedOut) => {}
                Ok(ReceiveOutcome::Closed) if self.control.is_ending() => return,
                Ok(ReceiveOutcome::Closed) => control::exit_without_host(),
                Err(e) => control::exit_on_violation(&e),
            }
        }
    }

    fn handle(&mut self, ControlRequest { number, kind }: ControlRequest) {
        let kind = match kind {
            Some(control_request::RequestKind::LogLevel(level)) => return log::set_level(level),
            Some(control_request::RequestKind::Cancel(cancel)) => {
                return self.instances.cancel(cancel.ordinal, cancel.key);
            }
            Some(control_request::RequestKind::SendMetrics(_)) => {
                self.forwarder.send();
                return self.control.respond(number, Ok(ControlResponse::default()));
            }
            Some(control_request::RequestKind::Handshake(hello)) => JobKind::Handshake(hello),
            Some(control_request::RequestKind::Describe(_)) => JobKind::Describe,
            Some(control_request::RequestKind::OpenBackend(_)) => JobKind::OpenBackend,
            Some(control_request::RequestKind::Complete(facts)) => JobKind::Complete(facts),
            Some(control_request::RequestKind::Probe(facts)) => JobKind::Probe(facts),
            Some(control_request::RequestKind::OpenModel(facts)) => {
                JobKind::OpenModel(facts, [self.receiver.file(), self.receiver.file()])
            }
            Some(control_request::RequestKind::OpenInstance(facts)) => {
                JobKind::OpenInstance(facts, [self.receiver.file(), self.receiver.file()])
            }
            Some(control_request::RequestKind::Close(_)) => JobKind::Close,
            None => {
                let error = Error::unsupported("the control request is unknown");
                return self.control.respond(number, Err(error));
            }
        };
        // Fails only when the main thread has ended, and the process with it.
        let _ = self.jobs.send(MainThreadJob { number, kind });
    }
}
