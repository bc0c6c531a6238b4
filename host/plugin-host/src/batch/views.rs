//! The views of a batch: flat arrays of requests, tensors, shapes and strings that backends read.

use super::gpu::GpuInstance;
use super::memory::abi_memory;
use super::slot::ExecutingHandle;
use crate::text::{EMPTY, c_text, str_view};
use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::Arc;
use trtserver_plugin_api::abi::request::{Request, RequestedOutput, request_flags};
use trtserver_plugin_api::abi::types::{Buf, Param, Str, Tensor, param, tensor_flags};
use trtserver_request::{
    CorrelationId, InferRequest, InputRole, ModelSignature, ParameterValue, TensorSpec,
};

/// Names of a model's tensors as NUL-terminated strings, created once per model.
pub struct TensorNames {
    /// The declared inputs, then the inputs that the host adds.
    pub inputs: Vec<CString>,
    pub outputs: Vec<CString>,
    /// The outputs that write implicit states, each with its index if it is also declared as an
    /// output.
    states: Vec<(CString, Option<usize>)>,
}

impl TensorNames {
    pub fn new(signature: &ModelSignature) -> Self {
        Self {
            inputs: signature
                .inputs
                .iter()
                .chain(&signature.hidden)
                .map(|i| c_text(&i.name))
                .collect(),
            outputs: signature.outputs.iter().map(|o| c_text(&o.name)).collect(),
            states: signature
                .states
                .iter()
                .map(|s| (c_text(&s.output), signature.output(&s.output)))
                .collect(),
        }
    }
}

/// The model of a batch, for its views.
pub struct ViewOptions<'a> {
    pub signature: &'a ModelSignature,
    pub names: &'a Arc<TensorNames>,
    /// The GPU of the instance.
    pub gpu: Option<&'a Arc<GpuInstance>>,
}

/// An input of one request, as the backend sees it.
pub struct InputView<'a> {
    pub tensor: &'a Tensor,
    pub shape: &'a [i64],
    pub buf: &'a Buf,
    /// Batch size of the request.
    pub rows: u32,
}

/// Flat C arrays that describe the requests of a batch to the backend. Pointers go from one array
/// into another, so no array may grow beyond what [`Views::reserve`]
/// reserved.
#[derive(Default)]
pub struct Views {
    requests: Vec<Request>,
    request_ptrs: Vec<*const Request>,
    tensors: Vec<Tensor>,
    bufs: Vec<Buf>,
    shapes: Vec<i64>,
    requested: Vec<RequestedOutput>,
    params: Vec<Param>,
    texts: Vec<CString>,
    /// Keeps the names of the tensors.
    names: Option<Arc<TensorNames>>,
}

impl Views {
    /// Reserves memory for `requests`, so that the arrays do not move while they are added.
    pub fn reserve(&mut self, requests: &[InferRequest], options: &ViewOptions<'_>) {
        let sum = |of: fn(&InferRequest) -> usize| requests.iter().map(of).sum::<usize>();
        let inputs = sum(|r| r.inputs.len());
        // The dimensions of the request, or of the model if it is reshaped, and a batch dimension.
        let dims = requests.iter().flat_map(|r| &r.inputs);
        let dims = dims.map(|input| {
            input.shape.len().max(options.signature.input_spec(input.index).model_dims.len()) + 1
        });
        self.shapes.reserve(dims.sum());
        self.requests.reserve(requests.len());
        self.request_ptrs.reserve(requests.len());
        self.tensors.reserve(inputs);
        self.bufs.reserve(inputs);
        let states = options.names.states.len() * requests.len();
        self.requested.reserve(sum(|r| r.context().outputs.len()) + states);
        self.params.reserve(sum(|r| r.parameters.len()));
        self.names = Some(Arc::clone(options.names));
    }

    /// Pointers to the requests added.
    pub fn requests(&mut self) -> *const *const Request {
        self.request_ptrs.clear();
        self.request_ptrs.extend(self.requests.iter().map(|c| c as *const Request));
        self.request_ptrs.as_ptr()
    }

