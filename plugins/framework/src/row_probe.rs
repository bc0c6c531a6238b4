//! Whether the first dimension of a model is a batch: runs it with several rows of zeros and counts
//! the rows of its outputs.
//!
//! A file may call every first dimension by the same name, or by none, and mean different things:
//! images in, found objects out. Dynamic dimensions other than the batch get one size after the
//! other until a run succeeds. Sizes begin at 16: with a size of 1 a first dimension of rows times
//! size would pass for the batch.

use crate::fault::PluginFault;
use crate::types::{element_count, shape_text};

/// Sizes that are tried for a dynamic dimension that is not the batch: tokens, pixels, samples.
const SIZES: [i64; 4] = [16, 64, 256, 4096];

/// No run has an input of more elements.
const MAX_ELEMENTS: usize = 1 << 24;

/// An input of the model, batch dimension first.
#[derive(Debug, Clone)]
pub struct ProbedInput<'a> {
    pub name: &'a str,
    pub dims: &'a [i64],
    /// One for each dimension, or none; empty = no name.
    pub dim_names: &'a [String],
}

/// Name and shape of an output of a run.
pub type ProbedOutput = (String, Vec<i64>);

/// `run` executes the model with inputs of zeros of these shapes.
///
/// # Errors
/// Why the first dimension is not a batch: an output has another number of rows, or no run
/// succeeds.
pub fn expect_rows(
    inputs: &[ProbedInput<'_>],
    run: impl Fn(&[Vec<i64>]) -> Result<Vec<ProbedOutput>, PluginFault>,
) -> Result<(), String> {
    let batch = inputs.iter().find_map(|input| input.dim_names.first());
    let batch = batch.map_or("", String::as_str);
    let varies = inputs.iter().any(|input| input.dims.iter().skip(1).any(|&dim| dim == -1));
    // A dimension without a name may be a number by chance, so it is looked at twice.
    let counts: &[i64] = if batch.is_empty() { &[2, 3] } else { &[2] };
    let sizes = if varies { &SIZES[..] } else { &SIZES[..1] };
    let mut first_failure = None;
    for &size in sizes {
        let mut failed = None;
        for &rows in counts {
            let shapes: Vec<Vec<i64>> =
                inputs.iter().map(|input| probe_shape(input, batch, rows, size)).collect();
            match expect_small(inputs, &shapes).and_then(|()| run(&shapes)) {
                Ok(outputs) => outputs.iter().try_for_each(|output| expect(output, rows))?,
                Err(fault) => {
                    failed = Some(format!("a run of {rows} rows of zeros fails: {fault}"));
                    break;
                }
            }
        }
        match failed {
            None => return Ok(()),
            Some(why) => _ = first_failure.get_or_insert(why),
        }
    }
    Err(first_failure.unwrap_or_default())
}

fn probe_shape(input: &ProbedInput<'_>, batch: &str, rows: i64, size: i64) -> Vec<i64> {
    let is_batch = |at: usize| {
        at == 0 || !batch.is_empty() && input.dim_names.get(at).is_some_and(|name| name == batch)
    };
    let dims = input.dims.iter().enumerate();
    let dim = |(at, &dim): (usize, &i64)| match dim {
        -1 if is_batch(at) => rows,
        -1 => size,
        fixed => fixed,
    };
    dims.map(dim).collect()
}

fn expect_small(inputs: &[ProbedInput<'_>], shapes: &[Vec<i64>]) -> Result<(), PluginFault> {
    let is_large = |shape: &[i64]| element_count(shape).is_none_or(|count| count > MAX_ELEMENTS);
    match inputs.iter().zip(shapes).find(|(_, shape)| is_large(shape)) {
        None => Ok(()),
        Some((input, shape)) => Err(PluginFault::invalid(format!(
            "input '{}' of shape {} is too large",
            input.name,
            shape_text(shape)
        ))),
    }
}

fn expect((name, shape): &ProbedOutput, rows: i64) -> Result<(), String> {
    if shape.first() == Some(&rows) {
        return Ok(());
    }
    Err(format!(
        "a run of {rows} rows of zeros returned output '{name}' of shape {}, whose first dimension is not {rows}",
        shape_text(shape)
    ))
}

#[cfg(test)]
#[path = "row_probe_tests.rs"]
mod tests;
