//! Requests: specifications, and the views of them that a backend receives.

use crate::host::{request_handle, responder_handle};
use crate::lock;
use crate::memory::{GuardedBlock, ProtectedPages};
use crate::model::{ModelSpec, TensorSpec, element_size};
use crate::report::{report_exercised, report_violation};
use crate::text::{EMPTY, Params, as_str, c_text};
use std::collections::HashMap;
use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use trtserver_plugin_api::abi::request::{Request as View, RequestedOutput};
use trtserver_plugin_api::abi::types::{Buf, Memory, Tensor};

/// An input as the model sees it.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// As the model's configuration calls it.
    pub name: String,
    /// One of `abi::types::dtype`.
    pub dtype: u32,
    /// With the batch dimension, if the model has one.
    pub shape: Vec<i64>,
    /// The contents, in one or more pieces.
    pub parts: Vec<Vec<u8>>,
    /// Bits of `abi::types::tensor_flags`, beside those that the model declares.
    pub flags: u32,
}

/// A request for [`Instance::execute`](crate::Instance::execute).
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// For logs; may be empty.
    pub id: String,
    /// Rows, 1 for a model without batch dimension.
    pub batch_size: u32,
    /// In the order in which the backend sees them.
    pub inputs: Vec<Input>,
    /// Names of the requested outputs.
    pub requested_outputs: Vec<String>,
    /// Keys and values, of kind STRING.
    pub params: Vec<(String, String)>,
    /// 0 = not of a sequence.
    pub correlation_id: u64,
    /// Bits of `abi::request::request_flags`.
    pub flags: u32,
    /// Cancelled before it is executed.
    pub cancelled: bool,
    /// CLOCK_MONOTONIC nanoseconds; 0 = none.
    pub deadline_ns: u64,
    /// Outputs that do not fit the model are refused, but are not a violation. For requests that
    /// are wrong themselves.
    pub unchecked: bool,
}

impl Request {
    /// A request of that many rows, without inputs.
    pub fn new(batch_size: u32) -> Self {
        Self { batch_size, ..Self::default() }
    }

    /// With one more input, whose contents are one block.
    pub fn input(self, name: &str, dtype: u32, shape: &[i64], data: &[u8]) -> Self {
        self.input_parts(name, dtype, shape, &[data])
    }

    /// With one more input, whose contents are in pieces.
    pub fn input_parts(mut self, name: &str, dtype: u32, shape: &[i64], parts: &[&[u8]]) -> Self {
        let parts = parts.iter().map(|part| part.to_vec()).collect();
        let (name, shape) = (name.to_owned(), shape.to_vec());
        self.inputs.push(Input { name, dtype, shape, parts, flags: 0 });
        self
    }

    /// Requests one more output.
    pub fn request_output(mut self, name: &str) -> Self {
        self.requested_outputs.push(name.to_owned());
        self
    }

    /// With one more parameter.
    pub fn param(mut self, key: &str, value: &str) -> Self {
        self.params.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Cancelled before it is executed.
    pub fn cancelled(self) -> Self {
        Self { cancelled: true, ..self }
    }

    /// Whose outputs are not a violation if they do not fit the model.
    pub fn unchecked(self) -> Self {
        Self { unchecked: true, ..self }
    }
}

/// Where inputs are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// One part, aligned as well as the host can.
    #[default]
    Ordinary,
    /// Aligned no more than the backend requires.
    Unaligned,
    /// Each in two parts.
    Parts,
    /// In read-only pages, inaccessible after the release of the request.
    Protected,
}

enum PartMemory {
    GuardedBlock(GuardedBlock),
    ProtectedPages(ProtectedPages),
}

impl PartMemory {
    fn ptr(&self) -> *mut u8 {
        match self {
            Self::GuardedBlock(block) => block.ptr(),
            Self::ProtectedPages(pages) => pages.ptr(),
        }
    }
}

struct HeldInput {
    name: String,
    shape: Vec<i64>,
    parts: Vec<(PartMemory, Vec<u8>)>,
}

/// A view with everything that it points at.
pub(crate) struct HeldRequest {
    inputs: Vec<HeldInput>,
    pub view: Box<View>,
    pub cancelled: Arc<AtomicU32>,
    _views: (Vec<Tensor>, Vec<Vec<Buf>>, Vec<RequestedOutput>),
    _texts: (Vec<CString>, Params),
}

// SAFETY: what the pointers lead to is owned by this struct.
unsafe impl Send for HeldRequest {}

static HELD: LazyLock<Mutex<HashMap<u64, HeldRequest>>> = LazyLock::new(Mutex::default);

pub(crate) fn held_requests() -> MutexGuard<'static, HashMap<u64, HeldRequest>> {
    lock(&HELD)
}

/// Makes the inputs of a released request inaccessible where that is possible.
pub(crate) fn forbid_inputs(id: u64) {
    let held = held_requests();
    let parts = held.get(&id).into_iter().flat_map(|held| &held.inputs).flat_map(|i| &i.parts);
    for (memory, _) in parts {
        if let PartMemory::ProtectedPages(pages) = memory {
            pages.forbid();
        }
    }
}

/// The contents of an input of several requests, one after another.
pub(crate) fn gather_input(ids: &[u64], position: usize) -> Result<Vec<u8>, String> {
    let held = held_requests();
    let (mut all, mut first) = (Vec::new(), None);
    for id in ids {
        let Some(input) = held.get(id).and_then(|held| held.inputs.get(position)) else {
            return Err(format!("a request has no input {position}"));
        };
        let item = input.shape.get(1..).unwrap_or_default();
        if ids.len() > 1 && *first.get_or_insert(item) != item {
            return Err(format!("input '{}': shapes differ beyond dimension 0", input.name));
        }
        input.parts.iter().for_each(|(_, contents)| all.extend_from_slice(contents));
    }
    Ok(all)
}

