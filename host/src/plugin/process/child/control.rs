//! What the process tells its host beside the answers to calls, and what it does when nobody listens any more.

use crate::error::{Error, Result};
use crate::plugin::process::messages::{Done, Failure, Tell, tell};
use crate::plugin::process::wire::Sender;
use crate::plugin::text::number_of;
use std::sync::atomic::{AtomicBool, Ordering};

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
        if self.sender.send(&Tell { what: Some(what) }).is_err() && !self.is_ending() {
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
    Failure { code: number_of(error.code), text: error.message.clone() }
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
