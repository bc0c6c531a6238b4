//! The response to an inference request of v2.

use super::request::{InferRequest, Parameter, Parameters};
use crate::error::{Error, Result};
use crate::tensor::{Class, byte_size, decode_strings};
use bytes::Bytes;

/// An output tensor.
#[derive(Clone, Debug)]
pub struct Output {
    /// As in the model's metadata.
    pub name: String,
    /// `FP32`, `BYTES` and so on.
    pub datatype: String,
    /// With the batch dimension, if the model has one.
    pub shape: Vec<i64>,
    /// Little-endian, row-major; a slice of the received response. Empty if the server wrote it to
    /// shared memory.
    pub data: Bytes,
    /// The server wrote the tensor to the shared memory that the request named. On streams, which
    /// do not tell the two apart, also a tensor of strings without elements.
    pub in_shared_memory: bool,
}

impl Output {
    /// The elements of a BYTES tensor.
    ///
    /// # Errors
    /// It has another datatype, or is truncated.
    pub fn strings(&self) -> Result<Vec<&[u8]>> {
        if self.datatype != "BYTES" {
            return Err(Error::invalid(format!(
                "output '{}' has the datatype {}, expected BYTES",
                self.name, self.datatype
            )));
        }
        decode_strings(&self.data)
            .map_err(|e| e.map_message(|text| format!("output '{}': {text}", self.name)))
    }

    /// The classes, if the request asked for classes.
    ///
    /// # Errors
    /// The output has no classes.
    pub fn classes(&self) -> Result<Vec<Class>> {
        let strings = self.strings()?;
        strings.iter().map(|text| Class::parse(&String::from_utf8_lossy(text))).collect()
    }
}

/// One response. Decoupled models send several to a request.
#[derive(Clone, Debug, Default)]
pub struct InferResponse {
    /// Name of the model.
    pub model: String,
    /// The version that has executed the request.
    pub version: String,
    /// That of the request.
    pub id: String,
    /// Set by the model.
    pub parameters: Parameters,
    /// In the order of the response.
    pub outputs: Vec<Output>,
    /// False if more responses to the same request follow; streams only.
    pub is_final: bool,
}

impl InferResponse {
    /// # Errors
    /// The response has no such output.
    pub fn output(&self, name: &str) -> Result<&Output> {
        self.outputs.iter().find(|output| output.name == name).ok_or_else(|| {
            let names: Vec<_> = self.outputs.iter().map(|output| output.name.as_str()).collect();
            Error::invalid(format!(
                "the response of model '{}' has no output '{name}', only {names:?}",
                self.model
            ))
        })
    }

    /// Compares the length of every output with its shape.
    pub(crate) fn check(&self) -> Result<()> {
        for output in self.outputs.iter().filter(|output| !output.in_shared_memory) {
            let (name, model) = (&output.name, &self.model);
            if output.datatype == "BYTES" {
                continue;
            }
            let described = || format!("{} of shape {:?}", output.datatype, output.shape);
            match byte_size(&output.datatype, &output.shape) {
                Some(expected) if expected == output.data.len() => {}
                Some(expected) => {
                    return Err(Error::protocol(format!(
                        "output '{name}' of model '{model}': {} has {expected} bytes, the response has {}",
                        described(),
                        output.data.len()
                    )));
                }
                None => {
                    return Err(Error::protocol(format!(
                        "output '{name}' of model '{model}': {} is not a tensor",
                        described()
                    )));
                }
            }
        }
        Ok(())
    }

    /// As [`check`](Self::check) without the request: an output without bytes may be in shared
    /// memory.
    pub(crate) fn check_streamed(&mut self) -> Result<()> {
        for output in &mut self.outputs {
            let is_empty_tensor = byte_size(&output.datatype, &output.shape) == Some(0);
            output.in_shared_memory = output.data.is_empty() && !is_empty_tensor;
        }
        self.check()
    }

    /// Takes the parameters that streams add out of the model's.
    pub(crate) fn take_final_flag(&mut self) {
        self.is_final = !matches!(
            self.parameters.remove("triton_final_response"),
            Some(Parameter::Bool(false))
        );
    }

    pub(crate) fn mark_shared(&mut self, request: &InferRequest) {
        for output in &mut self.outputs {
            output.in_shared_memory =
                output.data.is_empty() && request.is_shared_output(&output.name);
        }
    }
}
