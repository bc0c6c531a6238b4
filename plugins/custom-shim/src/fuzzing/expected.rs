//! What a scripted library may expect: which callbacks succeed, what they return, and what requests
//! get in the end.

use crate::generation::Generation;
use crate::session::ZeroBlock;
use std::collections::HashMap;
use std::ffi::{CStr, c_int};
use trtserver_plugin_api::abi::types::{self, code, dtype};
use trtserver_plugin_testkit::{Outcome, Request, bytes};

/// Parts of the input `IN` of each request. The last request stands for an idle sequence slot.
const PARTS: [&[&[i32]]; 3] = [&[&[1], &[2, 3], &[], &[4, 5, 6]], &[&[7, 8, 9, 10]], &[&[11]]];
/// Rows of each request, and the outputs that it asks for.
const ROWS: [i64; 3] = [1, 2, 1];
const REQUESTED: [&[&CStr]; 3] = [&[c"OUT"], &[c"OUT", c"PAIR", c"TEXT"], &[c"OUT"]];
const NULL_REQUEST: usize = 2;
/// Ranks above this one are refused unread.
const MAX_RANK: usize = types::MAX_RANK as usize;

pub fn requests() -> Vec<Request> {
    let request = |at: usize| {
        let parts: Vec<_> = PARTS[at].iter().map(|part| bytes(part)).collect();
        let parts: Vec<_> = parts.iter().map(Vec::as_slice).collect();
        let mut request = Request::new(ROWS[at] as u32).unchecked();
        request.correlation_id = if at == NULL_REQUEST { 0 } else { 5 + at as u64 };
        let shape = [ROWS[at], PARTS[at].concat().len() as i64 / ROWS[at]];
        let request = request.input_parts("IN", dtype::INT32, &shape, &parts);
        let names = REQUESTED[at].iter().map(|name| name.to_string_lossy());
        names.fold(request, |request, name| request.request_output(&name))
    };
    (0..3).map(request).collect()
}

/// The context that a callback gets.
#[derive(Clone, Copy)]
pub enum CallContext {
    Payload(usize),
    Null,
    /// The context of the last payload of the previous execution.
    Stale,
    /// The one behind the last payload's.
    Next,
    /// A context of another instance.
    Other,
    Garbage,
}

impl CallContext {
    pub fn resolve(self, expected: &ExpectedCalls) -> usize {
        match self {
            Self::Payload(at) => expected.base + at,
            Self::Null => 0,
            Self::Stale => expected.base - 1,
            Self::Next => expected.base + 3,
            Self::Other => expected.base + (1 << 48),
            Self::Garbage => usize::MAX,
        }
    }
}

pub enum LibraryCall {
    Input(GetInput),
    Output(GetOutput),
    /// An error of one payload.
    Fail {
        payload: usize,
        code: c_int,
    },
    /// The result of the execution.
    Return(c_int),
}

pub struct GetInput {
    pub context: CallContext,
    pub name: Option<&'static CStr>,
    pub hint: u64,
    pub null_result: bool,
}

pub struct GetOutput {
    pub context: CallContext,
    pub name: Option<&'static CStr>,
    pub rank: usize,
    pub dims: Vec<i64>,
    pub bytes: u64,
    pub null_dims: bool,
    pub null_result: bool,
}

