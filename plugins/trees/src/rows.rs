//! Many rows: divided among threads, and computed in chunks, between which a cancelled request
//! ends.

use crate::booster::{Booster, Predictor, Rows, Task, Values};
use crate::scores::{OutputElement, ScoreForm, write_rows};
use std::sync::atomic::{AtomicBool, Ordering};
use trtserver_framework::fault::PluginFault;

/// Values that one chunk computes. The libraries and this plugin hold them until they are written.
const CHUNK_VALUES: usize = 1 << 18;
/// Rows of a chunk, at most: below it the cost of a call is not noticed any more.
const CHUNK_ROWS: usize = 1 << 14;

/// Work worth a thread of its own, which takes some tens of microseconds to start.
const THREAD_NS: f64 = 400_000.0;

/// Memory of an output.
pub enum OutputBlock<'a> {
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
    I32(&'a mut [i32]),
}

impl<'a> OutputBlock<'a> {
    fn split_at(self, at: usize) -> (OutputBlock<'a>, OutputBlock<'a>) {
        fn split<T>(all: &mut [T], at: usize) -> (&mut [T], &mut [T]) {
            all.split_at_mut(at.min(all.len()))
        }
        match self {
            OutputBlock::F32(all) => {
                let (a, b) = split(all, at);
                (OutputBlock::F32(a), OutputBlock::F32(b))
            }
            OutputBlock::F64(all) => {
                let (a, b) = split(all, at);
                (OutputBlock::F64(a), OutputBlock::F64(b))
            }
            OutputBlock::I32(all) => {
                let (a, b) = split(all, at);
                (OutputBlock::I32(a), OutputBlock::I32(b))
            }
        }
    }

    fn write(self, form: ScoreForm, scores: usize, values: Values<'_>) {
        fn convert<O: OutputElement>(
            form: ScoreForm,
            scores: usize,
            values: Values<'_>,
            out: &mut [O],
        ) {
            match values {
                Values::F32(values) => write_rows(form, scores, values, out),
                Values::F64(values) => write_rows(form, scores, values, out),
            }
        }
        match self {
            OutputBlock::F32(out) => convert(form, scores, values, out),
            OutputBlock::F64(out) => convert(form, scores, values, out),
            OutputBlock::I32(out) => convert(form, scores, values, out),
        }
    }
}

/// What is computed.
#[derive(Clone, Copy)]
pub struct RowJob<'a> {
    pub booster: &'a Booster,
    pub task: Task,
    pub form: ScoreForm,
}

/// How many threads rows are worth. `row_ns`: time of a row on one thread, as far as known.
pub fn count_threads(rows: usize, row_ns: f64, available: usize) -> usize {
    let worth = rows as f64 * row_ns / THREAD_NS;
    (worth as usize).clamp(1, available.clamp(1, rows.max(1)))
}

/// Computes `rows` with as many threads as there are predictors; the calling thread is one of them,
/// and asks `is_cancelled` between its chunks.
///
/// # Errors
/// The framework's; or the request was cancelled.
pub fn predict_rows(
    job: RowJob<'_>,
    predictors: &mut [Predictor],
    rows: Rows<'_>,
    out: OutputBlock<'_>,
    is_cancelled: impl Fn() -> bool,
) -> Result<(), PluginFault> {
    let features = job.booster.features().max(1);
    let count = rows.len() / features;
    let width = job.form.width(job.booster.width(job.task));
    let stop = AtomicBool::new(false);
    let Some((own, others)) = predictors.split_first_mut() else {
        return Err(PluginFault::internal("there is no predictor"));
    };
    let (own_rows, parts) = divide_rows(count, others.len());
    std::thread::scope(|scope| {
        let (first, mut rest) = rows.split_at(own_rows * features);
        let (first_out, mut rest_out) = out.split_at(own_rows * width);
        let mut running = Vec::with_capacity(others.len());
        for (predictor, part) in others.iter_mut().zip(parts) {
            let (part_rows, after) = rest.split_at(part * features);
            let (part_out, after_out) = rest_out.split_at(part * width);
            (rest, rest_out) = (after, after_out);
            let stop = &stop;
            running.push(scope.spawn(move || {
                predict_chunks(job, predictor, part_rows, part_out, || stop.load(Ordering::Relaxed))
            }));
        }
        let result = predict_chunks(job, own, first, first_out, &is_cancelled);
        if result.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        for thread in running {
            let joined = thread.join();
            let lost = |_| PluginFault::internal("a thread of the prediction panicked");
            result.clone().and(joined.map_err(lost).flatten())?;
        }
        result
    })
}

/// The rows of the calling thread and those of each of the others.
fn divide_rows(count: usize, others: usize) -> (usize, impl Iterator<Item = usize>) {
    let each = count / (others + 1);
    (count - each * others, (0..others).map(move |_| each))
}

fn predict_chunks(
    job: RowJob<'_>,
    predictor: &mut Predictor,
    mut rows: Rows<'_>,
    mut out: OutputBlock<'_>,
    is_cancelled: impl Fn() -> bool,
) -> Result<(), PluginFault> {
    let features = job.booster.features().max(1);
    let scores = job.booster.width(job.task);
    let chunk = (CHUNK_VALUES / scores.max(features)).clamp(1, CHUNK_ROWS);
    while rows.len() > 0 {
        let now = chunk.min(rows.len() / features);
        let (these, after) = rows.split_at(now * features);
        let (block, after_block) = out.split_at(now * job.form.width(scores));
        (rows, out) = (after, after_block);
        let mut found = 0;
        job.booster.predict(predictor, job.task, these, |values| {
            found = match values {
                Values::F32(values) => values.len(),
                Values::F64(values) => values.len(),
            };
            if found == now * scores {
                block.write(job.form, scores, values);
            }
        })?;
        if found != now * scores {
            return Err(PluginFault::internal(format!(
                "the framework returned {found} values for {now} rows, expected {}",
                now * scores
            )));
        }
        if rows.len() > 0 && is_cancelled() {
            return Err(PluginFault {
                code: trtserver_plugin_api::abi::types::code::CANCELLED,
                text: "the request was cancelled while it ran".to_owned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
