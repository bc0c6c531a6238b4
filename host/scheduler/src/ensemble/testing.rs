//! Ensembles for tests, of models that keep requests until a test responds.

use super::{Ensemble, EnsembleGraph, StepModel, StepModels, StepPlan};
use bytes::Bytes;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Code, Error, Result};
use trtserver_base::stats::{BatchExecution, FailureReason, VersionStats};
use trtserver_request::memory::OutputMemory;
use trtserver_request::testing::RecordedResponses;
use trtserver_request::{
    DType, InferRequest, InferResponse, InputTensor, ModelSignature, OutputTensor, RequestContext,
    RequestSequence, RequestedOutput, TensorSpec, UsedMemory, check, testing,
};

/// A model with inputs `I` and (optional) `J` and outputs `O` and `P`, all FP32.
pub struct ManualModel {
    signature: Arc<ModelSignature>,
    pub stats: Arc<VersionStats>,
    arrived: Mutex<Vec<InferRequest>>,
    /// Refuses requests before `submit` returns.
    refuses: bool,
    on_gpu: bool,
}

impl ManualModel {
    /// Number of requests without response.
    pub fn waiting(&self) -> usize {
        self.arrived.lock().len()
    }

    /// The oldest request.
    pub fn take(&self) -> InferRequest {
        self.arrived.lock().remove(0)
    }

    /// Puts a request back that [`ManualModel::take`] returned.
    pub fn submit_again(&self, request: InferRequest) {
        self.arrived.lock().insert(0, request);
    }

    /// Responds to the oldest request: each requested output is the first input.
    pub fn respond(&self) {
        let request = self.take();
        let input = &request.inputs[0];
        let outputs = request.context().outputs.iter().enumerate().map(|(position, requested)| {
            let name = Arc::clone(&self.signature.outputs[requested.index()].name);
            let data = request.context().deliver(position, input.data.clone(), &name)?;
            Ok(OutputTensor { name, dtype: input.dtype, shape: input.shape.clone(), data })
        });
        let outputs = outputs.collect::<Result<_>>();
        respond(&request, outputs.map(|outputs| InferResponse { outputs, ..Default::default() }));
    }
}

/// Responds as an instance does.
pub fn respond(request: &InferRequest, result: Result<InferResponse>) {
    let execution = BatchExecution::new(0, 1, request.context().batch, now_ns(), &Arc::default());
    request.responder.executed_in(Arc::new(execution));
    request.responder.finish(result.map(Some)).unwrap();
}

impl StepModel for ManualModel {
    fn signature(&self) -> &Arc<ModelSignature> {
        &self.signature
    }

    fn version(&self) -> i64 {
        1
    }

    fn stats(&self) -> &Arc<VersionStats> {
        &self.stats
    }

    fn writes_on_gpu(&self, _: &str) -> bool {
        self.on_gpu
    }

    fn reads_on_gpu(&self, _: &str) -> bool {
        self.on_gpu
    }

    fn has_sequence(&self, _: &RequestSequence) -> bool {
        false
    }

    fn submit(&self, request: InferRequest) {
        request.responder.queued(now_ns());
        if self.refuses {
            let error = Error::unavailable("Exceeds maximum queue size");
            return request.responder.fail(error, FailureReason::Rejected).unwrap();
        }
        self.arrived.lock().push(request);
    }
}

/// The models by name.
#[derive(Default)]
pub struct Models(Mutex<BTreeMap<String, Arc<ManualModel>>>);

impl Models {
    pub fn model(&self, name: &str) -> Arc<ManualModel> {
        Arc::clone(&self.0.lock()[name])
    }

    /// The model is no longer served.
    pub fn remove(&self, name: &str) {
        self.0.lock().remove(name);
    }

    pub fn waiting(&self, names: &str) -> Vec<usize> {
        names.split(' ').map(|name| self.model(name).waiting()).collect()
    }
}

impl StepModels for Models {
    fn find(&self, model: &str, version: Option<i64>) -> Result<Arc<dyn StepModel>> {
        assert_eq!(version, None);
        match self.0.lock().get(model) {
            Some(held) => Ok(Arc::clone(held) as Arc<dyn StepModel>),
            None => Err(Error::not_found(format!("'{model}' is not found"))),
        }
    }
}

fn spec(name: &str, dims: &[i64]) -> TensorSpec {
    TensorSpec::new(name, DType::Fp32, dims)
}

