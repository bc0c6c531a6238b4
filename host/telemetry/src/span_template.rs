//! Encoded spans of traces that look alike: most requests to a model differ in ids and times only, so
//! the bytes of an earlier one are copied and those replaced.

use crate::request_spans::part_of;
use crate::span::{Mark, MarkKind, SpanBuffer, replace_varint, varint_length};
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_request_trace::{Activity, NumberIds, RequestTrace, SpanPart, TraceReason};

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
    /// Where the id of the trace is.
    trace_ids: SmallVec<[usize; 3]>,
    /// Where the number of the trace is.
    number: Option<usize>,
    /// Everything else that differs from trace to trace.
    patches: Vec<Patch>,
    /// Which times are the ends of the spans of the model and of its execution: the later one of
    /// two.
    span_ends: [(usize, usize); 2],
}

/// Eight bytes that differ from trace to trace.
#[derive(Clone, Copy)]
struct Patch {
    at: u32,
    /// Which of the [`TraceValues`].
    value: u32,
}

/// Values of a trace as they are written: the ids of its spans by [`SpanPart`], those below, and
/// its times.
type TraceValues = [[u8; 8]; TIMES + MAX_TIMES];

/// The caller's span.
const CALLER: usize = 3;
/// Start and end of the client's request.
const START: usize = 4;
const END: usize = 5;
/// The ends of the spans of the model and of its execution.
const SPAN_ENDS: usize = 6;
const TIMES: usize = 8;

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
        let mut template = Self {
            model: Arc::clone(&root.model),
            version: root.version,
            is_executed: root.batch.is_some(),
            has_caller: trace.context.is_some(),
            number_length: varint_length(root.id),
            bytes: bytes.to_vec(),
            ends: ends.iter().copied().collect(),
            trace_ids: SmallVec::new(),
            number: None,
            patches: Vec::new(),
            span_ends: span_ends(&activities),
            activities,
        };
        let parts = [SpanPart::Request, SpanPart::Model, SpanPart::Compute];
        let mut begin = 0;
        for (part, end) in parts.into_iter().zip(ends) {
            let is_inside = |mark: &&Mark| (begin..*end).contains(&mark.at);
            template.add_patches(part, marked.marks().iter().filter(is_inside))?;
            begin = *end;
        }
        Some(template)
    }

    /// Adds what differs from trace to trace in the span of `part`, whose marks these are.
    fn add_patches<'a>(
        &mut self,
        part: SpanPart,
        marks: impl Iterator<Item = &'a Mark>,
    ) -> Option<()> {
        let mut times = time_values(&self.activities, part).into_iter();
        let mut numbers = 0;
        for Mark { at, kind } in marks {
            let value = match kind {
                MarkKind::TraceId => {
                    self.trace_ids.push(*at);
                    continue;
                }
                // Version, number, number of the parent, which it does not have.
                MarkKind::Number => {
                    numbers += 1;
                    if numbers == 2 {
                        self.number = Some(*at);
                    }
                    continue;
                }
                MarkKind::SpanId => part as usize,
                MarkKind::ParentId => match part {
                    SpanPart::Request => CALLER,
                    SpanPart::Model => SpanPart::Request as usize,
                    SpanPart::Compute => SpanPart::Model as usize,
                },
                MarkKind::Time => times.next()?,
            };
            self.patches.push(Patch { at: u32::try_from(*at).ok()?, value: value as u32 });
        }
        Some(())
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
        let values = self.values(trace, own);
        let bytes = spans.add_encoded(&self.bytes, &self.ends);
        for at in &self.trace_ids {
            bytes[*at..at + 16].copy_from_slice(&trace_id.0);
        }
        if let Some(at) = self.number {
            replace_varint(&mut bytes[at..], root.id);
        }
        for Patch { at, value } in &self.patches {
            let at = *at as usize;
            bytes[at..at + 8].copy_from_slice(&values[*value as usize]);
        }
    }

    fn values(&self, trace: &RequestTrace, ids: NumberIds) -> TraceValues {
        let mut values = [[0; 8]; TIMES + MAX_TIMES];
        for part in [SpanPart::Request, SpanPart::Model, SpanPart::Compute] {
            values[part as usize] = ids.span_id(part).0;
        }
        if let Some(caller) = &trace.context {
            values[CALLER] = caller.span_id.0;
        }
        let unix = |ns: u64| trace.unix_ns(ns).to_le_bytes();
        values[START] = unix(trace.start_ns);
        values[END] = unix(trace.end_ns.max(trace.start_ns));
        let times = &trace.root().timestamps[..self.activities.len()];
        let ends = values[SPAN_ENDS..].iter_mut().zip(self.span_ends);
        if !times.is_empty() {
            ends.for_each(|(value, (a, b))| *value = unix(times[a].1.max(times[b].1)));
        }
        for (value, (_, ns)) in values[TIMES..].iter_mut().zip(times) {
            *value = unix(*ns);
        }
        values
    }
}

/// The end of the span of the model, or its start if that was later, and of its execution.
fn span_ends(activities: &[Activity]) -> [(usize, usize); 2] {
    let find = |wanted: Activity| activities.iter().position(|activity| *activity == wanted);
    let range = |start: Activity, end: Activity| {
        let start = find(start).unwrap_or_default();
        (find(end).unwrap_or(start), start)
    };
    [
        range(Activity::RequestStart, Activity::RequestEnd),
        range(Activity::ComputeStart, Activity::ComputeEnd),
    ]
}

/// Which values the times of a span are, in the order in which they are written: start, end,
/// events.
fn time_values(activities: &[Activity], part: SpanPart) -> Vec<usize> {
    let mut values = match part {
        SpanPart::Request => vec![START, END],
        SpanPart::Model | SpanPart::Compute => {
            let index = usize::from(part == SpanPart::Compute);
            vec![TIMES + span_ends(activities)[index].1, SPAN_ENDS + index]
        }
    };
    let events = activities.iter().enumerate().filter(|(_, activity)| part_of(activity) == part);
    values.extend(events.map(|(index, _)| TIMES + index));
    values
}

#[cfg(test)]
#[path = "span_template_tests.rs"]
pub mod tests;
