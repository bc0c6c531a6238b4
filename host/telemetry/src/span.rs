//! Finished spans, encoded as they are sent: messages `Span` of the OpenTelemetry protocol, one
//! after another.
//!
//! The bytes are written by hand, because a message struct for each span, event and attribute costs
//! more than the request that it tells of. Tests decode them with prost.

use trtserver_request_trace::ids::{SpanId, TraceId};

/// Makes spans of something, with what it remembers from one to the next.
pub trait SpanEncoder: Default + Send + 'static {
    type Source;

    /// How many places of the queue it takes: as many spans as are encoded.
    fn span_count(&self, source: &Self::Source) -> usize;

    fn encode_spans(&mut self, source: &Self::Source, spans: &mut SpanBuffer);
}

/// Encoded spans behind room for the head of their message.
#[derive(Debug)]
pub struct SpanBuffer {
    bytes: Vec<u8>,
    room: usize,
    /// Where each span ends.
    ends: Vec<usize>,
    /// The span that is being written: its length comes before it.
    scratch: Vec<u8>,
    /// Where ids, times and numbers are, if that is wanted.
    marks: Option<Vec<Mark>>,
}

/// Where a value was written.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub at: usize,
    pub kind: MarkKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    TraceId,
    SpanId,
    ParentId,
    Time,
    Number,
}

/// Writes the fields of one span.
pub struct SpanWriter<'a> {
    out: &'a mut Vec<u8>,
    marks: Option<&'a mut Vec<Mark>>,
}

/// Whose work a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A part of this server.
    Internal = 1,
    /// A request of a client.
    Server = 2,
}

/// Field of the spans in their message (`ScopeSpans.spans`).
const SPANS: u8 = length_delimited(2);
/// `STATUS_CODE_ERROR`.
const STATUS_ERROR: u8 = 2;
/// Bytes of a field with a fixed 64-bit number and its tag.
const FIXED64: usize = 9;

impl SpanBuffer {
    /// `room` bytes before the spans are left for the head.
    pub fn new(room: usize) -> Self {
        let (ends, scratch) = (Vec::new(), Vec::new());
        Self { bytes: vec![0; room], room, ends, scratch, marks: None }
    }

    /// One without a head that notes where values are.
    pub fn marking() -> Self {
        Self { marks: Some(Vec::new()), ..Self::new(0) }
    }

    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The spans, and where each of them ends.
    pub fn encoded(&self) -> (&[u8], &[usize]) {
        (&self.bytes, &self.ends)
    }

    pub fn marks(&self) -> &[Mark] {
        self.marks.as_deref().unwrap_or_default()
    }

    /// Adds a span with the fields that `write` writes.
    pub fn add(&mut self, write: impl FnOnce(&mut SpanWriter<'_>)) {
        self.scratch.clear();
        let earlier = self.marks().len();
        write(&mut SpanWriter { out: &mut self.scratch, marks: self.marks.as_mut() });
        self.bytes.push(SPANS);
        put_varint(&mut self.bytes, self.scratch.len() as u64);
        let begin = self.bytes.len();
        let marks = self.marks.iter_mut().flatten().skip(earlier);
        marks.for_each(|mark| mark.at += begin);
        self.bytes.extend_from_slice(&self.scratch);
        self.ends.push(self.bytes.len());
    }

    /// Adds spans that another buffer has encoded. Returns their bytes.
    pub fn add_encoded(&mut self, bytes: &[u8], ends: &[usize]) -> &mut [u8] {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.ends.extend(ends.iter().map(|end| begin + end));
        &mut self.bytes[begin..]
    }

    /// Removes all but the first `count` spans.
    pub fn truncate(&mut self, count: usize) {
        self.ends.truncate(count);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(self.room));
    }

    /// Removes the first `count` spans: their bytes with the room before them, which then holds
    /// `spare` for the next ones. `count` is not more than there are.
    pub fn take(&mut self, count: usize, mut spare: Vec<u8>) -> Vec<u8> {
        let end = count.checked_sub(1).and_then(|last| self.ends.get(last));
        let end = end.copied().unwrap_or(self.room);
        spare.clear();
        spare.resize(self.room, 0);
        spare.extend_from_slice(&self.bytes[end..]);
        self.ends.drain(..count);
        let moved = end - self.room;
        self.ends.iter_mut().for_each(|end| *end -= moved);
        let mut taken = std::mem::replace(&mut self.bytes, spare);
        taken.truncate(end);
        taken
    }
}

