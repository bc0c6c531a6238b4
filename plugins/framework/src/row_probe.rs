//! Whether the first dimension of a model is a batch: runs it with several rows of zeros and counts
//! the rows of its outputs; then with other rows beside one, which must not change its results.
//!
//! A file may call every first dimension by the same name, or by none, and mean different things:
//! images in, found objects out. Dynamic dimensions other than the batch get one size after the
//! other until a run succeeds. Sizes begin at 16: with a size of 1 a first dimension of rows times
//! size would pass for the batch.

use crate::fault::PluginFault;
use crate::row_values::{fill, relative_distance};
use crate::types::{element_count, shape_text, type_size};

/// Sizes that are tried for a dynamic dimension that is not the batch: tokens, pixels, samples.
const SIZES: [i64; 4] = [16, 64, 256, 4096];

/// No run has an input of more elements.
const MAX_ELEMENTS: usize = 1 << 24;

/// Rows of the runs that compare results: the second one is compared, so that a row before it and
/// one behind it are seen.
const COMPARED_ROWS: i64 = 3;
const COMPARED_ROW: usize = 1;

/// Results that are farther apart, by [`relative_distance`], depend on the other rows. Networks that
/// are quantised as they run scale all rows of a run alike, by the largest element: 0.10 was the
/// most of nine public ones. Where a model sums or normalises over rows, it is 0.2 to 1.
const MAX_DISTANCE: f64 = 0.15;

/// More than the rounding of sums in another order.
const RANDOM_DISTANCE: f64 = 1e-3;

/// An input of the model, batch dimension first.
#[derive(Debug, Clone)]
pub struct ProbedInput<'a> {
    pub name: &'a str,
    pub dims: &'a [i64],
    /// One for each dimension, or none; empty = no name.
    pub dim_names: &'a [String],
}

/// An output of a run.
#[derive(Debug, Clone)]
pub struct ProbedOutput {
    pub name: String,
    pub shape: Vec<i64>,
    /// One of `dtype`.
    pub dtype: u32,
    /// As many as [`ProbeRun::compared_bytes`], or none.
    pub elements: Vec<u8>,
}

/// A run of the model.
#[derive(Debug, Clone, Copy)]
pub struct ProbeRun<'a> {
    /// Of all inputs.
    pub shapes: &'a [Vec<i64>],
    values: ProbedValues,
}

/// What the inputs of a run hold. Strings are always empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProbedValues {
    Zeros,
    /// Numbers in the compared row, zeros in the others.
    BesideZeros,
    /// Numbers in the compared row, other numbers in the others.
    BesideNumbers,
}

impl<'a> ProbeRun<'a> {
    /// A run with inputs of zeros.
    pub fn with_zeros(shapes: &'a [Vec<i64>]) -> Self {
        Self { shapes, values: ProbedValues::Zeros }
    }

    /// Whether the elements of the outputs are compared.
    fn compares(&self) -> bool {
        self.values != ProbedValues::Zeros
    }

    /// How many bytes of an output are compared: those of all elements, or none in a run that counts
    /// rows, and none of strings.
    pub fn compared_bytes(&self, dtype: u32, shape: &[i64]) -> usize {
        let elements = if self.compares() { element_count(shape).unwrap_or(0) } else { 0 };
        elements.saturating_mul(type_size(dtype))
    }

    /// Writes an input with a first dimension of rows, over zeros.
    pub fn write_input(&self, dtype: u32, bytes: &mut [u8]) {
        let row_bytes = bytes.len() / COMPARED_ROWS as usize;
        if !self.compares() || row_bytes == 0 {
            return;
        }
        for (at, row) in bytes.chunks_exact_mut(row_bytes).enumerate() {
            match self.values {
                _ if at == COMPARED_ROW => fill(dtype, row, 1),
                ProbedValues::BesideNumbers => fill(dtype, row, 3 + at),
                _ => {}
            }
        }
    }
}

