//! The bytes of an input: the next raw entry, or typed contents (contract/v2 §1.4).

use crate::error::{Error, Result};
use crate::net::v2::SHARED_MEMORY_DISABLED;
use crate::request::{DType, strings};
use bytes::Bytes;
use std::collections::BTreeMap;
use trtserver_proto::v2::{
    InferParameter, InferTensorContents, infer_parameter::ParameterChoice,
    model_infer_request::InferInputTensor,
};

type Parameters = BTreeMap<String, InferParameter>;

/// Where the inputs of one request find their bytes.
pub struct Source<'a> {
    pub model: &'a str,
    raw: std::vec::IntoIter<Bytes>,
    /// The request came with raw entries, so typed contents are a mistake.
    is_raw: bool,
}

impl<'a> Source<'a> {
    pub fn new(model: &'a str, raw: Vec<Bytes>) -> Self {
        Self { model, is_raw: !raw.is_empty(), raw: raw.into_iter() }
    }

    /// Takes the bytes of `tensor`, which the caller says is of type `dtype`.
    pub fn take(&mut self, tensor: InferInputTensor, dtype: DType) -> Result<Bytes> {
        let (name, model) = (&tensor.name, self.model);
        shared_memory(name, &tensor.parameters)?;
        if self.is_raw {
            if tensor.contents.is_some() {
                return Err(Error::invalid(format!(
                    "contents field must not be specified when using raw_input_contents for '{name}' \
                     for model '{model}'"
                )));
            }
            return self.raw.next().ok_or_else(|| missing(name, model));
        }
        let contents = tensor.contents.as_ref().ok_or_else(|| missing(name, model))?;
        typed(contents, dtype, name, model)
    }
}

fn missing(name: &str, model: &str) -> Error {
    Error::invalid(format!(
        "unable to find data for input tensor '{name}' for model '{model}' in request."
    ))
}

/// Checks what the parameters of a tensor say about shared memory, and refuses its use.
pub fn shared_memory(name: &str, parameters: &Parameters) -> Result<()> {
    if parameters.is_empty() {
        return Ok(());
    }
    let get = |key: &str| parameters.get(key).map(|p| &p.parameter_choice);
    let region = get("shared_memory_region");
    let wrong = |key: &str, expected: &str| {
        Err(Error::invalid(format!(
            "invalid value type for '{key}' parameter for tensor '{name}', expected {expected}."
        )))
    };
    if !matches!(region, None | Some(Some(ParameterChoice::StringParam(_)))) {
        return wrong("shared_memory_region", "string_param");
    }
    for key in ["shared_memory_offset", "shared_memory_byte_size"] {
        match get(key) {
            None => {}
            Some(_) if region.is_none() => {
                return Err(Error::invalid(format!(
                    "'{key}' can not be specified without 'shared_memory_region' parameter for tensor \
                     '{name}'"
                )));
            }
            Some(Some(ParameterChoice::Int64Param(_))) => {}
            Some(_) => return wrong(key, "int64_param"),
        }
    }
    if region.is_none() {
        return Ok(());
    }
    if get("shared_memory_byte_size").is_none() {
        return Err(Error::invalid(format!(
            "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter \
             for tensor '{name}'"
        )));
    }
    Err(Error::unsupported(SHARED_MEMORY_DISABLED))
}

fn typed(c: &InferTensorContents, dtype: DType, name: &str, model: &str) -> Result<Bytes> {
    use DType::*;
    let mut out: Option<Vec<u8>> = None;
    // One line per field: is it filled, which types does it carry, what is it called, its bytes.
    let mut field = |filled: bool,
                     carries: &[DType],
                     called: DType,
                     bytes: &dyn Fn() -> Vec<u8>| {
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
        out = Some(bytes());
        Ok(())
    };
    let size = dtype.size().unwrap_or_default();
    field(!c.bool_contents.is_empty(), &[Bool], Bool, &|| {
        c.bool_contents.iter().map(|b| u8::from(*b)).collect()
    })?;
    field(!c.int_contents.is_empty(), &[Int8, Int16, Int32], Int32, &|| {
        low_bytes(size, c.int_contents.iter().map(|v| v.to_le_bytes()))
    })?;
    field(!c.int64_contents.is_empty(), &[Int64], Int64, &|| {
        low_bytes(8, c.int64_contents.iter().map(|v| v.to_le_bytes()))
    })?;
    field(!c.uint_contents.is_empty(), &[Uint8, Uint16, Uint32], Uint32, &|| {
        low_bytes(size, c.uint_contents.iter().map(|v| v.to_le_bytes()))
    })?;
    field(!c.uint64_contents.is_empty(), &[Uint64], Uint64, &|| {
        low_bytes(8, c.uint64_contents.iter().map(|v| v.to_le_bytes()))
    })?;
    field(!c.fp32_contents.is_empty(), &[Fp32], Fp32, &|| {
        low_bytes(4, c.fp32_contents.iter().map(|v| v.to_le_bytes()))
    })?;
    field(!c.fp64_contents.is_empty(), &[Fp64], Fp64, &|| {
        low_bytes(8, c.fp64_contents.iter().map(|v| v.to_le_bytes()))
    })?;
    field(!c.bytes_contents.is_empty(), &[String], String, &|| {
        let mut out = Vec::new();
        c.bytes_contents.iter().for_each(|element| strings::push(&mut out, element));
        out
    })?;
    Ok(out.map(Bytes::from).unwrap_or_default())
}

