//! Ordinary requests without a detour: names, types, shapes and raw tensors, in a message that lies in one piece.
//!
//! Whatever else a request may hold, and whatever may be wrong with one, is none of this file's business: it then
//! says `None`, and the way of all requests begins anew.

use super::message::Asked;
use crate::net::v2::Draft;
use crate::repository::Served;
use crate::request::{DType, InputTensor, Shape};
use bytes::Bytes;
use prost::encoding::decode_varint;
use smallvec::SmallVec;

/// Inputs, outputs and tensors beyond this number are for those who guard against too many.
const MANY: usize = 64;
/// What must be copied to lie straight and is not longer than this is copied together.
const SMALL: usize = 4 << 10;
/// Tensors start at multiples of this.
const ALIGN: usize = 8;
const STEP: usize = 16;

/// A ModelInferRequest, in words of the message itself.
#[derive(Default)]
pub struct Plain<'a> {
    pub model: &'a str,
    pub version: &'a str,
    id: &'a str,
    inputs: SmallVec<[Input<'a>; 4]>,
    outputs: SmallVec<[&'a str; 4]>,
    raw: SmallVec<[&'a [u8]; 4]>,
}

#[derive(Default)]
struct Input<'a> {
    name: &'a str,
    datatype: &'a str,
    shape: Shape,
}

/// Fields of a message that all have a length.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The next field's number and bytes; the inner `None` is the end, the outer one something unusual.
    fn next(&mut self) -> Option<Option<(u8, &'a [u8])>> {
        let Some((key, rest)) = self.0.split_first() else { return Some(None) };
        if key & 7 != 2 || *key >= 0x80 {
            return None;
        }
        self.0 = rest;
        let len = self.varint()?;
        let (field, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(Some((key >> 3, field)))
    }

    fn varint(&mut self) -> Option<u64> {
        decode_varint(&mut self.0).ok()
    }
}

impl<'a> Plain<'a> {
    pub fn parse(message: &'a [u8]) -> Option<Self> {
        let mut plain = Self::default();
        let mut fields = Fields(message);
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => plain.model = std::str::from_utf8(field).ok()?,
                2 => plain.version = std::str::from_utf8(field).ok()?,
                3 => plain.id = std::str::from_utf8(field).ok()?,
                5 => plain.inputs.push(Input::parse(field)?),
                6 => plain.outputs.push(output(field)?),
                7 => plain.raw.push(field),
                _ => return None,
            }
            if plain.inputs.len().max(plain.outputs.len()).max(plain.raw.len()) > MANY {
                return None;
            }
        }
        Some(plain)
    }

    /// The request for the model that `served` serves, whose tensors may stay in `message`.
    pub fn draft(self, served: &Served, message: &Bytes) -> Option<(Draft, Asked)> {
        if self.raw.len() != self.inputs.len() {
            return None;
        }
        let mut draft = Draft { id: self.id.to_owned(), ..Default::default() };
        let mut tensors = straight(&self.raw, message);
        for input in self.inputs {
            draft.inputs.push(InputTensor {
                index: served.signature.input(input.name)?,
                dtype: DType::from_v2_name(input.datatype)?,
                shape: input.shape,
                data: tensors.next()?,
            });
        }
        for name in self.outputs {
            draft.want(&served.signature, name, 0).ok()?;
        }
        let asked = Asked { id: draft.id.clone(), ..Default::default() };
        Some((draft, asked))
    }
}

impl<'a> Input<'a> {
    fn parse(message: &'a [u8]) -> Option<Self> {
        let mut input = Self::default();
        let mut fields = Fields(message);
        while let Some((number, field)) = fields.next()? {
            match number {
                1 => input.name = std::str::from_utf8(field).ok()?,
                2 => input.datatype = std::str::from_utf8(field).ok()?,
                3 => {
                    let mut packed = Fields(field);
                    while !packed.0.is_empty() {
                        input.shape.push(packed.varint()? as i64);
                    }
                }
                _ => return None,
            }
        }
        Some(input)
    }
}

