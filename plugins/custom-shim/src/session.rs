//! One execution as the callbacks see it: cursors over inputs, outputs under construction.

use crate::model::Name;
use std::ptr;
use trtserver_plugin_api::abi::types::memory_type;
use trtserver_plugin_api::author::{Dtype, Error, Request, Response, Scope, Tensor};

/// Why a callback returns false.
pub struct CallbackFault {
    text: String,
    /// Whether the payload fails even if the library ignores the false.
    fails_payload: bool,
}

pub type CallbackResult<T> = Result<T, CallbackFault>;

impl CallbackFault {
    pub fn broken(text: impl Into<String>) -> CallbackFault {
        CallbackFault { text: text.into(), fails_payload: true }
    }
}

impl From<&str> for CallbackFault {
    fn from(text: &str) -> CallbackFault {
        text.to_owned().into()
    }
}

impl From<String> for CallbackFault {
    fn from(text: String) -> CallbackFault {
        CallbackFault { text, fails_payload: false }
    }
}

/// An output as the configuration declares it.
pub struct DeclaredOutput {
    pub dtype: Dtype,
    /// Shape of one row; -1 = variable.
    pub dims: Vec<i64>,
    /// Its shape begins with the batch dimension.
    pub batched: bool,
}

/// The shape of an output as a library passes it.
pub enum OutputShape<'s> {
    /// With the batch dimension.
    Given(&'s [i64]),
    /// None: generation A uses that of the configuration.
    Declared,
}

/// How far an input has been read.
#[derive(Clone, Copy, Default)]
pub struct Cursor {
    /// Index of the next part.
    part: usize,
    zeros: Zeros,
}

/// Remaining bytes of an input of a null request; the first hint sets the total.
#[derive(Clone, Copy, Default)]
struct Zeros(Option<u64>);

/// One payload.
pub struct PayloadState<'a> {
    pub request: Request<'a>,
    /// Added by the host for an idle slot of a sequence batch; its response is discarded.
    pub null: bool,
    /// Index of its first cursor; it has one for each input of the request.
    pub cursors: usize,
    /// Created with the first requested output.
    pub response: Option<Response<'a>>,
    /// Why it fails.
    pub fault: Option<String>,
    /// Inputs of a null request that it does not list.
    others: Vec<(Vec<u8>, Zeros)>,
}

impl<'a> PayloadState<'a> {
    pub fn new(request: Request<'a>, null: bool, cursors: usize) -> Self {
        Self { request, null, cursors, response: None, fault: None, others: Vec::new() }
    }
}

/// State of one execution. The instance provides its vectors and takes them back, so that executing
/// allocates nothing.
pub struct ExecuteSession<'a> {
    pub states: Vec<PayloadState<'a>>,
    pub cursors: Vec<Cursor>,
    pub zeros: ZeroBlock,
    /// Buffer for one shape.
    pub shape: Vec<i64>,
    pub outputs: &'a [(Name, DeclaredOutput)],
    /// Whether an output that was not requested is an error, as in v0.x.
    pub strict: bool,
    pub instance: &'a str,
    pub log: &'a Scope,
}

/// Zeros that null requests read, allocated on first use. Never written, so the pages take no
/// physical memory.
#[derive(Default)]
pub struct ZeroBlock(Vec<u128>);

impl ZeroBlock {
    pub const BYTES: u64 = 16 << 20;

    fn get(&mut self) -> *const u8 {
        if self.0.is_empty() {
            self.0 = vec![0; Self::BYTES as usize / size_of::<u128>()];
        }
        self.0.as_ptr().cast()
    }
}

const END: (*const u8, u64) = (ptr::null(), 0);