/// The first `size` bytes of each element: narrow types travel in wider fields.
fn low_bytes<const N: usize>(size: usize, elements: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
    let mut out = Vec::with_capacity(elements.size_hint().0 * size);
    elements.for_each(|e| out.extend_from_slice(&e[..size.min(N)]));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use trtserver_proto::v2::InferParameter;

    fn tensor(contents: Option<InferTensorContents>) -> InferInputTensor {
        InferInputTensor { name: "I".into(), contents, ..Default::default() }
    }

    fn take(contents: InferTensorContents, dtype: DType) -> Result<Vec<u8>, std::string::String> {
        let got = Source::new("m", vec![]).take(tensor(Some(contents)), dtype);
        got.map(|b| b.to_vec()).map_err(|e| e.message)
    }

    #[test]
    fn typed_contents() {
        let c = InferTensorContents::default;
        let wrong = |text: &str| {
            Err(format!("unexpected explicit tensor data for input tensor 'I' for model 'm'{text}"))
        };
        let ints = InferTensorContents { int_contents: vec![-1, 258], ..c() };
        let uints = InferTensorContents { uint_contents: vec![258], ..c() };
        let both = InferTensorContents { uint64_contents: vec![1], ..ints.clone() };
        let text = InferTensorContents { bytes_contents: vec!["ab".into()], ..c() };
        let bools = InferTensorContents { bool_contents: vec![true, false], ..c() };
        for (contents, dtype, want) in [
            (ints.clone(), DType::Int8, Ok(vec![255, 2])),
            (ints.clone(), DType::Int16, Ok(vec![255, 255, 2, 1])),
            (ints.clone(), DType::Int32, Ok(vec![255, 255, 255, 255, 2, 1, 0, 0])),
            (uints, DType::Uint16, Ok(vec![2, 1])),
            (text, DType::String, Ok(vec![2, 0, 0, 0, b'a', b'b'])),
            (bools, DType::Bool, Ok(vec![1, 0])),
            (c(), DType::Fp16, Ok(vec![])),
            (ints, DType::Fp32, wrong(" of type 'INT32', expected datatype 'FP32'")),
            (both, DType::Int32, wrong(", binary data was already supplied.")),
        ] {
            assert_eq!(take(contents, dtype), want, "{dtype:?}");
        }
    }

    #[test]
    fn raw_entries_in_order() {
        let mut source = Source::new("m", vec!["a".into(), "b".into()]);
        assert_eq!(source.take(tensor(None), DType::Int8).unwrap(), "a");
        let mixed = source.take(tensor(Some(Default::default())), DType::Int8).unwrap_err();
        assert!(mixed.message.starts_with("contents field must not be specified"));
        assert_eq!(source.take(tensor(None), DType::Int8).unwrap(), "b");
        let short = source.take(tensor(None), DType::Int8).unwrap_err();
        assert_eq!(
            short.message,
            "unable to find data for input tensor 'I' for model 'm' in request."
        );
    }

    #[test]
    fn shared_memory_parameters() {
        let int = ParameterChoice::Int64Param(0);
        let text = ParameterChoice::StringParam("r".into());
        let table: [(&[(&str, &ParameterChoice)], &str); 5] = [
            (
                &[("shared_memory_offset", &int)],
                "'shared_memory_offset' can not be specified without 'shared_memory_region' parameter \
                 for tensor 'I'",
            ),
            (
                &[("shared_memory_region", &text)],
                "'shared_memory_byte_size' must be specified along with 'shared_memory_region' \
                 parameter for tensor 'I'",
            ),
            (
                &[("shared_memory_region", &int)],
                "invalid value type for 'shared_memory_region' parameter for tensor 'I', expected \
                 string_param.",
            ),
            (
                &[("shared_memory_region", &text), ("shared_memory_byte_size", &text)],
                "invalid value type for 'shared_memory_byte_size' parameter for tensor 'I', expected \
                 int64_param.",
            ),
            (
                &[("shared_memory_region", &text), ("shared_memory_byte_size", &int)],
                SHARED_MEMORY_DISABLED,
            ),
        ];
        for (parameters, want) in table {
            let parameters = parameters.iter().map(|(key, value)| {
                let value = InferParameter { parameter_choice: Some((*value).clone()) };
                ((*key).to_owned(), value)
            });
            let tensor = InferInputTensor { parameters: parameters.collect(), ..tensor(None) };
            let got = Source::new("m", vec!["a".into()]).take(tensor, DType::Int8);
            assert_eq!(got.unwrap_err().message, want);
        }
    }
}