/// The name of a wanted output.
fn output(message: &[u8]) -> Option<&str> {
    let mut fields = Fields(message);
    let mut name = "";
    while let Some((number, field)) = fields.next()? {
        match number {
            1 => name = std::str::from_utf8(field).ok()?,
            _ => return None,
        }
    }
    Some(name)
}

/// The tensors, in `message` where they start at a multiple of [`ALIGN`]. Short ones that do not are copied into
/// one block; long ones are left to those who want them straight.
fn straight(raw: &[&[u8]], message: &Bytes) -> impl Iterator<Item = Bytes> {
    let stays = |raw: &[u8]| {
        raw.len() > SMALL || raw.is_empty() || (raw.as_ptr() as usize).is_multiple_of(ALIGN)
    };
    let len =
        raw.iter().filter(|r| !stays(r)).fold(0usize, |at, r| at.next_multiple_of(STEP) + r.len());
    let mut block = Vec::with_capacity(len);
    for raw in raw.iter().filter(|r| !stays(r)) {
        block.resize(block.len().next_multiple_of(STEP), 0);
        block.extend_from_slice(raw);
    }
    // Not sliced but taken apart: what is left for the last tensor, often the only one, is the block itself.
    let mut block = Bytes::from(block);
    raw.iter().map(move |raw| {
        if stays(raw) {
            return message.slice_ref(raw);
        }
        let rest = raw.len().next_multiple_of(STEP);
        if block.len() < rest {
            return std::mem::take(&mut block);
        }
        let mut tensor = block.split_to(rest);
        tensor.truncate(raw.len());
        tensor
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::grpc::v2::message;
    use crate::net::v2::testing::context;
    use prost::Message;
    use trtserver_proto::v2::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
    use trtserver_proto::v2::{InferParameter, InferTensorContents, ModelInferRequest};

    fn input(name: &str, datatype: &str, shape: &[i64]) -> InferInputTensor {
        InferInputTensor {
            name: name.into(),
            datatype: datatype.into(),
            shape: shape.into(),
            ..Default::default()
        }
    }

    fn request(raw: &[usize]) -> ModelInferRequest {
        ModelInferRequest {
            model_name: "echo".into(),
            model_version: "3".into(),
            id: "é".into(),
            inputs: vec![
                input("TEXT", "BYTES", &[1, 2]),
                input("FP", "FP32", &[1, -300, i64::MAX]),
            ],
            outputs: vec![InferRequestedOutputTensor { name: "FP".into(), ..Default::default() }],
            raw_input_contents: raw.iter().map(|n| vec![*n as u8; *n].into()).collect(),
            ..Default::default()
        }
    }

    /// What was read is what the other way reads.
    fn same(
        served: &Served,
        (got, asked): (&Draft, &Asked),
        request: ModelInferRequest,
        what: &dyn std::fmt::Debug,
    ) {
        let (want, also_asked) =
            message::read(served, request).unwrap_or_else(|e| panic!("{what:?}: {e}"));
        assert_eq!((&got.id, &asked.id), (&want.id, &also_asked.id), "{what:?}");
        assert_eq!(got.outputs, want.outputs, "{what:?}");
        let all = |draft: &Draft| {
            let tensor = |t: &InputTensor| (t.index, t.dtype, t.shape.clone(), t.data.clone());
            draft.inputs.iter().map(tensor).collect::<Vec<_>>()
        };
        assert_eq!(all(got), all(&want), "{what:?}");
    }

    #[test]
    fn whatever_arrives_is_read_as_the_other_way_reads_it_or_left_to_that() {
        let served = context().repository.find("echo", None).unwrap();
        let whole = request(&[1, 2]).encode_to_vec();
        let mut read = 0;
        let mut try_out = |message: Vec<u8>, what: (usize, u8)| {
            let message = Bytes::from(message);
            let Some(plain) = Plain::parse(&message) else { return };
            let (model, version) = (plain.model.to_owned(), plain.version.to_owned());
            let request = ModelInferRequest::decode(message.clone())
                .unwrap_or_else(|e| panic!("{what:?}: {e}"));
            assert_eq!((&model, &version), (&request.model_name, &request.model_version));
            if let Some((draft, asked)) = plain.draft(&served, &message) {
                read += 1;
                same(&served, (&draft, &asked), request, &what);
            }
        };
        for at in 0..whole.len() {
            for byte in 0..=255 {
                let mut other = whole.clone();
                other[at] = byte;
                try_out(other, (at, byte));
                // One more byte, after which all lengths are wrong.
                let mut longer = whole.clone();
                longer.insert(at, byte);
                try_out(longer, (at, byte));
            }
            // Fields in another order, some of them twice.
            try_out([&whole[at..], &whole[..]].concat(), (at, 0));
            try_out([&whole[..], &whole[..at]].concat(), (at, 1));
        }
        assert!(read > 1000, "{read} messages were read");
    }

    #[test]
    fn read_as_the_other_way_reads() {
        let served = context().repository.find("echo", None).unwrap();
        for raw in [[64, 64], [0, 1], [17, 0], [3, 5000], [5000, 9]] {
            let request = request(&raw);
            // Wherever the message lies.
            for skip in 0..8 {
                let message = [vec![0; skip], request.encode_to_vec()].concat();
                let message = Bytes::from(message).slice(skip..);
                let plain = Plain::parse(&message).unwrap();
                assert_eq!((plain.model, plain.version), ("echo", "3"));
                let (got, asked) = plain.draft(&served, &message).unwrap();
                assert_eq!(got.inputs.len(), 2);
                same(&served, (&got, &asked), request.clone(), &raw);
                for got in &got.inputs {
                    let straight = (got.data.as_ptr() as usize).is_multiple_of(ALIGN);
                    assert!(straight || got.data.is_empty() || got.data.len() > SMALL);
                }
            }
        }
    }

    #[test]
    fn what_is_left_to_the_other_way() {
        let served = context().repository.find("echo", None).unwrap();
        let good = request(&[1, 2]);
        let parameters = [("k".to_owned(), InferParameter::default())];
        let parameters = || parameters.clone().into();
        let with = |change: &dyn Fn(&mut ModelInferRequest)| {
            let mut request = good.clone();
            change(&mut request);
            request.encode_to_vec()
        };
        let contents = InferTensorContents { fp32_contents: vec![1.0], ..Default::default() };
        for (what, message) in [
            ("a parameter", with(&|r| r.parameters = parameters())),
            ("one of an input", with(&|r| r.inputs[0].parameters = parameters())),
            ("one of an output", with(&|r| r.outputs[0].parameters = parameters())),
            ("typed contents", with(&|r| r.inputs[0].contents = Some(contents.clone()))),
            ("an unknown input", with(&|r| r.inputs[0].name = "X".into())),
            ("an unknown type", with(&|r| r.inputs[0].datatype = "X".into())),
            ("an unknown output", with(&|r| r.outputs[0].name = "X".into())),
            ("an output twice", with(&|r| r.outputs.push(r.outputs[0].clone()))),
            ("a tensor too few", with(&|r| r.raw_input_contents.truncate(1))),
            ("a tensor too many", with(&|r| r.raw_input_contents.push(Bytes::new()))),
            ("many inputs", with(&|r| r.inputs = vec![r.inputs[0].clone(); 100])),
            ("an unknown field", [with(&|_| ()), vec![0x42, 0]].concat()),
            ("a number", [with(&|_| ()), vec![0x08, 1]].concat()),
            ("no text", [vec![0x0a, 1, 0xff], with(&|_| ())].concat()),
        ] {
            let message = Bytes::from(message);
            let read = Plain::parse(&message).and_then(|p| p.draft(&served, &message));
            assert!(read.is_none(), "{what}");
        }
        // What was cut short may still be a message, if a smaller one.
        let whole = good.encode_to_vec();
        for len in 0..whole.len() {
            let cut = Bytes::copy_from_slice(&whole[..len]);
            if Plain::parse(&cut).and_then(|p| p.draft(&served, &cut)).is_some() {
                let request = ModelInferRequest::decode(cut).unwrap();
                assert!(message::read(&served, request).is_ok(), "cut short after {len} bytes");
            }
        }
    }
}
