//! `TRITONSERVER_Message`: a JSON text, with a NUL at its end because backends read it as a C string.

use crate::handles::{Kind, Live, Object, create};
use crate::host::owned;
use std::ffi::CString;

pub struct Message {
    pub json: CString,
}

impl Object for Message {
    const KIND: Kind = Kind::Message;
}

impl Message {
    pub fn create(json: &str) -> Live<Message> {
        create(Message { json: owned(json) })
    }
}
