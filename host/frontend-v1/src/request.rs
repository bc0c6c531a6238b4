//! Checks a request header in the order of the protocol page (docs/protocol/v1.md §3.6): model,
//! batch size, outputs, inputs.
//!
//! Where releases differ, texts and their order follow the first gRPC release, except for unknown
//! outputs (v1.x), duplicate tensors (v1.12) and the shapes in a shape error (v1.1).

use super::regions::not_usable_in_v1;
use smallvec::SmallVec;
use std::cell::RefCell;
use trtserver_base::error::{Error, Result};
use trtserver_models::{FoundVersion, ModelTable};
use trtserver_proto::text;
use trtserver_proto::v1::infer_request_header::Input;
use trtserver_proto::v1::{InferRequestHeader, InferSharedMemory};
use trtserver_request::shared_memory::RegionRegistry;
use trtserver_request::tensor::element_count;
use trtserver_request::{
    DType, ModelSignature, RequestedOutput, Shape, ShapeText, TensorSpec, signature,
};
use trtserver_wire::decode_workers::MAX_INLINE;
use trtserver_wire::repeated_texts::RepeatedTexts;
use trtserver_wire::shared_memory::RegionSlice;
use trtserver_wire::spare_buffer::{give_back, take_buffer};

/// The version that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedVersion {
    Latest,
    Exact(i64),
    /// Version 0 if it exists, else the latest: a missing number in a gRPC request is 0, and
    /// clients up to v0.8 omitted it to get the latest.
    ZeroOrLatest,
}

impl RequestedVersion {
    /// From the number in a gRPC request.
    pub fn from_number(version: i64) -> Self {
        match version {
            0 => RequestedVersion::ZeroOrLatest,
            v if v < 0 => RequestedVersion::Latest,
            v => RequestedVersion::Exact(v),
        }
    }
}

/// Finds the requested version. The error text is the same for an unknown model and an unknown
/// version.
pub fn find_version(
    models: &ModelTable,
    model: &str,
    version: RequestedVersion,
) -> Result<FoundVersion> {
    let find = |version| models.find_for_inference(model, version);
    let found = match version {
        RequestedVersion::Latest => find(None),
        RequestedVersion::Exact(v) => find(Some(v)),
        RequestedVersion::ZeroOrLatest => {
            find(Some(0)).map(FoundVersion::as_default).or_else(|_| find(None))
        }
    };
    found.map_err(|_| Error::unavailable(format!("Inference request for unknown model '{model}'")))
}

/// Parses the header of an HTTP request. A missing header counts as an empty one, which the check
/// of the batch size refuses.
pub fn parse_header(model: &str, header: Option<&[u8]>) -> Result<InferRequestHeader> {
    let header = header.unwrap_or_default();
    let repeated = REPEATED_HEADERS.with_borrow(|headers| headers.get(header).cloned());
    if let Some(parsed) = repeated {
        return Ok(parsed);
    }
    let mut buffer = take_buffer(header.len());
    let parsed: Option<InferRequestHeader> = std::str::from_utf8(header)
        .ok()
        .and_then(|header| text::parse_in(header, &mut buffer).ok());
    give_back(buffer);
    let parsed = parsed
        .ok_or_else(|| Error::invalid(format!("unable to parse request for model '{model}'")))?;
    // Those with an id or of a sequence differ in each request.
    if parsed.id == 0 && parsed.correlation_id == 0 && parsed.flags == 0 {
        REPEATED_HEADERS.with_borrow_mut(|headers| headers.keep(header, parsed.clone()));
    }
    Ok(parsed)
}

thread_local! {
    /// Headers that clients of this thread repeat, as they were parsed.
    static REPEATED_HEADERS: RefCell<RepeatedTexts<InferRequestHeader>> = RefCell::default();
}

/// A checked header; its data has not been received yet.
#[derive(Debug, PartialEq)]
pub struct RequestPlan {
    pub batch: u32,
    /// Inputs in the order of the header, which is also the order of the data.
    pub inputs: SmallVec<[PlannedInput; 2]>,
    /// Requested outputs in the order of the header.
    pub outputs: SmallVec<[RequestedOutput; 2]>,
    /// Sizes are per batch item: a client up to v0.10, which expects the same of the response.
    pub per_item: bool,
}

#[derive(Debug, PartialEq)]
pub struct PlannedInput {
    pub index: usize,
    /// Batch first when the model batches.
    pub shape: Shape,
    pub bytes: usize,
    /// The region that holds the data, if the request does not. Boxed, because few requests have
    /// one.
    pub shared: Option<Box<RegionSlice>>,
}

