//! A response while a plugin builds it: every output checked against the declaration when it is made.

use crate::error::{Error, Result};
use crate::request::buffer::AlignedBuf;
use crate::request::strings;
use crate::request::tensor::element_count;
use crate::request::{DType, InferResponse, OutputTensor, Parameter, Reply, Shape, ShapeText};
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_plugin_api::abi::host::Release;
use trtserver_plugin_api::abi::types::Buf;

/// What a `trts_response` points at.
pub struct Building {
    reply: Arc<Reply>,
    /// By place among the outputs that the caller asked for.
    outputs: SmallVec<[Option<Built>; 4]>,
    pub parameters: Vec<(String, Parameter)>,
}

struct Built {
    index: usize,
    shape: Shape,
    memory: Memory,
}

enum Memory {
    Ours(AlignedBuf),
    Donated(Bytes),
}

/// Memory given by a plugin; calls its release exactly once, when the last user is gone.
pub struct Donation {
    release: Release,
    ctx: *mut u8,
    view: *const u8,
    len: usize,
}

// SAFETY: by the interface the release may be called on any thread, and the memory is read-only from then on.
unsafe impl Send for Donation {}
// SAFETY: as above.
unsafe impl Sync for Donation {}

impl Donation {
    pub fn new(release: Release, ctx: *mut u8) -> Self {
        Self { release, ctx, view: std::ptr::null(), len: 0 }
    }
}

impl AsRef<[u8]> for Donation {
    fn as_ref(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the plugin promised the memory until its release.
        unsafe { std::slice::from_raw_parts(self.view, self.len) }
    }
}

impl Drop for Donation {
    fn drop(&mut self) {
        if let Some(release) = self.release.func {
            // SAFETY: exactly once, by construction.
            unsafe { release(self.ctx) };
        }
    }
}

impl Building {
    pub fn new(reply: Arc<Reply>) -> Self {
        Self { reply, outputs: SmallVec::new(), parameters: Vec::new() }
    }

    /// Memory for an output; `None` when the caller did not ask for it.
    pub fn alloc(
        &mut self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        bytes: u64,
    ) -> Result<Option<*mut u8>> {
        let Some((place, index, shape)) = self.declare(name, dtype, shape, bytes)? else {
            return Ok(None);
        };
        let Some(mut memory) = AlignedBuf::try_new(bytes as usize) else {
            return Err(self.error(format!(
                "the backend asked for {bytes} bytes for output '{name}', which are not there"
            )));
        };
        let ptr = memory.as_mut_ptr();
        self.outputs[place] = Some(Built { index, shape, memory: Memory::Ours(memory) });
        Ok(Some(ptr))
    }

    /// Takes donated memory as an output, without a copy when it is in one piece.
    pub fn adopt(
        &mut self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        parts: &[Buf],
        mut donation: Donation,
    ) -> Result<()> {
        let bytes = parts.iter().try_fold(0u64, |sum, p| sum.checked_add(p.bytes));
        let Some(bytes) = bytes.filter(|n| isize::try_from(*n).is_ok()) else {
            return Err(self.error(format!("output '{name}' was donated in an impossible size")));
        };
        if parts.iter().any(|p| p.ptr.is_null() && p.bytes > 0) {
            return Err(self.error(format!("output '{name}' was donated as a null pointer")));
        }
        let Some((place, index, shape)) = self.declare(name, dtype, shape, bytes)? else {
            return Ok(());
        };
        let memory = match parts {
            [] => Bytes::new(),
            [one] => {
                (donation.view, donation.len) = (one.ptr, one.bytes as usize);
                Bytes::from_owner(donation)
            }
            many => {
                // SAFETY: each part is readable memory until the release.
                let slices: Vec<&[u8]> = many
                    .iter()
                    .filter(|p| p.bytes > 0)
                    .map(|p| unsafe {
                        std::slice::from_raw_parts(p.ptr.cast_const(), p.bytes as usize)
                    })
                    .collect();
                AlignedBuf::copy_of(&slices).into_bytes()
            }
        };
        self.outputs[place] = Some(Built { index, shape, memory: Memory::Donated(memory) });
        Ok(())
    }

