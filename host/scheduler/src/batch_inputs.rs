//! Adds the batch inputs of a model to the requests of a batch: counts and shapes of the source
//! input of each request.
//!
//! Each request gets a part of the tensor; the parts of all requests, one after another, are what
//! the model takes. All parts lie in one block in that order, so that gathering copies nothing.

use bytes::Bytes;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerHolder;
use trtserver_request::buffer::AlignedBuf;
use trtserver_request::tensor::element_count;
use trtserver_request::{
    BatchInput, BatchInputKind, DType, InferRequest, InputTensor, ModelSignature, Shape,
};

/// The part of one request: its shape, and the values.
type Part = (Shape, Vec<i64>);

/// Adds the batch inputs of the model to the requests of a batch. Without memory for them the
/// requests fail.
pub fn add_batch_inputs(signature: &ModelSignature, requests: &mut Vec<InferRequest>) {
    for batch_input in &signature.batch_inputs {
        if let Err(e) = add_one(signature, batch_input, requests) {
            for request in requests.drain(..) {
                let _ = request.responder.finish(Err(e.clone()));
            }
        }
    }
}

fn add_one(
    signature: &ModelSignature,
    batch_input: &BatchInput,
    requests: &mut [InferRequest],
) -> Result<()> {
    let BatchInput { kind, targets, dtype, source } = batch_input;
    let spec = signature.input_spec(*source);
    let shapes: Vec<Shape> = requests
        .iter()
        .map(|request| {
            let input = request.inputs.iter().find(|input| input.index == *source);
            input.map_or_else(Shape::default, |input| signature.to_model(spec, &input.shape))
        })
        .collect();
    let parts = batch_input_parts(*kind, signature.batching(), &shapes);
    let sizes: Vec<usize> = parts.iter().map(|(_, values)| values.len() * 4).collect();
    let block = batch_input_block(signature, *dtype, &parts)?;
    let mut at = 0;
    for ((request, (shape, _)), size) in requests.iter_mut().zip(parts).zip(sizes) {
        let data = block.slice(at..at + size);
        at += size;
        for target in targets {
            let (shape, data) = (shape.clone(), data.clone().into());
            request.inputs.push(InputTensor { index: *target, dtype: *dtype, shape, data });
        }
    }
    Ok(())
}

/// The parts of requests whose source inputs have these shapes, as the model sees them.
fn batch_input_parts(kind: BatchInputKind, batching: bool, shapes: &[Shape]) -> Vec<Part> {
    let count = |shape: &Shape| element_count(shape).unwrap_or(0) as i64;
    let most = shapes.iter().map(count).max().unwrap_or(0);
    let mut sum = 0;
    let part = |(nth, shape): (usize, &Shape)| -> Part {
        let first = nth == 0;
        sum += count(shape);
        let (rows, item) = match batching {
            true => (shape.first().copied().unwrap_or(0), shape.get(1..).unwrap_or_default()),
            false => (1, &shape[..]),
        };
        let rank = item.len() as i64;
        let items = || item.repeat(usize::try_from(rows).unwrap_or(0));
        match kind {
            BatchInputKind::ElementCount => ([1][..].into(), vec![count(shape)]),
            BatchInputKind::AccumulatedElementCount => ([1][..].into(), vec![sum]),
            BatchInputKind::AccumulatedElementCountWithZero if first => {
                ([2][..].into(), vec![0, sum])
            }
            BatchInputKind::AccumulatedElementCountWithZero => ([1][..].into(), vec![sum]),
            BatchInputKind::MaxElementCountAsShape if first => {
                ([most][..].into(), vec![0; usize::try_from(most).unwrap_or(0)])
            }
            BatchInputKind::MaxElementCountAsShape => ([0][..].into(), vec![]),
            BatchInputKind::ItemShape => ([rows, rank][..].into(), items()),
            BatchInputKind::ItemShapeFlatten => ([rows * rank][..].into(), items()),
        }
    };
    shapes.iter().enumerate().map(part).collect()
}

/// The values of all parts, one after another.
fn batch_input_block(signature: &ModelSignature, dtype: DType, parts: &[Part]) -> Result<Bytes> {
    let values = || parts.iter().flat_map(|(_, values)| values);
    let tag = signature.owner.tag(LedgerHolder::Control);
    let Some(mut block) = AlignedBuf::try_new(values().count() * 4, tag) else {
        return Err(Error::unavailable(format!(
            "model '{}': no memory for a batch input",
            signature.model
        )));
    };
    for (to, value) in block.as_mut().chunks_exact_mut(4).zip(values()) {
        to.copy_from_slice(&match dtype {
            DType::Fp32 => (*value as f32).to_le_bytes(),
            _ => (*value as i32).to_le_bytes(),
        });
    }
    Ok(block.into_bytes())
}

#[cfg(test)]
#[path = "batch_inputs_tests.rs"]
mod tests;
