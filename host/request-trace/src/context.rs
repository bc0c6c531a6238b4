//! W3C trace context: reads and writes `traceparent` and `tracestate`.
//!
//! A `traceparent` that is not valid counts as absent, and a `tracestate` that is not valid is
//! dropped alone, as the standard demands: a request is never refused for them.

use crate::ids::{SpanId, TraceId, parse_hex};
use std::fmt;

/// Length of a `traceparent` of version 00.
const PARENT_LENGTH: usize = 55;
/// Most entries of a `tracestate`.
const MAX_STATE_ENTRIES: usize = 32;
/// A longer `tracestate` loses entries.
const MAX_STATE_LENGTH: usize = 512;
/// Entries that are longer are lost first.
const LONG_STATE_ENTRY: usize = 128;
/// Bit of the flags: the caller records its span.
const SAMPLED: u8 = 1;

/// The caller's span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    /// The caller records its span.
    pub sampled: bool,
    /// `tracestate`, which is passed on; empty without one.
    pub state: String,
}

impl TraceContext {
    /// The context of a request with these headers. `None` without a valid `traceparent`; two of
    /// them are not valid either.
    pub fn from_headers<'a>(
        parents: impl IntoIterator<Item = &'a [u8]>,
        states: impl IntoIterator<Item = &'a [u8]>,
    ) -> Option<Self> {
        let mut parents = parents.into_iter();
        let (parent, None) = (parents.next()?, parents.next()) else { return None };
        let (trace_id, span_id, sampled) = parse_traceparent(parent)?;
        let state = parse_tracestate(states).unwrap_or_default();
        Some(Self { trace_id, span_id, sampled, state })
    }

    /// As [`TraceContext::from_headers`] with one header of each kind.
    pub fn parse(parent: &[u8], state: Option<&[u8]>) -> Option<Self> {
        Self::from_headers([parent], state)
    }

    /// The value of a `traceparent` header.
    pub fn traceparent(&self) -> String {
        let flags = if self.sampled { SAMPLED } else { 0 };
        format!("00-{}-{}-{flags:02x}", self.trace_id, self.span_id)
    }

    /// `{"traceparent":…,"tracestate":…}`, as Python backends get it.
    pub fn to_json(&self) -> String {
        let mut fields = serde_json::Map::new();
        fields.insert("traceparent".to_owned(), self.traceparent().into());
        if !self.state.is_empty() {
            fields.insert("tracestate".to_owned(), self.state.clone().into());
        }
        serde_json::Value::Object(fields).to_string()
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.traceparent())
    }
}

/// Trace, caller's span, and whether the caller records it.
fn parse_traceparent(value: &[u8]) -> Option<(TraceId, SpanId, bool)> {
    let value = value.trim_ascii();
    let (head, rest) = value.split_at_checked(PARENT_LENGTH)?;
    let [version] = parse_hex(&head[..2])?;
    let is_valid = match version {
        0 => rest.is_empty(),
        0xff => false,
        // Later versions may append fields.
        _ => matches!(rest.first(), None | Some(b'-')),
    };
    if !is_valid || [head[2], head[35], head[52]] != [b'-'; 3] {
        return None;
    }
    let [flags] = parse_hex(&head[53..])?;
    let (trace_id, span_id) = (TraceId::from_hex(&head[3..35])?, SpanId::from_hex(&head[36..52])?);
    Some((trace_id, span_id, flags & SAMPLED != 0))
}

/// Entries of all `tracestate` headers in order. `None` if they are not valid.
fn parse_tracestate<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<String> {
    let mut entries: Vec<&[u8]> = Vec::new();
    for value in values {
        for entry in value.split(|byte| *byte == b',').map(trim_blanks) {
            if entry.is_empty() {
                continue;
            }
            let split = entry.iter().position(|byte| *byte == b'=')?;
            let (key, value) = (&entry[..split], &entry[split + 1..]);
            let is_repeated = || entries.iter().any(|other| other.starts_with(&entry[..=split]));
            let is_full = entries.len() == MAX_STATE_ENTRIES;
            if !is_state_key(key) || !is_state_value(value) || is_full || is_repeated() {
                return None;
            }
            entries.push(entry);
        }
    }
    let length = |entries: &[&[u8]]| {
        entries.iter().map(|entry| entry.len() + 1).sum::<usize>().saturating_sub(1)
    };
    while length(&entries) > MAX_STATE_LENGTH {
        let long = entries.iter().rposition(|entry| entry.len() > LONG_STATE_ENTRY);
        entries.remove(long.unwrap_or(entries.len() - 1));
    }
    String::from_utf8(entries.join(&b',')).ok()
}

fn trim_blanks(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// `vendor` or `tenant@vendor`.
fn is_state_key(key: &[u8]) -> bool {
    let is_name = |name: &[u8], max: usize, starts_with_digit: bool| {
        let first = name.first().copied().unwrap_or_default();
        name.len() <= max
            && (first.is_ascii_lowercase() || starts_with_digit && first.is_ascii_digit())
            && name.iter().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/".contains(byte)
            })
    };
    match key.iter().position(|byte| *byte == b'@') {
        Some(at) => is_name(&key[..at], 241, true) && is_name(&key[at + 1..], 14, false),
        None => is_name(key, 256, true),
    }
}

/// Printable ASCII without `=`; commas separate entries, blanks around them are not part of one.
fn is_state_value(value: &[u8]) -> bool {
    (1..=256).contains(&value.len())
        && value.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'=')
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
