//! Unit tests of `outputs.rs`.

use crate::plugin::batch::testing::{
    NOTHING, check, floats, request, responder_of, signature, single_response, with_batch,
};
use crate::plugin::host_api::table;
use crate::plugin::text::{c_text, view};
use crate::request::ImplicitState;
use bytes::Bytes;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use trtserver_plugin_api::abi::types::{Memory, dtype};

#[test]
fn response_can_carry_a_state() {
    let mut model = Arc::into_inner(signature(8)).unwrap();
    model.states[0].output = "O".into();
    let model = Arc::new(model);
    let memory = ImplicitState::default();
    let respond = |requested: &[usize], data: &Bytes, last| {
        let (one, responses) = request(&model, 1, &[], requested);
        one.responder.set_implicit_state(memory.clone());
        with_batch(vec![one], |batch| {
            let (mut response, mut buf, name) = (null_mut(), NOTHING, c_text("O"));
            // SAFETY: handles of this batch; 8 bytes are allocated and written.
            unsafe {
                check((table().response_new)(responder_of(batch, 0), &raw mut response)).unwrap();
                let alloc = table().output_alloc;
                let alloc = |buf| {
                    let shape = [1, 2].as_ptr();
                    check(alloc(response, view(&name), dtype::FP32, 2, shape, 8, Memory::CPU, buf))
                };
                alloc(&raw mut buf).unwrap();
                assert!(alloc(&raw mut buf).unwrap_err().contains("twice"));
                std::ptr::copy_nonoverlapping(data.as_ptr(), buf.ptr, 8);
                check((table().response_send)(response, last, null(), null_mut())).unwrap();
            }
        });
        responses
    };
    let stored = || {
        let mut inputs = Vec::new();
        memory.inputs(&model, &mut inputs);
        inputs.remove(0).data.payload().clone()
    };
    let (first, second) = (floats(&[1.0, 2.0]), floats(&[3.0, 4.0]));
    let responses = respond(&[0], &first, 1);
    let sent = single_response(&responses).outputs[0].data.payload().clone();
    assert_eq!((&sent, &stored()), (&first, &first));
    assert_eq!(sent.as_ptr(), stored().as_ptr(), "no copy");
    assert!(single_response(&respond(&[], &second, 1)).outputs.is_empty());
    assert_eq!(stored(), second);
    respond(&[0], &first, 0);
    assert_eq!(stored(), second, "the response was not final");
}
