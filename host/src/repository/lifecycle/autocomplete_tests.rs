//! Unit tests of `autocomplete.rs`.

use super::*;
use trtserver_proto::v2::{ModelInput, ModelOutput};

fn config(max_batch_size: i32, inputs: &[&str], outputs: &[&str]) -> ModelConfig {
    ModelConfig {
        max_batch_size,
        input: inputs
            .iter()
            .map(|n| ModelInput { name: (*n).into(), ..Default::default() })
            .collect(),
        output: outputs
            .iter()
            .map(|n| ModelOutput { name: (*n).into(), ..Default::default() })
            .collect(),
        ..Default::default()
    }
}

#[test]
fn merge_keeps_declared_fields() {
    for (given, patch, want) in [
        (config(0, &[], &[]), config(4, &["I"], &["O"]), config(4, &["I"], &["O"])),
        (config(0, &["A"], &[]), config(4, &["I"], &["O"]), config(0, &["A"], &["O"])),
        (config(2, &[], &["B"]), config(4, &["I"], &["O"]), config(2, &["I"], &["B"])),
    ] {
        let mut got = given;
        merge(&mut got, patch);
        assert_eq!(got, want);
    }
}
