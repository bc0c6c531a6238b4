//! Unit tests of `model_locks.rs`.

use super::*;

#[tokio::test]
async fn lock_is_exclusive_per_name_and_leaves_no_entry_behind() {
    let locks = Arc::new(ModelLocks::default());
    let first = locks.lock("m").await;
    let other = locks.lock("n").await;
    let mut waiting = Box::pin(locks.lock("m"));
    assert!(poll_once(&mut waiting).await.is_none());
    drop(first);
    drop(waiting.await);
    assert_eq!(locks.by_name.lock().len(), 1);
    drop(other);
    assert!(locks.by_name.lock().is_empty());
}

/// Output of the future if it is ready at the first poll.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = async {} => None,
    }
}
