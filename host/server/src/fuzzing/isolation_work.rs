//! What the process of an isolated model sends over a work connection: responses to requests.

use prost::Message;
use std::collections::HashMap;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use trtserver_base::arena::ring::{Kind, MAX_RECORD};
use trtserver_base::clock::now_ns;
use trtserver_base::stats::{BatchExecution, VersionStats};
use trtserver_isolation::messages::{OutputMessage, ResponseData, ResponseMessage, param};
use trtserver_isolation::testing::{KillReason, MESSAGE, ON_SOCKET, WorkRig};
use trtserver_request::testing::request_with;
use trtserver_request::{
    DType, InferResponse, ModelSignature, ParameterValue, RequestContext, RequestedOutput,
    TensorSpec,
};

/// The block that the child has allocated begins so; the rest of its arena is zero. Two numbers,
/// then three strings.
const BLOCK: &[u8] = b"\0\0\x80\x3f\0\0\0\x40\x01\0\0\0a\x02\0\0\0bc\0\0\0\0";
/// Outputs by position. The last one is not in the model's signature.
const NAMES: [&str; 4] = ["FP", "TEXT", "INT", "GONE"];
/// The outputs that each of three outstanding requests asks for.
const REQUESTED: [&[usize]; 3] = [&[0], &[0, 1], &[1]];

/// Records and messages over a work connection, see [`records`]. A second reading of the messages
/// says what must become of each request; outputs that are delivered lie in the child's arena, and
/// each reference to a block of it is released once.
pub fn isolation_work(bytes: &[u8]) {
    let records = records(bytes);
    let began = now_ns();
    let stats = Arc::new(VersionStats::new(1));
    let execution = Arc::new(BatchExecution::new(0, 3, 3, began, &Arc::default()));
    let spec = |at: usize, dtype, dims: &[i64]| TensorSpec::new(NAMES[at], dtype, dims);
    let text = spec(1, DType::String, &[-1]);
    let outputs = vec![spec(0, DType::Fp32, &[-1]), text, spec(2, DType::Int32, &[1])];
    let signature = Arc::new(ModelSignature { model: "m".into(), outputs, ..Default::default() });
    let (mut requests, mut recorded) = (Vec::new(), Vec::new());
    for requested in REQUESTED {
        let outputs = requested.iter().map(|index| RequestedOutput::new(*index, 0));
        let context = RequestContext {
            signature: Arc::clone(&signature),
            stats: Some(Arc::clone(&stats)),
            received_ns: began,
            batch: 1,
            outputs: outputs.collect(),
            stream: None,
            waits: false,
            wording: trtserver_request::context::ErrorWording::default(),
            used_memory: None,
        };
        let (request, responses) = request_with(context, "", []);
        request.responder.queued(began);
        request.responder.executed_in(Arc::clone(&execution));
        requests.push(request);
        recorded.push(responses);
    }
    let mut rig = WorkRig::new(&NAMES, requests, None);
    let arena = std::fs::File::from(fine(rig.outputs.file().try_clone_to_owned()));
    let block = rig.share(BLOCK.len());
    rig.outputs.unshare(block.slot);
    fine(arena.write_all_at(BLOCK, block.offset));
    let end = fine(arena.metadata()).len();
    // The first block begins where the table of reference counts ends.
    let mut expected = ExpectedResponses {
        arena: &arena,
        memory: block.offset..end,
        requests: Default::default(),
        released: HashMap::new(),
    };
    let violation = expected.read(&records).err();
    for (kind, message) in &records {
        match *kind {
            ON_SOCKET => {
                rig.push(ON_SOCKET, &[]);
                if !message.is_empty() {
                    fine((&rig.raw).write_all(&(message.len() as u32).to_ne_bytes()));
                    fine((&rig.raw).write_all(message));
                }
            }
            kind => rig.push(kind, message),
        }
    }
    match (rig.finish(), violation) {
        (None, None) | (Some(KillReason::ProtocolViolation(_)), Some(_)) => {}
        (killed, violation) => panic!("killed because of {killed:?}, expected {violation:?}"),
    }
    for (responses, expected) in recorded.iter().zip(expected.finish()) {
        let responses = std::mem::take(&mut *responses.lock());
        let found = responses
            .into_iter()
            .map(|(result, last)| (ResponseOutcome::from_result(result), last));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
    // The responses, which hold references, were dropped.
    for (slot, released) in &expected.released {
        let mut count = [0; 4];
        fine(arena.read_exact_at(&mut count, u64::from(*slot) * 4));
        assert_eq!(u32::from_ne_bytes(count), 0u32.wrapping_sub(*released), "slot {slot}");
    }
    let (elapsed, total) = (now_ns() - began, stats.snapshot().total());
    for span in [total.compute_input, total.compute_infer, total.compute_output] {
        assert!(span.ns <= elapsed * span.count, "{span:?} within {elapsed} ns");
    }
}

/// Records, each behind its kind and the length of its message (two bytes), as far as the ring
/// takes them. A message on the socket may be missing, where the length is zero.
fn records(mut bytes: &[u8]) -> Vec<(Kind, &[u8])> {
    let mut records = Vec::new();
    let mut free = 3 * MAX_RECORD;
    while let Some(([kind, length @ ..], rest)) = bytes.split_first_chunk::<3>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len()).min(MAX_RECORD);
        let (message, rest) = rest.split_at(length);
        bytes = rest;
        let Some(left) = free.checked_sub(length + 16) else { break };
        free = left;
        records.push((Kind::from(*kind), message));
    }
    records
}

