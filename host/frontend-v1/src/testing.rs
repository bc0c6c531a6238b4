//! A v1 server for tests.
//!
//! `simple` (versions 0 and 1, up to 8 rows): INT32 INPUT0 and INPUT1 [16]; OUTPUT0 is the sum,
//! OUTPUT1 the difference and has labels. `m` (version 3; 4 failed to load; no batching): FP32 V
//! [-1,2], STRING S [2], BOOL P [1] optional; FP16 F [1], BOOL B [1], FP32 C [1,4]; its backend
//! always fails. `refused` has an invalid configuration.

use std::sync::Arc;
use std::time::Duration;
use trtserver_base::error::{Error, Result};
use trtserver_config::{ServerSettings, from_args};
use trtserver_models::Model;
use trtserver_proto::v2::ModelConfig;
use trtserver_request::class_labels::ClassLabels;
use trtserver_request::{
    DType, InferRequest, InferResponse, ModelSignature, OutputTensor, TensorSpec,
};
use trtserver_wire::context::FrontendContext;
use trtserver_wire::testing;

pub fn settings(flags: &str) -> ServerSettings {
    let args = ["trtserver", "--model-store=/nowhere"].into_iter().chain(flags.split_whitespace());
    from_args(args.map(Into::into), &|_| None, "1.0").expect("flags").settings
}

/// A server with the models of the module text.
pub fn context(flags: &str) -> Arc<FrontendContext> {
    let simple = model("simple", simple_signature(), &[0, 1], add_and_subtract);
    let m = model("m", m_signature(), &[3, 4], |_| Err(Error::internal("backend says no")));
    m.set_unavailable(&m.versions[&4], "no file");
    let refused = Model::new("refused", None, Some("bad".into()), Default::default());
    let settings = ServerSettings { strict_readiness: false, ..settings(flags) };
    testing::context(settings, [simple, m, refused])
}

fn spec(name: &str, dtype: DType, dims: &[i64]) -> TensorSpec {
    TensorSpec::new(name, dtype, dims)
}

fn simple_signature() -> ModelSignature {
    let labels = ClassLabels::from_lines("zero\none".to_owned()).unwrap();
    let labelled =
        TensorSpec { labels: Some(labels.into()), ..spec("OUTPUT1", DType::Int32, &[16]) };
    ModelSignature {
        model: "simple".into(),
        max_batch_size: 8,
        inputs: ["INPUT0", "INPUT1"].map(|n| spec(n, DType::Int32, &[16])).to_vec(),
        outputs: vec![spec("OUTPUT0", DType::Int32, &[16]), labelled],
        ..Default::default()
    }
}

fn m_signature() -> ModelSignature {
    let optional = TensorSpec { optional: true, ..spec("P", DType::Bool, &[1]) };
    ModelSignature {
        model: "m".into(),
        max_batch_size: 0,
        inputs: vec![spec("V", DType::Fp32, &[-1, 2]), spec("S", DType::String, &[2]), optional],
        outputs: vec![
            spec("F", DType::Fp16, &[1]),
            spec("B", DType::Bool, &[1]),
            spec("C", DType::Fp32, &[1, 4]),
        ],
        ..Default::default()
    }
}

type Execute = fn(&InferRequest) -> Result<InferResponse>;

/// A request with an id above 1000 takes that many microseconds, at most a second.
fn model(name: &str, signature: ModelSignature, versions: &[i64], execute: Execute) -> Arc<Model> {
    let config = ModelConfig { name: name.into(), ..ModelConfig::default() };
    testing::model(config, signature, versions, move |request| {
        if let Some(us) = request.id.parse().ok().filter(|us| *us > 1000) {
            std::thread::sleep(Duration::from_micros(u64::min(us, 1_000_000)));
        }
        let _ = request.responder.finish(execute(request).map(Some));
    })
}

fn add_and_subtract(request: &InferRequest) -> Result<InferResponse> {
    let number = |b: &[u8]| i32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    let pairs = || {
        let [a, b] = [0, 1].map(|i| request.inputs[i].data.payload().chunks_exact(4).map(number));
        a.zip(b)
    };
    let outputs = request.context().outputs.iter().map(|requested| {
        let sum = |(a, b): (i32, i32)| if requested.index() == 0 { a + b } else { a - b };
        OutputTensor {
            name: ["OUTPUT0", "OUTPUT1"][requested.index()].into(),
            dtype: DType::Int32,
            shape: request.inputs[0].shape.clone(),
            data: pairs().flat_map(|p| sum(p).to_le_bytes()).collect::<Vec<u8>>().into(),
        }
    });
    Ok(InferResponse { outputs: outputs.collect(), ..Default::default() })
}