impl RequestPlan {
    /// The inputs whose data is in the request.
    pub fn sent(&self) -> impl Iterator<Item = &PlannedInput> {
        self.inputs.iter().filter(|input| input.shared.is_none())
    }

    /// Starting the request copies much: strings in shared memory, which are copied before they are
    /// checked, or misaligned tensors there.
    pub fn copies_much(&self, signature: &ModelSignature) -> bool {
        let copied = |input: &PlannedInput, slice: &RegionSlice| {
            let is_string = signature.inputs[input.index].dtype == DType::String;
            is_string || !slice.offset.is_multiple_of(8)
        };
        self.inputs.iter().any(|input| {
            let shared = input.shared.as_ref();
            input.bytes > MAX_INLINE && shared.is_some_and(|slice| copied(input, slice))
        })
    }

    /// The size of all input data in the request.
    pub fn bytes(&self) -> usize {
        self.sent().fold(0, |sum, i| sum.saturating_add(i.bytes))
    }
}

/// The batch size under which a refused request is counted: 0 if it is invalid.
pub fn counted_batch(signature: &ModelSignature, header: &InferRequestHeader) -> u32 {
    if batch(signature, header).is_ok() { header.batch_size } else { 0 }
}

/// Checks batch size, outputs and inputs of a header, and plans where the data of each input is.
pub fn plan_request(
    signature: &ModelSignature,
    header: &InferRequestHeader,
) -> Result<RequestPlan> {
    let m = &signature.model;
    batch(signature, header)?;
    let outputs = outputs(signature, header)?;
    let count = |got: usize| {
        let all = signature.inputs.len();
        Error::invalid(format!("expected {all} inputs but got {got} inputs for model '{m}'"))
    };
    check_duplicates(signature, header)?;
    let got = header.input.len();
    let required = signature.inputs.iter().filter(|i| !i.optional).count();
    if got > signature.inputs.len() || got < required {
        return Err(count(got));
    }
    let mut inputs = SmallVec::new();
    for input in &header.input {
        let index = signature.input(&input.name).ok_or_else(|| {
            Error::invalid(format!("unexpected inference input '{}' for model '{m}'", input.name))
        })?;
        inputs.push(one_input(signature, index, header.batch_size, input)?);
    }
    let given = |index| inputs.iter().any(|i: &PlannedInput| i.index == index);
    if signature.inputs.iter().enumerate().any(|(i, spec)| !spec.optional && !given(i)) {
        return Err(count(got));
    }
    let per_item = header.input.iter().any(|i| i.byte_size != 0)
        || header.output.iter().any(|o| o.byte_size != 0);
    Ok(RequestPlan { batch: header.batch_size, inputs, outputs, per_item })
}

/// Checks the batch size: at least 1, and at most the maximum of the model.
fn batch(signature: &ModelSignature, header: &InferRequestHeader) -> Result<()> {
    let m = &signature.model;
    match header.batch_size {
        0 => Err(Error::invalid(format!("inference request batch-size must be >= 1 for '{m}'"))),
        b if b != 1 && b > signature.max_batch_size => Err(Error::invalid(format!(
            "inference request batch-size must be <= {} for '{m}'{}",
            signature.max_batch_size,
            signature.batch_size_advice()
        ))),
        _ => Ok(()),
    }
}

/// Refuses unknown outputs and duplicate ones.
fn outputs(
    signature: &ModelSignature,
    header: &InferRequestHeader,
) -> Result<SmallVec<[RequestedOutput; 2]>> {
    let mut outputs: SmallVec<[RequestedOutput; 2]> = SmallVec::new();
    for output in &header.output {
        let name = &output.name;
        let index = signature.output(name).ok_or_else(|| {
            let m = &signature.model;
            Error::invalid(format!("unexpected inference output '{name}' for model '{m}'"))
        })?;
        if outputs.iter().any(|w| w.index() == index) {
            return Err(Error::invalid(format!("output '{name}' already requested")));
        }
        // A count of 0 means the tensor itself (v1.2 and later).
        let classes = output.cls.as_ref().map_or(0, |c| c.count);
        outputs.push(RequestedOutput::new(index, classes));
    }
    Ok(outputs)
}

/// Refuses duplicate inputs. Unknown names are left to the check of each input, which bounds the
/// work for a long list.
fn check_duplicates(signature: &ModelSignature, header: &InferRequestHeader) -> Result<()> {
    let mut seen: SmallVec<[bool; 16]> = SmallVec::from_elem(false, signature.inputs.len());
    for input in &header.input {
        let Some(index) = signature.input(&input.name) else { continue };
        if std::mem::replace(&mut seen[index], true) {
            let name = &input.name;
            return Err(Error::invalid(format!("input '{name}' already exists in request")));
        }
    }
    Ok(())
}

