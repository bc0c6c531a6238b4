//! Encoded spans of traces that look alike: most requests to a model differ in ids and times only, so
//! the bytes of an earlier one are copied and those replaced.

use crate::request_spans::part_of;
use crate::span::{MarkKind, SpanBuffer, replace_varint, varint_length};
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_request_trace::{Activity, RequestTrace, SpanId, SpanPart, TraceReason};

/// Most templates: models, versions and ways that requests take. Further ones displace all.
const MAX_TEMPLATES: usize = 64;
/// A longer trace has no template.
const MAX_TIMES: usize = 32;

/// The spans of a request without steps, without an id or state of the client, and without an error.
struct SpanTemplate {
    model: Arc<str>,
    version: i64,
    activities: Vec<Activity>,
    is_executed: bool,
    has_caller: bool,
    /// Bytes of the number of the trace.
    number_length: usize,
    bytes: Vec<u8>,
    /// Where each span ends.
    ends: SmallVec<[usize; 3]>,
    patches: Vec<Patch>,
}

/// Bytes that differ from trace to trace.
struct Patch {
    at: usize,
    value: PatchValue,
}

#[derive(Clone, Copy)]
enum PatchValue {
    TraceId,
    Span(SpanPart),
    /// The caller's span.
    Caller,
    /// Of the client's request.
    Start,
    End,
    /// This one of the times.
    Time(usize),
    /// The later one of two.
    Later(usize, usize),
    /// The number of the trace.
    Number,
}

/// The templates that there are so far.
#[derive(Default)]
pub struct SpanTemplates(Vec<SpanTemplate>);

impl SpanTemplates {
    /// Adds the spans of a trace by its template. `write` writes them without one.
    pub fn encode(
        &mut self,
        trace: &RequestTrace,
        spans: &mut SpanBuffer,
        write: impl Fn(&mut SpanBuffer),
    ) {
        if !is_usual(trace) {
            return write(spans);
        }
        if let Some(template) = self.0.iter().find(|template| template.fits(trace)) {
            return template.fill(trace, spans);
        }
        let mut marked = SpanBuffer::marking();
        write(&mut marked);
        if let Some(template) = SpanTemplate::new(trace, &marked) {
            if self.0.len() == MAX_TEMPLATES {
                self.0.clear();
            }
            template.fill(trace, spans);
            self.0.push(template);
        } else {
            write(spans);
        }
    }
}

/// It has nothing that only few traces have.
fn is_usual(trace: &RequestTrace) -> bool {
    let [span] = &trace.spans[..] else { return false };
    span.failure.is_none()
        && span.request_id.is_empty()
        && span.timestamps.len() <= MAX_TIMES
        && (trace.sampled.is_some() || trace.reason == TraceReason::Sampled)
        && trace.context.as_ref().is_none_or(|context| context.state.is_empty())
}

impl SpanTemplate {
    /// `None`: a backend has reported times, whose names may be new each time.
    fn new(trace: &RequestTrace, marked: &SpanBuffer) -> Option<Self> {
        let root = trace.root();
        let activities: Vec<_> = root.timestamps.iter().map(|(a, _)| a.clone()).collect();
        if activities.iter().any(|activity| activity.known_name().is_none()) {
            return None;
        }
        let (bytes, ends) = marked.encoded();
        let mut patches = Vec::new();
        for (place, end) in ends.iter().enumerate() {
            let part = [SpanPart::Request, SpanPart::Model, SpanPart::Compute][place];
            let begin = if place == 0 { 0 } else { ends[place - 1] };
            let marks = marked.marks().iter().filter(|mark| (begin..*end).contains(&mark.at));
            let mut times = time_values(&activities, part).into_iter();
            let mut numbers = 0;
            for mark in marks {
                let value = match mark.kind {
                    MarkKind::TraceId => PatchValue::TraceId,
                    MarkKind::SpanId => PatchValue::Span(part),
                    MarkKind::ParentId => match part {
                        SpanPart::Request => PatchValue::Caller,
                        SpanPart::Model => PatchValue::Span(SpanPart::Request),
                        SpanPart::Compute => PatchValue::Span(SpanPart::Model),
                    },
                    MarkKind::Time => times.next()?,
                    // Version, number, number of the parent, which it does not have.
                    MarkKind::Number => {
                        numbers += 1;
                        if numbers != 2 {
                            continue;
                        }
                        PatchValue::Number
                    }
                };
                patches.push(Patch { at: mark.at, value });
            }
        }
        Some(Self {
            model: Arc::clone(&root.model),
            version: root.version,
            activities,
            is_executed: root.batch.is_some(),
            has_caller: trace.context.is_some(),
            number_length: varint_length(root.id),
            bytes: bytes.to_vec(),
            ends: ends.iter().copied().collect(),
            patches,
        })
    }

