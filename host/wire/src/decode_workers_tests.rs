//! Unit tests of `decode_workers.rs`.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[tokio::test]
async fn work_runs_on_a_worker_unless_it_is_light() {
    let name = || thread::current().name().map(str::to_owned);
    assert_eq!(run_on_worker(name).await, Ok(Some("decode".to_owned())));
    assert_eq!(run_if(true, name).await, Ok(Some("decode".to_owned())));
    assert_eq!(run_if(false, name).await, Ok(name()));
}

#[tokio::test]
async fn panic_fails_only_its_own_job() {
    assert!(run_on_worker(|| panic!("a job that panics")).await.is_err());
    assert_eq!(run_on_worker(|| 5).await, Ok(5));
}

#[tokio::test]
async fn cancelled_job_is_not_run() {
    // Both workers wait.
    let gates: Vec<_> = (0..2)
        .map(|_| {
            let (open, gate) = std::sync::mpsc::channel::<()>();
            (open, tokio::spawn(run_on_worker(move || gate.recv().is_ok())))
        })
        .collect();
    let ran = Arc::new(AtomicBool::new(false));
    let cancelled = {
        let ran = Arc::clone(&ran);
        tokio::spawn(run_on_worker(move || ran.store(true, Ordering::Relaxed)))
    };
    tokio::task::yield_now().await;
    cancelled.abort();
    assert!(cancelled.await.is_err());
    for (open, gate) in gates {
        // Other tests may share the workers, so the gate may not have begun.
        let _ = open.send(());
        assert_eq!(gate.await.unwrap(), Ok(true));
    }
    assert_eq!(run_on_worker(|| ()).await, Ok(()));
    assert!(!ran.load(Ordering::Relaxed));
}

#[test]
fn inline_debt_is_paid_off_with_time() {
    const MS: u64 = 1_000_000;
    let debt = InlineDebt { bytes: 5 * INLINE_PER_MS, at_ns: 10 * MS };
    for (at_ns, bytes) in [
        (9 * MS, 5 * INLINE_PER_MS),
        (10 * MS, 5 * INLINE_PER_MS),
        (12 * MS, 3 * INLINE_PER_MS),
        (15 * MS, 0),
        (u64::MAX, 0),
    ] {
        assert_eq!(debt.at(at_ns).bytes, bytes, "{at_ns}");
    }
}
