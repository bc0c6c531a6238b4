//! Unit tests of `settings.rs`.

use super::*;

/// A field with bytes.
fn bytes(number: u8, value: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2, value.len() as u8];
    field.extend(value);
    field
}

fn varint_field(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

#[test]
fn graph_specs_are_read_with_their_lower_bounds() {
    let shape = bytes(1, &[3, 0x80, 0x01]);
    let entry = bytes(2, &[bytes(1, b"x"), bytes(2, &shape)].concat());
    let lower = bytes(3, &varint_field(1, 2));
    let spec = bytes(3, &[varint_field(1, 8), entry, lower].concat());
    let config = bytes(12, &bytes(3, &[varint_field(1, 1), spec].concat()));
    let options = CudaOptions::read(&config);
    assert!(options.graphs);
    let [spec] = options.specs.as_slice() else { panic!("{options:?}") };
    assert_eq!(spec.batch, 8);
    assert_eq!(spec.inputs, [("x".to_owned(), vec![3, 128])]);
    assert_eq!(spec.lower.as_ref().map(|lower| lower.batch), Some(2));
}

#[test]
fn first_gpu_is_that_of_the_first_group_that_names_one() {
    assert_eq!(first_gpu(&[]), 0);
    let config = [bytes(7, &bytes(1, b"a")), bytes(7, &bytes(3, &[2, 1]))].concat();
    assert_eq!(first_gpu(&config), 2);
}

#[test]
fn plugins_are_separated_by_semicolons() {
    let of = |key: &str| (key == PLUGINS).then_some("/a/one.so; two.so;");
    let settings = TensorRtSettings::new(of, Path::new("/plugin")).expect("settings");
    assert_eq!(settings.plugins, [PathBuf::from("/a/one.so"), PathBuf::from("two.so")]);
    assert!(!settings.version_compatible);
}

#[test]
fn version_compatible_is_a_truth_value() {
    let of = |value| move |key: &str| (key == VERSION_COMPATIBLE).then_some(value);
    let on = TensorRtSettings::new(of("true"), Path::new("/plugin")).expect("settings");
    assert!(on.version_compatible);
    let refused =
        TensorRtSettings::new(of("maybe"), Path::new("/plugin")).expect_err("no truth value");
    assert!(refused.text.contains("'maybe'"), "{refused}");
}
