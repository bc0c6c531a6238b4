//! Unit tests of `check.rs`.

use super::*;
use crate::DType;
use crate::memory::{MemoryLocation, PlacedSlice};
use crate::testing::placed;

fn signature(max_batch_size: u32) -> ModelSignature {
    let spec = |name: &str, dtype, dims: &[i64]| TensorSpec::new(name, dtype, dims);
    ModelSignature {
        model: "m".into(),
        max_batch_size,
        inputs: vec![spec("A", DType::Fp32, &[2]), spec("S", DType::String, &[-1])],
        outputs: vec![spec("O", DType::Fp32, &[2])],
        ..Default::default()
    }
}

fn input(index: usize, dtype: DType, shape: &[i64], data: &[u8]) -> InputTensor {
    InputTensor { index, dtype, shape: shape.into(), data: data.to_vec().into() }
}

#[test]
fn each_check_has_its_message() {
    let a = |shape: &[i64], bytes: usize| input(0, DType::Fp32, shape, &vec![0; bytes]);
    let s = |shape: &[i64], data: &[u8]| input(1, DType::String, shape, data);
    let empty = [0u8; 4];
    let cases: Vec<(u32, Vec<InputTensor>, Result<u32, &str>)> = vec![
        (4, vec![a(&[1, 2], 8), s(&[1, 1], &empty)], Ok(1)),
        (4, vec![s(&[3, 0], &[]), a(&[3, 2], 24)], Ok(3)),
        (0, vec![a(&[2], 8), s(&[0], &[])], Ok(1)),
        (
            4,
            vec![a(&[1, 2], 8)],
            Err(
                "[request id: <id_unknown>] expected 2 inputs but got 1 inputs for model 'm'. Got \
                 input(s) ['A'], but missing required input(s) ['S']. Please provide all required input(s).",
            ),
        ),
        (
            4,
            vec![a(&[1, 2], 8), a(&[1, 2], 8)],
            Err("[request id: <id_unknown>] input 'A' already exists in request"),
        ),
        (
            4,
            vec![a(&[5, 2], 40), s(&[5, 0], &[])],
            Err("[request id: <id_unknown>] inference request batch-size must be <= 4 for 'm'"),
        ),
        (
            4,
            vec![a(&[1, 2], 8), s(&[2, 0], &[])],
            Err(
                "[request id: <id_unknown>] input 'S' batch size does not match other inputs for 'm'",
            ),
        ),
        (
            4,
            vec![a(&[], 8), s(&[1, 0], &[])],
            Err(
                "[request id: <id_unknown>] input 'A' has no shape but model requires batch dimension for 'm'",
            ),
        ),
        (
            0,
            vec![input(0, DType::Int32, &[2], &[0; 8]), s(&[0], &[])],
            Err(
                "[request id: <id_unknown>] inference input 'A' data-type is 'INT32', but model 'm' expects 'FP32'",
            ),
        ),
        (
            0,
            vec![a(&[3], 12), s(&[0], &[])],
            Err(
                "[request id: <id_unknown>] unexpected shape for input 'A' for model 'm'. Expected [2], got [3]. ",
            ),
        ),
        (
            0,
            vec![a(&[2], 7), s(&[0], &[])],
            Err(
                "[request id: <id_unknown>] input byte size mismatch for input 'A' for model 'm'. Expected 8, got 7",
            ),
        ),
        (
            0,
            vec![a(&[-2], 8), s(&[0], &[])],
            Err(
                "[request id: <id_unknown>] All input dimensions should be specified for input 'A' for model 'm', got [-2]",
            ),
        ),
        (
            0,
            vec![a(&[2], 8), s(&[2], &empty)],
            Err(
                "[request id: <id_unknown>] expected 2 string elements for inference input 'S' for model 'm', got 1",
            ),
        ),
        (
            0,
            vec![a(&[2], 8), s(&[1], &[0, 0, 0, 0, 1])],
            Err(
                "[request id: <id_unknown>] incomplete string length indicator for inference input 'S' for \
                 model 'm', expecting 4 bytes but only 1 bytes available. Please make sure the string \
                 length indicator is in one buffer.",
            ),
        ),
        (
            0,
            vec![a(&[2], 8), s(&[1], &[9, 0, 0, 0, 1])],
            Err(
                "[request id: <id_unknown>] incomplete string data for inference input 'S' for model 'm', \
                 expecting string of length 9 but only 1 bytes available",
            ),
        ),
        (
            0,
            vec![a(&[2], 8), s(&[i64::MAX], &[])],
            Err(
                "[request id: <id_unknown>] expected 9223372036854775807 string elements for inference \
                 input 'S' for model 'm', got 0",
            ),
        ),
    ];
    for (max_batch_size, mut given, want) in cases {
        let got = check_inputs(&signature(max_batch_size), "", &mut given);
        assert_eq!(got.map_err(|e| e.message), want.map_err(String::from));
    }
}

#[test]
fn strings_in_shared_memory_are_copied_before_their_check() {
    let place = |location| {
        let memory = placed(&[1, 0, 0, 0, b'x', 9, 9, 9, 9, 9, 9, 9, 9], location, true);
        let range = |offset, len| PlacedSlice::new(&memory, offset, len).unwrap().into();
        let mut given = [input(0, DType::Fp32, &[2], &[]), input(1, DType::String, &[1], &[])];
        (given[0].data, given[1].data) = (range(5, 8), range(0, 5));
        (memory, given)
    };
    let (memory, mut given) = place(MemoryLocation::CPU);
    check_inputs(&signature(0), "", &mut given).unwrap();
    assert!(given[0].data.placed().is_some(), "numbers are read in place");
    assert_eq!(given[1].data.cpu().unwrap(), &b"\x01\0\0\0x"[..]);
    PlacedSlice::new(&memory, 0, 4).unwrap().write(&[&[200; 4]]).unwrap();
    assert_eq!(given[1].data.cpu().unwrap(), &b"\x01\0\0\0x"[..], "the client writes meanwhile");
    // Only the instance's thread may wait for a copy from the device.
    let (_memory, mut given) = place(MemoryLocation::gpu(0));
    check_inputs(&signature(0), "", &mut given).unwrap();
    assert_eq!(given[1].data.location(), MemoryLocation::gpu(0));
    check_string_input(&signature(0), "", &given[1], &given[1].data.to_cpu().unwrap()).unwrap();
    assert!(check_string_input(&signature(0), "", &given[1], &[1, 0, 0, 0]).is_err());
}

#[test]
fn unknown_input_or_wrong_count_is_reported() {
    let message = |given: &[&str]| {
        let given: Vec<String> = given.iter().map(|n| (*n).to_owned()).collect();
        unknown_input(&signature(0), "i", "X", &given).message
    };
    assert_eq!(message(&["A", "X"]), "unexpected inference input 'X' for model 'm'");
    assert_eq!(
        message(&["A", "S", "X"]),
        "[request id: i] expected 2 inputs but got 3 inputs for model 'm'. Got input(s) ['A','S','X'], \
         but missing required input(s) ]. Please provide all required input(s)."
    );
}
