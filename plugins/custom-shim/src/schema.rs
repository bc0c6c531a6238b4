//! Which fields of `ModelConfig` a generation knows: the numbers of docs/protocol/v1.md §2.5 that
//! its releases had.

use crate::generation::{Generation, PARAMETER};
use trtserver_proto_wire::Fields;

/// How a field is passed to a library.
pub enum FieldRule {
    /// Unchanged.
    Keep,
    /// Limited to `i32::MAX`: the field was a signed 32-bit number, and a larger value would be
    /// read as negative.
    Int32,
    /// An enumeration; values above this one are left out.
    UpTo(u64),
    Message(&'static [(u32, FieldRule)]),
    /// As `Message`, if the filtered message passes.
    MessageIf(&'static [(u32, FieldRule)], fn(&[u8]) -> bool),
}

use FieldRule::{Int32, Keep, Message, MessageIf, UpTo};

/// The fields of `ModelConfig` for a library of that generation.
pub fn model_config(generation: Generation) -> &'static [(u32, FieldRule)] {
    match generation {
        Generation::V0_10 => &BASE[..BASE.len() - 1],
        Generation::V0_11 | Generation::V0_12 => BASE,
        Generation::V1_0 | Generation::V1_6 => V1,
    }
}

/// v0.12; v0.10 had all fields but the last.
const BASE: &[(u32, FieldRule)] = &[
    (1, Keep),
    (2, Keep),
    (3, Keep),
    (4, Keep),
    (5, Message(TENSOR_BASE)),
    (6, Message(TENSOR_BASE)),
    (7, Message(&[(1, Keep), (2, Keep), (3, Keep), (4, UpTo(2))])),
    (8, Keep),
    (9, Keep),
    (10, Keep),
    (11, Message(&[(1, Keep), (2, Int32)])),
    (12, Message(&[(1, Message(ONE)), (2, Keep)])),
    // Field 1 is a queue delay here; since v1.0 it is the maximum idle time of a sequence.
    (
        13,
        Message(&[(
            2,
            MessageIf(CONTROL_INPUT_BASE, |rest| Fields::new(rest).bytes(2).next().is_some()),
        )]),
    ),
];

/// Inputs and outputs alike.
const TENSOR_BASE: &[(u32, FieldRule)] = &[(1, Keep), (2, Keep), (3, Keep), (4, Keep)];

const ONE: &[(u32, FieldRule)] = &[(1, Keep)];

const CONTROL_INPUT_BASE: &[(u32, FieldRule)] = &[
    (1, Keep),
    // START and READY; END and CORRID came with v1.9.
    (2, MessageIf(&[(1, Keep), (2, Keep)], |rest| Fields::new(rest).varint(1) <= 1)),
];

/// v1.13, after which the version 1 protocol did not change. Earlier releases skip unknown fields;
/// no field was renumbered.
const V1: &[(u32, FieldRule)] = &[
    (1, Keep),
    (2, Keep),
    (3, Keep),
    (4, Keep),
    (5, Message(TENSOR_V1)),
    (6, Message(&[(1, Keep), (2, Keep), (3, Keep), (4, Keep), (5, Message(ONE)), (6, Keep)])),
    (7, Message(&[(1, Keep), (2, Keep), (3, Keep), (4, Keep), (5, Keep)])),
    (8, Keep),
    (9, Keep),
    (10, Keep),
    (
        11,
        Message(&[
            (1, Keep),
            (2, Keep),
            (3, Keep),
            (4, Keep),
            (5, Keep),
            (6, Message(&[(1, Keep), (2, Keep), (3, Keep), (4, Keep)])),
            (7, Keep),
        ]),
    ),
    (
        12,
        Message(&[
            (1, Message(ONE)),
            (2, Keep),
            (3, Message(ONE)),
            (4, Message(&[(1, Keep), (2, Keep)])),
            (5, Message(ONE)),
            (6, Message(ONE)),
        ]),
    ),
    (13, Message(SEQUENCE_V1)),
    (
        14,
        MessageIf(&[(1, Keep), (2, Keep)], |entry| !is_own_parameter(&Fields::new(entry).text(1))),
    ),
    (16, Message(&[(1, Keep), (2, Keep), (3, Keep)])),
];

/// Parameters that the server reads, which no release passed to a library.
fn is_own_parameter(key: &str) -> bool {
    key == PARAMETER || key == "isolation"
}

const TENSOR_V1: &[(u32, FieldRule)] =
    &[(1, Keep), (2, Keep), (3, Keep), (4, Keep), (5, Message(ONE)), (6, Keep), (7, Keep)];

const SEQUENCE_V1: &[(u32, FieldRule)] = &[
    (1, Keep),
    (2, Message(&[(1, Keep), (2, Message(&[(1, Keep), (2, Keep), (3, Keep), (4, Keep)]))])),
    (3, Message(&[])),
    (4, Message(&[(1, Keep), (2, Keep), (3, Keep)])),
];
