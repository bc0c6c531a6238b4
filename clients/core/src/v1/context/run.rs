//! A request of a context: options and inputs, which become the header and the data that are sent.

use super::ServedModel;
use super::input::{Input, element_size};
use crate::borrow::Borrow;
use crate::error::{Error, Result};
use crate::v1::InferRequest;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use trtserver_proto::v1::infer_request_header::output::Class;
use trtserver_proto::v1::infer_request_header::{Input as InputHeader, Output as OutputHeader};
use trtserver_proto::v1::{InferRequestHeader, InferSharedMemory};

/// How an output is returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// The response carries the tensor.
    Raw,
    /// The highest classes.
    Class(u32),
    /// The server writes the tensor to a registered region.
    SharedMemory {
        /// Name with which it is registered.
        region: String,
        /// Where the tensor begins in the region.
        offset: u64,
        /// The room for it.
        byte_size: u64,
    },
}

/// Options of the next requests.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// 0 is sent as 1.
    pub batch_size: u64,
    /// `InferRequestHeader.Flag`, for sequences.
    pub flags: u32,
    /// If not 0, replaces that of the context.
    pub correlation_id: u64,
    /// Only these outputs are returned.
    pub outputs: Vec<(String, OutputFormat)>,
    /// Level in the server's queue, 1 is the highest; 0: the model's default.
    pub priority: u32,
    /// Limit of the time in the server's queue; 0: none.
    pub timeout_us: u64,
}

/// One request: the options and inputs that become its header and its data.
#[derive(Clone, Debug)]
pub struct Run {
    model: Arc<ServedModel>,
    correlation_id: Arc<AtomicU64>,
    inputs: Vec<Input>,
    header: InferRequestHeader,
    formats: BTreeMap<String, OutputFormat>,
    /// Instead of the deadline of the settings.
    pub deadline: Option<Duration>,
}

/// A request that is ready to be sent. Its data does not change with the run that it came from.
#[derive(Debug)]
pub struct Prepared {
    pub(super) request: InferRequest,
    pub(super) formats: BTreeMap<String, OutputFormat>,
    pub(super) batch_size: u32,
    pub(super) borrow: Borrow,
}

impl Prepared {
    pub(crate) fn borrow(&self) -> Borrow {
        self.borrow.clone()
    }

    /// What is sent.
    #[must_use]
    pub fn request(&self) -> &InferRequest {
        &self.request
    }
}

impl Run {
    pub(super) fn new(model: Arc<ServedModel>, correlation_id: Arc<AtomicU64>) -> Self {
        let inputs = model.inputs().iter().map(|input| Input::new(input.clone(), 0)).collect();
        Self {
            model,
            correlation_id,
            inputs,
            header: InferRequestHeader::default(),
            formats: BTreeMap::new(),
            deadline: None,
        }
    }

    /// In the order of the configuration. All of them are sent.
    #[must_use]
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// In the order of the configuration, to be filled.
    pub fn inputs_mut(&mut self) -> &mut [Input] {
        &mut self.inputs
    }

    /// # Errors
    /// The model has no such input.
    pub fn input(&mut self, name: &str) -> Result<&mut Input> {
        let index = self.model.input_index(name)?;
        Ok(&mut self.inputs[index])
    }

    /// Applies to the inputs that are set afterwards.
    ///
    /// # Errors
    /// The batch is too large, or an output unknown.
    pub fn set_options(&mut self, options: &RunOptions) -> Result<()> {
        let model = &self.model.name;
        let largest = self.model.max_batch_size.max(1);
        if options.batch_size > largest {
            return Err(Error::invalid(format!(
                "run batch-size {} exceeds maximum batch size {largest} allowed for model '{model}'",
                options.batch_size
            )));
        }
        let batch_size = options.batch_size.max(1);
        let mut outputs = Vec::with_capacity(options.outputs.len());
        for (name, format) in &options.outputs {
            self.model.output(name)?;
            let mut output = OutputHeader { name: name.clone(), ..OutputHeader::default() };
            match format {
                OutputFormat::Raw => {}
                OutputFormat::Class(count) => output.cls = Some(Class { count: *count }),
                OutputFormat::SharedMemory { region, offset, byte_size } => {
                    output.shared_memory = Some(InferSharedMemory {
                        name: region.clone(),
                        offset: *offset,
                        byte_size: *byte_size,
                    });
                }
            }
            outputs.push(output);
        }
        if options.correlation_id != 0 {
            self.correlation_id.store(options.correlation_id, Ordering::Relaxed);
        }
        self.header = InferRequestHeader {
            // At most `max_batch_size`, which is an i32.
            batch_size: batch_size as u32,
            output: outputs,
            correlation_id: self.correlation_id.load(Ordering::Relaxed),
            flags: options.flags,
            priority: options.priority,
            timeout_microseconds: options.timeout_us,
            ..InferRequestHeader::default()
        };
        self.formats = options.outputs.iter().cloned().collect();
        for input in &mut self.inputs {
            input.batch_size = batch_size;
        }
        Ok(())
    }

    /// Makes the request. Strings state also their size.
    ///
    /// # Errors
    /// An input does not have the data of the whole batch.
    pub fn prepare(&self, id: u64) -> Result<Prepared> {
        let borrow = Borrow::new();
        let mut header = self.header.clone();
        header.id = id;
        let mut data = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            let total = input.total_byte_size();
            let is_fixed = element_size(input.config().data_type()).is_some();
            header.input.push(InputHeader {
                name: input.name().to_owned(),
                dims: input.dims().to_vec(),
                batch_byte_size: if is_fixed { 0 } else { total },
                shared_memory: input.shared_memory().map(|(region, offset)| InferSharedMemory {
                    name: region.to_owned(),
                    offset,
                    byte_size: total,
                }),
                ..InputHeader::default()
            });
            data.extend(input.slices(&borrow)?);
        }
        let batch_size = header.batch_size;
        let request = InferRequest {
            model: self.model.name.clone(),
            version: self.model.version,
            header,
            inputs: data,
            deadline: self.deadline,
        };
        Ok(Prepared { request, formats: self.formats.clone(), batch_size, borrow })
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
