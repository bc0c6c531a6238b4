//! A context for tests without plugins or files: models served by threads.

use crate::clock::now_ns;
use crate::config;
use crate::error::Error;
use crate::net::context::Context;
use crate::repository::{Model, ModelTable, OpenVersion, Version};
use crate::request::{InferRequest, InferResponse, OutputTensor, Parameter, Responder, Signature};
use crate::scheduler::{Batch, Queue, Scheduler, SchedulingPolicy};
use crate::state::{Phase, ServerState};
use crate::stats::{Execution, VersionStats};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use trtserver_proto::v2::{DataType, ModelConfig, ModelInput, ModelOutput, ModelTransactionPolicy};

/// The models have inputs and outputs `FP` (FP32) and `TEXT` (BYTES), both of variable length:
/// - `echo`: returns its inputs; batches up to 4, versions 1 and 3
/// - `twice`: the same, with two responses; `stream`: the same, decoupled
/// - `silent`: ends without a response; `none`: the same, decoupled
/// - `broken`: fails; `stuck`: waits until it is cancelled
pub fn context() -> Arc<Context> {
    let args = ["trtserver", "--model-repository", "/nowhere", "--http-max-input-size", "100000"];
    let start = config::from_args(args.map(Into::into), &|_| None, "1").ok().unwrap();
    let table = ModelTable::default();
    let mut models = HashMap::new();
    for (name, decoupled) in [
        ("echo", false),
        ("twice", false),
        ("stream", true),
        ("silent", false),
        ("none", true),
        ("broken", false),
        ("stuck", false),
    ] {
        models.insert(name.to_owned(), model(name, decoupled));
    }
    table.replace_all(models);
    let state = ServerState::new();
    state.set_phase(Phase::Ready);
    Arc::new(Context {
        settings: Arc::new(start.settings),
        models: Arc::new(table),
        state: Arc::new(state),
        endpoints: Default::default(),
        control: Default::default(),
    })
}

fn model(name: &str, decoupled: bool) -> Arc<Model> {
    let input = |name: &str, data_type: DataType| ModelInput {
        name: name.into(),
        data_type: data_type as i32,
        dims: vec![-1],
        optional: true,
        ..Default::default()
    };
    let output = |name: &str, data_type: DataType| ModelOutput {
        name: name.into(),
        data_type: data_type as i32,
        dims: vec![-1],
        ..Default::default()
    };
    let config = Arc::new(ModelConfig {
        name: name.to_owned(),
        backend: "closure".to_owned(),
        max_batch_size: 4,
        input: vec![input("FP", DataType::TypeFp32), input("TEXT", DataType::TypeString)],
        output: vec![output("FP", DataType::TypeFp32), output("TEXT", DataType::TypeString)],
        model_transaction_policy: decoupled.then_some(ModelTransactionPolicy { decoupled }),
        ..Default::default()
    });
    let versions: Vec<_> =
        [1, 3].into_iter().map(|n| Version::new(n, Arc::new(VersionStats::new(1)))).collect();
    let table: BTreeMap<_, _> = versions.iter().map(|v| (v.number, Arc::clone(v))).collect();
    let model = Model::new(name, Some(Arc::clone(&config)), None, table);
    for version in versions {
        let signature = Arc::new(Signature::new(&config, |_| None).unwrap());
        let queue = Queue::new(SchedulingPolicy::Dynamic(Default::default()), &signature, 1, false);
        let served = OpenVersion {
            backend: None,
            name: name.into(),
            version: version.number,
            version_text: version.number.to_string().into(),
            config: Arc::clone(&config),
            signature,
            stats: Arc::clone(&version.stats),
            scheduler: Scheduler::Queue(Arc::clone(&queue)),
            usage: version.start_use(),
            arena: None,
        };
        model.set_ready(&version, Arc::new(served));
        let name = name.to_owned();
        std::thread::spawn(move || {
            let mut batch = Batch::default();
            while queue.take(0, &mut batch) {
                for request in batch.requests.drain(..) {
                    let start = now_ns();
                    let execution =
                        Execution::new(0, 1, request.context().batch, start, &Default::default());
                    request.responder.executed_in(Arc::new(execution));
                    execute(&name, &request, &request.responder);
                }
            }
        });
    }
    model
}

fn execute(name: &str, request: &InferRequest, responder: &Responder) {
    let end = match name {
        "silent" | "none" => Ok(None),
        "broken" => Err(Error::internal("out of order")),
        "stuck" => {
            while !responder.cancel_token.is_cancelled() {
                std::thread::yield_now();
            }
            Ok(None)
        }
        "twice" | "stream" => {
            responder.send(echo(request, responder)).unwrap();
            Ok(Some(echo(request, responder)))
        }
        _ => Ok(Some(echo(request, responder))),
    };
    responder.finish(end).unwrap();
}

fn echo(request: &InferRequest, responder: &Responder) -> InferResponse {
    let outputs = request.context().outputs.iter().filter_map(|requested| {
        let spec = &responder.context.signature.outputs[requested.index];
        let input = request.inputs.iter().find(|i| i.index == requested.index)?;
        Some(OutputTensor {
            name: spec.name.clone(),
            dtype: spec.dtype,
            shape: input.shape.clone(),
            data: input.data.clone(),
        })
    });
    let parameters: Vec<(String, Parameter)> = request.parameters.clone();
    InferResponse { outputs: outputs.collect(), parameters }
}
