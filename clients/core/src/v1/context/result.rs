//! Results of a run, by output and batch entry, with the cursors and texts of the original library.

use super::input::{element_count, element_size};
use super::{OutputFormat, ServedModel};
use crate::error::{Error, Kind, Result};
use crate::tensor::next_string;
use crate::v1::InferResponse;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use trtserver_proto::v1::infer_response_header::Output as OutputHeader;
pub use trtserver_proto::v1::infer_response_header::output::Class;
use trtserver_proto::v2::ModelOutput;

/// The outputs of one response.
#[derive(Clone, Debug, Default)]
pub struct RunResults {
    /// Name of the model.
    pub model: String,
    /// The version that ran.
    pub version: i64,
    /// The server's id.
    pub server_id: String,
    /// The server's number of the request.
    pub request_id: u64,
    /// The client's number of the request; 0 for synchronous runs without a stream.
    pub id: u64,
    /// By name.
    pub outputs: BTreeMap<String, OutputResult>,
}

/// One output.
#[derive(Clone, Debug)]
pub struct OutputResult {
    model: Arc<ServedModel>,
    /// Index of the output in the model's configuration.
    index: usize,
    format: OutputFormat,
    shape: Vec<i64>,
    batch: Vec<BatchEntry>,
}

#[derive(Clone, Debug, Default)]
struct BatchEntry {
    raw: Bytes,
    classes: Vec<Class>,
    /// How far the cursors have advanced.
    raw_position: usize,
    class_position: usize,
}

impl RunResults {
    pub(super) fn new(
        model: &Arc<ServedModel>,
        response: InferResponse,
        formats: &BTreeMap<String, OutputFormat>,
        batch_size: u32,
    ) -> Result<Self> {
        let header = response.header;
        if header.batch_size != batch_size {
            return Err(Error::protocol(format!(
                "the response of model '{}' has the batch size {}, the request has {batch_size}",
                model.name, header.batch_size
            )));
        }
        let mut outputs = BTreeMap::new();
        for (output, raw) in header.output.into_iter().zip(response.outputs) {
            let index = model.output_index(&output.name)?;
            let format = formats.get(&output.name).cloned().unwrap_or(OutputFormat::Raw);
            let name = output.name.clone();
            let model = model.clone();
            let result = OutputResult::new(model, index, format, output, &raw, batch_size)?;
            outputs.insert(name, result);
        }
        Ok(Self {
            model: header.model_name,
            version: header.model_version,
            server_id: response.server_id,
            request_id: response.request_id,
            id: header.id,
            outputs,
        })
    }

    /// # Errors
    /// The output was not requested, or the server left it out.
    pub fn output(&mut self, name: &str) -> Result<&mut OutputResult> {
        let model = &self.model;
        self.outputs
            .get_mut(name)
            .ok_or_else(|| Error::invalid(format!("no result for output '{name}' of '{model}'")))
    }
}

impl OutputResult {
    fn new(
        model: Arc<ServedModel>,
        index: usize,
        format: OutputFormat,
        output: OutputHeader,
        raw: &Bytes,
        batch_size: u32,
    ) -> Result<Self> {
        let mut batch = vec![BatchEntry::default(); batch_size as usize];
        let shape = output.raw.map(|raw| raw.dims).unwrap_or_default();
        match format {
            OutputFormat::Raw => split_batch(&model.outputs()[index], &shape, raw, &mut batch)?,
            OutputFormat::Class(_) => {
                for (entry, classes) in batch.iter_mut().zip(output.batch_classes) {
                    entry.classes = classes.cls;
                }
            }
            OutputFormat::SharedMemory { .. } => {}
        }
        Ok(Self { model, index, format, shape, batch })
    }

    /// The output in the model's configuration.
    #[must_use]
    pub fn config(&self) -> &ModelOutput {
        &self.model.outputs()[self.index]
    }

    /// How it was asked for.
    #[must_use]
    pub fn format(&self) -> &OutputFormat {
        &self.format
    }

    /// Number of batch entries.
    #[must_use]
    pub fn batch_size(&self) -> usize {
        self.batch.len()
    }

    /// The shape of one batch entry.
    pub fn raw_shape(&self) -> Result<&[i64]> {
        if matches!(self.format, OutputFormat::Class(_)) {
            return Err(self.unsupported("raw shape not available for non-RAW output"));
        }
        Ok(&self.shape)
    }

    /// The bytes of one batch entry, a slice of the received response.
    pub fn raw(&self, batch_index: usize) -> Result<&Bytes> {
        self.raw_entry(batch_index).map(|entry| &entry.raw)
    }