/// Checks shape and byte size of one input.
fn one_input(
    signature: &ModelSignature,
    index: usize,
    batch: u32,
    input: &Input,
) -> Result<PlannedInput> {
    let (spec, m, name) = (&signature.inputs[index], &signature.model, &input.name);
    let dims: &[i64] = if input.dims.is_empty() { &spec.dims } else { &input.dims };
    if input.dims.is_empty() {
        if dims.iter().any(|d| *d < 0) {
            return Err(Error::invalid(format!(
                "model supports variable-size for input '{name}', request must specify input shape for model '{m}'"
            )));
        }
    } else if !signature::dims_match(&spec.dims, dims) {
        return Err(wrong_shape(signature, spec, dims));
    }
    let batched = signature.batching() && !spec.shape_tensor;
    let shape: Shape =
        batched.then_some(batch.into()).into_iter().chain(dims.iter().copied()).collect();
    // An overflow is an invalid shape too.
    let elements = element_count(&shape)
        .filter(|n| n.checked_mul(spec.dtype.size().unwrap_or(1)).is_some_and(|n| n < MAX_BYTES))
        .ok_or_else(|| wrong_shape(signature, spec, dims))?;
    let bytes = bytes(signature, spec, batch, input, elements)?;
    let shared = input.shared_memory.as_ref().map(|shared| Box::new(slice(shared)));
    Ok(PlannedInput { index, shape, bytes, shared })
}

/// Largest tensor in bytes, so that sums of sizes cannot overflow.
const MAX_BYTES: usize = 1 << 56;

fn wrong_shape(signature: &ModelSignature, spec: &TensorSpec, got: &[i64]) -> Error {
    Error::invalid(format!(
        "unexpected shape for input '{}' for model '{}'. Expected {}, got {}",
        spec.name,
        signature.model,
        ShapeText(&spec.dims),
        ShapeText(got)
    ))
}

/// Checks the given byte size, of the whole batch or (up to v0.10) of each item, against the shape.
fn bytes(
    signature: &ModelSignature,
    spec: &TensorSpec,
    batch: u32,
    input: &Input,
    elements: usize,
) -> Result<usize> {
    let (name, m) = (&spec.name, &signature.model);
    let mismatch = || {
        Error::invalid(format!(
            "specific batch-byte-size for input '{name}' does not match expected byte-size calculated from \
             shape and datatype for model '{m}'"
        ))
    };
    let items = if spec.shape_tensor { 1 } else { u64::from(batch) };
    let of_items = input.byte_size.checked_mul(items).ok_or_else(mismatch)?;
    let given = [input.batch_byte_size, of_items];
    if let Some(size) = spec.dtype.size() {
        let expected = elements * size;
        return match given.iter().all(|g| *g == 0 || *g == expected as u64) {
            true => Ok(expected),
            false => Err(mismatch()),
        };
    }
    let given = match given {
        [whole, 0] => whole,
        [0, of_items] => of_items,
        [whole, of_items] if whole == of_items => whole,
        _ => return Err(mismatch()),
    };
    // Clients may leave the size of strings in shared memory to the slice.
    let given = match &input.shared_memory {
        Some(shared) if given == 0 => shared.byte_size,
        _ => given,
    };
    // Every string takes at least four bytes, so 0 bytes are valid only for 0 strings.
    if given == 0 && elements != 0 {
        return Err(Error::invalid(format!(
            "batch-byte-size must be specified for input '{name}' with non-fixed-size datatype for model '{m}'"
        )));
    }
    usize::try_from(given).ok().filter(|n| *n < MAX_BYTES).ok_or_else(mismatch)
}

/// The part of a region that a header names.
fn slice(shared: &InferSharedMemory) -> RegionSlice {
    let InferSharedMemory { name, offset, byte_size } = shared;
    RegionSlice { region: name.clone(), offset: *offset, byte_size: *byte_size }
}

/// Sets the destinations of the outputs that the client wants in shared memory.
///
/// # Errors
/// A region is unknown, or the slice is not in it.
pub fn set_destinations(
    plan: &mut RequestPlan,
    header: &InferRequestHeader,
    regions: &RegionRegistry,
) -> Result<()> {
    for (output, requested) in header.output.iter().zip(&mut plan.outputs) {
        let Some(shared) = &output.shared_memory else { continue };
        if requested.classes > 0 {
            return Err(Error::invalid(format!(
                "output '{}' can't set both 'shared_memory' and 'cls'",
                output.name
            )));
        }
        let slice = slice(shared);
        let destination = slice.output(regions).map_err(|e| not_usable_in_v1(&slice.region, e))?;
        requested.destination = Some(destination);
    }
    Ok(())
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
