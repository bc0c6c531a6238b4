//! Batch inputs (`batch_input`), from the checked configuration.

use super::hidden_inputs::hide_input;
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::batch_input::Kind;
use trtserver_request::{BatchInput, BatchInputKind, DType, InputRole, ModelSignature};

/// Adds the batch inputs to `signature`.
pub fn add_batch_inputs(config: &ModelConfig, signature: &mut ModelSignature) {
    for batch in &config.batch_input {
        let source = batch.source_input.first().and_then(|source| signature.input(source));
        let (Some(source), Some(dtype)) = (source, DType::from_proto(batch.data_type())) else {
            continue;
        };
        let kind = match batch.kind() {
            Kind::BatchElementCount => BatchInputKind::ElementCount,
            Kind::BatchAccumulatedElementCount => BatchInputKind::AccumulatedElementCount,
            Kind::BatchAccumulatedElementCountWithZero => {
                BatchInputKind::AccumulatedElementCountWithZero
            }
            Kind::BatchMaxElementCountAsShape => BatchInputKind::MaxElementCountAsShape,
            Kind::BatchItemShape => BatchInputKind::ItemShape,
            Kind::BatchItemShapeFlatten => BatchInputKind::ItemShapeFlatten,
        };
        let targets = batch.target_name.iter();
        let targets =
            targets.map(|name| hide_input(signature, name, dtype, &[-1], InputRole::Batch));
        let targets = targets.collect();
        signature.batch_inputs.push(BatchInput { kind, targets, dtype, source });
    }
}
