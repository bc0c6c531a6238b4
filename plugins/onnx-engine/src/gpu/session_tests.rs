//! Unit tests of `session.rs` and of bindings, with the real library for the CPU: the functions
//! that sessions on GPUs use are where the table has them, and do what the fake library does.

use super::*;
use crate::options::Options;
use crate::plugin::ModelGraph;
use crate::runtime;
use crate::tests::library;
use crate::value::OnnxValue;
use ort_sys::ONNXTensorElementDataType as Element;
use std::path::{Path, PathBuf};

fn open(arena: bool) -> OnnxSession {
    let library = library();
    let runtime =
        runtime::open_runtime("onnxruntime", library.to_str(), Path::new("/nowhere")).unwrap();
    assert!(runtime.offers_gpu_api, "{}", runtime.label());
    let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/addsub.onnx"));
    let options = Options { arena, ..Options::for_reading() };
    OnnxSession::open(runtime, "model 'm'", &ModelGraph { file, bytes: None }, &options, None)
        .unwrap()
}

#[test]
fn tensors_of_a_session_on_the_cpu_are_not_on_a_device() {
    let session = open(false);
    let api = session.runtime.api;
    // SAFETY: the entries of the table, for two tensors each.
    let [inputs, outputs] = unsafe {
        [(*api).SessionGetMemoryInfoForInputs, (*api).SessionGetMemoryInfoForOutputs]
            .map(|entry| output_places(&session, entry, 2).unwrap())
    };
    assert_eq!((inputs, outputs), (vec![false; 2], vec![false; 2]));
}

#[test]
fn outputs_of_a_binding_come_in_its_order_and_from_an_arena_that_is_measured() {
    let session = open(true);
    let runtime = session.runtime;
    let mut allocator = ptr::null_mut();
    // SAFETY: the session is alive, the out pointer is ours.
    unsafe { ort!(runtime, CreateAllocator(session.as_ptr(), runtime.memory, &raw mut allocator)) }
        .unwrap();
    // SAFETY: the session outlives the binding.
    let mut binding = unsafe { IoBinding::new(&session) }.unwrap();
    for first in [1.0f32, 2.0] {
        let (mut a, mut b) = ([first; 16], [10.0f32; 16]);
        let of = |data: &mut [f32; 16]| {
            let element = Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
            // SAFETY: the array outlives the value.
            unsafe { OnnxValue::over(runtime, element, &[1, 16], data.as_mut_ptr().cast(), 64) }
                .unwrap()
        };
        let (a, b) = (of(&mut a), of(&mut b));
        binding.input(c"INPUT0", &a).unwrap();
        binding.input(c"INPUT1", &b).unwrap();
        for name in [c"OUTPUT1", c"OUTPUT0"] {
            binding.output_in(name, runtime.memory).unwrap();
        }
        // SAFETY: bound to this session and to live memory.
        unsafe { session.run_bound(&binding) }.unwrap();
        // SAFETY: outputs of sixteen floats.
        let first_of = |value: &OnnxValue| unsafe { *value.data().unwrap().cast::<f32>() };
        let results = binding.outputs().unwrap();
        assert_eq!(results.iter().map(first_of).collect::<Vec<_>>(), [first - 10.0, first + 10.0]);
        binding.clear_inputs();
        binding.clear_outputs();
        // SAFETY: the allocator is alive.
        assert!(unsafe { allocated(runtime, allocator) }.unwrap() > 0);
    }
    // SAFETY: ours, released once.
    unsafe { ((*runtime.api).ReleaseAllocator)(allocator) };
}