impl ExecuteSession<'_> {
    /// The next block of an input: address and size, or null at the end. `hint`: `None` in
    /// generations without.
    pub fn next_input(
        &mut self,
        payload: usize,
        name: &[u8],
        hint: Option<u64>,
    ) -> CallbackResult<(*const u8, u64)> {
        let Some(state) = self.states.get_mut(payload) else {
            return Err("no such payload".into());
        };
        let mut inputs = state.request.inputs().enumerate();
        let found = inputs.find(|(_, input)| input.name().as_bytes() == name);
        let cursor = found.and_then(|(at, _)| self.cursors.get_mut(state.cursors + at));
        match (found, cursor) {
            (Some((_, input)), Some(cursor)) => {
                if state.null && !input.is_control() && !input.is_state() {
                    let size = input.byte_size() as u64;
                    let max = size.max(ZeroBlock::BYTES);
                    return Ok(cursor.zeros.next(hint.unwrap_or(size), max, &mut self.zeros));
                }
                Ok(if hint == Some(0) { END } else { cursor.next(input) })
            }
            _ if state.null => {
                // A null request has every input that the library names, all zeros. The size of an
                // unlisted one is that of the hint.
                let hint = hint.unwrap_or(0);
                let known = state.others.iter().position(|(other, _)| other == name);
                let at = known.unwrap_or_else(|| {
                    state.others.push((name.to_vec(), Zeros::default()));
                    state.others.len() - 1
                });
                let zeros = state.others.get_mut(at).map(|(_, zeros)| zeros);
                Ok(zeros.map_or(END, |z| z.next(hint, ZeroBlock::BYTES, &mut self.zeros)))
            }
            _ => Err(format!("unexpected input '{}'", name.escape_ascii()).into()),
        }
    }

    /// Memory for an output; null = do not write it.
    pub fn output<'s>(
        &mut self,
        payload: usize,
        name: &[u8],
        shape: impl FnOnce() -> CallbackResult<OutputShape<'s>>,
        bytes: u64,
    ) -> CallbackResult<*mut u8> {
        let Some(state) = self.states.get_mut(payload) else {
            return Err("no such payload".into());
        };
        if state.null {
            return Ok(ptr::null_mut());
        }
        let requested =
            std::str::from_utf8(name).ok().filter(|name| state.request.output_requested(name));
        let Some(name) = requested else {
            if self.strict {
                let name = name.escape_ascii();
                return Err(format!("output '{name}' was not requested").into());
            }
            return Ok(ptr::null_mut());
        };
        let broken_output = |text: &str| CallbackFault::broken(format!("output '{name}' {text}"));
        let Some((_, declared)) = self.outputs.iter().find(|(other, _)| other.is(name)) else {
            return Err(broken_output("is not declared by the model's configuration"));
        };
        let shape = match shape().map_err(|fault| broken_output(&fault.text))? {
            OutputShape::Given(shape) => shape,
            OutputShape::Declared => {
                declared
                    .infer(state.request.batch_size(), bytes, &mut self.shape)
                    .map_err(|text| broken_output(&text))?;
                &self.shape
            }
        };
        let size = usize::try_from(bytes).map_err(|_| broken_output("is larger than memory"))?;
        // The host's error has the details: model, output, declared shape.
        let broken = |e: Error| CallbackFault::broken(e.text());
        if state.response.is_none() {
            state.response = Some(state.request.new_response().map_err(broken)?);
        }
        let Some(response) = &mut state.response else { return Err("no response".into()) };
        let (memory, _) = response.output_ptr(name, declared.dtype, shape, size).map_err(broken)?;
        // An empty output has no memory, but null would mean that it was not requested.
        Ok(if memory.is_null() && size == 0 { ptr::dangling_mut::<u128>().cast() } else { memory })
    }

    /// Logs why a callback returns false, and fails the payload if the fault requires it.
    pub fn refuse(&mut self, entry: &str, payload: usize, fault: CallbackFault) {
        let CallbackFault { text, fails_payload } = fault;
        self.log.warning(format_args!(
            "{entry} for '{}', request {} of {}: {text}",
            self.instance,
            payload + 1,
            self.states.len()
        ));
        if let Some(state) = self.states.get_mut(payload).filter(|_| fails_payload) {
            state.fault.get_or_insert(text);
        }
    }
}

impl Cursor {
    fn next(&mut self, input: Tensor<'_>) -> (*const u8, u64) {
        while let Some(part) = input.raw_parts().get(self.part) {
            self.part += 1;
            if part.bytes > 0 && part.memory.memory_type != memory_type::GPU {
                return (part.ptr, part.bytes);
            }
        }
        END
    }
}

impl Zeros {
    /// `max` bounds the total: a hint may be any number, and a library that reads to the end must
    /// reach one.
    fn next(&mut self, hint: u64, max: u64, block: &mut ZeroBlock) -> (*const u8, u64) {
        if hint == 0 {
            return END;
        }
        let left = self.0.get_or_insert(hint.min(max));
        if *left == 0 {
            return END;
        }
        let n = (*left).min(ZeroBlock::BYTES);
        *left -= n;
        (block.get(), n)
    }
}

impl DeclaredOutput {
    /// Infers the shape of an output from its size: one variable dimension at most, found by
    /// division.
    fn infer(&self, rows: usize, bytes: u64, shape: &mut Vec<i64>) -> Result<(), String> {
        shape.clear();
        shape.extend(self.batched.then_some(rows as i64));
        shape.extend_from_slice(&self.dims);
        let variable = shape.iter().filter(|d| **d < 0).count();
        if variable == 0 {
            return Ok(());
        }
        let row = shape.iter().filter(|d| **d >= 0).try_fold(1u64, |n, d| n.checked_mul(*d as u64));
        let row = row.zip(self.dtype.size()).and_then(|(n, size)| n.checked_mul(size as u64));
        let count = row.filter(|_| variable == 1).and_then(|row| match bytes {
            0 => Some(0),
            _ => (row > 0 && bytes.is_multiple_of(row)).then(|| bytes / row),
        });
        let count = count.and_then(|count| i64::try_from(count).ok()).ok_or_else(|| {
            format!(
                "of {bytes} bytes does not fit the declared dimensions {:?} with {rows} row(s), \
                 and libraries of generation A cannot specify a shape",
                self.dims
            )
        })?;
        shape.iter_mut().filter(|d| **d < 0).for_each(|d| *d = count);
        Ok(())
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
