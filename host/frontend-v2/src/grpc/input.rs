//! The bytes of an input that is not in client shared memory: the next entry of raw_input_contents,
//! or typed contents (docs/protocol/v2.md §1.4).

use bytes::Bytes;
use trtserver_base::budget;
use trtserver_base::budget::{BudgetExhaustion, out_of_memory, request_memory};
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::{LedgerHolder, LedgerOwner, MemoryTag};
use trtserver_proto::v2::{InferTensorContents, model_infer_request::InferInputTensor};
use trtserver_request::{DType, strings};

/// The source of the input bytes of one request.
pub struct InputContents<'a> {
    pub model: &'a str,
    raw: std::vec::IntoIter<Bytes>,
    /// The request has raw entries, so typed contents are an error.
    is_raw: bool,
    /// What the inputs are entered under in the ledger.
    owner: LedgerOwner,
}

impl<'a> InputContents<'a> {
    pub fn new(model: &'a str, raw: Vec<Bytes>, owner: LedgerOwner) -> Self {
        Self { model, is_raw: !raw.is_empty(), raw: raw.into_iter(), owner }
    }

    /// Takes the bytes of `tensor`, whose requested type is `dtype`.
    pub fn take(&mut self, tensor: &InferInputTensor, dtype: DType) -> Result<Bytes> {
        let (name, model) = (&tensor.name, self.model);
        if self.is_raw {
            // MLServer's client sets a message without elements.
            let is_set =
                |contents: &InferTensorContents| *contents != InferTensorContents::default();
            if tensor.contents.as_ref().is_some_and(is_set) {
                return Err(Error::invalid(format!(
                    "contents field must not be specified when using raw_input_contents for '{name}' \
                     for model '{model}'"
                )));
            }
            return self.raw.next().ok_or_else(|| missing(name, model));
        }
        let contents = tensor.contents.as_ref().ok_or_else(|| missing(name, model))?;
        typed(contents, dtype, name, model, self.owner.tag(LedgerHolder::Input))
    }
}

fn missing(name: &str, model: &str) -> Error {
    Error::invalid(format!(
        "unable to find data for input tensor '{name}' for model '{model}' in request."
    ))
}

fn typed(
    c: &InferTensorContents,
    dtype: DType,
    name: &str,
    model: &str,
    tag: MemoryTag,
) -> Result<Bytes> {
    use DType::*;
    let mut out: Option<Bytes> = None;
    // Per field: whether it is set, the types it carries, the type that messages name, its bytes.
    let mut field = |filled: bool,
                     carries: &[DType],
                     called: DType,
                     bytes: &dyn Fn() -> Result<Bytes>| {
        if !filled {
            return Ok(());
        }
        if out.is_some() {
            return Err(Error::invalid(format!(
                "unexpected explicit tensor data for input tensor '{name}' for model '{model}', binary \
                 data was already supplied."
            )));
        }
        if !carries.contains(&dtype) {
            return Err(Error::invalid(format!(
                "unexpected explicit tensor data for input tensor '{name}' for model '{model}' of type \
                 '{}', expected datatype '{}'",
                called.v2_name(),
                dtype.v2_name()
            )));
        }
        out = Some(bytes()?);
        Ok(())
    };
    let size = dtype.size().unwrap_or_default();
    field(!c.bool_contents.is_empty(), &[Bool], Bool, &|| {
        low_bytes(1, c.bool_contents.iter().map(|b| [u8::from(*b)]), tag)
    })?;
    field(!c.int_contents.is_empty(), &[Int8, Int16, Int32], Int32, &|| {
        low_bytes(size, c.int_contents.iter().map(|v| v.to_le_bytes()), tag)
    })?;
    field(!c.int64_contents.is_empty(), &[Int64], Int64, &|| {
        low_bytes(8, c.int64_contents.iter().map(|v| v.to_le_bytes()), tag)
    })?;
    field(!c.uint_contents.is_empty(), &[Uint8, Uint16, Uint32], Uint32, &|| {
        low_bytes(size, c.uint_contents.iter().map(|v| v.to_le_bytes()), tag)
    })?;
    field(!c.uint64_contents.is_empty(), &[Uint64], Uint64, &|| {
        low_bytes(8, c.uint64_contents.iter().map(|v| v.to_le_bytes()), tag)
    })?;
    field(!c.fp32_contents.is_empty(), &[Fp32], Fp32, &|| {
        low_bytes(4, c.fp32_contents.iter().map(|v| v.to_le_bytes()), tag)
    })?;
    field(!c.fp64_contents.is_empty(), &[Fp64], Fp64, &|| {
        low_bytes(8, c.fp64_contents.iter().map(|v| v.to_le_bytes()), tag)
    })?;
    field(!c.bytes_contents.is_empty(), &[String], String, &|| {
        let len = c.bytes_contents.iter().map(|element| 4 + element.len()).sum();
        tensor(len, tag, |out| c.bytes_contents.iter().for_each(|e| strings::push_string(out, e)))
    })?;
    Ok(out.unwrap_or_default())
}

/// The low `size` bytes of each element: narrow types are sent in wider fields.
fn low_bytes<const N: usize>(
    size: usize,
    elements: impl Iterator<Item = [u8; N]>,
    tag: MemoryTag,
) -> Result<Bytes> {
    tensor(elements.size_hint().0 * size, tag, |out| {
        elements.for_each(|e| out.extend_from_slice(&e[..size.min(N)]));
    })
}

/// A tensor of `len` bytes, which `write` appends.
fn tensor(len: usize, tag: MemoryTag, write: impl FnOnce(&mut Vec<u8>)) -> Result<Bytes> {
    let reservation = request_memory().try_reserve_large(len, tag);
    let reservation = reservation.map_err(BudgetExhaustion::refuse)?;
    let mut out = Vec::new();
    out.try_reserve_exact(len).map_err(|_| out_of_memory("an input tensor", len))?;
    write(&mut out);
    Ok(budget::charge_bytes(out, reservation))
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
