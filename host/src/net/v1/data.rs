//! A request's bytes against what its header announced: rows 12 to 15 of the ladder, and the framing of strings.

use super::request::Plan;
use crate::error::{Error, Result};
use crate::request::strings::{self, StringFault};
use crate::request::{InputTensor, Signature};
use bytes::Bytes;
use smallvec::SmallVec;

/// Data of each input, in the order of the plan.
pub type Parts = SmallVec<[Bytes; 4]>;

/// Rows 12 and 13, when `got` bytes came instead of `plan.bytes()`. The old server skipped them for an empty
/// body, which then failed much later and less clearly.
pub fn wrong_body(signature: &Signature, plan: &Plan, got: usize) -> Error {
    let m = &signature.model;
    let mut end = 0;
    for input in &plan.inputs {
        end += input.bytes;
        if end > got {
            let name = &signature.inputs[input.index].name;
            let missing = input.bytes.min(end - got);
            return Error::invalid(format!(
                "unexpected size for input '{name}', missing expecting {missing} bytes for model '{m}'"
            ));
        }
    }
    Error::invalid(format!("unexpected additional input data for model '{m}'"))
}

/// The inputs of an HTTP body, one after another.
pub fn split(signature: &Signature, plan: &Plan, body: &Bytes) -> Result<Parts> {
    if body.len() != plan.bytes() {
        return Err(wrong_body(signature, plan, body.len()));
    }
    let mut at = 0;
    let part = |i: &super::request::PlannedInput| {
        at += i.bytes;
        body.slice(at - i.bytes..at)
    };
    Ok(plan.inputs.iter().map(part).collect())
}

/// Rows 14 and 15: the entries of a gRPC request.
pub fn entries(signature: &Signature, plan: &Plan, entries: Vec<Bytes>) -> Result<Parts> {
    let m = &signature.model;
    let (expected, got) = (plan.inputs.len(), entries.len());
    if expected != got {
        return Err(Error::invalid(format!(
            "expected tensor data for {expected} inputs but got {got} sets of data for model '{m}'"
        )));
    }
    for (input, entry) in plan.inputs.iter().zip(&entries) {
        if input.bytes != entry.len() {
            let name = &signature.inputs[input.index].name;
            return Err(Error::invalid(format!(
                "unexpected size {} for input '{name}', expecting {} for model '{m}'",
                entry.len(),
                input.bytes
            )));
        }
    }
    Ok(entries.into_iter().collect())
}

/// Input tensors in the order of the configuration.
pub fn tensors(signature: &Signature, plan: Plan, parts: Parts) -> SmallVec<[InputTensor; 2]> {
    let pairs = plan.inputs.into_iter().zip(parts);
    let mut tensors: SmallVec<[InputTensor; 2]> = pairs
        .map(|(i, data)| InputTensor {
            index: i.index,
            dtype: signature.inputs[i.index].dtype,
            shape: i.shape,
            data,
        })
        .collect();
    tensors.sort_by_key(|t| t.index);
    tensors.iter_mut().for_each(InputTensor::align);
    tensors
}

