//! Unit tests of `small_blocks.rs`.

use super::*;

#[test]
fn block_that_another_thread_frees_is_counted_once() {
    let owner = LedgerOwner::version("small blocks", 1);
    let tag = owner.tag(LedgerHolder::Output);
    tag.add_small(100);
    owner.tag(LedgerHolder::State).add_small(7);
    std::thread::spawn(move || {
        tag.remove_small(60);
        assert_eq!(owner.small_bytes(LedgerHolder::Output), 40);
        tag.remove_small(40);
        tag.add_small(5);
    })
    .join()
    .unwrap();
    // The table of a thread that has ended still counts.
    assert_eq!(
        (owner.small_bytes(LedgerHolder::Output), owner.small_bytes(LedgerHolder::State)),
        (5, 7)
    );
    // Nothing is drawn from the budget.
    assert_eq!(owner.total(), 0);
}

#[test]
fn ended_threads_leave_their_tables_to_new_ones() {
    let tag = LedgerOwner::version("small blocks of threads", 1).tag(LedgerHolder::Output);
    let count = || LEDGER.small.all.lock().len();
    let run = || std::thread::spawn(move || tag.add_small(1)).join().unwrap();
    run();
    let before = count();
    (0..100).for_each(|_| run());
    // Other tests have threads, too, but not a hundred.
    assert!(count() < before + 100, "{} tables, {before} before", count());
    assert_eq!(tag.owner.small_bytes(LedgerHolder::Output), 101);
}
