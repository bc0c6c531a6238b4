//! What the process tells its host beside the answers to calls, and what it does when nobody listens any more.

use crate::error::{Code, Error, Result};
use crate::plugin::isolated::messages::{Done, Failure, Tell, tell};
use crate::plugin::isolated::wire::Sender;
use crate::plugin::text::number_of;
use std::sync::atomic::{AtomicBool, Ordering};

/// Errors and log records are cut after so many bytes.
pub const MOST_WORDS: usize = 1 << 20;

/// The sending half of the control connection.
pub struct Control {
    sender: Sender,
    /// The last answer is on its way: the host may close its end.
    ending: AtomicBool,
}

impl Control {
    pub fn new(sender: Sender) -> Self {
        Self { sender, ending: AtomicBool::new(false) }
    }

    pub fn tell(&self, what: tell::What) {
        let tell = Tell { what: Some(what) };
        let sent = self.sender.send(&tell).or_else(|e| match (e.code, tell.what) {
            (Code::InvalidArg, Some(tell::What::Done(Done { number, .. }))) => {
                let what = tell::What::Done(Done {
                    number,
                    failure: Some(failure(&e)),
                    ..Done::default()
                });
                self.sender.send(&Tell { what: Some(what) })
            }
            // What was said is lost; that it was, is not worth the process.
            (Code::InvalidArg, _) => Ok(()),
            _ => Err(e),
        });
        if sent.is_err() && !self.is_ending() {
            gone();
        }
    }

    /// Answers what was asked under `number`; 0 = nobody waits for it.
    pub fn done(&self, number: u64, result: Result<Done>) {
        let done = result.unwrap_or_else(|e| {
            if number == 0 {
                tracing::error!("{e}");
            }
            Done { failure: Some(failure(&e)), ..Done::default() }
        });
        if number != 0 {
            self.tell(tell::What::Done(Done { number, ..done }));
        }
    }

    /// The last answer of all.
    pub fn end(&self, number: u64) {
        self.ending.store(true, Ordering::Release);
        self.done(number, Ok(Done::default()));
    }

    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }
}

pub fn failure(error: &Error) -> Failure {
    let text = &error.message;
    Failure {
        code: number_of(error.code),
        text: text[..text.floor_char_boundary(MOST_WORDS)].into(),
    }
}

/// The host is gone, and so is everything for which the process was there. No destructor of any library may delay it.
pub fn gone() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}

/// What the host says makes no sense: a fault of the server's, which it shows with the last words of the process.
pub fn confused(e: &Error) -> ! {
    eprintln!("trtserver plugin-host: {e}");
    std::process::exit(1)
}
