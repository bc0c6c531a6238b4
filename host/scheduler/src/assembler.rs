//! Assembles a batch from the entries that the batcher chose: adds sequence controls, implicit
//! states, null requests and batch inputs.

use super::batch_inputs;
use super::batcher::{BatchEntry, BatchableRequest, ClientShare};
use super::null_errors;
use bytes::Bytes;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerHolder;
use trtserver_request::buffer::AlignedBuf;
use trtserver_request::tensor::element_count;
use trtserver_request::{
    CorrelationId, DType, DiscardResponses, ImplicitState, InferRequest, InputTensor,
    ModelSignature, RequestContext, RequestSequence, RequestedOutput, Responder, Shape, TensorData,
};

impl BatchableRequest for InferRequest {
    type Memory = ImplicitState;

    fn rows(&self) -> u32 {
        self.context().batch.max(1)
    }

    fn priority(&self) -> u64 {
        self.priority
    }

    fn timeout_us(&self) -> u64 {
        self.timeout_us
    }

    fn sequence(&self) -> &RequestSequence {
        &self.sequence
    }

    fn client(&self) -> ClientShare {
        let none = ClientShare { key: 0, weight: 1 };
        self.client
            .as_ref()
            .map_or(none, |turn| ClientShare { key: turn.client.key, weight: turn.client.weight })
    }

    fn compatible_with(&self, first: &Self) -> bool {
        let signature = &self.context().signature;
        let alike = |(a, b): (&InputTensor, &InputTensor)| {
            let spec = signature.input_spec(a.index);
            let row = usize::from(signature.batching() && !spec.shape_tensor);
            a.index == b.index
                && (spec.ragged || a.shape.get(row..) == b.shape.get(row..))
                // The values of a shape tensor are a shape too.
                && (!spec.shape_tensor || a.data == b.data)
        };
        self.inputs.len() == first.inputs.len() && self.inputs.iter().zip(&first.inputs).all(alike)
    }

    fn set_memory(&mut self, memory: &ImplicitState) {
        self.responder.set_implicit_state(memory.clone());
    }
}

/// A control with a false and a true value.
#[derive(Clone, Debug)]
pub struct FlagControl {
    /// Index of the hidden input.
    pub input: usize,
    pub dtype: DType,
    /// One element each.
    pub false_true: [Bytes; 2],
}

/// The correlation id as a control.
#[derive(Clone, Debug)]
pub struct CorrelationControl {
    pub input: usize,
    pub name: Arc<str>,
    pub dtype: DType,
}

/// Control tensors of a sequence model.
#[derive(Clone, Debug, Default)]
pub struct SequenceControls {
    pub start: Option<FlagControl>,
    pub end: Option<FlagControl>,
    pub ready: Option<FlagControl>,
    pub corrid: Option<CorrelationControl>,
}

/// Turns the entries that a batcher chose into the requests of a batch.
pub struct BatchAssembler {
    signature: Arc<ModelSignature>,
    /// `None`: the model has no sequences.
    controls: Option<SequenceControls>,
    /// Input data of null requests, as large as the largest one so far.
    zeros: Mutex<Bytes>,
}

impl BatchAssembler {
    pub fn new(signature: Arc<ModelSignature>, controls: Option<SequenceControls>) -> Self {
        Self { signature, controls, zeros: Mutex::default() }
    }

