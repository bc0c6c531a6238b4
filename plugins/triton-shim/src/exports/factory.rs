//! `TRITONBACKEND_ResponseFactory*`: responses that outlive their request.

use super::guard::{Ended, Out, export};
use super::response::FINAL;
use crate::handles::{LiveObject, create_object, free_object};
use crate::objects::factory::ResponseFactory;
use crate::objects::request::RequestObject;

export! {
    /// A factory for responses to a request, owned by the caller; it outlives the request.
    fn TRITONBACKEND_ResponseFactoryNew(factory: Out<*mut ResponseFactory>, request: LiveObject<RequestObject>) {
        let reply = request.host()?.reply;
        reply.retain();
        factory.set(create_object(ResponseFactory { reply }).raw());
    }

    /// Frees a factory. The last of request, factories and responses ends the request, if nothing
    /// has yet.
    fn TRITONBACKEND_ResponseFactoryDelete(factory: Ended<ResponseFactory>) {
        free_object(factory.0)?.reply.release();
    }

    /// Ends the responses of a request without another one, with flag 1.
    fn TRITONBACKEND_ResponseFactorySendFlags(factory: LiveObject<ResponseFactory>, send_flags: u32) {
        if send_flags & FINAL != 0 {
            factory.reply.finish(None)?;
        }
    }

    /// Whether the client has cancelled the request: one atomic load.
    fn TRITONBACKEND_ResponseFactoryIsCancelled(factory: LiveObject<ResponseFactory>, is_cancelled: Out<u8>) {
        is_cancelled.set(factory.reply.is_cancelled().into());
    }
}
