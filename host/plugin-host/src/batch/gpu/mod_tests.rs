//! Unit tests of `gpu/`, on the fake CUDA driver, through the host functions that backends call.

use super::*;
use crate::batch::testing::{
    NOTHING, RecordedResponses, check, floats, gather, request, responder_of, send, signature,
    single_response, texts, with_batch_on,
};
use crate::host_api::table;
use crate::text::{c_text, str_view};
use bytes::Bytes;
use std::ptr::{null, null_mut};
use std::sync::mpsc::channel;
use std::time::Duration;
use trtserver_base::error::Code;
use trtserver_base::ledger::{LedgerHolder, LedgerOwner};
use trtserver_device::testing::FakeCuda;
use trtserver_plugin_api::abi::host::send_flags;
use trtserver_plugin_api::abi::request::Batch;
use trtserver_plugin_api::abi::types::{self, Buf, Memory, dtype, memory_type};
use trtserver_request::{InferRequest, InferResponse, ModelSignature};

const GPU: Memory = Memory::gpu(0);

pub(super) fn instance(fake: &FakeCuda, own_stream: bool) -> Arc<GpuInstance> {
    GpuInstance::new(Arc::new(fake.streams()), true, own_stream)
}

/// Waits until everything that was deferred so far is sent.
pub(super) fn settle(gpu: &Arc<GpuInstance>) {
    let (done, reached) = channel();
    let callback = move |_| done.send(()).unwrap();
    gpu.streams.when_done(&gpu.streams.copy_out, Box::new(callback));
    reached.recv().unwrap();
}