fn position(tensors: &[TensorSpec], name: &str) -> u32 {
    tensors.iter().position(|t| t.name == name).map_or(u32::MAX, |at| at as u32)
}

impl HeldRequest {
    /// Creates the view of a request. `align` is what the backend requires.
    pub fn new(
        model: &ModelSpec,
        request: &Request,
        id: u64,
        align: usize,
        layout: Layout,
    ) -> Option<Self> {
        let (mut inputs, mut bufs) = (Vec::new(), Vec::new());
        for input in &request.inputs {
            let size = element_size(input.dtype);
            let natural = align.max(size.unwrap_or(1));
            let mut contents = input.parts.clone();
            if let ([whole], Layout::Parts, Some(_)) = (contents.as_mut_slice(), layout, size) {
                // A cut must leave both parts aligned.
                let middle = (whole.len() / 2).next_multiple_of(natural);
                if middle > 0 && middle < whole.len() {
                    let rest = whole.split_off(middle);
                    contents.push(rest);
                }
            }
            let skew = if layout == Layout::Unaligned && natural < 64 { natural } else { 0 };
            let mut parts = Vec::new();
            for contents in contents {
                let pages = (layout == Layout::Protected)
                    .then(|| ProtectedPages::from_bytes(&contents))
                    .flatten();
                let memory = match pages {
                    Some(pages) => PartMemory::ProtectedPages(pages),
                    None => PartMemory::GuardedBlock(GuardedBlock::from_bytes(&contents, skew)?),
                };
                parts.push((memory, contents));
            }
            let buf = |(memory, contents): &(PartMemory, Vec<u8>)| Buf {
                ptr: memory.ptr(),
                bytes: contents.len() as u64,
                memory: Memory::CPU,
                ready: null_mut(),
                memory_handle: 0,
            };
            bufs.push(parts.iter().map(buf).collect::<Vec<_>>());
            let (name, shape) = (input.name.clone(), input.shape.clone());
            inputs.push(HeldInput { name, shape, parts });
        }
        let names = request.inputs.iter().map(|input| &input.name);
        let texts: Vec<CString> = names
            .chain(&request.requested_outputs)
            .chain([&request.id])
            .map(|text| c_text(text))
            .collect();
        let tensor = |(at, given): (usize, &Input)| {
            let (held, bufs): (&HeldInput, &Vec<Buf>) = (&inputs[at], &bufs[at]);
            let index = position(&model.inputs, &given.name);
            let declared = model.inputs.get(index as usize).map_or(0, |tensor| tensor.flags);
            Tensor {
                name: as_str(&texts[at]),
                index,
                dtype: given.dtype,
                rank: held.shape.len() as u32,
                flags: given.flags | declared,
                shape: held.shape.as_ptr(),
                bytes: bufs.iter().map(|buf| buf.bytes).sum(),
                n_parts: bufs.len() as u32,
                pad: 0,
                parts: bufs.as_ptr(),
            }
        };
        let tensors: Vec<Tensor> = request.inputs.iter().enumerate().map(tensor).collect();
        let requested = |(at, name): (usize, &String)| RequestedOutput {
            name: as_str(&texts[inputs.len() + at]),
            index: position(&model.outputs, name),
            classes: 0,
        };
        let requested: Vec<RequestedOutput> =
            request.requested_outputs.iter().enumerate().map(requested).collect();
        let params = Params::new(&request.params);
        let cancelled = Arc::new(AtomicU32::new(request.cancelled.into()));
        let now = crate::now_ns();
        let view = Box::new(View {
            size: size_of::<View>() as u64,
            handle: request_handle(id),
            responder: responder_handle(id),
            id: texts.last().map_or(EMPTY, as_str),
            correlation_id_string: EMPTY,
            correlation_id: request.correlation_id,
            flags: request.flags,
            batch_size: request.batch_size,
            priority: 0,
            received_ns: now,
            queued_ns: now,
            deadline_ns: request.deadline_ns,
            timeout_us: 0,
            cancelled: cancelled.as_ptr(),
            n_inputs: tensors.len() as u32,
            n_requested_outputs: requested.len() as u32,
            n_params: params.list.len() as u32,
            pad: 0,
            inputs: tensors.as_ptr(),
            requested_outputs: requested.as_ptr(),
            params: params.list.as_ptr(),
            reserved: [0; 3],
        });
        let (_views, _texts) = ((tensors, bufs, requested), (texts, params));
        Some(Self { inputs, view, cancelled, _views, _texts })
    }

    /// Checks that the inputs were not written.
    pub fn check(self) {
        for input in &self.inputs {
            report_exercised("input.unchanged");
            let name = &input.name;
            for (memory, contents) in &input.parts {
                let PartMemory::GuardedBlock(block) = memory else { continue };
                let now = block.copy();
                if let Some(at) = now.iter().zip(contents).position(|(a, b)| a != b) {
                    let text = format!("input '{name}' was written at byte {at}");
                    report_violation("input.unchanged", text);
                } else if let Some(overrun) = block.overrun() {
                    report_violation("input.unchanged", format!("input '{name}': {overrun}"));
                }
            }
        }
    }
}