    /// Refuses a correlation id whose type is not that of the control (docs/protocol/v2.md §4.3).
    pub fn check(&self, request: &InferRequest) -> Result<()> {
        let Some(corrid) = self.controls.as_ref().and_then(|c| c.corrid.as_ref()) else {
            return Ok(());
        };
        let given = match &request.sequence.id {
            CorrelationId::None => return Ok(()),
            CorrelationId::Number(_) => DType::Uint64,
            CorrelationId::Text(_) => DType::String,
        };
        if (given == DType::String) == (corrid.dtype == DType::String) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{}sequence batching control '{}' data-type is '{}', but model '{}' expects '{}'",
            request.error_prefix(),
            corrid.name,
            given.v2_name(),
            self.signature.model,
            corrid.dtype.v2_name()
        )))
    }

    /// Moves `entries` to `requests`, completed.
    pub fn assemble(
        &self,
        entries: &mut Vec<BatchEntry<InferRequest>>,
        requests: &mut Vec<InferRequest>,
    ) {
        self.move_entries(entries, requests);
        if !self.signature.batch_inputs.is_empty() {
            batch_inputs::add_batch_inputs(&self.signature, requests);
        }
    }

    fn move_entries(
        &self,
        entries: &mut Vec<BatchEntry<InferRequest>>,
        requests: &mut Vec<InferRequest>,
    ) {
        let Some(controls) = &self.controls else {
            requests.extend(entries.drain(..).filter_map(|entry| match entry {
                BatchEntry::Request(request) => Some(request),
                BatchEntry::Null => None,
            }));
            return;
        };
        let nulls = entries.iter().any(|entry| matches!(entry, BatchEntry::Null));
        let first = entries.iter().filter(|_| nulls).find_map(|entry| match entry {
            BatchEntry::Request(request) => Some(self.null_template(controls, request)),
            BatchEntry::Null => None,
        });
        for entry in entries.drain(..) {
            match (entry, &first) {
                (BatchEntry::Request(mut request), _) => {
                    self.complete(controls, &mut request);
                    requests.push(request);
                }
                (BatchEntry::Null, Some(null)) => requests.push(null.request(&self.signature)),
                (BatchEntry::Null, None) => {}
            }
        }
        if nulls {
            null_errors::share_null_errors(requests, |request| !request.context().is_counted());
        }
    }

    /// Adds controls and states to a request of a sequence.
    fn complete(&self, controls: &SequenceControls, request: &mut InferRequest) {
        let RequestSequence { id, start, end } = &request.sequence;
        let id = id.clone();
        let flags = [(&controls.start, *start), (&controls.end, *end), (&controls.ready, true)];
        self.add_controls(controls, &id, flags, &mut request.inputs);
        if !self.signature.states.is_empty()
            && let Some(memory) = request.responder.implicit_state()
        {
            if request.sequence.start {
                memory.reset();
            }
            memory.inputs(&self.signature, &mut request.inputs);
        }
    }

    fn add_controls(
        &self,
        controls: &SequenceControls,
        id: &CorrelationId,
        flags: [(&Option<FlagControl>, bool); 3],
        inputs: &mut impl Extend<InputTensor>,
    ) {
        let shape: Shape =
            if self.signature.batching() { [1, 1][..].into() } else { [1][..].into() };
        inputs.extend(flags.into_iter().filter_map(|(flag, value)| {
            let flag = flag.as_ref()?;
            let data = flag.false_true[usize::from(value)].clone().into();
            Some(InputTensor { index: flag.input, dtype: flag.dtype, shape: shape.clone(), data })
        }));
        inputs.extend(controls.corrid.as_ref().map(|corrid| {
            let data = correlation_element(id, corrid.dtype).into();
            InputTensor { index: corrid.input, dtype: corrid.dtype, shape, data }
        }));
    }

    /// The template of null requests beside `like`: same shapes, all data zero.
    fn null_template(&self, controls: &SequenceControls, like: &InferRequest) -> NullTemplate {
        let zero = |input: &InputTensor| {
            // An empty string is four bytes of length.
            let size = input.dtype.size().unwrap_or(4);
            let bytes = element_count(&input.shape).unwrap_or(0) * size;
            // Backends ignore the data of a null request; without memory for zeros it is that of
            // the request beside it.
            let data = self.zeros(bytes).map_or_else(|| input.data.clone(), TensorData::from);
            InputTensor { data, ..input.clone() }
        };
        let mut inputs: SmallVec<[InputTensor; 2]> = like.inputs.iter().map(zero).collect();
        let flags = [(&controls.start, false), (&controls.end, false), (&controls.ready, false)];
        self.add_controls(controls, &CorrelationId::None, flags, &mut inputs);
        ImplicitState::default().inputs(&self.signature, &mut inputs);
        let RequestContext { outputs, batch, .. } = like.context();
        // Nothing is written to the client's memory.
        let outputs = outputs.iter().map(|o| RequestedOutput::new(o.index(), o.classes)).collect();
        NullTemplate { inputs, outputs, batch: *batch }
    }

    fn zeros(&self, bytes: usize) -> Option<Bytes> {
        let mut zeros = self.zeros.lock();
        if zeros.len() < bytes {
            *zeros = AlignedBuf::try_new(bytes, self.signature.owner.tag(LedgerHolder::Control))?
                .into_bytes();
        }
        Some(zeros.slice(..bytes))
    }
}

/// What all null requests of a batch share.
struct NullTemplate {
    inputs: SmallVec<[InputTensor; 2]>,
    outputs: SmallVec<[RequestedOutput; 2]>,
    batch: u32,
}

impl NullTemplate {
    fn request(&self, signature: &Arc<ModelSignature>) -> InferRequest {
        let now = now_ns();
        let context = RequestContext {
            signature: Arc::clone(signature),
            stats: None,
            received_ns: now,
            batch: self.batch,
            outputs: self.outputs.clone(),
            stream: None,
            waits: false,
            wording: trtserver_request::context::ErrorWording::default(),
            used_memory: None,
        };
        let responder = Responder::new(context, DiscardResponses);
        responder.queued(now);
        InferRequest::new(responder, self.inputs.clone())
    }
}

/// The id as one element of type `dtype`; integers are truncated.
fn correlation_element(id: &CorrelationId, dtype: DType) -> Bytes {
    if dtype == DType::String {
        let text = if let CorrelationId::Text(text) = id { text.as_str() } else { "" };
        let length = text.len() as u32;
        return AlignedBuf::copy_parts(
            &[&length.to_le_bytes(), text.as_bytes()],
            LedgerHolder::Control,
        )
        .into_bytes();
    }
    let number = if let CorrelationId::Number(n) = id { *n } else { 0 };
    let size = dtype.size().unwrap_or(8).min(8);
    AlignedBuf::copy_parts(&[&number.to_le_bytes()[..size]], LedgerHolder::Control).into_bytes()
}
