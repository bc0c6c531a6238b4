//! Validates a request against the model's declared tensors. Clients match these error messages.
//!
//! These are the core checks of docs/protocol/v2.md §4.3, with v2's messages. The v1 frontends run
//! their own checks first (docs/protocol/v1.md §3.6), because their texts and order differ.

use super::signature::{ModelSignature, TensorSpec, dims_match};
use super::strings::{self, StringFault};
use super::tensor::{InputTensor, RequestedOutput, Shape, ShapeText, element_count};
use smallvec::SmallVec;
use std::fmt;
use trtserver_base::error::{Error, Result};

/// `[request id: X] `, the prefix of most core messages.
pub struct IdPrefix<'a>(Option<&'a str>);

impl<'a> IdPrefix<'a> {
    /// The prefix with this request id, empty if the client gave none.
    pub fn new(id: &'a str) -> Self {
        Self(Some(id))
    }

    /// No prefix at all: texts of v1.
    pub fn none() -> Self {
        Self(None)
    }
}

impl fmt::Display for IdPrefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some("") => f.write_str("[request id: <id_unknown>] "),
            Some(id) => write!(f, "[request id: {id}] "),
        }
    }
}

/// Checks everything that does not depend on a protocol, and returns the request's batch size.
///
/// `inputs` must already name declared tensors (others: [`unknown_input`]); they may come in any
/// order. Strings and shape tensors in client shared memory are copied before they are checked;
/// strings in GPU memory are checked by the instance ([`strings`]).
pub fn check_inputs(
    signature: &ModelSignature,
    id: &str,
    inputs: &mut [InputTensor],
) -> Result<u32> {
    let id = IdPrefix::new(id);
    let m = &signature.model;
    check_input_count(signature, &id, inputs)?;
    let mut batch: Option<i64> = None;
    for input in inputs.iter() {
        let spec = &signature.inputs[input.index];
        let name = &spec.name;
        if input.dtype != spec.dtype {
            return Err(Error::invalid(format!(
                "{id}inference input '{name}' data-type is '{}', but model '{m}' expects '{}'",
                input.dtype.v2_name(),
                spec.dtype.v2_name()
            )));
        }
        if input.shape.iter().any(|&d| d < 0) {
            return Err(Error::invalid(format!(
                "{id}All input dimensions should be specified for input '{name}' for model '{m}', got {}",
                ShapeText(&input.shape)
            )));
        }
        if signature.batching() && !spec.shape_tensor {
            let Some(&rows) = input.shape.first() else {
                return Err(Error::invalid(format!(
                    "{id}input '{name}' has no shape but model requires batch dimension for '{m}'"
                )));
            };
            if *batch.get_or_insert(rows) != rows {
                return Err(Error::invalid(format!(
                    "{id}input '{name}' batch size does not match other inputs for '{m}'"
                )));
            }
        }
    }
    let rows = batch.unwrap_or(1);
    if signature.batching() && rows > i64::from(signature.max_batch_size) {
        return Err(Error::invalid(format!(
            "{id}inference request batch-size must be <= {} for '{m}'{}",
            signature.max_batch_size,
            signature.batch_size_advice()
        )));
    }
    for input in inputs {
        let spec = &signature.inputs[input.index];
        check_shape(signature, &id, spec, input)?;
        check_data(signature, &id, spec, input)?;
    }
    Ok(rows as u32)
}

/// Position of a declared output.
pub fn find_output(signature: &ModelSignature, name: &str) -> Result<usize> {
    signature.output(name).ok_or_else(|| {
        Error::invalid(format!(
            "unexpected inference output '{name}' for model '{}'",
            signature.model
        ))
    })
}

/// All outputs in configuration order: the default if a request names none.
pub fn all_outputs(signature: &ModelSignature) -> SmallVec<[RequestedOutput; 2]> {
    (0..signature.outputs.len()).map(|index| RequestedOutput::new(index, 0)).collect()
}

