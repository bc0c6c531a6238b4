//! Oracles for fuzzing: a custom library that calls back with arbitrary arguments, and arbitrary
//! model configurations. Each panics when a property does not hold. `fuzz/` drives them with
//! libFuzzer; a unit test runs them over `fuzz/seeds`.

mod expected; // what callbacks must return and requests must get
mod library; // a library that follows a script

pub use library::custom_library;

use crate::config::{SequenceFacts, bytes_for};
use crate::generation::Generation;
use crate::schema;
use trtserver_proto_wire::Fields;

/// Panics when its property does not hold for these bytes.
pub type Oracle = fn(&[u8]);

/// All oracles by the names of their fuzz targets and seed folders.
pub const ORACLES: &[(&str, Oracle)] =
    &[("custom_config", custom_config), ("custom_library", custom_library)];

/// A generation (one byte) and a serialized `ModelConfig`. What the library receives is a complete
/// message of fields that its generation knows; passing it on once more changes nothing.
pub fn custom_config(bytes: &[u8]) {
    let Some((generation, config)) = bytes.split_first() else { return };
    let generation = pick_generation(*generation);
    let facts = SequenceFacts::read(config);
    let (passed, n) = bytes_for(generation, config);
    assert_eq!((passed.len(), passed.last()), (n + 1, Some(&0)));
    let message = &passed[..n];
    assert!(generation != Generation::V0_10 || !message.contains(&0), "{message:?}");
    let known = schema::model_config(generation);
    for field in Fields::new(message) {
        let field = field.unwrap_or_else(|e| panic!("{e} in {message:?}"));
        assert!(known.iter().any(|(number, _)| *number == field.number), "{field:?}");
    }
    assert_eq!(bytes_for(generation, message).0, passed);
    if matches!(generation, Generation::V1_0 | Generation::V1_6) {
        let received = SequenceFacts::read(message);
        assert_eq!(received.sequences, facts.sequences);
    }
}

fn pick_generation(byte: u8) -> Generation {
    [Generation::V0_10, Generation::V0_11, Generation::V0_12, Generation::V1_0, Generation::V1_6]
        [usize::from(byte % 5)]
}

#[cfg(test)]
#[path = "fuzzing_tests.rs"]
mod tests;
