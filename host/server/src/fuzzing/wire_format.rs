//! The protobuf wire format: our reader of fields against prost.

use prost::Message;
use trtserver_proto_wire::{
    Fields, WireError, WireType, WireValue, put_bytes, put_tag, put_varint,
};

/// Accepts what prost accepts, except groups. Fields that are written and read back are the same.
pub fn wire_format(bytes: &[u8]) {
    let fields: Result<Vec<_>, WireError> = Fields::new(bytes).collect();
    // The empty message knows no fields, so prost skips them all.
    let prost = <() as Message>::decode(bytes);
    let fields = match fields {
        Ok(fields) => fields,
        Err(WireError::Group) => return,
        Err(error) => {
            assert!(prost.is_err(), "{error}, which prost accepts");
            return;
        }
    };
    assert!(prost.is_ok(), "prost: {prost:?}");
    let encoded: Vec<u8> = fields.iter().flat_map(|field| field.encoded).copied().collect();
    assert_eq!(encoded, bytes);
    let mut written = Vec::new();
    for field in &fields {
        match field.value {
            WireValue::Varint(value) => {
                put_tag(&mut written, field.number, WireType::Varint);
                put_varint(&mut written, value);
            }
            WireValue::Fixed64(value) => {
                put_tag(&mut written, field.number, WireType::Fixed64);
                written.extend(value.to_le_bytes());
            }
            WireValue::Fixed32(value) => {
                put_tag(&mut written, field.number, WireType::Fixed32);
                written.extend(value.to_le_bytes());
            }
            WireValue::Bytes(value) => put_bytes(&mut written, field.number, value),
        }
    }
    let values = |bytes| -> Vec<_> {
        Fields::new(bytes).map(|field| field.map(|field| (field.number, field.value))).collect()
    };
    assert_eq!(values(&written), values(bytes));
}
