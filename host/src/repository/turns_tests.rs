//! Unit tests of `turns.rs`.

use super::*;

#[tokio::test]
async fn one_after_the_other_and_nothing_stays() {
    let turns = Arc::new(Turns::default());
    let first = turns.take("m").await;
    let other = turns.take("n").await;
    let mut waiting = Box::pin(turns.take("m"));
    assert!(futures_ready(&mut waiting).await.is_none());
    drop(first);
    drop(waiting.await);
    assert_eq!(turns.names().len(), 1);
    drop(other);
    assert!(turns.names().is_empty());
}

/// What the future gives at the first look.
async fn futures_ready<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = async {} => None,
    }
}