/// Waits for a response. On a lost device nothing settles: a callback may be called before those of
/// earlier work.
pub(super) fn answer(responses: &RecordedResponses) -> Result<Option<InferResponse>> {
    for _ in 0..10_000 {
        if let Some(response) = responses.lock().pop() {
            return response;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("no response within 10 s")
}

pub(super) fn one(
    signature: &Arc<ModelSignature>,
    rows: u32,
    values: &[f32],
) -> (InferRequest, RecordedResponses) {
    request(signature, rows, &[(0, floats(values))], &[0])
}

/// The input at `position` of request `at`.
fn part(batch: *mut Batch, at: usize, position: usize) -> Buf {
    // SAFETY: the batch is being executed.
    unsafe { *(*(**(*batch).requests.add(at)).inputs.add(position)).parts }
}

pub(super) fn gather_on_gpu(batch: *mut Batch, input: u32) -> Result<Buf, String> {
    let mut buf = NOTHING;
    // SAFETY: the batch is being executed.
    check(unsafe { (table().gather)(batch, input, GPU, 0, null_mut(), &raw mut buf) })?;
    Ok(buf)
}

fn scatter_on_gpu(batch: *mut Batch, rows: i64) -> Result<Buf, String> {
    let (name, mut buf, shape) = (c_text("O"), NOTHING, [rows, 2]);
    // SAFETY: the batch is being executed; name, shape and result are locals that outlive the call.
    check(unsafe {
        let (alloc, bytes) = (table().scatter_alloc, rows as u64 * 8);
        alloc(batch, str_view(&name), dtype::FP32, 2, shape.as_ptr(), bytes, GPU, &raw mut buf)
    })?;
    Ok(buf)
}

/// What a backend would do with a kernel: `O` = `I`, by work on a stream.
pub(super) fn identity(batch: *mut Batch, stream: &CudaStream) {
    let from = gather_on_gpu(batch, 0).unwrap();
    let to = scatter_on_gpu(batch, (from.bytes / 8) as i64).unwrap();
    assert_eq!((to.memory, to.bytes), (GPU, from.bytes));
    // SAFETY: memory of the host, valid until the batch is finished and the work is done.
    unsafe { stream.copy(to.ptr.addr() as u64, from.ptr.addr() as u64, from.bytes as usize) }
        .unwrap();
}

fn data_when_settled(gpu: &Arc<GpuInstance>, responses: &RecordedResponses) -> Bytes {
    settle(gpu);
    data(responses)
}

pub(super) fn data(responses: &RecordedResponses) -> Bytes {
    single_response(responses).outputs[0].data.payload().clone()
}

#[test]
fn inputs_of_a_batch_are_contiguous_on_the_device() {
    let fake = FakeCuda::new(&[]);
    let gpu = instance(&fake, false);
    let model = signature(8);
    let of = |rows, values: &[f32], strings: &[&str]| {
        request(&model, rows, &[(0, floats(values)), (1, texts(strings))], &[])
    };
    let (a, _a) = of(1, &[1.0, 2.0], &["a", "b"]);
    let (b, _b) = of(2, &[3.0, 4.0, 5.0, 6.0], &["c", "", "d", "e"]);
    with_batch_on(Some(&gpu), vec![a, b], |batch| {
        let (first, second) = (part(batch, 0, 0), part(batch, 1, 0));
        assert_eq!((first.memory, second.memory), (GPU, GPU));
        assert_eq!(second.ptr.addr(), first.ptr.addr() + 8);
        assert!(first.ptr.addr().is_multiple_of(256) && !first.ready.is_null());
        let block = gather_on_gpu(batch, 0).unwrap();
        assert_eq!((block.ptr, block.bytes, block.ready), (first.ptr, 24, first.ready));
        // Strings stay in CPU memory.
        assert_eq!(part(batch, 0, 1).memory, Memory::CPU);
        assert_eq!(gather(batch, 1).unwrap().1, texts(&["a", "b", "c", "", "d", "e"]));
        let error = gather_on_gpu(batch, 1).err().unwrap();
        assert!(error.contains("input 'S'") && error.contains("in CPU memory"), "{error}");
        // A copy on the CPU of what is on the device.
        assert_eq!(gather(batch, 0).unwrap().1, floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        send(batch);
    });
    drop(gpu);
    let report = fake.report();
    assert_eq!((report["device_blocks"], report["double_frees"]), (0, 0));
}

#[test]
fn device_memory_is_entered_under_the_model_and_its_use() {
    let fake = FakeCuda::new(&[]);
    let gpu = instance(&fake, false);
    let owner = LedgerOwner::version("on a GPU", 1);
    let model = Arc::new(ModelSignature { owner, ..ModelSignature::clone(&signature(8)) });
    let (a, responses) = one(&model, 2, &[1.0, 2.0, 3.0, 4.0]);
    let held = || {
        let (pool, pinned) = (gpu.streams.device.pool(), gpu.streams.device.pinned());
        let on_device =
            [LedgerHolder::Input, LedgerHolder::Output].map(|h| pool.owner_bytes(owner, h));
        (
            on_device,
            [LedgerHolder::Input, LedgerHolder::Output].map(|h| pinned.owner_bytes(owner, h)),
        )
    };
    with_batch_on(Some(&gpu), vec![a], |batch| {
        identity(batch, &gpu.streams.compute);
        assert_eq!(held(), ([16, 16], [4096, 0]));
        send(batch);
    });
    settle(&gpu);
    // The response is in pinned memory until the client has read it.
    assert_eq!(held(), ([0, 0], [0, 4096]));
    drop(data(&responses));
    drop(responses);
    assert_eq!(held(), ([0, 0], [0, 0]));
}

#[test]
fn outputs_on_the_device_are_sent_when_they_are_written() {
    let fake = FakeCuda::new(&[("DELAY_US", "20000")]);
    let gpu = instance(&fake, false);
    let model = signature(8);
    let (a, responses_a) = one(&model, 1, &[1.0, 2.0]);
    let (b, responses_b) = one(&model, 2, &[3.0, 4.0, 5.0, 6.0]);
    with_batch_on(Some(&gpu), vec![a, b], |batch| {
        identity(batch, &gpu.streams.compute);
        send(batch);
        // The copy to the device alone takes 20 ms.
        assert!(responses_a.lock().is_empty() && responses_b.lock().is_empty());
    });
    settle(&gpu);
    assert_eq!(
        (data(&responses_a), data(&responses_b)),
        (floats(&[1.0, 2.0]), floats(&[3.0, 4.0, 5.0, 6.0]))
    );
    drop(gpu);
    assert_eq!(fake.report()["device_blocks"], 0);
}

#[test]
fn stream_of_a_backend_that_does_not_wait_reads_wrong_data() {
    let values = [7.0, 8.0];
    let run = |wait: bool| {
        let fake = FakeCuda::new(&[("DELAY_US", "100000")]);
        let gpu = instance(&fake, true);
        let own = fake.streams();
        let model = signature(8);
        let (a, responses) = one(&model, 1, &values);
        with_batch_on(Some(&gpu), vec![a], |batch| {
            let from = gather_on_gpu(batch, 0).unwrap();
            let to = scatter_on_gpu(batch, 1).unwrap();
            assert!(!to.ready.is_null());
            if wait {
                for buf in [from, to] {
                    // SAFETY: events of the host, valid as long as the buffers.
                    unsafe { &*buf.ready.cast::<CudaEvent>() }.block(&own.compute).unwrap();
                }
            } else {
                // The allocations, but not the copy of the input.
                gpu.streams.compute.context().enter().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(25));
            }
            // SAFETY: memory of the host.
            unsafe { own.compute.copy(to.ptr.addr() as u64, from.ptr.addr() as u64, 8) }.unwrap();
            let event = Box::new(gpu.streams.device.events().record(&own.compute).unwrap());
            let after = Box::into_raw(event).cast::<types::Event>();
            // SAFETY: the batch is being executed.
            check(unsafe { (table().batch_finish)(batch, null(), after) }).unwrap();
        });
        settle(&gpu);
        let responses = responses.lock().pop().unwrap();
        responses.ok().flatten().map(|r| r.outputs[0].data.payload().clone())
    };
    assert_eq!(run(true), Some(floats(&values)));
    assert_ne!(run(false), Some(floats(&values)));
}

#[test]
fn next_batch_is_copied_while_one_computes() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let fake = FakeCuda::new(&[("DELAY_US", "20000"), ("LOG", log.to_str().unwrap())]);
    let gpu = instance(&fake, false);
    let model = signature(8);
    let mut all = Vec::new();
    for batch in 0..3u8 {
        let values = [f32::from(batch), 1.0];
        let (request, responses) = one(&model, 1, &values);
        with_batch_on(Some(&gpu), vec![request], |batch| {
            identity(batch, &gpu.streams.compute);
            send(batch);
        });
        all.push((responses, values));
    }
    settle(&gpu);
    for (responses, values) in &all {
        assert_eq!(data(responses), floats(values));
    }
    // Streams by number: 1 compute, 2 copy in, 3 copy out.
    let lines = std::fs::read_to_string(&log).unwrap();
    let times = |word: &str| -> Vec<u64> {
        let found = lines.lines().filter(|line| line.contains(word));
        found.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
    };
    let (copied_in, computed) = (times(" begin copy 2 "), times(" end copy 1 "));
    let copied_out = times(" begin copy 3 ");
    assert_eq!((copied_in.len(), computed.len(), copied_out.len()), (3, 3, 3), "{lines}");
    assert!(copied_in[1] < computed[0], "{lines}");
    assert!(copied_out[0] < computed[1], "{lines}");
}

#[test]
fn copies_of_the_next_batch_hold_up_nothing_of_this_one() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let fake = FakeCuda::new(&[("DELAY_US", "50000"), ("LOG", log.to_str().unwrap())]);
    let gpu = instance(&fake, false);
    let model = signature(8);
    let (next, _next) = one(&model, 1, &[3.0, 4.0]);
    let (unused, _unused) = one(&model, 1, &[5.0, 6.0]);
    let (mut next, mut unused) = (vec![next], vec![unused]);
    let (this, responses) = one(&model, 1, &[1.0, 2.0]);
    let (mut copies, mut dropped) = (None, None);
    with_batch_on(Some(&gpu), vec![this], |batch| {
        copies = Some(gpu.copy_inputs(&mut next, &model, 0));
        dropped = Some(gpu.copy_inputs(&mut unused, &model, 0));
        identity(batch, &gpu.streams.compute);
        send(batch);
    });
    assert_eq!(data_when_settled(&gpu, &responses), floats(&[1.0, 2.0]));
    gpu.use_copies(&mut next, copies.as_ref().unwrap());
    let mut read = [0; 8];
    let TensorData::Placed(slice) = &next[0].inputs[0].data else { panic!("not on the device") };
    assert_eq!(slice.location(), gpu.location());
    slice.memory().owner().read(slice.offset(), &mut read).unwrap();
    assert_eq!(floats(&[3.0, 4.0]), read[..]);
    // A batch that is copied and never executed frees its memory in order, too.
    drop((copies, dropped));
    unused.clear();
    next.clear();
    settle(&gpu);
    // Streams by number: 1 compute, 2 copy in.
    let lines = std::fs::read_to_string(&log).unwrap();
    let place = |word: &str, nth: usize| {
        let mut found = lines.lines().enumerate().filter(|(_, line)| line.contains(word));
        found.nth(nth).map(|(place, _)| place).unwrap_or_else(|| panic!("{word}: {lines}"))
    };
    assert!(place(" begin copy 1 ", 0) < place(" end copy 2 ", 2), "{lines}");
    drop(gpu);
    let report = fake.report();
    for fault in ["device_blocks", "double_frees", "bad_handles"] {
        assert_eq!(report[fault], 0, "{fault}");
    }
}

