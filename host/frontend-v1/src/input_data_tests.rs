//! Unit tests of `input_data.rs`.

use super::*;
use crate::{request, testing};
use std::sync::Arc;
use trtserver_models::OpenVersion;

fn planned(model: &str, header: &str) -> (Arc<OpenVersion>, RequestPlan) {
    let ctx = testing::context("");
    let served = ctx.models.find(model, None).unwrap();
    let header = request::parse_header(model, Some(header.as_bytes())).unwrap();
    let plan = request::plan_request(&served.signature, &header).unwrap();
    (served, plan)
}

const SIMPLE: &str = "batch_size: 1 input { name: \"INPUT1\" } input { name: \"INPUT0\" }";

#[test]
fn rows_12_and_13() {
    let (served, plan) = planned("simple", SIMPLE);
    for (bytes, want) in [
        (128, Ok(vec![64, 64])),
        (
            0,
            Err(
                "unexpected size for input 'INPUT1', missing expecting 64 bytes for model 'simple'",
            ),
        ),
        (
            63,
            Err("unexpected size for input 'INPUT1', missing expecting 1 bytes for model 'simple'"),
        ),
        (
            64,
            Err(
                "unexpected size for input 'INPUT0', missing expecting 64 bytes for model 'simple'",
            ),
        ),
        (
            100,
            Err(
                "unexpected size for input 'INPUT0', missing expecting 28 bytes for model 'simple'",
            ),
        ),
        (129, Err("unexpected additional input data for model 'simple'")),
    ] {
        let got = split_body(
            &served.signature,
            &plan,
            &Bytes::from(vec![0; bytes]),
            &RegionRegistry::default(),
        );
        let got = got.map(|p| p.iter().map(TensorData::len).collect()).map_err(|e| e.message);
        assert_eq!(got, want.map_err(str::to_owned), "{bytes}");
    }
}

#[test]
fn rows_14_and_15() {
    let (served, plan) = planned("simple", SIMPLE);
    let sets = "sets of data for model 'simple'";
    for (sizes, want) in [
        (&[64, 64][..], None),
        (&[64], Some(format!("expected tensor data for 2 inputs but got 1 {sets}"))),
        (&[64, 64, 0], Some(format!("expected tensor data for 2 inputs but got 3 {sets}"))),
        (
            &[64, 9],
            Some("unexpected size 9 for input 'INPUT0', expecting 64 for model 'simple'".into()),
        ),
    ] {
        let data = sizes.iter().map(|n| Bytes::from(vec![0; *n])).collect();
        let got = entry_sizes(&served.signature, &plan, data, &RegionRegistry::default());
        assert_eq!(got.err().map(|e| e.message), want, "{sizes:?}");
    }
}

#[test]
fn tensors_are_reordered_to_the_configuration() {
    let (served, plan) = planned("simple", SIMPLE);
    let body: Bytes = [[1; 64], [0; 64]].concat().into();
    let parts = split_body(&served.signature, &plan, &body, &RegionRegistry::default()).unwrap();
    let tensors = read_tensors(&served.signature, plan, parts).unwrap();
    assert_eq!(
        tensors.iter().map(|t| (t.index, t.data.payload()[0])).collect::<Vec<_>>(),
        [(0, 0), (1, 1)]
    );
}

#[test]
fn string_framing() {
    for (data, want) in [
        (&b"\x01\0\0\0a\0\0\0\0"[..], None),
        (b"\x01\0\0\0a\0\0\0\0\x01\x02\x03", None),
        (
            b"\x01\0\0\0a\0\0\0\0\0\0\0\0",
            Some("unexpected number of string elements 3 for inference input 'S', expecting 2"),
        ),
        (
            b"\x01\0\0\0a\x09\0\0\0bc",
            Some(
                "incomplete string data for inference input 'S', expecting string of length 9 but only 2 \
                 bytes available",
            ),
        ),
        (b"\x01\0\0\0a", Some("expected 2 strings for inference input 'S', got 1")),
        (b"\x01\0\0\0a\0\0", Some("expected 2 strings for inference input 'S', got 1")),
    ] {
        let header = format!(
            "batch_size: 1 input {{ name: \"S\" batch_byte_size: {} }} input {{ name: \"V\" dims: [0, 2] }}",
            data.len()
        );
        let (served, plan) = planned("m", &header);
        let body = Bytes::from_static(data);
        let parts =
            split_body(&served.signature, &plan, &body, &RegionRegistry::default()).unwrap();
        let mut tensors = read_tensors(&served.signature, plan, parts).unwrap();
        let got = check_strings(&served.signature, &mut tensors).err().map(|e| e.message);
        assert_eq!(got.as_deref(), want, "{data:?}");
        assert!(want.is_some() || tensors.iter().any(|t| *t.data.payload() == data[..9]));
    }
}

#[test]
fn shared_inputs_have_no_data_in_the_request() {
    let header = "batch_size: 1 input { name: \"INPUT0\" shared_memory { name: \"r\" byte_size: 64 } } \
                  input { name: \"INPUT1\" }";
    let (served, plan) = planned("simple", header);
    let (signature, regions) = (&served.signature, &RegionRegistry::default());
    assert_eq!(plan.bytes(), 64);
    let unknown = "shared memory block 'r' not found in manager";
    let sent = Bytes::from(vec![0; 64]);
    for got in [
        split_body(signature, &plan, &sent, regions),
        entry_sizes(signature, &plan, vec![sent.clone()], regions),
    ] {
        assert_eq!(got.unwrap_err().message, unknown);
    }
    let both = entry_sizes(signature, &plan, vec![sent.clone(), sent], regions).unwrap_err();
    assert_eq!(
        both.message,
        "expected tensor data for 1 inputs but got 2 sets of data for model 'simple'"
    );
}