    /// Checks an output and finds its place: (place, number in the configuration, the caller's shape).
    fn declare(
        &mut self,
        name: &str,
        dtype: u32,
        shape: &[i64],
        bytes: u64,
    ) -> Result<Option<(usize, usize, Shape)>> {
        let signature = Arc::clone(self.reply.signature());
        let Some(index) = signature.output(name) else {
            let declared: Vec<&str> = signature.outputs.iter().map(|o| &*o.name).collect();
            return Err(self.error(format!(
                "the backend produced output '{name}', which the model configuration does not declare \
                 (declared: {})",
                declared.join(", ")
            )));
        };
        let spec = &signature.outputs[index];
        if spec.dtype.number() != dtype {
            let got = DType::from_number(dtype).map_or("an unknown type", DType::config_name);
            return Err(self.error(format!(
                "the backend produced output '{name}' with data type {got}, the model configuration \
                 specifies {}",
                spec.dtype.config_name()
            )));
        }
        let caller_shape = signature.to_caller(spec, shape)?;
        let batch = i64::from(self.reply.batch());
        if signature.batching() && !spec.shape_tensor && caller_shape.first() != Some(&batch) {
            return Err(self.error(format!(
                "the backend produced output '{name}' with shape {}, the request has batch size {batch}",
                ShapeText(shape)
            )));
        }
        let expected =
            element_count(shape).and_then(|n| n.checked_mul(spec.dtype.size().unwrap_or(1)));
        if spec.dtype.size().is_some() && expected.map(|e| e as u64) != Some(bytes) {
            return Err(self.error(format!(
                "the backend produced output '{name}' of shape {} with {bytes} bytes, {} are right",
                ShapeText(shape),
                expected.unwrap_or(0)
            )));
        }
        let (place, count) = self.reply.wanted(index);
        self.outputs.resize_with(count, || None);
        let Some(place) = place else { return Ok(None) };
        if self.outputs[place].is_some() {
            return Err(self.error(format!("the backend produced output '{name}' twice")));
        }
        Ok(Some((place, index, caller_shape)))
    }

    /// Sends the response. An output that was asked for and not made is an error for the caller.
    pub fn send(mut self, last: bool, error: Option<Error>) -> Result<()> {
        let reply = Arc::clone(&self.reply);
        if let Some(execution) = reply.execution() {
            super::frame::note_times(&execution);
        }
        let result = match error {
            Some(error) => Err(error),
            None => self.finish(),
        };
        drop(self);
        match result {
            Err(error) => reply.end(Err(error)),
            Ok(response) if last => reply.end(Ok(Some(response))),
            Ok(response) => reply.send(response),
        }
    }

    fn finish(&mut self) -> Result<InferResponse> {
        let signature = Arc::clone(self.reply.signature());
        let (_, count) = self.reply.wanted(usize::MAX);
        self.outputs.resize_with(count, || None);
        let mut outputs = SmallVec::with_capacity(count);
        for place in 0..count {
            let Some(built) = self.outputs[place].take() else {
                let missing = self.reply.wanted_at(place).and_then(|i| signature.outputs.get(i));
                let name = missing.map_or("?", |o| &o.name);
                return Err(self.error(format!(
                    "the backend did not produce output '{name}', which the request asked for"
                )));
            };
            let spec = &signature.outputs[built.index];
            let data = match built.memory {
                Memory::Ours(buf) => buf.into_bytes(),
                Memory::Donated(bytes) => bytes,
            };
            if spec.dtype == DType::String {
                let elements = element_count(&built.shape).unwrap_or(0);
                if let Err(fault) = strings::check(&data, elements) {
                    return Err(self.error(format!(
                        "the backend produced malformed strings in output '{}' of shape {}: {fault:?}",
                        spec.name,
                        ShapeText(&built.shape)
                    )));
                }
            }
            outputs.push(OutputTensor {
                name: Arc::clone(&spec.name),
                dtype: spec.dtype,
                shape: built.shape,
                data,
            });
        }
        Ok(InferResponse { outputs, parameters: std::mem::take(&mut self.parameters) })
    }

    fn error(&self, text: String) -> Error {
        Error::internal(format!("model '{}': {text}", self.reply.signature().model))
    }
}
