//! A v2 server for tests.

use crate::context::FrontendContext;
use crate::testing;
use std::sync::Arc;
use trtserver_base::error::Error;
use trtserver_models::Model;
use trtserver_proto::v2::{DataType, ModelConfig, ModelInput, ModelOutput, ModelTransactionPolicy};
use trtserver_request::{
    InferRequest, InferResponse, ModelSignature, OutputTensor, ParameterValue, Responder,
};

/// The models have inputs and outputs `FP` (FP32) and `TEXT` (BYTES), both of variable length:
/// - `echo`: returns its inputs; batches up to 4, versions 1 and 3
/// - `twice`: the same, with two responses; `stream`: the same, decoupled
/// - `silent`: ends without a response; `none`: the same, decoupled
/// - `broken`: fails; `stuck`: waits until it is cancelled
pub fn context() -> Arc<FrontendContext> {
    context_with("")
}

/// The same with further flags.
pub fn context_with(flags: &str) -> Arc<FrontendContext> {
    let args = ["trtserver", "--model-repository", "/nowhere", "--http-max-input-size", "100000"];
    let args = args.into_iter().chain(flags.split_whitespace()).map(Into::into);
    let start = trtserver_config::from_args(args, &|_| None, "1").ok().unwrap();
    let models = [
        ("echo", false),
        ("twice", false),
        ("stream", true),
        ("silent", false),
        ("none", true),
        ("broken", false),
        ("stuck", false),
    ];
    testing::context(start.settings, models.map(|(name, decoupled)| model(name, decoupled)))
}

fn model(name: &'static str, decoupled: bool) -> Arc<Model> {
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
    let config = ModelConfig {
        name: name.to_owned(),
        backend: "closure".to_owned(),
        max_batch_size: 4,
        input: vec![input("FP", DataType::TypeFp32), input("TEXT", DataType::TypeString)],
        output: vec![output("FP", DataType::TypeFp32), output("TEXT", DataType::TypeString)],
        model_transaction_policy: decoupled.then_some(ModelTransactionPolicy { decoupled }),
        ..Default::default()
    };
    let signature = ModelSignature::new(&config, |_| None).unwrap();
    testing::model(config, signature, &[1, 3], move |request| {
        execute(name, request, &request.responder)
    })
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
        let spec = &responder.context.signature.outputs[requested.index()];
        let input = request.inputs.iter().find(|i| i.index == requested.index())?;
        Some(OutputTensor {
            name: spec.name.clone(),
            dtype: spec.dtype,
            shape: input.shape.clone(),
            data: input.data.clone(),
        })
    });
    let parameters: Vec<(String, ParameterValue)> = request.parameters.clone();
    InferResponse { outputs: outputs.collect(), parameters, unread: None }
}