/// `run` executes the model.
///
/// # Errors
/// Why the first dimension is not a batch: an output has another number of rows, no run succeeds,
/// or a row of an output depends on the other rows of the run.
pub fn expect_batch(
    inputs: &[ProbedInput<'_>],
    run: impl Fn(&ProbeRun<'_>) -> Result<Vec<ProbedOutput>, PluginFault>,
) -> Result<(), String> {
    let size = find_size(inputs, &run)?;
    let batch = batch_name(inputs);
    let shapes: Vec<Vec<i64>> =
        inputs.iter().map(|input| probe_shape(input, batch, COMPARED_ROWS, size)).collect();
    let with = |values| run(&ProbeRun { shapes: &shapes, values });
    // A model that refuses the numbers is not judged by them: an index may be out of range.
    let Ok(alone) = with(ProbedValues::BesideZeros) else { return Ok(()) };
    let Ok(beside) = with(ProbedValues::BesideNumbers) else { return Ok(()) };
    alone
        .iter()
        .chain(&beside)
        .try_for_each(|output| expect_count(output, COMPARED_ROWS, "numbers"))?;
    let mut pairs = alone.iter().zip(&beside);
    let found = pairs.find(|(one, other)| row_distance(one, other) > MAX_DISTANCE);
    let Some((first, _)) = found else { return Ok(()) };
    // A model that draws random numbers gives other results with equal inputs, too.
    let Ok(again) = with(ProbedValues::BesideZeros) else { return Ok(()) };
    let mut pairs = alone.iter().zip(&again);
    if pairs.any(|(one, other)| row_distance(one, other) > RANDOM_DISTANCE) {
        return Ok(());
    }
    Err(format!("a row of output '{}' depends on the other rows of the run", first.name))
}

/// The distance of the compared rows. Outputs whose other dimensions depend on the rows, such as the
/// longest of the found texts, are not compared.
fn row_distance(one: &ProbedOutput, other: &ProbedOutput) -> f64 {
    if one.shape != other.shape || one.elements.len() != other.elements.len() {
        return 0.0;
    }
    let row_bytes = one.elements.len() / COMPARED_ROWS as usize;
    let row = COMPARED_ROW * row_bytes..(COMPARED_ROW + 1) * row_bytes;
    relative_distance(one.dtype, &one.elements[row.clone()], &other.elements[row])
}

/// `run` executes the model.
///
/// # Errors
/// An output has another number of rows than the run, or no run succeeds.
pub fn expect_rows(
    inputs: &[ProbedInput<'_>],
    run: impl Fn(&ProbeRun<'_>) -> Result<Vec<ProbedOutput>, PluginFault>,
) -> Result<(), String> {
    find_size(inputs, &run).map(|_| ())
}

/// The name of the batch dimension, or an empty one.
fn batch_name<'a>(inputs: &[ProbedInput<'a>]) -> &'a str {
    inputs.iter().find_map(|input| input.dim_names.first()).map_or("", String::as_str)
}

/// The size of the other dynamic dimensions with which runs give as many rows as they got.
///
/// # Errors
/// As [`expect_rows`].
fn find_size(
    inputs: &[ProbedInput<'_>],
    run: &impl Fn(&ProbeRun<'_>) -> Result<Vec<ProbedOutput>, PluginFault>,
) -> Result<i64, String> {
    let batch = batch_name(inputs);
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
            match expect_small(inputs, &shapes).and_then(|()| run(&ProbeRun::with_zeros(&shapes))) {
                Ok(outputs) => {
                    outputs.iter().try_for_each(|output| expect_count(output, rows, "zeros"))?;
                }
                Err(fault) => {
                    failed = Some(format!("a run of {rows} rows of zeros fails: {fault}"));
                    break;
                }
            }
        }
        match failed {
            None => return Ok(size),
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

fn expect_count(
    ProbedOutput { name, shape, .. }: &ProbedOutput,
    rows: i64,
    values: &str,
) -> Result<(), String> {
    if shape.first() == Some(&rows) {
        return Ok(());
    }
    Err(format!(
        "a run of {rows} rows of {values} returned output '{name}' of shape {}, whose first dimension is not {rows}",
        shape_text(shape)
    ))
}

#[cfg(test)]
#[path = "row_probe_tests.rs"]
mod tests;
