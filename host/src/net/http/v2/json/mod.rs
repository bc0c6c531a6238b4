//! JSON of the v2 HTTP frontend: NaN and Infinity tokens in both directions, strings read without a UTF-8 check, numbers directly
//! into tensor bytes. General JSON libraries support none of this.

pub mod access; // typed access to values
pub mod data; // `data` arrays to tensor bytes
pub mod encode; // tensor bytes to `data` arrays
mod half; // FP16 and BF16
pub mod inputs; // requests with tensors, converted on the first walk
mod lazy; // elements and members, read on demand
mod numbers; // arrays of numbers to tensor bytes in one pass
mod read; // reader
mod tensors; // the tensors that the first walk converted
mod text; // numbers as text
mod value; // values
pub mod write; // compact objects, keys in the order written

pub use read::{parse, pick};
pub use tensors::Tensors;
pub use value::{Array, Object, Picked, Value};

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
