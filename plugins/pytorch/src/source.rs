//! What the generated code in a package says of the model's inputs: types, shapes, bounds of
//! dynamic dimensions, which dimensions are equal to others, and which inputs the model writes to.
//!
//! The compiled model itself tells none of this: it has only numbers and names of tensors, and
//! trusts its caller with all else. The code has checks for debugging, of which this module reads
//! the messages, such as `input_handles[0]: unmatched dim value at 1, expected: 8, but got: `.

use crate::types::named_element;
use std::collections::BTreeMap;
use trtserver_framework::check::Element;

/// Torch says this of dimensions that may also be 1: it does not compile for sizes 0 and 1 by
/// themselves.
const NO_LOWER_BOUND: i64 = 2;

/// Smallest and largest size of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeBounds {
    pub lower: i64,
    pub upper: i64,
}

impl SizeBounds {
    pub const ANY: SizeBounds = SizeBounds { lower: 0, upper: i64::MAX };

    pub fn allows(self, size: i64) -> bool {
        (self.lower..=self.upper).contains(&size)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeDim {
    /// -1: dynamic.
    pub size: i64,
    pub bounds: SizeBounds,
    /// Where the code takes the size of a dynamic dimension from this input; it takes the sizes of
    /// the others from there.
    pub leads: bool,
    /// `None`: depends on other dimensions.
    stride: Option<i64>,
}

impl CodeDim {
    const UNKNOWN: CodeDim =
        CodeDim { size: -1, bounds: SizeBounds::ANY, leads: false, stride: None };
}

/// An input of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeInput {
    pub element: Element,
    pub dims: Vec<CodeDim>,
    /// The model writes to it.
    pub written: bool,
}

/// Reads the inputs; `None` if the code does not describe each of `count` inputs.
pub fn read_inputs(code: &str, count: usize) -> Option<Vec<CodeInput>> {
    let mut found: BTreeMap<usize, InputFacts> = BTreeMap::new();
    let mut lines = code.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some((at, message)) = check_message(line) {
            let next = lines.peek().copied().unwrap_or_default();
            found.entry(at).or_default().add_check(message, next);
        }
    }
    let names: Vec<&str> = (0..count).map(|at| input_name(code, at)).collect::<Option<_>>()?;
    let inputs = names.into_iter().enumerate().map(|(at, name)| {
        let facts = found.remove(&at)?;
        let mut dims = facts.dims;
        for line in code.lines() {
            if let Some(dim) = leading_dim(line, name).and_then(|at| dims.get_mut(at)) {
                dim.leads = true;
            }
        }
        let written = code.lines().any(|line| writes_to(line, name));
        Some(CodeInput { element: facts.element?, dims, written })
    });
    inputs.collect()
}

#[derive(Default)]
struct InputFacts {
    element: Option<Element>,
    dims: Vec<CodeDim>,
}

impl InputFacts {
    /// `message`: after the number of the input; `next`: the line that ends it.
    fn add_check(&mut self, message: &str, next: &str) {
        if message.starts_with("unmatched dtype") {
            self.element = between(next, "(at::", ")").map(named_element);
            return;
        }
        let Some((kind, at)) = message.split_once(" at ") else { return };
        let at = at.split(',').next().and_then(|at| at.trim().parse::<usize>().ok());
        let Some((at, number)) = at.zip(expected_number(next)) else { return };
        if at >= trtserver_framework::shape::MAX_RANK {
            return;
        }
        if self.dims.len() <= at {
            self.dims.resize(at + 1, CodeDim::UNKNOWN);
        }
        let dim = &mut self.dims[at];
        match kind {
            "unmatched dim value" => dim.size = number,
            "unmatched stride value" => dim.stride = Some(number),
            "dim value is too small" if number > NO_LOWER_BOUND => dim.bounds.lower = number,
            "dim value is too large" => dim.bounds.upper = number,
            _ => {}
        }
    }
}

/// Number of the input, and the message.
fn check_message(line: &str) -> Option<(usize, &str)> {
    let (_, rest) = line.split_once("\"input_handles[")?;
    let (at, message) = rest.split_once("]: ")?;
    Some((at.parse().ok()?, message.split('"').next()?))
}

/// The number of `expected: 8, ` or `expected to be <= 64, `.
fn expected_number(line: &str) -> Option<i64> {
    let (_, rest) = line.split_once("expected")?;
    let start = rest.find(|c: char| c.is_ascii_digit())?;
    let digits = rest[start..].split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    text.split_once(start)?.1.split_once(end).map(|(found, _)| found)
}

/// What the code calls an input.
fn input_name(code: &str, at: usize) -> Option<&str> {
    between(code, &format!("inputs_info_[{at}].name = \""), "\"")
}

/// The dimension of the line `int64_t s77 = NAME_size[0];`, from which the code takes a size.
fn leading_dim(line: &str, name: &str) -> Option<usize> {
    let (_, value) = line.trim().strip_prefix("int64_t ")?.split_once(" = ")?;
    let at = value.strip_suffix(';')?.strip_prefix(name)?.strip_prefix("_size[")?;
    at.strip_suffix(']')?.parse().ok()
}

/// Whether a line passes an input to a function that may write to it. A kernel gets
/// `(const float*)(NAME.data_ptr())` of what it reads; functions of torch that write to an argument
/// have it first, and say so by their names.
fn writes_to(line: &str, name: &str) -> bool {
    let data = format!("({name}.data_ptr())");
    let as_target = line.match_indices(&data).any(|(at, _)| {
        let cast = line[..at].rsplit('(').next().unwrap_or_default();
        !cast.starts_with("const ")
    });
    let first = format!("({name},");
    let writes = |function: &str| {
        function.starts_with("aoti_torch")
            && (function.ends_with('_')
                || ["_out", "put", "scatter", "copy", "fill", "set", "resize"]
                    .iter()
                    .any(|mark| function.contains(mark)))
    };
    let called = |at: usize| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        line[..at].rsplit(|c| !is_name(c)).next().unwrap_or_default()
    };
    as_target || line.match_indices(&first).any(|(at, _)| writes(called(at)))
}

impl CodeInput {
    /// # Errors
    /// The model was compiled for an input that is not contiguous.
    pub fn expect_contiguous(&self) -> Result<(), String> {
        let mut expected = Some(1i64);
        for (at, dim) in self.dims.iter().enumerate().rev() {
            // A dimension of 1 has any stride.
            if let Some(stride) = dim.stride.filter(|_| dim.size != 1)
                && expected != Some(stride)
            {
                return Err(format!(
                    "it was compiled for a stride of {stride} in dimension {at}, expected that of a contiguous tensor: \
                     call contiguous() on the example inputs before torch.export.export"
                ));
            }
            let size = (dim.size >= 0).then_some(dim.size);
            expected = expected.zip(size).and_then(|(stride, size)| stride.checked_mul(size));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