#[test]
fn memory_and_events_stay_flat_over_many_batches() {
    let fake = FakeCuda::new(&[("DELAY_US", "0")]);
    let gpu = instance(&fake, false);
    let model = signature(8);
    for round in 0..300 {
        let (request, responses) = one(&model, 1, &[1.0, 2.0]);
        with_batch_on(Some(&gpu), vec![request], |batch| {
            identity(batch, &gpu.streams.compute);
            send(batch);
        });
        // As `max_in_flight` 2 would.
        if round % 2 == 1 {
            settle(&gpu);
            assert_eq!(data(&responses), floats(&[1.0, 2.0]));
        }
    }
    settle(&gpu);
    let device = gpu.streams.device;
    // Of two batches, each with two tensors; how many events they have at once depends on the
    // threads.
    let (peak, events) = (device.pool().bytes().peak_used, device.events().created());
    assert!(peak <= 4 * 8, "{peak} bytes");
    assert!(events <= 16, "{events} events");
    assert_eq!(gpu.streams.device.pool().bytes().used, 0);
    // At most the sources of two batches.
    assert!(gpu.streams.device.pinned().bytes().used <= 2 * 4096);
    drop(gpu);
    let report = fake.report();
    assert_eq!((report["device_blocks"], report["double_frees"]), (0, 0));
}

