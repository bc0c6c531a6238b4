//! `TRITONBACKEND_State`: what a request of a sequence leaves for the next one. The host takes it
//! as a further output.

use super::output::{OutputBuffer, OutputObject};
use super::reply::RequestReply;
use crate::fault::{Result, TritonFault};
use crate::handles::{LiveObject, ObjectKind, TypedObject};
use std::sync::atomic::{AtomicBool, Ordering};
use trtserver_plugin_api::abi::types;

/// Valid as long as its request, or a response or factory of it.
pub struct StateObject {
    pub output: OutputObject,
    /// Reply of the state's request. No reference is held: the last reference of the reply frees
    /// its states.
    reply: LiveObject<RequestReply>,
    /// Sent with the next response.
    committed: AtomicBool,
}

impl TypedObject for StateObject {
    const KIND: ObjectKind = ObjectKind::State;
}

impl StateObject {
    pub fn new(output: OutputObject, reply: LiveObject<RequestReply>) -> StateObject {
        StateObject { output, reply, committed: AtomicBool::new(false) }
    }

    /// The buffer, which is allocated by the first call and by each with another size.
    ///
    /// # Errors
    /// The system has no memory.
    pub fn buffer(&self, bytes: u64) -> Result<*mut u8> {
        if let OutputBuffer::Own(memory, size) = &mut *self.output.buffer()
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
        if matches!(*self.output.buffer(), OutputBuffer::None) {
            let name = String::from_utf8_lossy(self.output.name.bytes()).into_owned();
            return Err(TritonFault::misuse(format_args!("state '{name}' has no buffer")));
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
