//! `TRITONBACKEND_State`: what a request of a sequence leaves for the next one. The host takes it as a further output.

use super::output::{Buffer, Output};
use super::reply::Reply;
use crate::fault::{Fault, Result};
use crate::handles::{Kind, Live, Object};
use std::sync::atomic::{AtomicBool, Ordering};
use trtserver_plugin_api::abi::types;

/// Valid as long as its request, or a response or factory of it.
pub struct State {
    pub output: Output,
    /// Reply of the state's request. No reference is held: the last reference of the reply frees
    /// its states.
    reply: Live<Reply>,
    /// Sent with the next response.
    committed: AtomicBool,
}

impl Object for State {
    const KIND: Kind = Kind::State;
}

impl State {
    pub fn new(output: Output, reply: Live<Reply>) -> State {
        State { output, reply, committed: AtomicBool::new(false) }
    }

    /// The buffer, which is allocated by the first call and by each with another size.
    ///
    /// # Errors
    /// The system has no memory.
    pub fn buffer(&self, bytes: u64) -> Result<*mut u8> {
        if let Buffer::Own(memory, size) = &mut *self.output.buffer()
            && *size == bytes
        {
            return Ok(memory.as_mut_ptr().cast());
        }
        self.output.reallocate(bytes)
    }

    /// # Errors
    /// It has no buffer, or the final response was sent.
    pub fn commit(&self) -> Result<()> {
        self.reply.check()?;
        if matches!(*self.output.buffer(), Buffer::None) {
            let name = String::from_utf8_lossy(self.output.name.bytes()).into_owned();
            return Err(Fault::misuse(format_args!("state '{name}' has no buffer")));
        }
        self.committed.store(true, Ordering::Release);
        Ok(())
    }

    /// Moves a committed state into a response of the host.
    pub fn put(&self, target: *mut types::Response) -> Result<()> {
        if self.committed.swap(false, Ordering::AcqRel) {
            self.output.adopt(target)
        } else {
            Ok(())
        }
    }
}
