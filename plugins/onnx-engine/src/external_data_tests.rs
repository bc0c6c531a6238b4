//! Unit tests of `external_data.rs`.

use super::*;
use std::fs;
use trtserver_model_files::testing::HostileModel;
use trtserver_proto_wire::{put_bytes, put_number};

/// A message with one field.
fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    put_bytes(&mut message, number, content);
    message
}

/// A message within messages, the outermost field first.
fn nested(path: &[u32], content: Vec<u8>) -> Vec<u8> {
    path.iter().rev().fold(content, |inner, number| field(*number, &inner))
}

fn entry(key: &str, value: &str) -> Vec<u8> {
    field(13, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat())
}

/// A tensor with its data in a file.
fn tensor(location: &str) -> Vec<u8> {
    [field(8, b"w"), entry("location", location), entry("offset", "0")].concat()
}

fn check_in(model: &HostileModel, bytes: &[u8]) -> Result<(), String> {
    let file = model.model().join("1/model.onnx");
    fs::write(&file, bytes).unwrap();
    let places = FilePlaces::new(&model.model(), [model.repository()]);
    check_external_data("M", &places, &file, None).map_err(|fault| fault.text)
}

/// From the model to a tensor, by every way there is.
const WAYS: &[&[u32]] = &[
    &[7, 5],           // an initializer
    &[7, 15, 1],       // a sparse one: values
    &[7, 15, 2],       // and indices
    &[7, 1, 5, 5],     // an attribute
    &[7, 1, 5, 10],    // a list of them
    &[7, 1, 5, 22, 1], // a sparse one
    &[7, 1, 5, 23, 2], // a list of them
    &[7, 1, 5, 6, 5],  // a graph in an attribute, such as a branch
    &[7, 1, 5, 11, 1, 5, 5],
    &[25, 7, 5, 5], // a node of a function
    &[25, 11, 5],   // a default of a function
    &[20, 1, 5],    // graphs of training
    &[20, 2, 1, 5, 5],
];

#[test]
fn tensors_are_found_wherever_they_are() {
    let model = HostileModel::new(&["1"]);
    for way in WAYS {
        let model_of = |location: &str| nested(way, tensor(location));
        assert_eq!(check_in(&model, &model_of("own")), Ok(()), "{way:?}");
        for name in model.names_of_secret() {
            let text = check_in(&model, &model_of(&name)).expect_err(&format!("{way:?} {name:?}"));
            assert!(
                text.contains("model 'M'") && text.contains("model.onnx names an external"),
                "{text}"
            );
        }
    }
}

#[test]
fn compiled_parts_stay_in_the_model() {
    let model = HostileModel::new(&["1"]);
    let number = |field: u32, value: u64| {
        let mut message = Vec::new();
        put_number(&mut message, field, value);
        message
    };
    let attribute =
        |name: &str, value: Vec<u8>| field(5, &[field(1, name.as_bytes()), value].concat());
    let node = |kind: &str, file: &str, embed: Option<u64>| {
        let context = attribute("ep_cache_context", field(4, file.as_bytes()));
        let embed = embed.map(|mode| attribute("embed_mode", number(3, mode))).unwrap_or_default();
        nested(&[7, 1], [context, embed, field(4, kind.as_bytes())].concat())
    };
    assert_eq!(check_in(&model, &node("EPContext", "own", Some(0))), Ok(()));
    assert_eq!(check_in(&model, &node("EPContext", "/etc/passwd", Some(1))), Ok(()));
    assert_eq!(check_in(&model, &node("Other", "/etc/passwd", Some(0))), Ok(()));
    for name in model.names_of_secret() {
        assert!(check_in(&model, &node("EPContext", &name, Some(0))).is_err(), "{name:?}");
    }
    let long = node("EPContext", &"x".repeat(5000), Some(0));
    assert!(check_in(&model, &long).unwrap_err().contains("more than 4096 bytes"));
}

#[test]
fn odd_files_are_refused_and_malformed_ones_left_to_the_library() {
    let model = HostileModel::new(&["1"]);
    let bad = nested(&[7, 5], tensor("/etc/passwd"));
    let long_tag = [&[0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00][..], &bad].concat();
    let text = check_in(&model, &long_tag).unwrap_err();
    assert!(text.contains("a field number that no ONNX model has"), "{text}");
    // Groups are skipped: 3 begins one, 4 ends it.
    let group = [0x23, 0x0b, 0x0c, 0x08, 0x01, 0x24];
    let text = check_in(&model, &[&group[..], &bad].concat()).unwrap_err();
    assert!(text.contains("names an external file"), "{text}");
    for unended in [&group[..5], &[0x23, 0x2c], &[0x23; 300], b"#!/usr/bin/env python3"] {
        assert_eq!(check_in(&model, &[unended, &bad].concat()), Ok(()), "{unended:?}");
    }
    let memory = nested(&[7, 5], tensor("*/_ORT_MEM_ADDR_/*"));
    assert!(check_in(&model, &memory).unwrap_err().contains("memory of the process"));
    let mut deep = tensor("own");
    deep = nested(&[5], deep);
    for _ in 0..60 {
        deep = nested(&[1, 5, 6], deep);
    }
    assert!(check_in(&model, &field(7, &deep)).unwrap_err().contains("in each other"));
    for malformed in [&bad[..bad.len() - 9], b"no model", b"\xff\xff", b""] {
        assert_eq!(check_in(&model, malformed), Ok(()), "{malformed:?}");
    }
    // Data is skipped, and the other folder is judged, too.
    let data = [field(9, &vec![0x0b; 100_000]), tensor("own")].concat();
    assert_eq!(check_in(&model, &nested(&[7, 5], data)), Ok(()));
    let file = model.model().join("1/model.onnx");
    let places = FilePlaces::new(&model.model(), [model.repository()]);
    assert!(check_external_data("M", &places, &file, Some(&model.model().join("1/sub"))).is_ok());
    // The operator's folder may lie anywhere, but nothing leads out of it.
    let folder = tempfile::tempdir().unwrap();
    assert!(check_external_data("M", &places, &file, Some(folder.path())).is_ok());
    std::os::unix::fs::symlink(model.secret(), folder.path().join("own")).unwrap();
    assert!(check_external_data("M", &places, &file, Some(folder.path())).is_err());
}

#[test]
fn no_name_leads_outside() {
    let model = HostileModel::new(&["1"]);
    proptest::proptest!(|(name in model.names())| {
        if check_in(&model, &nested(&[7, 5], tensor(&name))).is_ok() {
            let read = fs::read(model.model().join("1").join(&name)).unwrap_or_default();
            proptest::prop_assert!(!HostileModel::is_secret(&read), "{:?}", name);
        }
    });
}
