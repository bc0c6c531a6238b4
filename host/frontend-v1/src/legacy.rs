//! Binary message forms of releases up to v0.10, whose field numbers were reused later
//! (docs/protocol/v1.md §2.6, §2.7).
//!
//! Wire types distinguish them: field 2 of an input was a varint, the size per batch item, and is
//! packed `dims` now; field 2 of a gRPC request was a string, the version, up to v0.8. A request in
//! a legacy form gets a response in that form.

use bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType, message, string, uint64};
use prost::{DecodeError, Message};
use trtserver_proto::v1::infer_request_header::Input;
use trtserver_proto::v1::infer_response_header::output::Classes;
use trtserver_proto::v1::{InferRequest, InferRequestHeader, InferResponseHeader, RequestStatus};

/// A message that is decoded from both forms, and encoded in the current one.
#[derive(Debug, Default)]
pub struct WithLegacy<M>(pub M);

/// The legacy fields of a message.
trait LegacyFields: Message + Default {
    /// Merges a field that has, or may contain, a legacy form. Returns false for all other fields.
    fn merge_legacy(
        &mut self,
        tag: u32,
        wire: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<bool, DecodeError>;
}

impl<M: LegacyFields> Message for WithLegacy<M> {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        self.0.encode_raw(buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if self.0.merge_legacy(tag, wire, buf, ctx.clone())? {
            return Ok(());
        }
        self.0.merge_field(tag, wire, buf, ctx)
    }

    fn encoded_len(&self) -> usize {
        self.0.encoded_len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

impl LegacyFields for InferRequest {
    fn merge_legacy(
        &mut self,
        tag: u32,
        wire: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<bool, DecodeError> {
        match (tag, wire) {
            (2, WireType::LengthDelimited) => {
                let mut version = String::new();
                string::merge(wire, &mut version, buf, ctx)?;
                // Empty is the latest version, text that is not a number an unknown one.
                let exact = || version.parse().ok().filter(|v| *v >= 0).unwrap_or(i64::MAX);
                self.model_version = if version.is_empty() { -1 } else { exact() };
            }
            (3, WireType::LengthDelimited) => {
                let mut header = WithLegacy(self.meta_data.take().unwrap_or_default());
                message::merge(wire, &mut header, buf, ctx)?;
                self.meta_data = Some(header.0);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl LegacyFields for InferRequestHeader {
    fn merge_legacy(
        &mut self,
        tag: u32,
        wire: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<bool, DecodeError> {
        if (tag, wire) != (2, WireType::LengthDelimited) {
            return Ok(false);
        }
        let mut input = WithLegacy(Input::default());
        message::merge(wire, &mut input, buf, ctx)?;
        self.input.push(input.0);
        Ok(true)
    }
}

impl LegacyFields for Input {
    fn merge_legacy(
        &mut self,
        tag: u32,
        wire: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<bool, DecodeError> {
        if (tag, wire) != (2, WireType::Varint) {
            return Ok(false);
        }
        uint64::merge(wire, &mut self.byte_size, buf, ctx)?;
        Ok(true)
    }
}

/// `InferResponseHeader` up to v0.10.
#[derive(Clone, PartialEq, Message)]
pub struct LegacyHeader {
    #[prost(string, tag = "1")]
    model_name: String,
    #[prost(uint32, tag = "2")]
    model_version: u32,
    #[prost(uint32, tag = "3")]
    batch_size: u32,
    #[prost(message, repeated, tag = "4")]
    output: Vec<LegacyOutput>,
    #[prost(uint64, tag = "5")]
    id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct LegacyOutput {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    raw: Option<LegacyRawOutput>,
    #[prost(message, repeated, tag = "3")]
    batch_classes: Vec<Classes>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct LegacyRawOutput {
    /// Byte size of one batch item.
    #[prost(uint64, tag = "1")]
    byte_size: u64,
}

/// The two fields of 18.04's response header that later moved to other numbers.
#[derive(Clone, PartialEq, Message)]
struct LegacyHeader1804 {
    #[prost(uint32, tag = "1")]
    batch_size: u32,
    #[prost(message, repeated, tag = "2")]
    output: Vec<LegacyOutput>,
}

impl LegacyHeader {
    pub fn new(header: InferResponseHeader) -> Self {
        let items = u64::from(header.batch_size.max(1));
        let output = header.output.into_iter().map(|o| LegacyOutput {
            name: o.name,
            raw: o.raw.map(|raw| LegacyRawOutput { byte_size: raw.batch_byte_size / items }),
            batch_classes: o.batch_classes,
        });
        Self {
            model_name: header.model_name,
            model_version: u32::try_from(header.model_version).unwrap_or(0),
            batch_size: header.batch_size,
            output: output.collect(),
            id: header.id,
        }
    }

    /// The binary trailer. With `with_1804` it has the layout of 18.04 as well: each parser skips
    /// the fields of the other, because their wire types are not the expected ones.
    pub fn trailer(self, with_1804: bool) -> Vec<u8> {
        let mut bytes = self.encode_to_vec();
        if with_1804 {
            let header = LegacyHeader1804 { batch_size: self.batch_size, output: self.output };
            bytes.extend_from_slice(&header.encode_to_vec());
        }
        bytes
    }
}

/// `InferResponse` up to v0.10, without its raw outputs.
#[derive(Clone, PartialEq, Message)]
pub struct LegacyResponse {
    #[prost(message, optional, tag = "1")]
    pub request_status: Option<RequestStatus>,
    #[prost(message, optional, tag = "2")]
    pub meta_data: Option<LegacyHeader>,
}

#[cfg(test)]
#[path = "legacy_tests.rs"]
mod tests;
