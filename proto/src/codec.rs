//! The codec of the generated services: prost, after a look at how many parts a message has.

use crate::parts;
use crate::schema::Described;
use bytes::Buf;
use std::marker::PhantomData;
use tonic::Status;
use tonic::codec::{DecodeBuf, Decoder};
use tonic_prost::{ProstDecoder, ProstEncoder};

/// See the module text.
pub struct Codec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: prost::Message + Send + 'static,
    U: Described + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = Checked<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        Checked(ProstDecoder::default())
    }
}

/// A decoder that counts before it decodes.
pub struct Checked<U>(ProstDecoder<U>);

impl<U: Described> Decoder for Checked<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        // tonic hands over a message in one piece.
        parts::check(U::schema(), buf.chunk())
            .map_err(|e| Status::invalid_argument(e.to_string()))?;
        self.0.decode(buf)
    }
}