#[test]
fn request_without_device_memory_fails_alone() {
    // The block of the batch, the first request's, the second's, its output.
    let fake =
        FakeCuda::new(&[("FAIL", "cuMemAllocFromPoolAsync:1:2,cuMemAllocFromPoolAsync:2:2")]);
    let gpu = instance(&fake, false);
    let model = signature(8);
    let (a, responses_a) = one(&model, 1, &[1.0, 2.0]);
    let (b, responses_b) = one(&model, 1, &[3.0, 4.0]);
    with_batch_on(Some(&gpu), vec![a, b], |batch| {
        // SAFETY: the batch is being executed.
        assert_eq!(unsafe { (*batch).n_requests }, 1);
        identity(batch, &gpu.streams.compute);
        send(batch);
    });
    settle(&gpu);
    let refused = responses_a.lock().pop().unwrap().unwrap_err();
    assert_eq!((refused.code, refused.model_broken), (Code::ResourceExhausted, false));
    assert!(refused.message.starts_with("GPU 0 is out of memory"), "{refused}");
    assert_eq!(data(&responses_b), floats(&[3.0, 4.0]));
}

#[test]
fn output_without_device_memory_is_an_error_for_the_backend() {
    let fake = FakeCuda::new(&[("FAIL", "cuMemAllocFromPoolAsync:2:2")]);
    let gpu = instance(&fake, false);
    let model = signature(8);
    let (a, _responses) = one(&model, 1, &[1.0, 2.0]);
    with_batch_on(Some(&gpu), vec![a], |batch| {
        let error = scatter_on_gpu(batch, 1).err().unwrap();
        assert!(error.starts_with("output 'O': GPU 0 is out of memory"), "{error}");
    });
}

