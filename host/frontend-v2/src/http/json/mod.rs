//! JSON of the v2 HTTP frontend: NaN and Infinity tokens in both directions, strings read without a
//! UTF-8 check, numbers directly into tensor bytes. General JSON libraries support none of this.

pub mod access;
pub mod data;
pub mod encode;
mod half;
pub mod inputs;
mod lazy;
mod numbers;
mod read;
mod tensors;
mod text;
mod value;
pub mod write;

pub use read::{parse_json, pick_members};
pub use tensors::JsonTensors;
pub use value::{JsonArray, JsonValue, Object, PickedMembers};

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
