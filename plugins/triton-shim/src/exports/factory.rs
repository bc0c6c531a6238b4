//! `TRITONBACKEND_ResponseFactory*`: responses that outlive their request.

use super::guard::{Ended, Out, export};
use super::response::FINAL;
use crate::handles::{Live, create, free};
use crate::objects::factory::Factory;
use crate::objects::request::Request;

export! {
    /// A factory for responses to a request, owned by the caller; it outlives the request.
    fn TRITONBACKEND_ResponseFactoryNew(factory: Out<*mut Factory>, request: Live<Request>) {
        let reply = request.host()?.reply;
        reply.retain();
        factory.set(create(Factory { reply }).raw());
    }

    /// Frees a factory. The last of request, factories and responses ends the request, if nothing has yet.
    fn TRITONBACKEND_ResponseFactoryDelete(factory: Ended<Factory>) {
        free(factory.0)?.reply.release();
    }

    /// Ends the responses of a request without another one, with flag 1.
    fn TRITONBACKEND_ResponseFactorySendFlags(factory: Live<Factory>, send_flags: u32) {
        if send_flags & FINAL != 0 {
            factory.reply.finish(None)?;
        }
    }

    /// Whether the client has cancelled the request: one atomic load.
    fn TRITONBACKEND_ResponseFactoryIsCancelled(factory: Live<Factory>, is_cancelled: Out<u8>) {
        is_cancelled.set(factory.reply.is_cancelled().into());
    }
}
