//! `TRITONSERVER_Message`: a JSON text, with a NUL at its end because backends read it as a C
//! string.

use crate::handles::{LiveObject, ObjectKind, TypedObject, create_object};
use crate::host::owned_text;
use std::ffi::CString;

pub struct MessageObject {
    pub json: CString,
}

impl TypedObject for MessageObject {
    const KIND: ObjectKind = ObjectKind::Message;
}

impl MessageObject {
    pub fn create(json: &str) -> LiveObject<MessageObject> {
        create_object(MessageObject { json: owned_text(json) })
    }
}
