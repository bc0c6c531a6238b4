//! Unit tests of `gather.rs`.

use crate::batch::testing::{
    check, floats, gather, request, scatter, send, signature, single_response, texts, with_batch,
};
use crate::host_api::table;
use crate::{FrameHold, TensorNames, ViewOptions};
use bytes::Bytes;
use std::ptr::null_mut;
use std::sync::Arc;
use trtserver_base::stats::BatchExecution;
use trtserver_plugin_api::abi::types::{self, Memory, dtype};

#[test]
fn gather_of_one_request_does_not_copy() {
    for (model, shape) in [(signature(8), &[1, 2][..]), (signature(0), &[2])] {
        let data = floats(&[1.0, 2.0]);
        let (one, responses) = request(&model, 1, &[(0, data.clone())], &[0]);
        with_batch(vec![one], |batch| {
            let (ptr, bytes) = gather(batch, 0).unwrap();
            assert_eq!((ptr, &bytes[..]), (data.as_ptr().addr(), &data[..]));
            assert!(gather(batch, 1).unwrap_err().contains("fewer inputs"));
            assert_eq!(scatter(batch, "O", dtype::FP32, shape, &data), Ok(true));
            send(batch);
        });
        assert_eq!(single_response(&responses).outputs[0].shape.as_slice(), shape);
    }
}

#[test]
fn gather_copies_only_noncontiguous_inputs() {
    let model = signature(8);
    let all = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let of = |rows, data: Bytes| request(&model, rows, &[(0, data)], &[]).0;
    with_batch(vec![of(1, all.slice(..8)), of(0, Bytes::new()), of(2, all.slice(8..))], |batch| {
        let (ptr, bytes) = gather(batch, 0).unwrap();
        assert_eq!((ptr, &bytes[..]), (all.as_ptr().addr(), &all[..]));
    });
    with_batch(vec![of(2, all.slice(8..)), of(1, all.slice(..8))], |batch| {
        // SAFETY: the batch is being executed.
        assert_eq!(unsafe { (*batch).rows }, 3);
        let (ptr, bytes) = gather(batch, 0).unwrap();
        assert_eq!((ptr % 64, &bytes[..]), (0, &[&all[8..], &all[..8]].concat()[..]));
        assert_eq!(gather(batch, 0).unwrap().0, ptr, "gathered once");
    });
}

#[test]
fn gathered_block_is_reused_by_the_next_batch() {
    let model = signature(8);
    let names = Arc::new(TensorNames::new(&model));
    let options = ViewOptions { signature: &model, names: &names, gpu: None };
    let mut hold = FrameHold::new();
    let mut seen = Vec::new();
    for round in 0..3 {
        let of = |v: f32| request(&model, 1, &[(0, floats(&[v, v]))], &[]).0;
        let execution = Arc::new(BatchExecution::new(0, 2, 2, 0, &Arc::default()));
        hold.fill(1, &mut vec![of(round as f32), of(9.0)], &options, &execution);
        hold.enter(|batch| {
            let (ptr, bytes) = gather(batch, 0).unwrap();
            assert_eq!(bytes, floats(&[round as f32, round as f32, 9.0, 9.0]));
            seen.push(ptr);
            send(batch);
            assert!(gather(batch, 0).is_ok(), "the block lives until the frame is recycled");
            assert!(gather(batch, 1).unwrap_err().contains("fewer inputs"));
        });
        hold.recycle();
    }
    assert_eq!(seen, vec![seen[0]; 3]);
}

#[test]
fn gather_refuses_incompatible_inputs() {
    let model = signature(8);
    let one = |inputs: &[(usize, Bytes)]| request(&model, 1, inputs, &[]).0;
    let mut wide = one(&[(0, floats(&[1.0; 3]))]);
    wide.inputs[0].shape = [1, 3][..].into();
    let refuses = |requests, what: &str| {
        with_batch(requests, |batch| {
            let text = gather(batch, 0).unwrap_err();
            assert!(text.contains(what), "{text}");
        });
    };
    let two = floats(&[1.0; 2]);
    refuses(
        vec![one(&[(0, two.clone())]), wide],
        "model 'm': input 'I' cannot be gathered: shapes [1,2] and [1,3] differ",
    );
    refuses(
        vec![one(&[(0, two.clone())]), one(&[(1, texts(&["", ""]))])],
        "different inputs at this position",
    );
    let flat = signature(0);
    let flat = |()| request(&flat, 1, &[(0, two.clone())], &[]).0;
    refuses(vec![flat(()), flat(())], "no batch dimension");
    with_batch(vec![one(&[(0, two.clone())])], |batch| {
        // SAFETY: a handle of this batch's request.
        unsafe { (table().request_release)((**(*batch).requests).handle, null_mut()) };
        assert!(gather(batch, 0).unwrap_err().contains("released before"));
        let gpu = Memory { memory_type: types::memory_type::GPU, device_id: 0 };
        let gather = table().gather;
        // SAFETY: the batch is being executed.
        let text = |memory, mode| unsafe {
            check(gather(batch, 0, memory, mode, null_mut(), null_mut())).unwrap_err()
        };
        assert!(
            text(gpu, 0).contains("GPU 0 memory was requested")
                && text(Memory::CPU, 7).contains("mode 7")
        );
    });
    assert!(gather(null_mut(), 0).is_err());
}
