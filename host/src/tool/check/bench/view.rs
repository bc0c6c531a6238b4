//! Calls as a backend sees them: where inputs lie, what the views point at, and whether it left them alone.

use crate::plugin::text::{EMPTY, view};
use crate::sync::{Mutex, MutexGuard};
use crate::tool::check::child::{breach, seen};
use crate::tool::check::host::{request_handle, responder_handle};
use crate::tool::check::memory::{Block, Pages};
use crate::tool::check::model::Plan;
use std::collections::HashMap;
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, LazyLock};
use trtserver_plugin_api::abi::request::{Request, RequestedOutput};
use trtserver_plugin_api::abi::types::{self, Buf, Tensor, tensor_flags};

/// An input of a call: number in the configuration, type, shape as the model sees it, bytes.
#[derive(Clone, Default)]
pub struct InputSpec {
    pub index: usize,
    pub dtype: u32,
    pub shape: Vec<i64>,
    pub data: Vec<u8>,
}

#[derive(Clone, Default)]
pub struct CallSpec {
    pub rows: u32,
    pub inputs: Vec<InputSpec>,
    /// Numbers of the outputs.
    pub wanted: Vec<usize>,
    pub cancelled: bool,
    /// CLOCK_MONOTONIC nanoseconds; 0 = none.
    pub deadline_ns: u64,
    /// Its outputs are not held against the declaration: it is wrong itself.
    pub lenient: bool,
}

/// Where inputs lie.
#[derive(Clone, Copy, PartialEq)]
pub enum Lay {
    Ordinary,
    /// As little aligned as the backend allows.
    Skewed,
    /// Cut into pieces at element boundaries.
    Parts,
    /// In pages that cannot be written, and not even read after the release.
    Protected,
}

enum Memory {
    Block(Block),
    Pages(Pages),
}

impl Memory {
    fn ptr(&self) -> *mut u8 {
        match self {
            Self::Block(block) => block.ptr(),
            Self::Pages(pages) => pages.ptr(),
        }
    }
}

struct Input {
    name: String,
    memory: Memory,
    was: Vec<u8>,
    shape: Vec<i64>,
}

/// Everything that a call's view points at.
pub(super) struct Held {
    inputs: Vec<Input>,
    pub(super) call: Box<Request>,
    pub(super) cancelled: Arc<AtomicU32>,
    _views: (Vec<Tensor>, Vec<Vec<Buf>>, Vec<RequestedOutput>),
}

// SAFETY: what the pointers lead to is owned by this struct or by the model's plan, which outlives its calls.
unsafe impl Send for Held {}

static HELD: LazyLock<Mutex<HashMap<u64, Held>>> = LazyLock::new(Mutex::default);

pub(super) fn held() -> MutexGuard<'static, HashMap<u64, Held>> {
    HELD.lock()
}

/// A request was given back: from here on its inputs are out of bounds.
pub fn released(id: u64) {
    if let Some(held) = held().get(&id) {
        for input in &held.inputs {
            if let Memory::Pages(pages) = &input.memory {
                pages.forbid();
            }
        }
    }
}

/// The bytes of an input of several calls, one after another.
pub fn gather(calls: &[u64], position: usize) -> Result<Vec<u8>, String> {
    let held = held();
    let (mut all, mut first) = (Vec::new(), None);
    for id in calls {
        let input = held.get(id).and_then(|h| h.inputs.get(position));
        let Some(input) = input else {
            return Err(format!("there is no input number {position} in all calls"));
        };
        let item = input.shape.get(1..).unwrap_or_default();
        if calls.len() > 1 && *first.get_or_insert(item) != item {
            return Err(format!(
                "input '{}': shapes differ beyond the batch dimension",
                input.name
            ));
        }
        all.extend_from_slice(&input.was);
    }
    Ok(all)
}

