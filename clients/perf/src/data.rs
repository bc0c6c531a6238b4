//! Input data: zeros, random values, files of a folder, or JSON.

mod json;
mod values;

use crate::engine::Random;
use crate::model::{MeasuredModel, ModelTensor, element_size};
use crate::settings::InputData;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// One input of one batch item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorData {
    pub shape: Vec<i64>,
    pub bytes: Vec<u8>,
}

/// All inputs of one batch item, in the model's order.
pub type Item = Vec<TensorData>;

/// Data streams. A sequence sends the items of one stream; models without sequences take one
/// stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputStreams {
    pub streams: Vec<Vec<Item>>,
}

/// The strings of generated data.
#[derive(Clone, Debug)]
pub struct StringOptions {
    pub length: usize,
    pub text: Option<String>,
}

/// # Errors
/// Data does not fit the model, or a file cannot be read. The message names the input.
pub fn load_input(
    model: &MeasuredModel,
    source: &InputData,
    shapes: &BTreeMap<String, Vec<i64>>,
    strings: &StringOptions,
) -> Result<InputStreams, String> {
    for name in shapes.keys() {
        if !model.inputs.iter().any(|input| &input.name == name) {
            return Err(format!("--shape: model '{}' has no input '{name}'", model.name));
        }
    }
    match source {
        InputData::Zero => generate_input(model, shapes, strings, None),
        InputData::Random => generate_input(model, shapes, strings, Some(&mut Random(0x7274_7331))),
        InputData::Files(files) => {
            let mut streams = Vec::new();
            for file in files {
                match file.is_dir() {
                    true => streams.push(vec![read_folder(model, shapes, file)?]),
                    false => json::read_json(model, shapes, file, &mut streams)?,
                }
            }
            Ok(InputStreams { streams })
        }
    }
}

/// The shape to be sent: as given, else as configured.
fn input_shape(
    input: &ModelTensor,
    shapes: &BTreeMap<String, Vec<i64>>,
) -> Result<Vec<i64>, String> {
    let Some(given) = shapes.get(&input.name) else {
        return match input.shape.contains(&-1) {
            true => Err(format!(
                "input {} contains dynamic shape, provide shapes to send along with the request (--shape)",
                input.name
            )),
            false => Ok(input.shape.clone()),
        };
    };
    check_fit(input, given)?;
    Ok(given.clone())
}

fn check_fit(input: &ModelTensor, given: &[i64]) -> Result<(), String> {
    let fits = given.len() == input.shape.len()
        && input.shape.iter().zip(given).all(|(config, given)| *config == -1 || config == given);
    match fits {
        true => Ok(()),
        false => Err(format!(
            "input '{}': the shape {given:?} does not fit the model's {:?}",
            input.name, input.shape
        )),
    }
}

/// Elements of a shape.
fn count_elements(input: &ModelTensor, shape: &[i64]) -> Result<usize, String> {
    /// Requests are held in memory.
    const MOST: usize = 1 << 31;
    shape
        .iter()
        .try_fold(1_usize, |count, dim| {
            usize::try_from(*dim).ok().and_then(|dim| count.checked_mul(dim))
        })
        .filter(|count| count.saturating_mul(element_size(&input.datatype).unwrap_or(1)) <= MOST)
        .ok_or_else(|| format!("input '{}': the shape {shape:?} is too large", input.name))
}

fn generate_input(
    model: &MeasuredModel,
    shapes: &BTreeMap<String, Vec<i64>>,
    strings: &StringOptions,
    mut random: Option<&mut Random>,
) -> Result<InputStreams, String> {
    let mut item = Vec::new();
    for input in &model.inputs {
        let shape = input_shape(input, shapes)?;
        let count = count_elements(input, &shape)?;
        let bytes = if element_size(&input.datatype).is_none() {
            let mut bytes = Vec::new();
            let mut own = Random(7);
            for _ in 0..count {
                let text = match &strings.text {
                    Some(text) => text.clone().into_bytes(),
                    None => values::random_text(
                        strings.length,
                        random.as_deref_mut().unwrap_or(&mut own),
                    ),
                };
                values::push_string(&text, &mut bytes);
            }
            bytes
        } else {
            match &mut random {
                Some(random) => values::random_values(&input.datatype, count, random),
                None => vec![0; count * element_size(&input.datatype).unwrap_or(0)],
            }
        };
        item.push(TensorData { shape, bytes });
    }
    Ok(InputStreams { streams: vec![vec![item]] })
}

/// One file for each input, named as the input: raw little-endian values, or a string a line.
fn read_folder(
    model: &MeasuredModel,
    shapes: &BTreeMap<String, Vec<i64>>,
    folder: &Path,
) -> Result<Item, String> {
    let mut item = Vec::new();
    for input in &model.inputs {
        let file = folder.join(&input.name);
        let bytes = fs::read(&file)
            .map_err(|e| format!("failed to open file '{}': {e}", file.display()))?;
        let shape = input_shape(input, shapes)?;
        let count = count_elements(input, &shape)?;
        let bytes = match element_size(&input.datatype) {
            Some(size) if bytes.len() != size * count => {
                return Err(format!(
                    "input '{}' requires {} bytes for each batch, but provided data has {} bytes ({})",
                    input.name,
                    size * count,
                    bytes.len(),
                    file.display()
                ));
            }
            Some(_) => bytes,
            None => {
                let text = String::from_utf8_lossy(&bytes);
                let lines: Vec<&str> = text.lines().collect();
                if lines.len() != count {
                    return Err(format!(
                        "input '{}' requires {count} strings for each batch, but provided data has {} strings. ({})",
                        input.name,
                        lines.len(),
                        file.display()
                    ));
                }
                let mut bytes = Vec::new();
                lines.iter().for_each(|line| values::push_string(line.as_bytes(), &mut bytes));
                bytes
            }
        };
        item.push(TensorData { shape, bytes });
    }
    Ok(item)
}

#[cfg(test)]
#[path = "data_tests.rs"]
mod tests;
