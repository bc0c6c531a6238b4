//! Unit tests of `set_fields.rs`.

use super::*;
use crate::v2::ModelConfig;

#[test]
fn fields_with_other_values_than_their_default_are_set() {
    let text =
        "name: 'm' max_batch_size: 0 optimization { eager_batching: false cuda { graphs: true } }
                parameters { key: 'k' value { string_value: 'v' } } input { dims: [ 1, 2 ] }";
    let config: ModelConfig = crate::text::parse(text).unwrap();
    let set: Vec<String> = set_fields(&config).into_iter().collect();
    assert_eq!(
        set,
        [
            "input.dims",
            "name",
            "optimization.cuda.graphs",
            "parameters.key",
            "parameters.value.string_value"
        ]
    );
}

#[test]
fn every_field_of_a_type_is_listed_once() {
    let all = all_fields(ModelConfig::schema());
    assert!(all.contains(&"model_warmup.inputs.value.dims".to_owned()), "{all:?}");
    let unique: BTreeSet<_> = all.iter().collect();
    assert_eq!(unique.len(), all.len());
}