    fn fits(&self, trace: &RequestTrace) -> bool {
        let root = trace.root();
        Arc::ptr_eq(&self.model, &root.model)
            && self.version == root.version
            && self.is_executed == root.batch.is_some()
            && self.has_caller == trace.context.is_some()
            && self.number_length == varint_length(root.id)
            && self.activities.len() == root.timestamps.len()
            && self.activities.iter().zip(&root.timestamps).all(|(own, (other, _))| own == other)
    }

    fn fill(&self, trace: &RequestTrace, spans: &mut SpanBuffer) {
        let root = trace.root();
        let own = trace.ids.ids(root.id);
        let caller = trace.context.as_ref();
        let trace_id = caller.map_or_else(|| own.trace_id(), |caller| caller.trace_id);
        let caller = caller.map_or(SpanId([0; 8]), |caller| caller.span_id);
        let parts = [SpanPart::Request, SpanPart::Model, SpanPart::Compute];
        let ids = parts.map(|part| own.span_id(part).0);
        let times = &root.timestamps;
        let bytes = spans.add_encoded(&self.bytes, &self.ends);
        for Patch { at, value } in &self.patches {
            let put_time = |ns: u64| trace.unix_ns(ns).to_le_bytes();
            let eight = match *value {
                PatchValue::TraceId => {
                    bytes[*at..at + 16].copy_from_slice(&trace_id.0);
                    continue;
                }
                PatchValue::Number => {
                    replace_varint(&mut bytes[*at..], root.id);
                    continue;
                }
                PatchValue::Span(part) => ids[part as usize],
                PatchValue::Caller => caller.0,
                PatchValue::Start => put_time(trace.start_ns),
                PatchValue::End => put_time(trace.end_ns.max(trace.start_ns)),
                PatchValue::Time(index) => put_time(times[index].1),
                PatchValue::Later(a, b) => put_time(times[a].1.max(times[b].1)),
            };
            bytes[*at..at + 8].copy_from_slice(&eight);
        }
    }
}

/// The times of a span in the order in which they are written: start, end, events.
fn time_values(activities: &[Activity], part: SpanPart) -> Vec<PatchValue> {
    let find = |wanted: Activity| activities.iter().position(|activity| *activity == wanted);
    let range = |start: Activity, end: Activity| {
        let start = find(start).unwrap_or_default();
        [PatchValue::Time(start), PatchValue::Later(find(end).unwrap_or(start), start)]
    };
    let mut values = match part {
        SpanPart::Request => [PatchValue::Start, PatchValue::End],
        SpanPart::Model => range(Activity::RequestStart, Activity::RequestEnd),
        SpanPart::Compute => range(Activity::ComputeStart, Activity::ComputeEnd),
    }
    .to_vec();
    let events = activities.iter().enumerate().filter(|(_, activity)| part_of(activity) == part);
    values.extend(events.map(|(index, _)| PatchValue::Time(index)));
    values
}

#[cfg(test)]
#[path = "span_template_tests.rs"]
mod tests;
