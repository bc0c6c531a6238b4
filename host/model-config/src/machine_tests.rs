//! Unit tests of `machine.rs`.

use super::super::testing::{gpu, parse};
use super::*;

#[test]
fn model_file_follows_the_compute_capability_of_the_device() {
    let machine = MachineFacts::new(vec![gpu(0, (6, 1)), gpu(1, (7, 5)), gpu(2, (8, 0))], 0.0);
    let config = parse(
        "default_model_filename: 'd' cc_model_filenames { key: '6.1' value: 'a' } \
         cc_model_filenames { key: '7.5' value: 'b' } cc_model_filenames { key: '9.0' value: 'c' }",
    );
    let files = [-1, 0, 1, 2, 3].map(|device| machine.model_file(&config, device));
    assert_eq!(files, ["d", "a", "b", "d", "d"]);
    let empty = parse("default_model_filename: 'd' cc_model_filenames { key: '6.1' value: '' }");
    assert_eq!(machine.model_file(&empty, 0), "d");
}

#[test]
fn devices_are_described_with_their_compute_capability() {
    let machine = MachineFacts::new(vec![gpu(3, (7, 0))], 0.0);
    assert_eq!([3, -1].map(|device| machine.describe(device)), ["GPU 3 (7.0)", "CPU"]);
}
