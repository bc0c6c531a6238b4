//! Protobuf messages out of responses: from their encoding, and from the JSON of v2 HTTP.

use crate::error::{Error, Result};
use bytes::Bytes;
use serde_json::Value;
use trtserver_proto::schema::{Described, FieldKind, MessageSchema};
use trtserver_proto::{json, parts};

/// Decodes a message of a response; tensors are slices of it.
pub(crate) fn decode_message<M: Described>(message: Bytes) -> Result<M> {
    let name = M::schema().name;
    parts::check_parts(M::schema(), &message[..])
        .map_err(|e| Error::protocol(format!("the response is not a {name}: {e}")))?;
    M::decode(message).map_err(|e| Error::protocol(format!("the response is not a {name}: {e}")))
}

/// A message from a JSON response with the same field names. Fields that the message does not have
/// are skipped: servers add some.
pub(crate) fn from_json<M: Described>(mut value: Value) -> Result<M> {
    prune_unknown(&mut value, M::schema());
    json::parse(&value.to_string()).map_err(|e| {
        let name = M::schema().name;
        Error::protocol(format!("the response is not the JSON form of {name}: {}", e.message))
    })
}

fn prune_unknown(value: &mut Value, message: &'static MessageSchema) {
    let Value::Object(fields) = value else { return };
    fields.retain(|name, value| !value.is_null() && message.field(name).is_some());
    for (name, value) in fields {
        let Some((_, field)) = message.field(name) else { continue };
        match (field.map(), field.kind, value) {
            (Some(entry), _, Value::Object(entries)) => {
                let Some((_, FieldKind::Message(inner))) =
                    entry.field("value").map(|(i, f)| (i, f.kind))
                else {
                    continue;
                };
                entries.values_mut().for_each(|value| prune_unknown(value, inner));
            }
            (None, FieldKind::Message(inner), Value::Array(values)) => {
                values.iter_mut().for_each(|value| prune_unknown(value, inner));
            }
            (None, FieldKind::Message(inner), value) => prune_unknown(value, inner),
            _ => {}
        }
    }
}
