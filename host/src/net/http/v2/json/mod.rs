//! JSON as the v2 HTTP front end needs it: NaN and Infinity tokens both ways, strings without a UTF-8
//! check, numbers straight into tensor bytes. General JSON libraries do none of that.

pub mod data; // `data` arrays and tensor bytes, there and back
mod read;
pub mod write; // compact objects, keys in the order written

pub use read::{Array, Object, Picked, Value, parse, pick};

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
