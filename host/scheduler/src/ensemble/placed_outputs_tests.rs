//! Unit tests of `mod.rs`: outputs in memory of clients and of GPUs.

use super::testing::{Setup, ensemble, error, request, request_to};
use std::sync::Arc;
use trtserver_base::error::Code;
use trtserver_request::RequestedOutput;
use trtserver_request::memory::{MemoryLocation, OutputMemory, PlacedSlice};
use trtserver_request::testing::{aligned_slice, placed};

#[test]
fn outputs_are_delivered_to_their_destinations() {
    // `out` is read by no step, `out2` by step b.
    let steps = "a:I=in>O=out2 b:I=out2>O=out";
    let memory = placed(&[7; 256], MemoryLocation::CPU, true);
    let to = |index: usize| {
        let slice = aligned_slice(&memory, 64 * index, 8 + index);
        Some(Arc::new(OutputMemory::new(slice)))
    };
    let (e, models) = ensemble(steps, &Setup::default());
    let (request, _, responses) = request_to(&e, "out out2", &[1, 2], to);
    e.submit(request);
    for (model, direct) in [("a", false), ("b", true)] {
        let model = models.model(model);
        let step = model.take();
        assert_eq!(step.context().outputs[0].destination.is_some(), direct);
        model.submit_again(step);
        model.respond();
    }
    let got = responses.lock().remove(0).0.unwrap().unwrap();
    for (index, output) in got.outputs.iter().enumerate() {
        assert_eq!(output.data, aligned_slice(&memory, 64 * index, 8).into());
        assert_eq!(output.data.to_cpu().unwrap(), [0; 8][..]);
    }
}

#[test]
fn destination_that_is_too_small_names_the_output_of_the_ensemble() {
    for (name, steps) in [("out", "a:I=in>O=out"), ("out2", "a:I=in>O=out2 b:I=out2>O=out")] {
        let memory = placed(&[7; 128], MemoryLocation::CPU, true);
        let to = |_| Some(Arc::new(OutputMemory::new(aligned_slice(&memory, 0, 7))));
        let (e, models) = ensemble(steps, &Setup::default());
        let (request, _, responses) = request_to(&e, name, &[1, 2], to);
        e.submit(request);
        models.model("a").respond();
        let (code, text) = error(&responses);
        assert_eq!(code, Code::Internal);
        let expected = format!("output '{name}' (7 bytes) should be at least 8 bytes");
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
fn tensor_stays_in_gpu_memory_if_only_steps_on_gpus_read_it() {
    for (steps, requested, stays) in [
        ("gpu:I=in>O=t gpu2:I=t>O=out", "out", true),
        ("gpu:I=in>O=t gpu2:I=t>O=out gpu3:I=t>O=out2", "out out2", true),
        // One of the steps is not on a GPU, the first is not, the tensor is in the response.
        ("gpu:I=in>O=t gpu2:I=t>O=out b:I=t>O=out2", "out out2", false),
        ("a:I=in>O=t gpu2:I=t>O=out", "out", false),
        ("gpu:I=in>O=out gpu2:I=out>O=out2", "out out2", false),
        ("gpu:I=in>O=out gpu2:I=out>O=out2", "out2", true),
        ("gpu:I=in>O=out", "out", false),
    ] {
        let (e, models) = ensemble(steps, &Setup::default());
        let (request, _, _responses) = request(&e, requested, &[1, 2]);
        e.submit(request);
        let step = models.model(steps.split(':').next().unwrap()).take();
        let output = &step.context().outputs[0];
        assert_eq!((output.stays_on_device(), output.index()), (stays, 0), "{steps}");
    }
}

#[test]
fn step_that_reads_gpu_memory_waits_for_a_device() {
    let (e, models) = ensemble("gpu:I=in>O=t gpu2:I=t>O=out", &Setup::default());
    let shared = Arc::new(OutputMemory::new(aligned_slice(
        &placed(&[0; 128], MemoryLocation::CPU, true),
        0,
        8,
    )));
    for destination in [None, Some(shared)] {
        let (request, _, _responses) = request_to(&e, "out", &[1, 2], |_| destination.clone());
        e.submit(request);
        let mut step = models.model("gpu").take();
        assert!(!step.context().waits_for_device());
        let on_device = placed(&[0; 8], MemoryLocation::gpu(0), false);
        step.inputs[0].data = PlacedSlice::new(&on_device, 0, 8).unwrap().into();
        models.model("gpu").submit_again(step);
        models.model("gpu").respond();
        let step = models.model("gpu2").take();
        assert_eq!(step.inputs[0].data.location(), MemoryLocation::gpu(0));
        assert!(step.context().waits_for_device());
    }
}

#[test]
fn output_of_a_nested_ensemble_stays_in_gpu_memory_for_a_step_of_the_outer_one() {
    let (e, models) = ensemble("gpu:I=in>O=out", &Setup::default());
    let (mut request, _, responses) = request(&e, "out", &[1, 2]);
    // Nothing else has the responder yet.
    let context = &mut Arc::get_mut(&mut request.responder).unwrap().context;
    context.outputs[0] = RequestedOutput::new(0, 0).on_device(true);
    e.submit(request);
    let mut step = models.model("gpu").take();
    assert!(step.context().outputs[0].stays_on_device());
    let on_device = placed(&[0; 8], MemoryLocation::gpu(0), false);
    step.inputs[0].data = PlacedSlice::new(&on_device, 0, 8).unwrap().into();
    models.model("gpu").submit_again(step);
    models.model("gpu").respond();
    let response = responses.lock().pop().unwrap().0.unwrap().unwrap();
    assert_eq!(response.outputs[0].data.location(), MemoryLocation::gpu(0));
}

#[test]
fn ensemble_is_on_gpus_as_far_as_its_steps_are() {
    // Whether `in` is read there, whether `out` is written there.
    for (steps, reads, writes) in [
        ("gpu:I=in>O=t gpu2:I=t>O=out", true, true),
        ("gpu:I=in>O=t b:I=t>O=out", true, false),
        ("a:I=in>O=t gpu2:I=t>O=out", false, true),
        ("gpu:I=in>O=out b:I=in>O=out2", false, true),
    ] {
        let (e, _models) = ensemble(steps, &Setup::default());
        for e in [e.pinned().unwrap(), e] {
            assert_eq!((e.reads_on_gpu("in"), e.writes_on_gpu("out")), (reads, writes), "{steps}");
        }
    }
}
