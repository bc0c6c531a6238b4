//! An inference request of v2.

use crate::error::{Error, Result};
use crate::tensor::{byte_size, encode_strings};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;

/// A value of a custom parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// Yes or no.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// A text.
    String(String),
}

/// Custom parameters by name.
pub type Parameters = BTreeMap<String, Parameter>;

/// Where a tensor lies in a registered shared-memory region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMemory {
    /// Name with which the region is registered.
    pub region: String,
    /// Where the tensor begins in the region.
    pub offset: u64,
    /// Bytes of the tensor, or the room for it.
    pub byte_size: u64,
}

/// Contents of an input.
#[derive(Clone, Debug)]
pub enum Data {
    /// Slices that are sent one after the other, without a copy.
    Raw(Vec<Bytes>),
    /// The server reads it from there.
    SharedMemory(SharedMemory),
}

/// An input tensor.
#[derive(Clone, Debug)]
pub struct Input {
    /// As in the model's metadata.
    pub name: String,
    /// `FP32`, `BYTES` and so on.
    pub datatype: String,
    /// Shape with the batch dimension.
    pub shape: Vec<i64>,
    /// The elements, little-endian and row-major.
    pub data: Data,
    /// HTTP only: send the elements as JSON numbers and strings, for servers without the binary
    /// extension.
    pub json: bool,
}

impl Input {
    /// A tensor of these bytes, little-endian and row-major.
    pub fn new(
        name: impl Into<String>,
        datatype: impl Into<String>,
        shape: impl Into<Vec<i64>>,
        data: impl Into<Bytes>,
    ) -> Self {
        Self {
            name: name.into(),
            datatype: datatype.into(),
            shape: shape.into(),
            data: Data::Raw(vec![data.into()]),
            json: false,
        }
    }

    /// A tensor of BYTES.
    pub fn strings<S: AsRef<[u8]>>(
        name: impl Into<String>,
        shape: impl Into<Vec<i64>>,
        strings: impl IntoIterator<Item = S>,
    ) -> Self {
        Self::new(name, "BYTES", shape, encode_strings(strings))
    }

    /// A tensor that the server reads from a registered region.
    pub fn shared(
        name: impl Into<String>,
        datatype: impl Into<String>,
        shape: impl Into<Vec<i64>>,
        memory: SharedMemory,
    ) -> Self {
        Self {
            name: name.into(),
            datatype: datatype.into(),
            shape: shape.into(),
            data: Data::SharedMemory(memory),
            json: false,
        }
    }

    /// Bytes that are sent with the request.
    pub(crate) fn raw(&self) -> &[Bytes] {
        match &self.data {
            Data::Raw(slices) => slices,
            Data::SharedMemory(_) => &[],
        }
    }

    pub(crate) fn raw_len(&self) -> usize {
        self.raw().iter().map(Bytes::len).sum()
    }

    fn check(&self, model: &str) -> Result<()> {
        let Some(expected) = byte_size(&self.datatype, &self.shape) else { return Ok(()) };
        let found = match &self.data {
            Data::Raw(_) => self.raw_len(),
            Data::SharedMemory(memory) => usize::try_from(memory.byte_size).unwrap_or(usize::MAX),
        };
        if found == expected {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "input '{}' for model '{model}': {} of shape {:?} has {expected} bytes, got {found}",
            self.name, self.datatype, self.shape
        )))
    }
}

/// An output to return. A request that lists none gets all.
#[derive(Clone, Debug, Default)]
pub struct InferRequestedOutput {
    /// As in the model's metadata.
    pub name: String,
    /// If not 0, so many classes as strings instead of the tensor; see [`super::Output::classes`].
    pub classes: u32,
    /// Where the server writes the tensor, instead of sending it.
    pub shared_memory: Option<SharedMemory>,
    /// HTTP only: ask for JSON, for servers without the binary extension.
    pub json: bool,
}

impl InferRequestedOutput {
    /// The tensor in the response.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// So many classes instead of the tensor.
    pub fn classes(name: impl Into<String>, count: u32) -> Self {
        Self { classes: count, ..Self::new(name) }
    }

    /// The tensor in a registered region.
    pub fn shared(name: impl Into<String>, memory: SharedMemory) -> Self {
        Self { shared_memory: Some(memory), ..Self::new(name) }
    }
}

/// Names the sequence that a request belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequenceId {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
}

/// Place of a request in its sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Which sequence it is.
    pub id: SequenceId,
    /// The first request of the sequence.
    pub start: bool,
    /// The last request of the sequence.
    pub end: bool,
}

/// An inference request.
#[derive(Clone, Debug, Default)]
pub struct InferRequest {
    /// Name of the model.
    pub model: String,
    /// Empty: the server's choice.
    pub version: String,
    /// Echoed in the response. Needed on streams, to tell responses apart.
    pub id: String,
    /// In any order.
    pub inputs: Vec<Input>,
    /// None: all outputs of the model.
    pub outputs: Vec<InferRequestedOutput>,
    /// The sequence that it belongs to.
    pub sequence: Option<Sequence>,
    /// 0: the model's default.
    pub priority: u64,
    /// Limit of the time in the server's queue, in microseconds; 0: none.
    pub timeout_us: u64,
    /// For the model, beside those that this structure has fields for.
    pub parameters: Parameters,
    /// Sent with this request, beside those of the settings. Not on streams.
    pub headers: Vec<(String, String)>,
    /// Instead of the deadline of the settings. Not on streams.
    pub deadline: Option<Duration>,
    /// Streams only: a decoupled model's last response is sent also if it is empty.
    pub empty_final_response: bool,
    /// HTTP only, and only without `outputs`: ask for JSON outputs.
    pub json_outputs: bool,
}

impl InferRequest {
    /// A request to the version that the server chooses, without inputs, for all outputs.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), ..Self::default() }
    }

    /// With one more input.
    #[must_use]
    pub fn input(mut self, input: Input) -> Self {
        self.inputs.push(input);
        self
    }

    /// With one more requested output.
    #[must_use]
    pub fn output(mut self, output: InferRequestedOutput) -> Self {
        self.outputs.push(output);
        self
    }

    /// With this id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// As a request of a sequence.
    #[must_use]
    pub fn sequence(mut self, sequence: Sequence) -> Self {
        self.sequence = Some(sequence);
        self
    }

    /// What the server would refuse, or worse, misread.
    pub(crate) fn check(&self) -> Result<()> {
        if self.model.is_empty() {
            return Err(Error::invalid("the request names no model"));
        }
        for input in &self.inputs {
            input.check(&self.model)?;
        }
        for name in self.parameters.keys() {
            if RESERVED.contains(&name.as_str()) || name.starts_with("triton_") {
                return Err(Error::invalid(format!(
                    "parameter '{name}' for model '{}' is reserved; the request has a field for it",
                    self.model
                )));
            }
        }
        Ok(())
    }

    pub(crate) fn is_shared_output(&self, name: &str) -> bool {
        self.outputs.iter().any(|o| o.name == name && o.shared_memory.is_some())
    }
}

const RESERVED: &[&str] = &[
    "sequence_id",
    "sequence_start",
    "sequence_end",
    "priority",
    "timeout",
    "headers",
    "binary_data_output",
];
