//! A response to a nested request as its handler sees it: flat arrays, valid during the call.

use crate::text::{EMPTY, PluginError, c_text, str_view};
use std::ffi::CString;
use std::ptr::{null, null_mut};
use trtserver_base::error::{Error as HostError, Result};
use trtserver_plugin_api::abi::inference::{NestedOutput, NestedResponse};
use trtserver_plugin_api::abi::types::{Buf, Error, Memory, Param, param};
use trtserver_request::{InferResponse, ParameterValue};

pub struct Views {
    response: InferResponse,
    /// Names of outputs, then keys of parameters.
    names: Vec<CString>,
    /// Values of text parameters.
    texts: Vec<Option<CString>>,
}

impl Views {
    /// # Errors
    /// An output is in memory that the CPU cannot access.
    pub fn new(response: InferResponse) -> Result<Self> {
        if let Some(output) = response.outputs.iter().find(|o| o.data.readable().is_none()) {
            return Err(HostError::internal(format!(
                "output '{}' of a nested request is in {}, expected CPU memory",
                output.name,
                output.data.location()
            )));
        }
        let outputs = response.outputs.iter().map(|output| c_text(&output.name));
        let keys = response.parameters.iter().map(|(key, _)| c_text(key));
        let names = outputs.chain(keys).collect();
        let text = |value: &ParameterValue| match value {
            ParameterValue::String(text) => Some(c_text(text)),
            _ => None,
        };
        let texts = response.parameters.iter().map(|(_, value)| text(value)).collect();
        Ok(Self { response, names, texts })
    }

    /// Calls `handler` with the response.
    pub fn call(&self, version: i64, last: bool, handler: impl FnOnce(&NestedResponse)) {
        let outputs = self.response.outputs.iter().zip(&self.names).map(|(output, name)| {
            let data = output.data.readable().unwrap_or_default();
            NestedOutput {
                name: str_view(name),
                dtype: output.dtype.number(),
                rank: output.shape.len() as u32,
                shape: output.shape.as_ptr(),
                data: Buf {
                    ptr: data.as_ptr().cast_mut(),
                    bytes: data.len() as u64,
                    memory: Memory::CPU,
                    ready: null_mut(),
                    memory_handle: 0,
                },
            }
        });
        let outputs: Vec<NestedOutput> = outputs.collect();
        let keys = &self.names[outputs.len()..];
        let values = self.response.parameters.iter().zip(&self.texts).zip(keys);
        let params: Vec<Param> = values
            .map(|(((_, value), text), key)| {
                let (kind, bits) = match value {
                    ParameterValue::String(_) => (param::STRING, 0),
                    ParameterValue::Int(n) => (param::INT, *n as u64),
                    ParameterValue::Bool(b) => (param::BOOL, u64::from(*b)),
                    ParameterValue::Double(x) => (param::DOUBLE, x.to_bits()),
                };
                let text = text.as_ref().map_or(EMPTY, str_view);
                Param { key: str_view(key), kind, pad: 0, text, bits }
            })
            .collect();
        handler(&NestedResponse {
            outputs: outputs.as_ptr(),
            n_outputs: outputs.len() as u32,
            params: params.as_ptr(),
            n_params: params.len() as u32,
            last: u32::from(last),
            version,
            ..NONE
        });
    }
}

/// The last response of a request that failed.
pub fn failure_view(error: &PluginError, version: i64) -> NestedResponse {
    let error: *const PluginError = error;
    NestedResponse { error: error.cast::<Error>(), last: 1, version, ..NONE }
}

const NONE: NestedResponse = NestedResponse {
    size: size_of::<NestedResponse>() as u64,
    error: null(),
    outputs: null(),
    params: null(),
    n_outputs: 0,
    n_params: 0,
    last: 0,
    pad: 0,
    version: -1,
    reserved: [0; 3],
};
