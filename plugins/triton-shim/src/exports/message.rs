//! `TRITONSERVER_Message*`: JSON texts.

use super::guard::{Ended, Out, export, read_array};
use crate::fault::TritonFault;
use crate::handles::{LiveObject, free_object};
use crate::objects::message::MessageObject;
use serde_json::Value;
use std::ffi::c_char;

export! {
    /// A message, owned by the caller, with a copy of the text.
    fn TRITONSERVER_MessageNewFromSerializedJson(
        message: Out<*mut MessageObject>,
        base: JsonText,
        byte_size: usize,
    ) {
        // SAFETY: the caller passes that many bytes.
        let bytes = unsafe { read_array(base.0.cast::<u8>(), byte_size as u64, "base")? };
        let text = std::str::from_utf8(bytes).map_err(|_| TritonFault::invalid("the JSON is not UTF-8"))?;
        let text = text.trim_end_matches('\0');
        if let Err(e) = serde_json::from_str::<Value>(text) {
            return Err(TritonFault::invalid(format_args!("failed to parse the message: {e}")));
        }
        message.set(MessageObject::create(text).raw());
    }

    /// Frees a message.
    fn TRITONSERVER_MessageDelete(message: Ended<MessageObject>) {
        free_object(message.0)?;
    }

    /// The text with a NUL after it, owned by the message.
    fn TRITONSERVER_MessageSerializeToJson(
        message: LiveObject<MessageObject>,
        base: Out<*const c_char>,
        byte_size: Out<usize>,
    ) {
        base.set(message.json.as_ptr());
        byte_size.set(message.json.count_bytes());
    }
}

/// A text with its length in another argument.
pub struct JsonText(*const c_char);

impl super::guard::Argument for JsonText {
    type C = *const c_char;
    unsafe fn take(raw: *const c_char, _: &str) -> crate::fault::Result<Self> {
        Ok(Self(raw))
    }
}