    /// Adds one request; its heap memory must stay in place until [`Views::clear`].
    pub fn add(
        &mut self,
        handle: ExecutingHandle,
        request: &InferRequest,
        options: &ViewOptions<'_>,
    ) {
        let inputs = self.tensors.len();
        self.inputs(request, options);
        let requested = self.requested.len();
        self.requested.extend(request.context().outputs.iter().map(|o| RequestedOutput {
            name: str_view(&options.names.outputs[o.index()]),
            index: number(&options.signature.outputs[o.index()], o.index()),
            classes: o.classes,
        }));
        // Implicit states are produced like outputs, so they are requested, too.
        let asked = |index: Option<usize>| {
            request.context().outputs.iter().any(|o| Some(o.index()) == index)
        };
        let states = options.names.states.iter().filter(|(_, index)| !asked(*index));
        self.requested.extend(states.map(|(name, index)| RequestedOutput {
            name: str_view(name),
            index: index.map_or(u32::MAX, |i| i as u32),
            classes: 0,
        }));
        let params = self.params.len();
        for (key, value) in &request.parameters {
            let key = self.text(key);
            let (kind, text, bits) = match value {
                ParameterValue::String(s) => (param::STRING, self.text(s), 0),
                ParameterValue::Int(i) => (param::INT, EMPTY, *i as u64),
                ParameterValue::Bool(b) => (param::BOOL, EMPTY, u64::from(*b)),
                ParameterValue::Double(d) => (param::DOUBLE, EMPTY, d.to_bits()),
            };
            self.params.push(Param { key, kind, pad: 0, text, bits });
        }
        let (sequence, correlation_id_string) = match &request.sequence.id {
            CorrelationId::None => (0, EMPTY),
            CorrelationId::Number(n) => (*n, EMPTY),
            CorrelationId::Text(t) => (0, self.text(t)),
        };
        let request = Request {
            size: std::mem::size_of::<Request>() as u64,
            handle: handle.raw(),
            responder: handle.raw(),
            id: self.text(&request.id),
            correlation_id_string,
            correlation_id: sequence,
            flags: request_flags(request),
            batch_size: request.context().batch,
            priority: request.priority,
            received_ns: request.context().received_ns,
            queued_ns: request.responder.queued_ns(),
            deadline_ns: request.deadline_ns,
            cancelled: request.cancel_token().flag(),
            n_inputs: (self.tensors.len() - inputs) as u32,
            n_requested_outputs: (self.requested.len() - requested) as u32,
            n_params: (self.params.len() - params) as u32,
            pad: 0,
            inputs: self.tensors[inputs..].as_ptr(),
            requested_outputs: self.requested[requested..].as_ptr(),
            params: self.params[params..].as_ptr(),
            timeout_us: request.timeout_us,
            reserved: [0; 3],
        };
        self.requests.push(request);
    }

    fn inputs(&mut self, request: &InferRequest, options: &ViewOptions<'_>) {
        for input in &request.inputs {
            let spec = options.signature.input_spec(input.index);
            let shape_at = self.shapes.len();
            self.shapes.extend_from_slice(&options.signature.to_model(spec, &input.shape));
            let data = &input.data;
            self.bufs.push(Buf {
                ptr: data.as_ptr().cast_mut(),
                bytes: data.len() as u64,
                memory: abi_memory(data.location()),
                ready: data
                    .placed()
                    .map_or(null_mut(), |p| p.memory().ready_event().cast_mut().cast()),
                memory_handle: 0,
            });
            self.tensors.push(Tensor {
                name: str_view(&options.names.inputs[input.index]),
                index: number(spec, input.index),
                dtype: input.dtype.number(),
                rank: (self.shapes.len() - shape_at) as u32,
                flags: tensor_flags(spec),
                shape: self.shapes[shape_at..].as_ptr(),
                bytes: data.len() as u64,
                n_parts: 1,
                pad: 0,
                parts: &self.bufs[self.bufs.len() - 1],
            });
        }
    }

