//! JSON of the v2 HTTP frontend: NaN and Infinity tokens in both directions, strings read without a UTF-8 check, numbers directly
//! into tensor bytes. General JSON libraries support none of this.

pub mod access; // typed access to values
pub mod data; // `data` arrays to tensor bytes and back
mod half; // FP16 and BF16
mod lazy; // elements and members, read on demand
mod read; // reader
mod value; // values
pub mod write; // compact objects, keys in the order written

pub use read::{Spans, parse, pick};
pub use value::{Array, Object, Picked, Value};

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
