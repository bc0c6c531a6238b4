//! Execution of batches.

use crate::booster::{Predictor, Rows, Task};
use crate::model::FilModel;
use crate::plan::OutputPlan;
use crate::rows::{OutputBlock, RowJob, count_threads, predict_rows};
use std::sync::Arc;
use std::time::Instant;
use trtserver_framework::execute::fail_if_cancelled;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::types::shape_text;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::{
    AnyThread, Batch, Dtype, Error, Instance, InstanceContext, Request, Response, Tensor,
};

/// Executes batches of one model.
pub struct FilInstance {
    /// One for each thread that a batch may use.
    predictors: Vec<Predictor>,
    model: Arc<FilModel>,
    /// Time of a row of each output on one thread, as measured; NaN before.
    row_ns: Vec<f64>,
    /// Shape of the output at hand.
    shape: Vec<i64>,
}

/// Rows of a request whose bytes are in several parts.
#[derive(Default)]
struct RowCopy {
    single: Vec<f32>,
    double: Vec<f64>,
}

impl Instance for FilInstance {
    type Model = FilModel;

    const ANY_THREAD: AnyThread<Self> = AnyThread::YES;

    fn open(model: &Arc<FilModel>, context: &InstanceContext) -> Result<Self, Error> {
        let booster = &model.file.booster;
        let tasks: Vec<Task> = model.plan.outputs.iter().map(|output| output.task).collect();
        let mut predictors = vec![booster.predictor(&tasks)?];
        for _ in 1..context.threads() {
            predictors.push(booster.predictor(&[])?);
        }
        Ok(Self {
            row_ns: vec![f64::NAN; model.plan.outputs.len()],
            predictors,
            model: Arc::clone(model),
            shape: Vec::new(),
        })
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        batch.mark_exec_start();
        if batch.len() < 2 || !self.execute_merged(batch)? {
            let mut computing = false;
            for request in batch.requests() {
                if fail_if_cancelled(request) {
                    continue;
                }
                if !std::mem::replace(&mut computing, true) {
                    batch.mark_compute_start();
                }
                if let Err(fault) = self.execute_one(request) {
                    request.fail(fault.into());
                }
            }
            batch.mark_compute_end();
        }
        batch.mark_exec_end();
        Ok(())
    }
}

impl FilInstance {
    fn execute_one(&mut self, request: Request<'_>) -> Result<(), PluginFault> {
        let model = Arc::clone(&self.model);
        let input = find_input(&model, request)?;
        let count = count_rows(&model, input)?;
        let mut copy = RowCopy::default();
        let rows = read_rows(input, &mut copy)?;
        let mut response = request.new_response()?;
        for (nth, output) in model.plan.outputs.iter().enumerate() {
            if response.output_requested(&output.name) {
                self.set_shape(output, count);
                let block = response_block(&mut response, output, &self.shape)?;
                self.predict(nth, rows, block, || request.is_cancelled())?;
            }
        }
        response.send()?;
        Ok(())
    }

    /// All requests in one run; false = each by itself, so that an invalid one gets its own error.
    fn execute_merged(&mut self, batch: &Batch<'_>) -> Result<bool, Error> {
        let model = Arc::clone(&self.model);
        if !model.plan.batching || batch.requests().any(|request| request.is_cancelled()) {
            return Ok(false);
        }
        let mut rows = 0;
        for request in batch.requests() {
            match find_input(&model, request).and_then(|input| count_rows(&model, input)) {
                Ok(own) => rows += own,
                Err(_) => return Ok(false),
            }
        }
        let at = batch.requests().next().and_then(|request| {
            request.inputs().position(|input| input.name() == model.plan.input)
        });
        let gathered = batch.gather(at.unwrap_or(0))?;
        let all = match gathered.dtype() {
            Dtype::Fp64 => Rows::F64(gathered.as_slice()?),
            _ => Rows::F32(gathered.as_slice()?),
        };
        if all.len() != rows * model.file.widths.features {
            return Ok(false);
        }
        batch.mark_compute_start();
        for (nth, output) in model.plan.outputs.iter().enumerate() {
            let is_requested = |request: Request<'_>| request.output_requested(&output.name);
            if batch.requests().any(is_requested) {
                self.set_shape(output, rows);
                let block = batch_block(batch, output, &self.shape)?;
                self.predict(nth, all, block, || false)?;
            }
        }
        batch.mark_compute_end();
        // A request of no output has nothing to be scattered.
        for request in batch.requests().filter(|own| own.requested_outputs().len() == 0) {
            request.new_response()?.send()?;
        }
        Ok(true)
    }

