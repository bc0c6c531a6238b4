//! Unit tests of `key.rs`: what changes the key of a request, and what does not.

use super::*;
use crate::aegis_code::AegisCode;
use bytes::Bytes;
use trtserver_base::clock::now_ns;
use trtserver_request::testing::{request_with, signature};
use trtserver_request::{DType, InputTensor, RequestContext, RequestedOutput};

/// What a key is made of, with values that each test row changes.
struct Facts {
    version: u64,
    batch: u32,
    inputs: Vec<InputTensor>,
    outputs: Vec<RequestedOutput>,
    parameters: Vec<(String, ParameterValue)>,
    id: &'static str,
    priority: u64,
    timeout_us: u64,
}

fn input(index: usize, dtype: DType, shape: &[i64], data: &[u8]) -> InputTensor {
    let (shape, data) = (shape.iter().copied().collect(), Bytes::copy_from_slice(data).into());
    InputTensor { index, dtype, shape, data }
}

fn facts() -> Facts {
    Facts {
        version: 7,
        batch: 1,
        inputs: vec![
            input(0, DType::Fp32, &[2, 3], &[1; 24]),
            input(1, DType::String, &[1], b"\x02\0\0\0ab"),
        ],
        outputs: vec![RequestedOutput::new(0, 0), RequestedOutput::new(1, 0)],
        parameters: vec![("p".into(), ParameterValue::Int(1))],
        id: "",
        priority: 0,
        timeout_us: 0,
    }
}

fn key_of(seed: &KeySeed, facts: Facts) -> RequestKey {
    let context = RequestContext {
        signature: signature(&[2], 8),
        stats: None,
        received_ns: now_ns(),
        batch: facts.batch,
        outputs: facts.outputs.into_iter().collect(),
        stream: None,
        waits: false,
        wording: Default::default(),
        used_memory: None,
    };
    let (mut request, _responses) = request_with(context, facts.id, facts.inputs);
    request.parameters = facts.parameters;
    request.priority = facts.priority;
    request.timeout_us = facts.timeout_us;
    request_key(seed, facts.version, &request).unwrap()
}

fn key(change: impl FnOnce(&mut Facts)) -> RequestKey {
    let mut changed = facts();
    change(&mut changed);
    key_of(&KeySeed::fixed(TensorHash::Aegis(AegisCode::new([5, 6]))), changed)
}

#[test]
fn each_field_changes_the_key() {
    use ParameterValue::{Bool, Double, Int, String};
    let parameter = |value| move |f: &mut Facts| f.parameters[0].1 = value;
    let mut rows: Vec<(&str, RequestKey)> = vec![
        ("as it is", key(|_| {})),
        ("version", key(|f| f.version = 8)),
        ("batch", key(|f| f.batch = 2)),
        ("position of an input", key(|f| f.inputs[1].index = 2)),
        ("type", key(|f| f.inputs[0].dtype = DType::Int32)),
        ("shape of the same bytes", key(|f| f.inputs[0].shape = [3, 2].into_iter().collect())),
        ("rank", key(|f| f.inputs[0].shape = [6].into_iter().collect())),
        ("bytes", key(|f| f.inputs[0] = input(0, DType::Fp32, &[2, 3], &[2; 24]))),
        ("string", key(|f| f.inputs[1] = input(1, DType::String, &[1], b"\x02\0\0\0ac"))),
        ("an input less", key(|f| drop(f.inputs.pop()))),
        ("an output less", key(|f| drop(f.outputs.pop()))),
        ("no output", key(|f| f.outputs.clear())),
        ("order of outputs", key(|f| f.outputs.swap(0, 1))),
        ("classes", key(|f| f.outputs[0] = RequestedOutput::new(0, 3))),
        ("no parameter", key(|f| f.parameters.clear())),
        ("name of a parameter", key(|f| f.parameters[0].0 = "q".into())),
        ("another number", key(parameter(Int(2)))),
        ("a boolean", key(parameter(Bool(true)))),
        ("a double", key(parameter(Double(1.0)))),
        ("a text", key(parameter(String("1".into())))),
        ("a longer text", key(parameter(String("11".into())))),
        ("a long text", key(parameter(String("1".repeat(1000))))),
        ("its last character", key(parameter(String("1".repeat(999) + "2")))),
    ];
    // Tensors of other lengths are hashed apart from the rest.
    for (name, length) in [("medium", 1024), ("long", 1025)] {
        let filled = |last: u8| {
            move |f: &mut Facts| {
                let mut data = vec![0; length];
                data[length - 1] = last;
                f.inputs[0] = input(0, DType::Uint8, &[-1], &data);
            }
        };
        rows.extend([(name, key(filled(0))), (name, key(filled(1)))]);
    }
    for (i, (name, key)) in rows.iter().enumerate() {
        for (other, other_key) in &rows[..i] {
            assert_ne!(key, other_key, "{name} and {other}");
        }
    }
}

#[test]
fn what_the_model_does_not_see_is_not_in_the_key() {
    let want = key(|_| {});
    assert_eq!(key(|f| f.id = "x"), want);
    assert_eq!(key(|f| f.priority = 3), want);
    assert_eq!(key(|f| f.timeout_us = 5), want);
}

/// AEGIS and what replaces it: each secret has keys of its own, and each byte counts.
#[test]
fn hashes_of_long_tensors() {
    let long = |seed: &KeySeed, last: u8| {
        let mut changed = facts();
        let data = [vec![0; 2000], vec![last]].concat();
        changed.inputs = (0..2).map(|i| input(i, DType::Uint8, &[-1], &data)).collect();
        key_of(seed, changed)
    };
    let aegis = |secret| TensorHash::Aegis(AegisCode::new(secret));
    let hashes = || [aegis([5, 6]), aegis([5, 7]), TensorHash::Highway];
    let seeds = hashes().map(KeySeed::fixed);
    let keys: Vec<_> = seeds.iter().flat_map(|seed| [0, 1].map(|last| long(seed, last))).collect();
    for (i, key) in keys.iter().enumerate() {
        assert!(!keys[..i].contains(key), "{i}");
    }
    let again: Vec<_> = hashes().map(KeySeed::fixed).iter().map(|seed| long(seed, 0)).collect();
    assert_eq!(again, [keys[0], keys[2], keys[4]]);
}

/// The boundary between two parts belongs to the key.
#[test]
fn bytes_that_move_to_the_next_tensor_change_the_key() {
    let split = |at: usize, size: usize| {
        key(move |f| {
            let data: Vec<u8> = (0..size).map(|i| i as u8).collect();
            f.inputs = vec![
                input(0, DType::Uint8, &[-1], &data[..at]),
                input(1, DType::Uint8, &[-1], &data[at..]),
            ];
        })
    };
    assert_ne!(split(4, 16), split(8, 16));
    assert_ne!(split(200, 1000), split(201, 1000));
    assert_ne!(split(2000, 4000), split(2001, 4000));
    assert_ne!(split(1000, 4000), split(3000, 4000));
    assert_ne!(split(100, 1000), split(200, 1000));
}

#[test]
fn processes_have_different_keys() {
    let keys: Vec<_> = (0..3).map(|_| key_of(&KeySeed::random(), facts())).collect();
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
}