fn check_input_count(
    signature: &ModelSignature,
    id: &IdPrefix<'_>,
    inputs: &[InputTensor],
) -> Result<()> {
    for (i, input) in inputs.iter().enumerate() {
        if inputs[..i].iter().any(|other| other.index == input.index) {
            let name = &signature.inputs[input.index].name;
            return Err(Error::invalid(format!("{id}input '{name}' already exists in request")));
        }
    }
    let given = |index: usize| inputs.iter().any(|i| i.index == index);
    let missing: Vec<&str> = signature
        .inputs
        .iter()
        .enumerate()
        .filter(|(i, spec)| !spec.optional && !given(*i))
        .map(|(_, spec)| &*spec.name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let got: Vec<&str> = inputs.iter().map(|i| &*signature.inputs[i.index].name).collect();
    Err(wrong_count(signature, id, &got, &missing))
}

/// The error for an undeclared input. A wrong number of inputs takes precedence.
pub fn unknown_input(signature: &ModelSignature, id: &str, name: &str, given: &[String]) -> Error {
    let required = signature.inputs.iter().filter(|spec| !spec.optional);
    if (required.clone().count()..=signature.inputs.len()).contains(&given.len()) {
        return Error::invalid(format!(
            "unexpected inference input '{name}' for model '{}'",
            signature.model
        ));
    }
    let missing = required.map(|spec| &*spec.name).filter(|n| !given.iter().any(|g| g == n));
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    wrong_count(signature, &IdPrefix::new(id), &given, &missing.collect::<Vec<_>>())
}

fn wrong_count(
    signature: &ModelSignature,
    id: &IdPrefix<'_>,
    got: &[&str],
    missing: &[&str],
) -> Error {
    let m = &signature.model;
    let required = signature.inputs.iter().filter(|s| !s.optional).count();
    let all = signature.inputs.len();
    let expected = if required == all {
        format!("expected {all} inputs but got {} inputs", got.len())
    } else {
        format!(
            "expected number of inputs between {required} and {all} but got {} inputs",
            got.len()
        )
    };
    // base has this lone closing bracket.
    let open = if missing.is_empty() { "" } else { "[" };
    Error::invalid(format!(
        "{id}{expected} for model '{m}'. Got input(s) [{}], but missing required input(s) {open}{}]. \
         Please provide all required input(s).",
        quote_names(got),
        quote_names(missing)
    ))
}

fn quote_names(names: &[&str]) -> String {
    names.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(",")
}

fn check_shape(
    signature: &ModelSignature,
    id: &IdPrefix<'_>,
    spec: &TensorSpec,
    input: &InputTensor,
) -> Result<()> {
    let batched = signature.batching() && !spec.shape_tensor;
    let item = if batched { &input.shape[1..] } else { &input.shape[..] };
    let rows_ok = !batched || input.shape[0] >= 1;
    if rows_ok && dims_match(&spec.dims, item) {
        return Ok(());
    }
    let expected: Shape = signature.full_dims(spec);
    let note = if signature.batching() {
        "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be \
         prepended to each input shape. If you want to specify the full shape including the batch dim in \
         your input dims config, try setting max_batch_size to zero. See the model configuration docs for \
         more info on max_batch_size."
    } else {
        ""
    };
    Err(Error::invalid(format!(
        "{id}unexpected shape for input '{}' for model '{}'. Expected {}, got {}. {note}",
        spec.name,
        signature.model,
        ShapeText(&expected),
        ShapeText(&input.shape)
    )))
}

fn check_data(
    signature: &ModelSignature,
    id: &IdPrefix<'_>,
    spec: &TensorSpec,
    input: &mut InputTensor,
) -> Result<()> {
    let (name, m) = (&spec.name, &signature.model);
    let Some(elements) = element_count(&input.shape) else {
        return Err(Error::invalid(format!(
            "{id}invalid shape for input '{name}': shape {} causes total element count to exceed maximum \
             size of {}",
            ShapeText(&input.shape),
            i64::MAX
        )));
    };
    if let Some(size) = spec.dtype.size() {
        let Some(expected) = elements.checked_mul(size) else {
            return Err(Error::invalid(format!(
                "{id}byte size overflow for input '{name}': element count ({elements}) * data type size \
                 ({size}) exceeds maximum allowed size ({})",
                i64::MAX
            )));
        };
        if expected != input.data.len() {
            return Err(Error::invalid(format!(
                "{id}input byte size mismatch for input '{name}' for model '{m}'. Expected {expected}, got {}",
                input.data.len()
            )));
        }
        if spec.shape_tensor {
            input.unshare()?;
        }
        return Ok(());
    }
    input.unshare()?;
    match input.data.cpu() {
        Some(bytes) => string_data(signature, id, spec, bytes, elements),
        // Each string has four bytes at least.
        None if input.data.len() / 4 < elements => string_fault(
            signature,
            id,
            spec,
            elements,
            StringFault::TooFew { found: input.data.len() / 4 },
        ),
        None => Ok(()),
    }
}

/// Checks a string tensor that is in CPU memory now and was not when the request was checked.
pub fn check_string_input(
    signature: &ModelSignature,
    id: &str,
    input: &InputTensor,
    bytes: &[u8],
) -> Result<()> {
    let elements = element_count(&input.shape).unwrap_or(0);
    string_data(signature, &IdPrefix::new(id), signature.input_spec(input.index), bytes, elements)
}

fn string_data(
    signature: &ModelSignature,
    id: &IdPrefix<'_>,
    spec: &TensorSpec,
    bytes: &[u8],
    elements: usize,
) -> Result<()> {
    let fault = match strings::check_strings(bytes, elements) {
        Ok(end) if end == bytes.len() => return Ok(()),
        Ok(end) => StringFault::NoLength { available: bytes.len() - end },
        Err(fault) => fault,
    };
    string_fault(signature, id, spec, elements, fault)
}

fn string_fault(
    signature: &ModelSignature,
    id: &IdPrefix<'_>,
    spec: &TensorSpec,
    elements: usize,
    fault: StringFault,
) -> Result<()> {
    let (name, m) = (&spec.name, &signature.model);
    Err(Error::invalid(match fault {
        StringFault::TooFew { found } => format!(
            "{id}expected {elements} string elements for inference input '{name}' for model '{m}', got {found}"
        ),
        StringFault::TooMany { found } => format!(
            "{id}unexpected number of string elements {found} for inference input '{name}' for model \
                 '{m}', expecting {elements}"
        ),
        StringFault::NoLength { available } => format!(
            "{id}incomplete string length indicator for inference input '{name}' for model '{m}', \
                 expecting 4 bytes but only {available} bytes available. Please make sure the string \
                 length indicator is in one buffer."
        ),
        StringFault::Short { length, available } => format!(
            "{id}incomplete string data for inference input '{name}' for model '{m}', expecting \
                 string of length {length} but only {available} bytes available"
        ),
    }))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
