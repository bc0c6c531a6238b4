//! Percent-encoding of names in paths.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// What no path may contain.
const PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'?').add(b'#').add(b'"').add(b'<').add(b'>').add(b'`');

pub(crate) fn encode_segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// Encodes no more than necessary: v1 servers compare paths as they are.
pub(crate) fn encode_path(name: &str) -> String {
    utf8_percent_encode(name, PATH).to_string()
}

#[cfg(test)]
#[path = "percent_tests.rs"]
mod tests;