/// The framing of string tensors (contract/v1 §5.4), which the old server looked at while running. Stray bytes
/// behind the strings, which are ignored, are cut off, so that no backend meets them.
pub fn check_strings(signature: &Signature, inputs: &mut [InputTensor]) -> Result<()> {
    for input in inputs.iter_mut().filter(|i| i.dtype.size().is_none()) {
        let name = &signature.inputs[input.index].name;
        let expected = crate::request::tensor::element_count(&input.shape).unwrap_or(0);
        let end = strings::check(&input.data, expected).map_err(|fault| match fault {
            StringFault::TooMany { found } => Error::invalid(format!(
                "unexpected number of string elements {found} for inference input '{name}', expecting {expected}"
            )),
            StringFault::Short { length, available } => Error::invalid(format!(
                "incomplete string data for inference input '{name}', expecting string of length {length} but \
                 only {available} bytes available"
            )),
            // One to three bytes where a length is due are stray bytes: too few strings came.
            StringFault::TooFew { .. } | StringFault::NoLength { .. } => Error::internal(format!(
                "expected {expected} strings for inference input '{name}', got {}",
                strings::elements(&input.data).count()
            )),
        })?;
        input.data.truncate(end);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::v1::{request, testing};
    use crate::repository::Served;
    use std::sync::Arc;

    fn planned(model: &str, header: &str) -> (Arc<Served>, Plan) {
        let ctx = testing::context("");
        let served = ctx.repository.find(model, None).unwrap();
        let header = request::parse(model, Some(header.as_bytes())).unwrap();
        let plan = request::plan(&served.signature, &header).unwrap();
        (served, plan)
    }

    const SIMPLE: &str = "batch_size: 1 input { name: \"INPUT1\" } input { name: \"INPUT0\" }";

    #[test]
    fn rows_12_and_13() {
        let (served, plan) = planned("simple", SIMPLE);
        for (bytes, want) in [
            (128, Ok(vec![64, 64])),
            (
                0,
                Err(
                    "unexpected size for input 'INPUT1', missing expecting 64 bytes for model 'simple'",
                ),
            ),
            (
                63,
                Err(
                    "unexpected size for input 'INPUT1', missing expecting 1 bytes for model 'simple'",
                ),
            ),
            (
                64,
                Err(
                    "unexpected size for input 'INPUT0', missing expecting 64 bytes for model 'simple'",
                ),
            ),
            (
                100,
                Err(
                    "unexpected size for input 'INPUT0', missing expecting 28 bytes for model 'simple'",
                ),
            ),
            (129, Err("unexpected additional input data for model 'simple'")),
        ] {
            let got = split(&served.signature, &plan, &Bytes::from(vec![0; bytes]));
            let got = got.map(|p| p.iter().map(Bytes::len).collect()).map_err(|e| e.message);
            assert_eq!(got, want.map_err(str::to_owned), "{bytes}");
        }
    }

    #[test]
    fn rows_14_and_15() {
        let (served, plan) = planned("simple", SIMPLE);
        let sets = "sets of data for model 'simple'";
        for (sizes, want) in [
            (&[64, 64][..], None),
            (&[64], Some(format!("expected tensor data for 2 inputs but got 1 {sets}"))),
            (&[64, 64, 0], Some(format!("expected tensor data for 2 inputs but got 3 {sets}"))),
            (
                &[64, 9],
                Some(
                    "unexpected size 9 for input 'INPUT0', expecting 64 for model 'simple'".into(),
                ),
            ),
        ] {
            let data = sizes.iter().map(|n| Bytes::from(vec![0; *n])).collect();
            let got = entries(&served.signature, &plan, data);
            assert_eq!(got.err().map(|e| e.message), want, "{sizes:?}");
        }
    }

    #[test]
    fn data_follows_the_header_and_tensors_the_configuration() {
        let (served, plan) = planned("simple", SIMPLE);
        let body: Bytes = [[1; 64], [0; 64]].concat().into();
        let parts = split(&served.signature, &plan, &body).unwrap();
        let tensors = tensors(&served.signature, plan, parts);
        assert_eq!(
            tensors.iter().map(|t| (t.index, t.data[0])).collect::<Vec<_>>(),
            [(0, 0), (1, 1)]
        );
    }

    #[test]
    fn string_framing() {
        for (data, want) in [
            (&b"\x01\0\0\0a\0\0\0\0"[..], None),
            (b"\x01\0\0\0a\0\0\0\0\x01\x02\x03", None),
            (
                b"\x01\0\0\0a\0\0\0\0\0\0\0\0",
                Some("unexpected number of string elements 3 for inference input 'S', expecting 2"),
            ),
            (
                b"\x01\0\0\0a\x09\0\0\0bc",
                Some(
                    "incomplete string data for inference input 'S', expecting string of length 9 but only 2 \
                     bytes available",
                ),
            ),
            (b"\x01\0\0\0a", Some("expected 2 strings for inference input 'S', got 1")),
            (b"\x01\0\0\0a\0\0", Some("expected 2 strings for inference input 'S', got 1")),
        ] {
            let header = format!(
                "batch_size: 1 input {{ name: \"S\" batch_byte_size: {} }} input {{ name: \"V\" dims: [0, 2] }}",
                data.len()
            );
            let (served, plan) = planned("m", &header);
            let body = Bytes::from_static(data);
            let parts = split(&served.signature, &plan, &body).unwrap();
            let mut tensors = tensors(&served.signature, plan, parts);
            let got = check_strings(&served.signature, &mut tensors).err().map(|e| e.message);
            assert_eq!(got.as_deref(), want, "{data:?}");
            assert!(want.is_some() || tensors.iter().any(|t| t.data == data[..9]));
        }
    }
}
