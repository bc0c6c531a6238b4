//! The codec of the generated services: prost behind a limit on the number of parts of a message,
//! messages that are encoded already, and requests that are not decoded.

use crate::parts;
use crate::schema::{Described, MessageSchema};
use crate::v1::SharedMemoryControlRequest;
use bytes::{Buf, BufMut, Bytes};
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, bytes as repeated, skip_field};
use std::marker::PhantomData;
use tonic::Status;
use tonic::codec::{DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic_prost::ProstDecoder;

/// The codec of a generated service, with requests of type `U` and responses of type `T`.
pub struct Codec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: Encode + Send + 'static,
    U: Described + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = MessageEncoder<T>;
    type Decoder = Checked<U>;

    fn encoder(&mut self) -> Self::Encoder {
        MessageEncoder(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        Checked(ProstDecoder::default())
    }
}

/// What can be sent as a message.
pub trait Encode {
    /// Appends the message.
    fn encode(&self, to: &mut EncodeBuf<'_>);
}

impl<M: prost::Message> Encode for M {
    fn encode(&self, to: &mut EncodeBuf<'_>) {
        to.reserve(self.encoded_len());
        self.encode_raw(to);
    }
}

/// An encoded message, followed by the elements of a repeated bytes field.
pub struct Encoded {
    pub head: Vec<u8>,
    /// Number of the repeated field.
    pub field: u32,
    pub payloads: Vec<Bytes>,
    /// Dropped with the message, once it was written or discarded.
    pub counted: Option<Box<dyn Send + Sync>>,
}

impl Encode for Encoded {
    fn encode(&self, to: &mut EncodeBuf<'_>) {
        to.reserve(self.head.len() + repeated::encoded_len_repeated(self.field, &self.payloads));
        to.put_slice(&self.head);
        repeated::encode_repeated(self.field, &self.payloads, to);
    }
}

/// A `SharedMemoryControlRequest` as it was received: releases encode it differently.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UndecodedRegionControl(pub Bytes);

impl prost::Message for UndecodedRegionControl {
    fn decode(mut buf: impl Buf) -> Result<Self, DecodeError> {
        Ok(Self(buf.copy_to_bytes(buf.remaining())))
    }

    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.0);
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        skip_field(wire_type, tag, buf, ctx)
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

impl Described for UndecodedRegionControl {
    fn schema() -> &'static MessageSchema {
        SharedMemoryControlRequest::schema()
    }
}

/// See [`Encode`].
pub struct MessageEncoder<T>(PhantomData<T>);

impl<T: Encode> Encoder for MessageEncoder<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, message: T, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message.encode(to);
        Ok(())
    }
}

/// A decoder that counts the parts of a message before it decodes them.
pub struct Checked<U>(ProstDecoder<U>);

impl<U: Described> Decoder for Checked<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        // tonic hands over a message in one piece.
        parts::check_parts(U::schema(), buf.chunk())
            .map_err(|e| Status::invalid_argument(e.to_string()))?;
        self.0.decode(buf)
    }
}