impl Held {
    /// Inputs are as they were.
    pub(super) fn look(self) {
        for input in &self.inputs {
            seen("input.unchanged");
            let Memory::Block(block) = &input.memory else { continue };
            let now = block.copy();
            if let Some(at) = now.iter().zip(&input.was).position(|(a, b)| a != b) {
                breach(
                    "input.unchanged",
                    format!("input '{}' was written to at byte {at}", input.name),
                );
            } else if let Some(words) = block.overrun() {
                breach("input.unchanged", format!("input '{}': {words}", input.name));
            }
        }
    }
}

/// Lays out a call as a backend sees it.
pub(super) fn hold(plan: &Plan, spec: &CallSpec, id: u64, align: usize, lay: Lay) -> Held {
    let (mut inputs, mut tensors, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for input in &spec.inputs {
        let declared = &plan.signature.inputs[input.index];
        let size =
            crate::request::DType::from_number(input.dtype).and_then(crate::request::DType::size);
        let natural = align.max(size.unwrap_or(1));
        let skew = if lay == Lay::Skewed && natural < 64 { natural } else { 0 };
        let pages = (lay == Lay::Protected).then(|| Pages::of(&input.data)).flatten();
        let memory = match (pages, Block::of(&input.data, skew)) {
            (Some(pages), _) => Memory::Pages(pages),
            (None, Some(block)) => Memory::Block(block),
            (None, None) => continue,
        };
        let n = input.data.len();
        // A cut must leave both pieces aligned.
        let middle = (n / 2).next_multiple_of(natural.max(1));
        let cuts = if lay == Lay::Parts && size.is_some() && middle > 0 && middle < n {
            vec![0, middle, n]
        } else {
            vec![0, n]
        };
        let bufs: Vec<Buf> = cuts
            .windows(2)
            .map(|w| Buf {
                ptr: memory.ptr().wrapping_add(w[0]),
                bytes: (w[1] - w[0]) as u64,
                memory: types::Memory::CPU,
                ready: null_mut(),
                memory_handle: 0,
            })
            .collect();
        inputs.push(Input {
            name: declared.name.to_string(),
            memory,
            was: input.data.clone(),
            shape: input.shape.clone(),
        });
        tensors.push(Tensor {
            name: view(&plan.names.inputs[input.index]),
            index: input.index as u32,
            dtype: input.dtype,
            rank: input.shape.len() as u32,
            flags: if declared.optional { tensor_flags::OPTIONAL } else { 0 }
                | if declared.shape_tensor { tensor_flags::SHAPE_TENSOR } else { 0 },
            shape: null(),
            bytes: n as u64,
            n_parts: bufs.len() as u32,
            pad: 0,
            parts: null(),
        });
        parts.push(bufs);
    }
    for ((tensor, input), bufs) in tensors.iter_mut().zip(&inputs).zip(&parts) {
        (tensor.shape, tensor.parts) = (input.shape.as_ptr(), bufs.as_ptr());
    }
    let wanted: Vec<RequestedOutput> = spec
        .wanted
        .iter()
        .map(|i| RequestedOutput {
            name: view(&plan.names.outputs[*i]),
            index: *i as u32,
            classes: 0,
        })
        .collect();
    let cancelled = Arc::new(AtomicU32::new(u32::from(spec.cancelled)));
    let now = crate::clock::now_ns();
    let call = Box::new(Request {
        size: size_of::<Request>() as u64,
        handle: request_handle(id),
        responder: responder_handle(id),
        id: EMPTY,
        correlation_id_string: EMPTY,
        correlation_id: 0,
        flags: 0,
        batch_size: spec.rows,
        priority: 0,
        received_ns: now,
        queued_ns: now,
        deadline_ns: spec.deadline_ns,
        cancelled: cancelled.as_ptr(),
        n_inputs: tensors.len() as u32,
        n_requested_outputs: wanted.len() as u32,
        n_params: 0,
        pad: 0,
        inputs: tensors.as_ptr(),
        requested_outputs: wanted.as_ptr(),
        params: null(),
        reserved: [0; 4],
    });
    Held { inputs, call, cancelled, _views: (tensors, parts, wanted) }
}