#[test]
fn lost_device_fails_its_requests_and_takes_the_instance_out_of_service() {
    // CUDA_ERROR_ILLEGAL_ADDRESS while the completion thread waits for the outputs.
    let fake = FakeCuda::new(&[("FAIL", "cuEventSynchronize:1:700")]);
    let gpu = instance(&fake, false);
    let model = signature(8);
    let (a, responses_a) = one(&model, 1, &[1.0, 2.0]);
    with_batch_on(Some(&gpu), vec![a], |batch| {
        identity(batch, &gpu.streams.compute);
        send(batch);
    });
    let lost = answer(&responses_a).unwrap_err();
    assert_eq!((lost.code, lost.model_broken), (Code::Unavailable, true));
    assert!(
        lost.message.contains("GPU 0 is lost")
            && lost.message.contains("CUDA_ERROR_ILLEGAL_ADDRESS"),
        "{lost}"
    );
    let (b, responses_b) = one(&model, 1, &[3.0, 4.0]);
    gpu.place_inputs(&mut vec![b], &model, 0);
    let lost = responses_b.lock().pop().unwrap().unwrap_err();
    assert!(lost.model_broken && lost.message.contains("GPU 0 is lost"), "{lost}");
}

#[test]
fn responses_of_a_request_keep_their_order() {
    let fake = FakeCuda::new(&[("DELAY_US", "5000")]);
    let gpu = instance(&fake, false);
    let model = signature(0);
    let (a, responses) = request(&model, 1, &[(0, floats(&[0.0, 0.0]))], &[0]);
    // Alternately on the device, where it has to be waited for, and in CPU memory.
    let respond = |batch: *mut Batch, preferred: Memory, value: f32, flags: u32| {
        let (name, shape) = (c_text("O"), [2i64]);
        let (mut response, mut buf) = (null_mut(), NOTHING);
        // SAFETY: the batch is being executed.
        unsafe {
            check((table().response_new)(responder_of(batch, 0), &raw mut response)).unwrap();
            let alloc = table().output_alloc;
            let shape = shape.as_ptr();
            check(alloc(
                response,
                str_view(&name),
                dtype::FP32,
                1,
                shape,
                8,
                preferred,
                &raw mut buf,
            ))
            .unwrap();
            if buf.memory.memory_type == memory_type::CPU {
                buf.ptr.cast::<f32>().write(value);
            } else {
                let input = part(batch, 0, 0).ptr.addr() as u64;
                gpu.streams.compute.copy(buf.ptr.addr() as u64, input, 8).unwrap();
            }
            check((table().response_send)(response, flags, null(), null_mut())).unwrap();
        }
    };
    with_batch_on(Some(&gpu), vec![a], |batch| {
        respond(batch, Memory::CPU, 1.0, 0);
        assert_eq!(responses.lock().len(), 1, "nothing to wait for");
        respond(batch, GPU, 0.0, 0);
        respond(batch, Memory::CPU, 2.0, 0);
        respond(batch, GPU, 0.0, send_flags::FINAL);
        assert_eq!(responses.lock().len(), 1);
        // The final response was given: no further one, and no failure when the batch ends.
        let mut response = null_mut();
        // SAFETY: the batch is being executed, and the result is a local variable.
        let late =
            check(unsafe { (table().response_new)(responder_of(batch, 0), &raw mut response) });
        assert!(late.unwrap_err().contains("after the responder had ended"));
        // SAFETY: the batch is being executed, and this is the only call that finishes it.
        check(unsafe { (table().batch_finish)(batch, null(), null_mut()) }).unwrap();
    });
    settle(&gpu);
    let seen: Vec<Bytes> = responses
        .lock()
        .drain(..)
        .map(|r| r.unwrap().unwrap().outputs[0].data.payload().clone())
        .collect();
    let expected = [[1.0, 0.0], [0.0, 0.0], [2.0, 0.0], [0.0, 0.0]].map(|values| floats(&values));
    assert_eq!(seen, expected);
}
