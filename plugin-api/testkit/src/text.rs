//! Strings of the interface.

use std::ffi::{CStr, CString};
use trtserver_plugin_api::abi::types::{Param, Str, param};

pub const EMPTY: Str = literal_str(c"");

pub const fn literal_str(text: &'static CStr) -> Str {
    Str { p: text.as_ptr().cast(), n: text.to_bytes().len() as u64 }
}

/// NUL-terminated text; inner NULs become spaces.
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

pub fn as_str(text: &CString) -> Str {
    Str { p: text.as_ptr().cast(), n: text.as_bytes().len() as u64 }
}

/// Copies a string of the backend; invalid UTF-8 is replaced.
///
/// # Safety
/// `s.p` is null or valid for `s.n` bytes.
pub unsafe fn read_str(s: Str) -> String {
    if s.p.is_null() || s.n == 0 {
        return String::new();
    }
    // SAFETY: by the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(s.p, s.n as usize) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// String parameters with the texts that they point at.
#[derive(Default)]
pub struct Params {
    _texts: Vec<(CString, CString)>,
    pub list: Vec<Param>,
}

impl Params {
    pub fn new(pairs: &[(String, String)]) -> Self {
        let texts: Vec<_> = pairs.iter().map(|(key, value)| (c_text(key), c_text(value))).collect();
        let param = |(key, value): &(CString, CString)| Param {
            key: as_str(key),
            kind: param::STRING,
            pad: 0,
            text: as_str(value),
            bits: 0,
        };
        Self { list: texts.iter().map(param).collect(), _texts: texts }
    }
}