/// What a request gets.
#[derive(Debug, PartialEq)]
enum ResponseOutcome {
    /// Name, shape and contents of each output, and the parameters.
    Outputs(Vec<(String, Vec<i64>, Vec<u8>)>, Vec<String>),
    /// The end of the stream.
    End,
    Error,
}

impl ResponseOutcome {
    fn from_result(result: trtserver_base::error::Result<Option<InferResponse>>) -> Self {
        let response = match result {
            Err(_) => return Self::Error,
            Ok(None) => return Self::End,
            Ok(Some(response)) => response,
        };
        let outputs = response.outputs.iter();
        let outputs =
            outputs.map(|o| (o.name.to_string(), o.shape.to_vec(), o.data.payload().to_vec()));
        let parameters = response.parameters.iter().map(|(key, value)| match value {
            ParameterValue::String(text) => format!("{key}={text}"),
            ParameterValue::Int(number) => format!("{key}={number}"),
            ParameterValue::Bool(yes) => format!("{key}={yes}"),
            ParameterValue::Double(number) => format!("{key}={number}"),
        });
        Self::Outputs(outputs.collect(), parameters.collect())
    }
}

/// A second, plain reading of what a child sends over a work connection.
struct ExpectedResponses<'a> {
    arena: &'a std::fs::File,
    /// Bounds of the memory in which outputs may lie.
    memory: std::ops::Range<u64>,
    requests: [RequestOutcomes; 3],
    /// References released, by slot.
    released: HashMap<u32, u32>,
}

#[derive(Default)]
struct RequestOutcomes {
    /// With whether they are final; there is at most one final outcome, the last.
    outcomes: Vec<(ResponseOutcome, bool)>,
    /// The child must not respond any more.
    ended: bool,
}

impl RequestOutcomes {
    fn add(&mut self, outcome: ResponseOutcome, last: bool) {
        let last = last || outcome == ResponseOutcome::Error;
        if self.outcomes.last().is_none_or(|(_, last)| !last) {
            self.outcomes.push((outcome, last));
        }
    }
}