    /// The next `len` bytes of a batch entry.
    pub fn raw_at_cursor(&mut self, batch_index: usize, len: usize) -> Result<Bytes> {
        let entry = self.raw_entry(batch_index)?;
        let start = entry.raw_position;
        match start.checked_add(len) {
            Some(end) if end <= entry.raw.len() => {
                let bytes = entry.raw.slice(start..end);
                self.batch[batch_index].raw_position = end;
                Ok(bytes)
            }
            _ => Err(self.unsupported("attempt to read beyond end of result for output")),
        }
    }

    /// Number of classes of one batch entry.
    pub fn class_count(&self, batch_index: usize) -> Result<usize> {
        self.classes(batch_index).map(<[Class]>::len)
    }

    /// All classes of one batch entry, highest first.
    pub fn classes(&self, batch_index: usize) -> Result<&[Class]> {
        match self.format {
            OutputFormat::Class(_) => Ok(&self.entry(batch_index)?.classes),
            _ => Err(self.unsupported("class result not available for non-CLASS output")),
        }
    }

    /// The next class of a batch entry.
    pub fn class_at_cursor(&mut self, batch_index: usize) -> Result<Class> {
        if matches!(self.format, OutputFormat::SharedMemory { .. }) {
            return Err(self.unsupported("class result not available for shared memory output"));
        }
        let classes = self.classes(batch_index)?;
        match classes.get(self.batch[batch_index].class_position) {
            Some(class) => {
                let class = class.clone();
                self.batch[batch_index].class_position += 1;
                Ok(class)
            }
            None => Err(self.unsupported("attempt to read beyond end of result for output")),
        }
    }

    /// Begins again with the first bytes and classes of every batch entry.
    pub fn reset_cursors(&mut self) {
        for entry in &mut self.batch {
            entry.raw_position = 0;
            entry.class_position = 0;
        }
    }

    /// Begins again with the first bytes and classes of one batch entry.
    pub fn reset_cursor(&mut self, batch_index: usize) -> Result<()> {
        self.entry(batch_index)?;
        let entry = &mut self.batch[batch_index];
        entry.raw_position = 0;
        entry.class_position = 0;
        Ok(())
    }

    fn raw_entry(&self, batch_index: usize) -> Result<&BatchEntry> {
        match self.format {
            OutputFormat::Raw => self.entry(batch_index),
            OutputFormat::SharedMemory { .. } => {
                Err(self.unsupported("raw result not available for shared memory output"))
            }
            OutputFormat::Class(_) => {
                Err(self.unsupported("raw result not available for non-RAW output"))
            }
        }
    }

    fn entry(&self, batch_index: usize) -> Result<&BatchEntry> {
        self.batch.get(batch_index).ok_or_else(|| {
            Error::invalid(format!(
                "unexpected batch entry {batch_index} requested for output '{}', batch size is {}",
                self.config().name,
                self.batch.len()
            ))
        })
    }

    fn unsupported(&self, what: &str) -> Error {
        Error::new(Kind::Unsupported, format!("{what} '{}'", self.config().name))
    }
}

/// Divides the bytes of a batch among its entries.
fn split_batch(
    config: &ModelOutput,
    shape: &[i64],
    raw: &Bytes,
    batch: &mut [BatchEntry],
) -> Result<()> {
    let name = &config.name;
    let elements = usize::try_from(element_count(shape)).unwrap_or(0);
    let mut rest = raw.clone();
    let Some(element_size) = element_size(config.data_type()) else {
        for entry in batch {
            let len = strings_len(&rest, elements).ok_or_else(|| {
                Error::protocol(format!(
                    "output '{name}' is truncated: {} bytes do not hold the {elements} strings of each batch entry",
                    raw.len()
                ))
            })?;
            entry.raw = rest.split_to(len);
        }
        return match rest.len() {
            0 => Ok(()),
            left => Err(Error::protocol(format!("output '{name}' has {left} bytes too many"))),
        };
    };
    let one = raw.len() / batch.len().max(1);
    let expected = elements.checked_mul(element_size as usize);
    // One shape tensor belongs to the whole batch.
    if config.is_shape_tensor && expected == Some(raw.len()) {
        batch.iter_mut().for_each(|entry| entry.raw = raw.clone());
        return Ok(());
    }
    if one * batch.len() != raw.len() || (!shape.is_empty() && expected != Some(one)) {
        return Err(Error::protocol(format!(
            "output '{name}' of shape {shape:?} and batch size {} has {} bytes, expected {}",
            batch.len(),
            raw.len(),
            expected.and_then(|one| one.checked_mul(batch.len())).unwrap_or(usize::MAX)
        )));
    }
    for entry in batch {
        entry.raw = rest.split_to(one);
    }
    Ok(())
}

/// Length of that many encoded strings.
fn strings_len(bytes: &[u8], count: usize) -> Option<usize> {
    let mut rest = bytes;
    for _ in 0..count {
        (_, rest) = next_string(rest)?;
    }
    Some(bytes.len() - rest.len())
}