    /// Batch size of each request.
    pub fn rows(&self) -> impl Iterator<Item = u32> {
        self.requests.iter().map(|request| request.batch_size)
    }

    /// The input at that position of each request; `None` where a request has fewer.
    pub fn inputs_at(&self, position: usize) -> impl Iterator<Item = Option<InputView<'_>>> {
        let mut begin = 0;
        self.requests.iter().map(move |request| {
            let at = begin + position;
            begin += request.n_inputs as usize;
            if at >= begin {
                return None;
            }
            let tensor = self.tensors.get(at)?;
            // SAFETY: a shape points at `rank` elements of `self.shapes`, which does not move.
            let shape = unsafe { std::slice::from_raw_parts(tensor.shape, tensor.rank as usize) };
            Some(InputView { tensor, shape, buf: self.bufs.get(at)?, rows: request.batch_size })
        })
    }

    /// The shape of input number `index` of the configuration in each request; empty where a
    /// request has none.
    pub fn input_shapes(&self, index: usize) -> impl Iterator<Item = &[i64]> {
        self.requests.iter().map(move |request| {
            // SAFETY: the tensors of a request, and the dimensions of a tensor, are in arrays of
            // `self` that do not move.
            unsafe {
                let n = request.n_inputs as usize;
                let inputs: &[Tensor] =
                    if n == 0 { &[] } else { std::slice::from_raw_parts(request.inputs, n) };
                let source = inputs.iter().find(|input| input.index as usize == index);
                source.map_or(&[][..], |source| match source.rank as usize {
                    0 => &[],
                    rank => std::slice::from_raw_parts(source.shape, rank),
                })
            }
        })
    }

    fn text(&mut self, text: &str) -> Str {
        if text.is_empty() {
            return EMPTY;
        }
        // The strings are on the heap and stay in place when the vector grows.
        self.texts.push(c_text(text));
        str_view(&self.texts[self.texts.len() - 1])
    }

    pub fn clear(&mut self) {
        self.requests.clear();
        self.request_ptrs.clear();
        self.tensors.clear();
        self.bufs.clear();
        self.shapes.clear();
        self.requested.clear();
        self.params.clear();
        self.texts.clear();
        self.names = None;
    }
}

/// The flags of a request.
pub fn request_flags(request: &InferRequest) -> u32 {
    let flag = |on: bool, bit: u32| if on { bit } else { 0 };
    flag(request.sequence.start, request_flags::SEQUENCE_START)
        | flag(request.sequence.end, request_flags::SEQUENCE_END)
        | flag(request.warmup, request_flags::WARMUP)
        | flag(request.streaming, request_flags::STREAMING)
        | flag(request.responder.trace().is_some(), request_flags::TRACED)
}

/// Index in the configuration; none for inputs that the host adds.
fn number(spec: &TensorSpec, index: usize) -> u32 {
    match spec.role {
        InputRole::Declared => index as u32,
        InputRole::Control | InputRole::State | InputRole::Batch => u32::MAX,
    }
}

/// The flags of an input.
pub fn tensor_flags(spec: &TensorSpec) -> u32 {
    let role = match spec.role {
        InputRole::Declared => 0,
        InputRole::Control => tensor_flags::CONTROL,
        InputRole::State => tensor_flags::STATE,
        InputRole::Batch => tensor_flags::BATCH,
    };
    let flag = |on: bool, bit: u32| if on { bit } else { 0 };
    role | flag(spec.optional, tensor_flags::OPTIONAL)
        | flag(spec.shape_tensor, tensor_flags::SHAPE_TENSOR)
        | flag(spec.ragged, tensor_flags::RAGGED)
}

#[cfg(test)]
#[path = "views_tests.rs"]
mod tests;