/// Reads calls from bytes; any bytes are calls.
pub struct Script<'a>(pub &'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn next_call(&mut self) -> Option<LibraryCall> {
        match self.byte()? % 8 {
            0..3 => {
                let (context, name) = (self.context()?, self.name()?);
                let (hint, null_result) = match self.byte()? {
                    0 => (8, true),
                    n @ 1..250 => (u64::from(n) - 1, false),
                    250 => (1 << 24, false),
                    251 => (1 << 40, false),
                    _ => (u64::MAX, false),
                };
                Some(LibraryCall::Input(GetInput { context, name, hint, null_result }))
            }
            7 => {
                let (at, code) = (self.byte()?, c_int::from(self.byte()? as i8));
                Some(match at % 8 {
                    7 => LibraryCall::Return(code),
                    at => LibraryCall::Fail { payload: usize::from(at % 3), code },
                })
            }
            _ => self.output().map(LibraryCall::Output),
        }
    }

    fn output(&mut self) -> Option<GetOutput> {
        let (context, name) = (self.context()?, self.name()?);
        let shape = self.byte()?;
        let rank = [2, 2, 0, 1, 2, 3, 6, MAX_RANK + 1, usize::MAX, 2][usize::from(shape % 10)];
        let mut dims = Vec::new();
        for _ in 0..if rank > MAX_RANK { 0 } else { rank } {
            dims.push(match self.byte()? {
                250 => -1,
                251 => i64::MAX,
                252 => i64::MIN,
                253 => 1 << 32,
                254 => 1 << 62,
                n => n.into(),
            });
        }
        // Large sizes fit no shape, so they are never allocated.
        let bytes = match self.byte()? {
            255 if name != Some(c"TEXT") => u64::MAX,
            254 if name != Some(c"TEXT") => u64::MAX - 1,
            n @ 200.. => u64::from(n) - 200,
            n => u64::from(n) * 4,
        };
        let (null_dims, null_result) = (shape >= 240, (230..240).contains(&shape));
        Some(GetOutput { context, name, rank, dims, bytes, null_dims, null_result })
    }

    fn context(&mut self) -> Option<CallContext> {
        Some(match self.byte()? % 32 {
            27 => CallContext::Null,
            28 => CallContext::Stale,
            29 => CallContext::Next,
            30 => CallContext::Other,
            31 => CallContext::Garbage,
            n => CallContext::Payload(usize::from(n % 3)),
        })
    }

    fn name(&mut self) -> Option<Option<&'static CStr>> {
        let names = [c"IN", c"OUT", c"PAIR", c"TEXT", c"NONE", c"", c"\xff"];
        Some(names.get(usize::from(self.byte()? % 8)).copied())
    }
}

/// An output that the library has written.
struct WrittenOutput {
    name: &'static CStr,
    shape: Vec<i64>,
    contents: Vec<u8>,
}

/// What the callbacks of an execution have done.
pub struct ExpectedCalls {
    generation: Generation,
    /// Context of the first payload.
    base: usize,
    /// What the library returns, and the errors that it sets.
    pub code: c_int,
    pub codes: [c_int; 3],
    /// Parts of the inputs that were read.
    read: [usize; 3],
    /// Bytes left of each input of the null request.
    zeros: HashMap<&'static CStr, u64>,
    written: [Vec<WrittenOutput>; 3],
    faults: [bool; 3],
}

impl ExpectedCalls {
    pub fn new(generation: Generation) -> Self {
        Self {
            generation,
            base: 0,
            code: 0,
            codes: [0; 3],
            read: [0; 3],
            zeros: HashMap::new(),
            written: Default::default(),
            faults: [false; 3],
        }
    }

    /// An execution of payloads with these contexts of inputs and outputs begins.
    pub fn begin(&mut self, contexts: &[(*mut std::ffi::c_void, *mut std::ffi::c_void)]) {
        assert_eq!(contexts.len(), 3);
        let base = contexts[0].0.addr();
        for (at, (input, output)) in contexts.iter().enumerate() {
            assert_eq!((input.addr(), output.addr()), (base + at, base + at));
        }
        assert_ne!(base, self.base);
        *self = Self { base, ..Self::new(self.generation) };
    }

    /// Checks what the payload lists: rows, names and shapes of inputs, names of outputs.
    pub fn check_payload(
        &self,
        at: usize,
        rows: u32,
        inputs: &[(&CStr, &[i64])],
        outputs: &[&CStr],
    ) {
        let width = PARTS[at].concat().len() as i64 / ROWS[at];
        assert_eq!((i64::from(rows), inputs), (ROWS[at], &[(c"IN", &[width][..])][..]));
        assert_eq!(outputs, REQUESTED[at]);
    }

    /// Checks the block that a callback returned; `None` = it refused.
    pub fn check_input(&mut self, call: &GetInput, found: Option<(*const u8, u64)>) {
        let (CallContext::Payload(at), Some(name), false) =
            (call.context, call.name, call.null_result)
        else {
            return assert_eq!(found, None);
        };
        if at != NULL_REQUEST && name != c"IN" {
            return assert_eq!(found, None);
        }
        let Some((block, n)) = found else { panic!("input {name:?} of {at} was refused") };
        let has_hints = self.generation.has_hints();
        let expected = if has_hints && call.hint == 0 {
            None
        } else if at == NULL_REQUEST {
            let total = match (has_hints, name == c"IN") {
                (true, _) => call.hint.min(ZeroBlock::BYTES),
                (false, true) => 4 * PARTS[at].concat().len() as u64,
                (false, false) => 0,
            };
            let left = self.zeros.entry(name).or_insert(total);
            (std::mem::take(left) as usize > 0).then_some(Vec::new())
        } else {
            let parts = PARTS[at].iter().skip(self.read[at]);
            let skipped = parts.take_while(|part| part.is_empty()).count();
            let part = PARTS[at].get(self.read[at] + skipped);
            self.read[at] += skipped + usize::from(part.is_some());
            part.map(|part| bytes(part))
        };
        let Some(expected) = expected else {
            return assert_eq!((block, n), (std::ptr::null(), 0), "behind the end");
        };
        assert!(!block.is_null() && n > 0);
        // SAFETY: the callback says that these bytes can be read.
        let contents = unsafe { std::slice::from_raw_parts(block, n as usize) };
        if at == NULL_REQUEST {
            assert!(!has_hints || n <= call.hint);
            assert!(contents[0] == 0 && contents[contents.len() - 1] == 0);
        } else {
            assert_eq!(contents, expected);
        }
    }