impl ExpectedResponses<'_> {
    /// Reads messages up to a violation of the protocol, or up to one on the socket that is
    /// missing.
    fn read(&mut self, records: &[(Kind, &[u8])]) -> Result<(), String> {
        let on_socket = records.iter().filter(|(kind, m)| *kind == ON_SOCKET && !m.is_empty());
        let mut on_socket = on_socket.map(|(_, message)| *message);
        for (kind, bytes) in records {
            let message = match *kind {
                MESSAGE => bytes,
                ON_SOCKET => match on_socket.next() {
                    Some(message) => message,
                    None => return Ok(()),
                },
                kind => return Err(format!("kind {kind}")),
            };
            let response = ResponseMessage::decode(message).map_err(|e| e.to_string())?;
            let encoded = response.encode_to_vec();
            let decoded = ResponseMessage::decode(&*encoded).map(|m| m.encode_to_vec());
            assert_eq!(decoded, Ok(encoded));
            self.response(response)?;
        }
        Ok(())
    }

    fn response(&mut self, response: ResponseMessage) -> Result<(), String> {
        let ResponseMessage { key, last, data, failure, .. } = response;
        let last = last || failure.is_some();
        let outputs = data.iter().flat_map(|data| &data.outputs);
        // No request has a destination: such an output is an error of its request.
        let in_arena = |output: &&OutputMessage| {
            !output.in_destination && (output.offset, output.bytes) != (0, 0)
        };
        for output in outputs.clone().filter(in_arena) {
            let end = output.offset.checked_add(output.bytes);
            let inside = output.offset >= self.memory.start
                && end.is_some_and(|end| end <= self.memory.end)
                && u64::from(output.slot) < self.memory.start / 4;
            if !inside {
                return Err(format!("{output:?} is not in the arena"));
            }
            *self.released.entry(output.slot).or_default() += 1;
        }
        if outputs.clone().any(|output| output.index as usize >= NAMES.len()) {
            return Err("an output without a name".into());
        }
        if failure.is_none() && data.is_none() && !last {
            return Err("nothing in it".into());
        }
        let at = (key as usize).wrapping_sub(1);
        if self.requests.get(at).is_none_or(|request| request.ended) {
            return Err(format!("request {key} is not outstanding"));
        }
        // After that of its request, whose responses it ends.
        let broken = failure.as_ref().is_some_and(|failure| failure.model_broken);
        let outcome = match (failure, data) {
            (Some(_), _) => ResponseOutcome::Error,
            (None, None) => ResponseOutcome::End,
            (None, Some(data)) => self.outputs(at, &data).unwrap_or(ResponseOutcome::Error),
        };
        self.requests[at].ended = last;
        self.requests[at].add(outcome, last);
        if broken { Err("its model is broken".into()) } else { Ok(()) }
    }

    /// The outputs of a response to request `at`; `None` if they do not agree with the signature.
    fn outputs(&self, at: usize, data: &ResponseData) -> Option<ResponseOutcome> {
        let mut found: [Option<&OutputMessage>; 2] = [None, None];
        for output in &data.outputs {
            let count = match (output.index, output.dtype, output.shape.as_slice()) {
                // FP32 and BYTES of variable length, an INT32 that no request asks for.
                (0, 11, [n]) | (1, 13, [n]) => u64::try_from(*n).ok()?,
                (2, 8, [1]) => 1,
                _ => return None,
            };
            let fits = output.index == 1 || count.checked_mul(4) == Some(output.bytes);
            let index = output.index as usize;
            let requested = REQUESTED[at].contains(&index);
            if output.in_destination && requested {
                return None;
            }
            if !fits || requested && found[index].replace(output).is_some() {
                return None;
            }
        }
        let outputs = REQUESTED[at].iter().map(|index| {
            let output = found[*index]?;
            let mut contents = vec![0; output.bytes as usize];
            fine(self.arena.read_exact_at(&mut contents, output.offset));
            let valid = output.dtype != 13 || strings(&contents, output.shape[0]);
            valid.then(|| (NAMES[*index].to_owned(), output.shape.clone(), contents))
        });
        let outputs = outputs.collect::<Option<_>>()?;
        let parameters = data.params.iter().filter_map(|parameter| {
            let key = &parameter.key;
            Some(match parameter.value.as_ref()? {
                param::ParamValue::String(text) => format!("{key}={text}"),
                param::ParamValue::Int(number) => format!("{key}={number}"),
                param::ParamValue::Bool(yes) => format!("{key}={yes}"),
                param::ParamValue::Double(number) => format!("{key}={number}"),
            })
        });
        Some(ResponseOutcome::Outputs(outputs, parameters.collect()))
    }

    /// The child is gone: requests without a final response fail.
    fn finish(&mut self) -> [Vec<(ResponseOutcome, bool)>; 3] {
        self.requests.each_mut().map(|request| {
            request.add(ResponseOutcome::Error, true);
            std::mem::take(&mut request.outcomes)
        })
    }
}

/// Whether `count` strings, each behind its length, and at most three further bytes are all there
/// is.
fn strings(mut data: &[u8], count: i64) -> bool {
    for _ in 0..count {
        let Some((length, rest)) = data.split_first_chunk() else { return false };
        let Some(rest) = rest.get(u32::from_le_bytes(*length) as usize..) else { return false };
        data = rest;
    }
    data.len() < 4
}

/// The value; anything else is a fault of the rig.
fn fine<T>(result: std::io::Result<T>) -> T {
    result.unwrap_or_else(|e| panic!("{e}"))
}
