//! One execution as a library sees it through its callbacks: cursors over inputs, outputs being made.

use crate::model::Name;
use std::ptr;
use trtserver_plugin_api::abi::types::memory_type;
use trtserver_plugin_api::author::{Dtype, Error, Request, Response, Scope, Tensor};

/// Why a callback answers false.
pub struct Fault {
    text: String,
    /// The payload cannot be answered any more, whatever the library makes of the false.
    breaks: bool,
}

pub type Answer<T> = Result<T, Fault>;

impl Fault {
    pub fn broken(text: impl Into<String>) -> Fault {
        Fault { text: text.into(), breaks: true }
    }
}

impl From<&str> for Fault {
    fn from(text: &str) -> Fault {
        text.to_owned().into()
    }
}

impl From<String> for Fault {
    fn from(text: String) -> Fault {
        Fault { text, breaks: false }
    }
}

/// An output as the configuration declares it.
pub struct Output {
    pub dtype: Dtype,
    /// What the model makes of one row; -1 = variable.
    pub dims: Vec<i64>,
    /// Its shape begins with the batch dimension.
    pub batched: bool,
}

/// What a library says of an output's shape.
pub enum Shape<'s> {
    /// With the batch dimension.
    Given(&'s [i64]),
    /// Nothing: generation A leaves it to the configuration.
    Declared,
}

/// How far an input has been read.
#[derive(Clone, Copy, Default)]
pub struct Cursor {
    /// Number of the next piece.
    part: usize,
    zeros: Zeros,
}

/// What is left of an input of a null request; the first hint says how much there is.
#[derive(Clone, Copy, Default)]
struct Zeros(Option<u64>);

/// One payload.
pub struct Slip<'a> {
    pub request: Request<'a>,
    /// Made up by the host for an idle slot of a sequence batch: nobody reads its answer.
    pub null: bool,
    /// Its first cursor; one for each input of the call.
    pub cursors: usize,
    /// Begun with the first output that somebody wants.
    pub response: Option<Response<'a>>,
    /// Why it cannot be answered.
    pub fault: Option<String>,
    /// Inputs of a null request that it does not list.
    others: Vec<(Vec<u8>, Zeros)>,
}

impl<'a> Slip<'a> {
    pub fn new(request: Request<'a>, null: bool, cursors: usize) -> Self {
        Self { request, null, cursors, response: None, fault: None, others: Vec::new() }
    }
}

/// See the module text. Its parts are taken from the instance and given back, so that steady work
/// allocates nothing.
pub struct Session<'a> {
    pub slips: Vec<Slip<'a>>,
    pub cursors: Vec<Cursor>,
    pub zeros: ZeroBlock,
    /// Room for one shape.
    pub shape: Vec<i64>,
    pub outputs: &'a [(Name, Output)],
    /// The generation takes outputs that nobody asked for as errors.
    pub strict: bool,
    pub instance: &'a str,
    pub log: &'a Scope,
}

/// Memory that null requests read, made when the first of them does. The system gives it no pages as
/// long as nobody writes to it.
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