    /// Checks the memory that a callback returned, and writes it; `None` = it refused.
    pub fn check_output(&mut self, call: &GetOutput, found: Option<*mut u8>) {
        let (CallContext::Payload(at), Some(name), false) =
            (call.context, call.name, call.null_result)
        else {
            return assert_eq!(found, None);
        };
        if at == NULL_REQUEST {
            return assert_eq!(found, Some(std::ptr::null_mut()));
        }
        if !REQUESTED[at].contains(&name) {
            let skipped = (!self.generation.strict()).then_some(std::ptr::null_mut());
            return assert_eq!(found, skipped, "{name:?} was not requested");
        }
        let twice = self.written[at].iter().any(|written| written.name == name);
        let Some(shape) = self.shape(at, name, call).filter(|_| !twice) else {
            self.faults[at] = true;
            return assert_eq!(found, None, "{name:?}");
        };
        let Some(memory) = found.filter(|memory| !memory.is_null()) else {
            panic!("no memory for {name:?} of {at}: {found:?}")
        };
        let value = 1 + self.written.iter().map(Vec::len).sum::<usize>() as u8;
        let contents = vec![value; call.bytes as usize];
        // SAFETY: the callback says that these bytes can be written.
        unsafe { memory.copy_from_nonoverlapping(contents.as_ptr(), contents.len()) };
        self.written[at].push(WrittenOutput { name, shape, contents });
    }

    /// The shape of an output with these arguments; `None` if they do not fit its declaration.
    fn shape(&self, at: usize, name: &CStr, call: &GetOutput) -> Option<Vec<i64>> {
        let rows = ROWS[at];
        let shape = match (self.generation, name == c"PAIR") {
            (Generation::V0_10, true) => vec![rows, 2],
            // The size of a string says nothing of their number.
            (Generation::V0_10, false) if name == c"TEXT" => return None,
            (Generation::V0_10, false) => vec![rows, i64::try_from(call.bytes / 4).ok()? / rows],
            _ if call.rank > MAX_RANK || call.null_dims && call.rank > 0 => return None,
            _ => call.dims.clone(),
        };
        let [first, width] = shape[..] else { return None };
        let fits = first == rows && width >= 0 && (name != c"PAIR" || width == 2);
        let size = u64::try_from(width).ok()?.checked_mul(4 * rows as u64);
        (fits && (name == c"TEXT" || size == Some(call.bytes))).then_some(shape)
    }

    /// Checks what became of the requests.
    pub fn check(&self, outcomes: &[Outcome]) {
        assert_eq!(outcomes.len(), 3);
        for (at, outcome) in outcomes.iter().enumerate() {
            let start = match (self.code, self.codes[at], self.faults[at]) {
                (0, 0, false) => None,
                (0, 0, true) => Some("instance 'm_0': "),
                (0, ..) => Some("payload error for 'm_0': ("),
                _ => Some("execute error for 'm_0': ("),
            };
            if let Some(start) = start {
                let failure = outcome.result.as_ref().err();
                assert!(
                    failure.is_some_and(|e| e.text.starts_with(start) && e.code == code::INTERNAL),
                    "{failure:?}, expected {start}"
                );
                assert!(outcome.responses.is_empty());
                continue;
            }
            assert_eq!(outcome.result, Ok(()));
            assert_eq!(outcome.responses.len(), usize::from(at != NULL_REQUEST));
            for response in &outcome.responses {
                assert_eq!(response.outputs.len(), self.written[at].len());
                for (output, written) in response.outputs.iter().zip(&self.written[at]) {
                    let kind = if written.name == c"TEXT" { dtype::STRING } else { dtype::INT32 };
                    assert_eq!(
                        (output.name.as_bytes(), output.dtype),
                        (written.name.to_bytes(), kind)
                    );
                    assert_eq!((&output.shape, &output.data), (&written.shape, &written.contents));
                }
            }
        }
    }
}
