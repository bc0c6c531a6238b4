//! Unit tests of `parts.rs`.

use super::*;
use crate::batch::testing::{check, floats, request, signature, with_batch};
use crate::host_api::table;
use std::sync::Arc;
use trtserver_plugin_api::abi::extensions::{
    BATCH_PARTS, BATCH_PARTS_VERSION, BatchPartsExtension,
};
use trtserver_plugin_api::abi::types::Str;
use trtserver_request::{InferRequest, Responder};

/// Begins a part as a backend does.
fn begin(batch: *mut Batch, first: u32, n: u32) -> Result<(), String> {
    let name = Str { p: BATCH_PARTS.as_ptr(), n: BATCH_PARTS.len() as u64 };
    // SAFETY: the table of this name, and a batch of the test.
    check(unsafe {
        let parts = (table().get_extension)(name, BATCH_PARTS_VERSION);
        ((*parts.cast::<BatchPartsExtension>()).begin)(batch, first, n)
    })
}

/// Requests of one, two, three… rows, and their responders.
fn requests(n: u32) -> (Vec<InferRequest>, Vec<Arc<Responder>>) {
    let model = signature(8);
    let request = |rows: u32| {
        let data = floats(&vec![0.0; 2 * rows as usize]);
        request(&model, rows, &[(0, data)], &[]).0
    };
    let requests: Vec<_> = (1..=n).map(request).collect();
    let responders = requests.iter().map(|request| Arc::clone(&request.responder)).collect();
    (requests, responders)
}

#[test]
fn requests_of_a_part_are_counted_together() {
    let (requests, responders) = requests(4);
    with_batch(requests, |batch| {
        // SAFETY: the batch of the test, which this thread executes.
        unsafe { (*batch).compute_start_ns = 5 };
        assert_eq!(begin(batch, 0, 3), Ok(()));
        // SAFETY: this thread executes the batch, so no other thread accesses its times.
        assert_eq!(unsafe { (*batch).compute_start_ns }, 0);
        assert_eq!(begin(batch, 3, 1), Ok(()));
    });
    let counted =
        |i: usize| responders[i].counted_execution().map(|execution| Arc::as_ptr(&execution));
    assert_eq!((counted(0), counted(1)), (counted(1), counted(2)));
    assert_ne!(counted(2), counted(3));
    let rows = |i: usize| responders[i].counted_execution().map(|execution| execution.rows);
    assert_eq!((rows(0), rows(3)), (Some(6), Some(4)));
}

#[test]
fn wrong_parts_are_refused() {
    let (requests, responders) = requests(3);
    with_batch(requests, |batch| {
        let text = |result: Result<(), String>| result.err().unwrap_or_default();
        for (first, n) in [(0, 0), (0, 4), (3, 1), (u32::MAX, 1), (1, u32::MAX)] {
            let says = text(begin(batch, first, n));
            assert!(says.contains("no such requests"), "{first}, {n}: {says}");
        }
        assert_eq!(begin(batch, 1, 1), Ok(()));
        assert!(text(begin(batch, 0, 2)).contains("another part"));
        let batch = batch.expose_provenance();
        let elsewhere = std::thread::scope(|threads| {
            let thread =
                threads.spawn(move || begin(std::ptr::with_exposed_provenance_mut(batch), 2, 1));
            thread.join().unwrap_or(Ok(()))
        });
        assert!(text(elsewhere).contains("this thread does not execute"));
    });
    assert!(
        !responders[0].is_in_part() && responders[1].is_in_part() && !responders[2].is_in_part()
    );
    let null = begin(std::ptr::null_mut(), 0, 1).err().unwrap_or_default();
    assert!(null.contains("no batch"), "{null}");
}
