//! The model configuration: the fields that the backend needs, and the serialized form that a
//! library receives.

use crate::generation::Generation;
use crate::schema::{self, FieldRule};
use trtserver_plugin_api::abi::types::dtype;
use trtserver_proto_wire::{Fields, WireField, WireValue, put_bytes, put_number};

/// Fields that the model descriptor does not contain.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SequenceFacts {
    /// The host then adds requests without a correlation id for idle slots.
    pub sequences: bool,
    /// State outputs of sequences: name and type.
    pub states: Vec<(String, u32)>,
}

impl SequenceFacts {
    pub fn read(config: &[u8]) -> SequenceFacts {
        let mut facts = SequenceFacts::default();
        for sequence in Fields::new(config).bytes(13) {
            facts.sequences = true;
            for state in Fields::new(sequence).bytes(5) {
                let kind = u32::try_from(Fields::new(state).varint(3)).unwrap_or(dtype::INVALID);
                facts.states.push((Fields::new(state).text(2), kind));
            }
        }
        facts
    }
}

/// The serialized configuration for a library of that generation, followed by a zero byte, and its
/// length without that byte.
///
/// Generation A gets no length and reads up to the first zero byte. Fields whose encoding contains
/// one (GPU number 0, a policy without settings) are therefore left out, so that it reads a
/// complete message.
pub fn bytes_for(generation: Generation, config: &[u8]) -> (Vec<u8>, usize) {
    let zero_free = generation == Generation::V0_10;
    let mut bytes = filter_fields(config, schema::model_config(generation), zero_free);
    let n = bytes.len();
    bytes.push(0);
    (bytes, n)
}

fn filter_fields(message: &[u8], rules: &[(u32, FieldRule)], zero_free: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len());
    for field in Fields::new(message).map_while(Result::ok) {
        let Some((_, rule)) = rules.iter().find(|(number, _)| *number == field.number) else {
            continue;
        };
        let start = out.len();
        put_field(&mut out, &field, rule, zero_free);
        if zero_free && out[start..].contains(&0) {
            out.truncate(start);
        }
    }
    out
}

fn put_field(out: &mut Vec<u8>, field: &WireField<'_>, rule: &FieldRule, zero_free: bool) {
    match (rule, field.value) {
        (FieldRule::Int32, WireValue::Varint(value)) => {
            put_number(out, field.number, value.min(i32::MAX as u64));
        }
        (FieldRule::UpTo(last), WireValue::Varint(value)) if value > *last => {}
        (FieldRule::Message(rules), WireValue::Bytes(content)) => {
            put_bytes(out, field.number, &filter_fields(content, rules, zero_free));
        }
        (FieldRule::MessageIf(rules, passes), WireValue::Bytes(content)) => {
            let rest = filter_fields(content, rules, zero_free);
            if passes(&rest) {
                put_bytes(out, field.number, &rest);
            }
        }
        _ => out.extend_from_slice(field.encoded),
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
