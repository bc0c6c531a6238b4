//! `trtc_v2_request` as a request of the client.

use crate::arguments::{
    Take, optional_text, read_array, read_deadline, read_struct, read_text, tensor_data,
};
use crate::failure::{ClientFailure, Outcome};
use crate::settings::{Header, read_headers};
use std::ffi::c_char;
use std::time::Duration;
use trtserver_client::Borrow;
use trtserver_client::v2::{
    Data, InferRequest, InferRequestedOutput, Input, Parameter, Parameters, Sequence, SequenceId,
    SharedMemory,
};

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawParameter {
    pub name: *const c_char,
    pub kind: i32,
    pub int_value: i64,
    pub double_value: f64,
    pub string_value: *const c_char,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawInput {
    name: *const c_char,
    datatype: *const c_char,
    shape: *const i64,
    rank: usize,
    data: *const u8,
    size: usize,
    region: *const c_char,
    region_offset: u64,
    region_byte_size: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawOutput {
    name: *const c_char,
    class_count: u64,
    region: *const c_char,
    region_offset: u64,
    region_byte_size: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawRequest {
    struct_size: usize,
    model: *const c_char,
    version: *const c_char,
    id: *const c_char,
    inputs: *const RawInput,
    input_count: usize,
    outputs: *const RawOutput,
    output_count: usize,
    parameters: *const RawParameter,
    parameter_count: usize,
    sequence_id: u64,
    sequence_id_text: *const c_char,
    sequence_start: bool,
    sequence_end: bool,
    priority: u64,
    timeout_us: u64,
    headers: *const Header,
    header_count: usize,
    flags: u32,
    deadline_us: u64,
}

/// `TRTC_COPY_INPUTS`.
const COPY_INPUTS: u32 = 1;
/// `TRTC_EMPTY_FINAL_RESPONSE`.
const EMPTY_FINAL_RESPONSE: u32 = 2;

/// The request, and its memory, which is used until the borrow is released. `copies` copies the
/// tensors whatever the flags say.
///
/// # Safety
/// `raw` is NULL or points to a request as the header describes it. Tensors stay valid until the
/// borrow is released.
#[expect(clippy::undocumented_unsafe_blocks, reason = "all rest on the contract of the function")]
pub unsafe fn read_request(
    raw: *const RawRequest,
    copies: bool,
) -> Outcome<(InferRequest, Borrow)> {
    // SAFETY: every block of this function rests on its contract: the caller passes NULL or a
    // request whose pointers are as the header describes them.
    let raw = unsafe { read_struct(raw, "request") }?;
    if raw.flags & !(COPY_INPUTS | EMPTY_FINAL_RESPONSE) != 0 {
        return Err(ClientFailure::argument(format!("flags {:#x} has unknown bits", raw.flags)));
    }
    let borrow = Borrow::new();
    let take =
        if copies || raw.flags & COPY_INPUTS != 0 { Take::Copy } else { Take::Borrow(&borrow) };
    let optional = |value, what| -> Outcome<String> {
        Ok(unsafe { optional_text(value, what) }?.unwrap_or_default().to_owned())
    };
    let mut request = InferRequest::new(unsafe { read_text(raw.model, "the model's name") }?);
    request.version = optional(raw.version, "the version")?;
    request.id = optional(raw.id, "the request's id")?;
    for given in unsafe { read_array(raw.inputs, raw.input_count, "inputs") }? {
        request.inputs.push(unsafe { read_input(given, take) }?);
    }
    for given in unsafe { read_array(raw.outputs, raw.output_count, "outputs") }? {
        request.outputs.push(unsafe { read_output(given) }?);
    }
    for given in unsafe { read_array(raw.parameters, raw.parameter_count, "parameters") }? {
        let name = unsafe { read_text(given.name, "a parameter's name") }?;
        request.parameters.insert(name.to_owned(), unsafe { read_parameter(given, name) }?);
    }
    request.sequence = unsafe { read_sequence(&raw) }?;
    request.priority = raw.priority;
    request.timeout_us = raw.timeout_us;
    request.headers = unsafe { read_headers(raw.headers, raw.header_count) }?;
    request.deadline = read_deadline(raw.deadline_us).map(|limit| limit.unwrap_or(Duration::MAX));
    request.empty_final_response = raw.flags & EMPTY_FINAL_RESPONSE != 0;
    Ok((request, borrow))
}

unsafe fn read_region(
    name: *const c_char,
    offset: u64,
    byte_size: u64,
) -> Outcome<Option<SharedMemory>> {
    // SAFETY: the contract of `request`.
    let region = unsafe { optional_text(name, "a region's name") }?;
    Ok(region.map(|region| SharedMemory { region: region.to_owned(), offset, byte_size }))
}

#[expect(clippy::undocumented_unsafe_blocks, reason = "all rest on the contract of the function")]
unsafe fn read_input(raw: &RawInput, take: Take<'_>) -> Outcome<Input> {
    // SAFETY: every block of this function rests on the contract of `request`, whose caller keeps
    // the pointers of an input valid.
    let (name, datatype) = unsafe {
        (read_text(raw.name, "an input's name")?, read_text(raw.datatype, "an input's datatype")?)
    };
    let shape = unsafe { read_array(raw.shape, raw.rank, "an input's shape") }?;
    let data = match unsafe { read_region(raw.region, raw.region_offset, raw.region_byte_size) }? {
        Some(memory) => Data::SharedMemory(memory),
        None => {
            let what = format!("the data of input '{name}'");
            Data::Raw(vec![unsafe { tensor_data(raw.data, raw.size, take, &what) }?])
        }
    };
    let mut input = Input::new(name, datatype, shape, Vec::new());
    input.data = data;
    Ok(input)
}

#[expect(clippy::undocumented_unsafe_blocks, reason = "all rest on the contract of the function")]
unsafe fn read_output(raw: &RawOutput) -> Outcome<InferRequestedOutput> {
    // SAFETY: every block of this function rests on the contract of `request`, whose caller keeps
    // the pointers of an output valid.
    let mut output = InferRequestedOutput::new(unsafe { read_text(raw.name, "an output's name") }?);
    output.classes = u32::try_from(raw.class_count).unwrap_or(u32::MAX);
    output.shared_memory =
        unsafe { read_region(raw.region, raw.region_offset, raw.region_byte_size) }?;
    Ok(output)
}

unsafe fn read_parameter(raw: &RawParameter, name: &str) -> Outcome<Parameter> {
    Ok(match raw.kind {
        0 => Parameter::Bool(raw.int_value != 0),
        1 => Parameter::Int(raw.int_value),
        2 => {
            // SAFETY: the contract of `request`.
            Parameter::String(
                unsafe { read_text(raw.string_value, "a parameter's text") }?.to_owned(),
            )
        }
        3 => Parameter::Double(raw.double_value),
        4 => Parameter::Uint(raw.int_value as u64),
        other => {
            return Err(ClientFailure::argument(format!(
                "type {other} of parameter '{name}' is unknown"
            )));
        }
    })
}

unsafe fn read_sequence(raw: &RawRequest) -> Outcome<Option<Sequence>> {
    // SAFETY: the contract of `request`.
    let text = unsafe { optional_text(raw.sequence_id_text, "the sequence's id") }?;
    let id = match (raw.sequence_id, text) {
        (0, None) => {
            if raw.sequence_start || raw.sequence_end {
                let text = "sequence_start or sequence_end is set without a sequence id";
                return Err(ClientFailure::argument(text));
            }
            return Ok(None);
        }
        (0, Some(text)) => SequenceId::Text(text.to_owned()),
        (number, None) => SequenceId::Number(number),
        (_, Some(_)) => {
            return Err(ClientFailure::argument(
                "sequence_id and sequence_id_text are both set, expected one of both",
            ));
        }
    };
    Ok(Some(Sequence { id, start: raw.sequence_start, end: raw.sequence_end }))
}

/// The parameters of a response; `texts` keeps their strings.
pub fn raw_parameters(
    parameters: &Parameters,
    mut text: impl FnMut(&str) -> *const c_char,
) -> Vec<RawParameter> {
    let raw = |name, kind, int_value, double_value, string_value| RawParameter {
        name,
        kind,
        int_value,
        double_value,
        string_value,
    };
    let none = std::ptr::null();
    let mut all = Vec::with_capacity(parameters.len());
    for (name, value) in parameters {
        let name = text(name);
        all.push(match value {
            Parameter::Bool(value) => raw(name, 0, i64::from(*value), 0.0, none),
            Parameter::Int(value) => raw(name, 1, *value, 0.0, none),
            Parameter::String(value) => raw(name, 2, 0, 0.0, text(value)),
            Parameter::Double(value) => raw(name, 3, 0, *value, none),
            Parameter::Uint(value) => raw(name, 4, *value as i64, 0.0, none),
        });
    }
    all
}