    fn set_shape(&mut self, output: &OutputPlan, rows: usize) {
        self.shape.clear();
        if self.model.plan.has_rows {
            self.shape.push(i64::try_from(rows).unwrap_or(i64::MAX));
        }
        self.shape.extend(&output.row);
    }

    /// Computes the output at position `nth`.
    fn predict(
        &mut self,
        nth: usize,
        rows: Rows<'_>,
        block: OutputBlock<'_>,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<(), PluginFault> {
        let OutputPlan { task, form, .. } = self.model.plan.outputs[nth];
        let booster = &self.model.file.booster;
        let count = rows.len() / booster.features().max(1);
        if count == 0 {
            return Ok(());
        }
        let threads = count_threads(count, self.row_ns[nth], self.predictors.len());
        let begin = Instant::now();
        let job = RowJob { booster, task, form };
        predict_rows(job, &mut self.predictors[..threads], rows, block, is_cancelled)?;
        let row_ns = begin.elapsed().as_nanos() as f64 * threads as f64 / count as f64;
        // Follows slowly: one slow run must not start threads for the next.
        let before = self.row_ns[nth];
        self.row_ns[nth] = if before.is_nan() { row_ns } else { before * 0.75 + row_ns * 0.25 };
        Ok(())
    }
}

fn find_input<'a>(model: &FilModel, request: Request<'a>) -> Result<Tensor<'a>, PluginFault> {
    Ok(request.required_input(&model.plan.input)?)
}

/// The rows of an input.
///
/// # Errors
/// Its type is another one, or its rows have not the features of the model.
fn count_rows(model: &FilModel, input: Tensor<'_>) -> Result<usize, PluginFault> {
    let expected = Dtype::from_abi(model.plan.dtype);
    if input.dtype() != expected {
        return Err(PluginFault::invalid(format!(
            "inference input '{}' data-type is '{}', model '{}' expects '{expected}'",
            input.name(),
            input.dtype(),
            model.name
        )));
    }
    let features = model.file.widths.features;
    let (shape, elements) = (input.shape(), input.elements());
    let rows = match (model.plan.has_rows, shape) {
        (true, [rows, ..]) => usize::try_from(*rows).unwrap_or(0),
        _ => 1,
    };
    let size = expected.size().unwrap_or(1);
    if rows.checked_mul(features) != Some(elements) || elements * size != input.byte_size() {
        return Err(PluginFault::invalid(format!(
            "unexpected shape for input '{}' for model '{}': {} holds rows of {} features, expected {features}",
            input.name(),
            model.name,
            shape_text(shape),
            elements / rows.max(1)
        )));
    }
    Ok(rows)
}

/// The elements of an input where they are, or copied.
fn read_rows<'a>(input: Tensor<'a>, copy: &'a mut RowCopy) -> Result<Rows<'a>, PluginFault> {
    if input.dtype() == Dtype::Fp64 {
        if let Ok(all) = input.as_slice::<f64>() {
            return Ok(Rows::F64(all));
        }
        copy.double = input.to_vec()?;
        return Ok(Rows::F64(&copy.double));
    }
    if let Ok(all) = input.as_slice::<f32>() {
        return Ok(Rows::F32(all));
    }
    copy.single = input.to_vec()?;
    Ok(Rows::F32(&copy.single))
}

fn response_block<'a>(
    response: &'a mut Response<'_>,
    output: &OutputPlan,
    shape: &[i64],
) -> Result<OutputBlock<'a>, Error> {
    Ok(match output.dtype {
        dtype::FP64 => OutputBlock::F64(response.output_slice(&output.name, shape)?),
        dtype::INT32 => OutputBlock::I32(response.output_slice(&output.name, shape)?),
        _ => OutputBlock::F32(response.output_slice(&output.name, shape)?),
    })
}

fn batch_block<'a>(
    batch: &Batch<'a>,
    output: &OutputPlan,
    shape: &[i64],
) -> Result<OutputBlock<'a>, Error> {
    Ok(match output.dtype {
        dtype::FP64 => OutputBlock::F64(batch.scatter_slice(&output.name, shape)?),
        dtype::INT32 => OutputBlock::I32(batch.scatter_slice(&output.name, shape)?),
        _ => OutputBlock::F32(batch.scatter_slice(&output.name, shape)?),
    })
}