/// Maximum batch sizes and dims of the ensemble and of its models.
pub struct Setup {
    pub ensemble: (u32, &'static [i64]),
    pub models: (u32, &'static [i64]),
    /// Names of models that refuse requests.
    pub refusing: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self { ensemble: (8, &[2]), models: (8, &[2]), refusing: "" }
    }
}

/// An ensemble `e` with inputs `in` and (optional) `in2` and outputs `out` and `out2`. Steps are
/// written as `a:I=in,J=t>O=out`, where `a` is the model; steps of one model share it. Models whose
/// names begin with `gpu` are on GPUs; `I` is optional where the name begins with `free`.
pub fn ensemble(steps: &str, setup: &Setup) -> (Ensemble, Arc<Models>) {
    let map = |text: &str| -> Vec<(String, String)> {
        let pair = |pair: &str| {
            let (name, tensor) = pair.split_once('=').unwrap();
            (name.to_owned(), tensor.to_owned())
        };
        text.split(',').map(pair).collect()
    };
    let plan = |step: &str| {
        let (model, maps) = step.split_once(':').unwrap();
        let (inputs, outputs) = maps.split_once('>').unwrap();
        let (inputs, outputs) = (map(inputs), map(outputs));
        StepPlan { model: model.to_owned(), version: None, inputs, outputs }
    };
    let plans: Vec<StepPlan> = steps.split_whitespace().map(plan).collect();
    let models = Models::default();
    let (batch, dims) = setup.models;
    for plan in &plans {
        let signature = ModelSignature {
            model: plan.model.as_str().into(),
            max_batch_size: batch,
            inputs: vec![
                TensorSpec { optional: plan.model.starts_with("free"), ..spec("I", dims) },
                TensorSpec { optional: true, ..spec("J", dims) },
            ],
            outputs: vec![spec("O", dims), spec("P", dims)],
            ..Default::default()
        };
        let held = ManualModel {
            signature: Arc::new(signature),
            stats: Arc::new(VersionStats::new(1)),
            arrived: Mutex::default(),
            on_gpu: plan.model.starts_with("gpu"),
            refuses: setup.refusing.split(' ').any(|name| name == plan.model),
        };
        models.0.lock().insert(plan.model.clone(), Arc::new(held));
    }
    let (batch, dims) = setup.ensemble;
    let signature = ModelSignature {
        model: "e".into(),
        max_batch_size: batch,
        inputs: vec![spec("in", dims), TensorSpec { optional: true, ..spec("in2", dims) }],
        outputs: vec![spec("out", dims), spec("out2", dims)],
        ..Default::default()
    };
    let graph =
        EnsembleGraph::new(&Arc::new(signature), &plans, &vec![false; plans.len()]).unwrap();
    let models = Arc::new(models);
    (Ensemble::new(graph, Arc::clone(&models) as Arc<dyn StepModels>, 0), models)
}

/// A request with a tensor of this shape in `in` for the named outputs, with its statistics and
/// responses.
pub fn request(
    ensemble: &Ensemble,
    outputs: &str,
    shape: &[i64],
) -> (InferRequest, Arc<VersionStats>, RecordedResponses) {
    request_to(ensemble, outputs, shape, |_| None)
}

/// The same with destinations of outputs, by index.
pub fn request_to(
    ensemble: &Ensemble,
    outputs: &str,
    shape: &[i64],
    destination: impl Fn(usize) -> Option<Arc<OutputMemory>>,
) -> (InferRequest, Arc<VersionStats>, RecordedResponses) {
    let signature = &ensemble.graph.signature;
    let one = |name| check::find_output(signature, name).unwrap();
    let all = check::all_outputs(signature);
    let output = |name| all[one(name)].clone().written_to(destination(one(name)));
    let outputs: SmallVec<[RequestedOutput; 2]> = outputs.split_whitespace().map(output).collect();
    let stats = Arc::new(VersionStats::new(1));
    let context = RequestContext {
        signature: Arc::clone(signature),
        stats: Some(Arc::clone(&stats)),
        received_ns: now_ns(),
        batch: if signature.batching() { shape[0] as u32 } else { 1 },
        wording: trtserver_request::context::ErrorWording::default(),
        used_memory: UsedMemory::from_tensors(&[], &outputs),
        outputs,
        stream: None,
        waits: false,
    };
    let data = Bytes::from(vec![0; 4 * shape.iter().product::<i64>() as usize]);
    let input =
        InputTensor { index: 0, dtype: DType::Fp32, shape: shape.into(), data: data.into() };
    let (request, responses) = testing::request_with(context, "r", [input]);
    (request, stats, responses)
}

/// The single error response.
pub fn error(responses: &RecordedResponses) -> (Code, String) {
    let responses = responses.lock();
    assert_eq!(responses.len(), 1, "{responses:?}");
    let error = responses[0].0.as_ref().unwrap_err();
    (error.code, error.message.clone())
}
