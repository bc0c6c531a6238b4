//! Sends messages over the control connection, and ends the process when the host is gone.

use crate::facts::failure_message;
use crate::messages::{ControlMessage, ControlResponse, control_message};
use crate::wire::Sender;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use trtserver_base::error::{Code, Error, Result};

/// The sending half of the control connection.
pub struct Control {
    sender: Sender,
    /// The last message was sent: the host may close its end.
    ending: AtomicBool,
}

impl Control {
    pub fn new(sender: Sender) -> Self {
        Self { sender, ending: AtomicBool::new(false) }
    }

    pub fn send(&self, kind: control_message::MessageKind) {
        let message = ControlMessage { kind: Some(kind) };
        let sent = self.sender.send(&message).or_else(|e| match (e.code, message.kind) {
            (
                Code::InvalidArg,
                Some(control_message::MessageKind::Response(ControlResponse { number, .. })),
            ) => {
                let kind = control_message::MessageKind::Response(ControlResponse {
                    number,
                    failure: Some(failure_message(&e)),
                    ..ControlResponse::default()
                });
                self.sender.send(&ControlMessage { kind: Some(kind) })
            }
            // A log record or metric that is too long for a message is dropped.
            (Code::InvalidArg, _) => Ok(()),
            _ => Err(e),
        });
        if sent.is_err() && !self.is_ending() {
            exit_without_host();
        }
    }

    /// Sends a message that carries a file.
    pub fn send_file(&self, kind: control_message::MessageKind, file: BorrowedFd<'_>) {
        let sent = self.sender.send_with(&ControlMessage { kind: Some(kind) }, &[file]);
        if sent.is_err() && !self.is_ending() {
            exit_without_host();
        }
    }

    /// Responds to control request `number`; 0 = no response is sent.
    pub fn respond(&self, number: u64, result: Result<ControlResponse>) {
        let response = result.unwrap_or_else(|e| {
            if number == 0 {
                tracing::error!("{e}");
            }
            ControlResponse { failure: Some(failure_message(&e)), ..ControlResponse::default() }
        });
        if number != 0 {
            self.send(control_message::MessageKind::Response(ControlResponse {
                number,
                ..response
            }));
        }
    }

    /// Sends the last response.
    pub fn respond_last(&self, number: u64) {
        self.ending.store(true, Ordering::Release);
        self.respond(number, Ok(ControlResponse::default()));
    }

    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }
}

/// Ends the process at once because the host is gone. Not `exit`: destructors of libraries could
/// delay it.
pub fn exit_without_host() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}

/// Ends the process because the host broke the protocol, a fault of the server. It logs standard
/// error.
pub fn exit_on_violation(e: &Error) -> ! {
    eprintln!("trtserver plugin-host: {e}");
    std::process::exit(1)
}

/// Ends the process because only a new one can use the GPU again: the host fails the outstanding
/// requests with the last log lines as the reason, and restarts the process.
pub fn exit_without_device(ordinal: i32, reason: &str) {
    eprintln!("GPU {ordinal} is lost: {reason}");
    // SAFETY: ends the process. Not `exit`: destructors of libraries would wait for the device.
    unsafe { libc::_exit(1) }
}