impl SpanWriter<'_> {
    /// Where the span belongs; `state` is the `tracestate` of the trace, empty without one.
    pub fn ids(&mut self, trace: TraceId, span: SpanId, state: &str, parent: Option<SpanId>) {
        self.id(1, &trace.0, MarkKind::TraceId);
        self.id(2, &span.0, MarkKind::SpanId);
        if !state.is_empty() {
            self.bytes(3, state.as_bytes());
        }
        if let Some(parent) = parent {
            self.id(4, &parent.0, MarkKind::ParentId);
        }
    }

    pub fn name(&mut self, name: &str) {
        self.bytes(5, name.as_bytes());
    }

    pub fn kind(&mut self, kind: SpanKind) {
        self.out.extend_from_slice(&[varint(6), kind as u8]);
    }

    /// Nanoseconds since 1970.
    pub fn times(&mut self, start_ns: u64, end_ns: u64) {
        self.fixed64(7, start_ns);
        self.fixed64(8, end_ns);
    }

    pub fn text_attribute(&mut self, key: &str, text: &str) {
        let value = bytes_length(text.len());
        self.attribute(key, value);
        self.bytes(1, text.as_bytes());
    }

    pub fn number_attribute(&mut self, key: &str, number: i64) {
        let number = number.cast_unsigned();
        self.attribute(key, 1 + varint_length(number));
        self.out.push(varint(3));
        self.mark(self.out.len(), MarkKind::Number);
        put_varint(self.out, number);
    }

    /// A point in time, in nanoseconds since 1970.
    pub fn event(&mut self, name: &str, at_ns: u64) {
        self.begin(11, FIXED64 + bytes_length(name.len()));
        self.fixed64(1, at_ns);
        self.bytes(2, name.as_bytes());
    }

    /// The work failed, with this text.
    pub fn error(&mut self, message: &str) {
        self.begin(15, bytes_length(message.len()) + 2);
        self.bytes(2, message.as_bytes());
        self.out.extend_from_slice(&[varint(3), STATUS_ERROR]);
    }

    /// Everything of an attribute up to its value of `length` bytes.
    fn attribute(&mut self, key: &str, length: usize) {
        self.begin(9, bytes_length(key.len()) + bytes_length(length));
        self.bytes(1, key.as_bytes());
        self.begin(2, length);
    }

    fn id(&mut self, field: u8, bytes: &[u8], kind: MarkKind) {
        self.bytes(field, bytes);
        self.mark(self.out.len() - bytes.len(), kind);
    }

    fn mark(&mut self, at: usize, kind: MarkKind) {
        if let Some(marks) = &mut self.marks {
            marks.push(Mark { at, kind });
        }
    }

    fn bytes(&mut self, field: u8, bytes: &[u8]) {
        self.begin(field, bytes.len());
        self.out.extend_from_slice(bytes);
    }

    fn fixed64(&mut self, field: u8, number: u64) {
        self.out.push(field << 3 | 1);
        self.mark(self.out.len(), MarkKind::Time);
        self.out.extend_from_slice(&number.to_le_bytes());
    }

    fn begin(&mut self, field: u8, length: usize) {
        self.out.push(length_delimited(field));
        put_varint(self.out, length as u64);
    }
}

/// Tag of a field with a number of variable length. Fields up to 15 have a tag of one byte.
const fn varint(field: u8) -> u8 {
    field << 3
}

/// Tag of a field with a length: text, bytes, a message.
pub(crate) const fn length_delimited(field: u8) -> u8 {
    field << 3 | 2
}

/// Bytes of a field with a length, its tag and the length itself.
pub(crate) fn bytes_length(length: usize) -> usize {
    1 + varint_length(length as u64) + length
}

pub(crate) fn varint_length(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes a number over one of the same length.
pub(crate) fn replace_varint(out: &mut [u8], mut number: u64) {
    for byte in out.iter_mut().take(varint_length(number)) {
        *byte = if number < 0x80 { number as u8 } else { number as u8 | 0x80 };
        number >>= 7;
    }
}
