//! `TRITONBACKEND_ResponseFactory`: sends responses after the request was released.

use super::reply::RequestReply;
use crate::handles::{LiveObject, ObjectKind, TypedObject};

pub struct ResponseFactory {
    /// One reference of it.
    pub reply: LiveObject<RequestReply>,
}

impl TypedObject for ResponseFactory {
    const KIND: ObjectKind = ObjectKind::Factory;
}
