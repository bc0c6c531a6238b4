//! Unit tests of `receiver.rs`.

use super::*;
use prost::Message;
use std::sync::Arc;
use trtserver_base::arena::Arena;
use trtserver_base::ledger::LedgerOwner;
use trtserver_proto::v2::{ModelInferRequest, model_infer_request::InferInputTensor};

fn message(payloads: &[usize]) -> Vec<u8> {
    message_of(payloads.len(), payloads)
}

fn message_of(inputs: usize, payloads: &[usize]) -> Vec<u8> {
    let input = InferInputTensor { name: "I".into(), shape: vec![-1, 5], ..Default::default() };
    let payload = |n: &usize| Bytes::from((0..*n).map(|b| b as u8).collect::<Vec<_>>());
    let message = ModelInferRequest {
        model_name: "m".into(),
        inputs: vec![input; inputs],
        raw_input_contents: payloads.iter().map(payload).collect(),
        ..Default::default()
    };
    let message = message.encode_to_vec();
    [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat()
}

fn arrive(wire: &[u8], step: usize, arena: Option<&Arc<Arena>>) -> MessageBuf {
    let memory_of = |model: RequestedModel<'_>| {
        let arena = arena.filter(|_| model.name == "m").cloned();
        Some(InputMemory { arena, pool: None, owner: LedgerOwner::version(model.name, 1) })
    };
    let mut arriving = MessageReceiver::new(&memory_of);
    wire.chunks(step).for_each(|chunk| arriving.push(Bytes::copy_from_slice(chunk)));
    assert_eq!(arriving.received(), wire.len());
    arriving.finish()
}

#[test]
fn large_fields_get_blocks_of_their_own() {
    let wire = message(&[LARGE, 3, LARGE - 1, 3 * LARGE + 1]);
    let arena = Arena::new("test", 4 << 20).unwrap();
    for step in [1, 7, 1000, LARGE, wire.len()] {
        for arena in [None, Some(&arena)] {
            let mut frames = arrive(&wire, step, arena);
            frames.advance(PREFIX);
            let got = ModelInferRequest::decode(frames.clone()).unwrap();
            assert_eq!(got.encode_to_vec(), wire[PREFIX..], "chunks of {step}");
            for raw in got.raw_input_contents.iter().filter(|raw| raw.len() >= LARGE) {
                assert_eq!(raw.as_ptr() as usize % 64, 0);
                // The model name is found in the first chunk only.
                let shared = arena.is_some_and(|a| a.find_offset(raw).is_some());
                assert_eq!(shared, arena.is_some() && step > 10);
                // Decoding does not copy a large field.
                let decoded = ModelInferRequest::decode(frames.clone()).unwrap();
                assert!(decoded.raw_input_contents.iter().any(|r| r.as_ptr() == raw.as_ptr()));
            }
        }
    }
}

#[test]
fn uninterpreted_bytes_are_kept() {
    let whole = message(&[2 * LARGE]);
    let cut = whole[..whole.len() - 9].to_vec();
    let mut compressed = whole.clone();
    compressed[0] = 1;
    // Endless varints, groups, a field longer than its message, and varints of all lengths.
    let with = |bytes: &[u8]| [&whole[..PREFIX], bytes, &whole[PREFIX..]].concat();
    let endless = with(&[0xff; 20]);
    let group = with(&[0x0b, 0x0c]);
    let beyond = with(&[0x0a, 0xff, 0xff, 0xff, 0x7f]);
    let numbers = with(&[0x08, 0x80, 0x01, 0x0d, 1, 2, 3, 4, 0x09, 1, 2, 3, 4, 5, 6, 7, 8]);
    for wire in [cut, compressed, endless, group, beyond, numbers, whole[..3].to_vec(), vec![]] {
        for step in [1, 9, 5000, wire.len().max(1)] {
            let mut frames = arrive(&wire, step, None);
            assert_eq!(frames.copy_to_bytes(wire.len()), wire, "chunks of {step}");
        }
    }
}

#[test]
fn fields_beyond_limit_are_not_interpreted() {
    for (before, own_block) in [(MAX_FIELDS - 4, true), (MAX_FIELDS, false)] {
        let mut payloads = vec![0; before as usize];
        payloads.push(LARGE);
        let wire = message_of(1, &payloads);
        let mut frames = arrive(&wire, wire.len(), None);
        frames.advance(PREFIX);
        let got = ModelInferRequest::decode(frames.clone()).unwrap();
        assert_eq!(got.encode_to_vec(), wire[PREFIX..]);
        // The chunk with the last byte before the large field ends there if the field has a block
        // of its own.
        frames.advance(frames.remaining() - LARGE - 1);
        assert_eq!(frames.chunk().len() == 1, own_block, "{before} empty fields");
    }
}
