//! Unit tests of `mod.rs`.

use super::*;
use crate::ledger::LedgerOwner;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

fn budget(limit: usize) -> &'static MemoryBudget {
    Box::leak(Box::new(MemoryBudget::new(limit)))
}

fn is_pending(future: std::pin::Pin<&mut impl Future>) -> bool {
    matches!(future.poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

#[test]
fn reservations_are_given_back_on_drop() {
    let b = budget(800);
    let mut first = b.try_reserve(100, LedgerHolder::Input).unwrap();
    first.try_grow(200).unwrap();
    let second = first.split(250);
    assert_eq!((first.bytes(), second.bytes(), b.in_use()), (50, 250, 300));
    drop(first);
    assert_eq!(b.in_use(), 250);
    let mut third = b.try_reserve(20, LedgerHolder::Output).unwrap();
    third.merge(second);
    third.shrink_to(70);
    assert_eq!((third.bytes(), b.in_use(), b.peak()), (70, 70, 300));
    drop(third);
    assert_eq!(b.in_use(), 0);
}

#[test]
fn reservations_are_entered_in_the_ledger_under_their_tags() {
    let b = budget(1000);
    let owner = LedgerOwner::version("budget test", 1);
    let held = || [LedgerHolder::Input, LedgerHolder::Output].map(|holder| owner.bytes(holder));
    let mut first = b.try_reserve(100, owner.tag(LedgerHolder::Input)).unwrap();
    let second = b.try_reserve(30, owner.tag(LedgerHolder::Output)).unwrap();
    assert_eq!(held(), [100, 30]);
    first.merge(second);
    assert_eq!(held(), [130, 0]);
    let mut third = first.split(50);
    third.set_tag(owner.tag(LedgerHolder::Output));
    assert_eq!(held(), [80, 50]);
    first.shrink_to(10);
    drop(third);
    assert_eq!((held(), owner.total(), b.in_use()), ([10, 0], 10, 10));
    assert!(b.try_reserve(2000, owner.tag(LedgerHolder::Output)).is_err());
    drop(first);
    assert_eq!((owner.total(), b.in_use()), (0, 0));
}

#[test]
fn last_eighth_is_for_responses() {
    let b = budget(800);
    let request = b.try_reserve(700, LedgerHolder::Input).unwrap();
    let refused = b.try_reserve(1, LedgerHolder::Input).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "memory for requests is exhausted: 1 bytes are needed, 700 of at most 800 bytes (--max-request-memory) \
         are in use, 100 of them only by responses"
    );
    let response = b.try_reserve(100, LedgerHolder::Output).unwrap();
    assert!(b.try_reserve(1, LedgerHolder::Output).is_err());
    drop((request, response));
    assert!(b.try_reserve(usize::MAX, LedgerHolder::Output).is_err());
    assert_eq!(b.in_use(), 0);
}

#[tokio::test]
async fn waiting_request_gets_memory_that_is_given_back() {
    let b = budget(800);
    let held = b.try_reserve(600, LedgerHolder::Input).unwrap();
    let mut waiting = pin!(b.reserve(500, LedgerHolder::Input));
    assert!(is_pending(waiting.as_mut()));
    drop(held);
    assert_eq!(waiting.await.unwrap().bytes(), 500);
    assert_eq!(b.in_use(), 0);
}

#[tokio::test]
async fn later_requests_wait_behind_the_first() {
    let b = budget(800);
    let held = b.try_reserve(600, LedgerHolder::Input).unwrap();
    let mut large = pin!(b.reserve(500, LedgerHolder::Input));
    assert!(is_pending(large.as_mut()));
    // It would fit.
    let mut small = pin!(b.reserve(50, LedgerHolder::Input));
    assert!(is_pending(small.as_mut()));
    drop(held);
    let (large, small) = (large.await.unwrap(), small.await.unwrap());
    assert_eq!((large.bytes(), small.bytes(), b.in_use()), (500, 50, 550));
}

#[tokio::test]
async fn cancelled_waiter_leaves_the_queue() {
    let b = budget(800);
    let held = b.try_reserve(600, LedgerHolder::Input).unwrap();
    {
        let mut first = pin!(b.reserve(500, LedgerHolder::Input));
        assert!(is_pending(first.as_mut()));
    }
    let mut second = pin!(b.reserve(150, LedgerHolder::Input));
    assert!(is_pending(second.as_mut()));
    drop(held);
    assert_eq!(second.await.unwrap().bytes(), 150);
    // Granted, but cancelled before it was polled.
    let held = b.try_reserve(600, LedgerHolder::Input).unwrap();
    {
        let mut granted = pin!(b.reserve(500, LedgerHolder::Input));
        assert!(is_pending(granted.as_mut()));
        drop(held);
        assert_eq!(b.in_use(), 500);
    }
    assert_eq!(b.in_use(), 0);
}

#[tokio::test]
async fn request_is_refused_after_the_wait() {
    let b = budget(800);
    let mut held = b.try_reserve(600, LedgerHolder::Input).unwrap();
    let before = std::time::Instant::now();
    assert!(held.grow(500).await.is_err());
    assert!(before.elapsed() >= MAX_WAIT);
    assert_eq!(held.bytes(), 600);
    // What can never fit does not wait.
    let before = std::time::Instant::now();
    assert!(b.reserve(701, LedgerHolder::Input).await.is_err());
    assert!(before.elapsed() < MAX_WAIT);
}

#[test]
fn threads_never_exceed_the_limit() {
    let b = budget(1000);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.unwrap().block_on(async {
                    for i in 0..2000 {
                        let held = b.reserve(100 + i % 300, LedgerHolder::Output).await.unwrap();
                        assert!(b.in_use() <= 1000);
                        tokio::task::yield_now().await;
                        drop(held);
                    }
                });
            });
        }
    });
    assert_eq!((b.in_use(), b.waiters.is_empty()), (0, true));
}

#[test]
fn bytes_own_their_reservation() {
    let b = budget(800);
    let bytes = charge_bytes(vec![1; 100], b.try_reserve(100, LedgerHolder::Input).unwrap());
    let part = bytes.slice(10..20);
    drop(bytes);
    assert_eq!((b.in_use(), &part[..]), (100, &[1; 10][..]));
    drop(part);
    assert_eq!(b.in_use(), 0);
}