impl Session<'_> {
    /// The next block of an input: address and size, or null when there is no more.
    pub fn next_input(
        &mut self,
        payload: usize,
        name: &[u8],
        hint: u64,
    ) -> Answer<(*const u8, u64)> {
        let Some(slip) = self.slips.get_mut(payload) else { return Err("no such payload".into()) };
        let mut inputs = slip.request.inputs().enumerate();
        let found = inputs.find(|(_, input)| input.name().as_bytes() == name);
        let cursor = found.and_then(|(at, _)| self.cursors.get_mut(slip.cursors + at));
        match (found, cursor) {
            (Some((_, input)), Some(cursor)) => {
                if slip.null && !input.is_control() && !input.is_state() {
                    let most = (input.byte_size() as u64).max(ZeroBlock::BYTES);
                    return Ok(cursor.zeros.next(hint, most, &mut self.zeros));
                }
                Ok(if hint == 0 { END } else { cursor.next(input) })
            }
            _ if slip.null => {
                // Whatever it is called: nothing is known of it, so all of it is zero.
                let known = slip.others.iter().position(|(other, _)| other == name);
                let at = known.unwrap_or_else(|| {
                    slip.others.push((name.to_vec(), Zeros::default()));
                    slip.others.len() - 1
                });
                let zeros = slip.others.get_mut(at).map(|(_, zeros)| zeros);
                Ok(zeros.map_or(END, |z| z.next(hint, ZeroBlock::BYTES, &mut self.zeros)))
            }
            _ => Err(format!("unexpected input '{}'", name.escape_ascii()).into()),
        }
    }

    /// Memory for an output; null = it is not to be written.
    pub fn output<'s>(
        &mut self,
        payload: usize,
        name: &[u8],
        shape: impl FnOnce() -> Answer<Shape<'s>>,
        bytes: u64,
    ) -> Answer<*mut u8> {
        let Some(slip) = self.slips.get_mut(payload) else { return Err("no such payload".into()) };
        if slip.null {
            return Ok(ptr::null_mut());
        }
        let requested =
            std::str::from_utf8(name).ok().filter(|name| slip.request.output_requested(name));
        let Some(name) = requested else {
            if self.strict {
                let name = name.escape_ascii();
                return Err(format!("output '{name}' was not requested").into());
            }
            return Ok(ptr::null_mut());
        };
        let about = |text: &str| Fault::broken(format!("output '{name}' {text}"));
        let Some((_, declared)) = self.outputs.iter().find(|(other, _)| other.is(name)) else {
            return Err(about("is not declared by the model's configuration"));
        };
        let shape = match shape().map_err(|fault| about(&fault.text))? {
            Shape::Given(shape) => shape,
            Shape::Declared => {
                declared
                    .infer(slip.request.batch_size(), bytes, &mut self.shape)
                    .map_err(|text| about(&text))?;
                &self.shape
            }
        };
        let size = usize::try_from(bytes).map_err(|_| about("is larger than memory"))?;
        // The host says what is wrong in full: with the model, the output, and what was declared.
        let broken = |e: Error| Fault::broken(e.text());
        if slip.response.is_none() {
            slip.response = Some(slip.request.new_response().map_err(broken)?);
        }
        let Some(response) = &mut slip.response else { return Err("no response".into()) };
        let (memory, _) = response.output_ptr(name, declared.dtype, shape, size).map_err(broken)?;
        // Nothing has to be written, but null would say that nobody wants it.
        Ok(if memory.is_null() && size == 0 { ptr::dangling_mut::<u128>().cast() } else { memory })
    }

    /// Notes that a callback is answered with false.
    pub fn refuse(&mut self, entry: &str, payload: usize, fault: Fault) {
        let Fault { text, breaks } = fault;
        self.log.warning(format_args!(
            "{entry} for '{}', request {} of {}: {text}",
            self.instance,
            payload + 1,
            self.slips.len()
        ));
        if let Some(slip) = self.slips.get_mut(payload).filter(|_| breaks) {
            slip.fault.get_or_insert(text);
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
    /// `most`: a hint may be any number, and a library that reads on to the end must come to one.
    fn next(&mut self, hint: u64, most: u64, block: &mut ZeroBlock) -> (*const u8, u64) {
        if hint == 0 {
            return END;
        }
        let left = self.0.get_or_insert(hint.min(most));
        if *left == 0 {
            return END;
        }
        let n = (*left).min(ZeroBlock::BYTES);
        *left -= n;
        (block.get(), n)
    }
}

impl Output {
    /// The shape of so many bytes: what is declared, and the one variable dimension by division.
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
                "of {bytes} bytes has no shape that the declared dimensions {:?} leave for {rows} row(s), \
                 and a library of generation A cannot say it",
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
