//! Small blocks, which are not drawn from the memory budget. Each thread counts them in a table of
//! its own, so that threads of one model share no cache line: a block that one thread allocates and
//! another frees is the difference of two tables.

use super::{LEDGER, LedgerHolder, LedgerOwner, LedgerTable, MemoryTag};
use parking_lot::Mutex;
use std::cell::Cell;

/// The tables of threads.
pub(super) struct ThreadTables {
    /// Never freed, since what a thread has allocated may outlive it.
    all: Mutex<Vec<&'static LedgerTable>>,
    /// Tables of threads that have ended, for new threads.
    unused: Mutex<Vec<&'static LedgerTable>>,
}

impl ThreadTables {
    pub(super) const fn new() -> Self {
        Self { all: Mutex::new(Vec::new()), unused: Mutex::new(Vec::new()) }
    }
}

thread_local! {
    static TABLE: Cell<Option<&'static LedgerTable>> = const { Cell::new(None) };
    static GIVE_BACK: GiveBack = const { GiveBack };
}

/// Gives the table of a thread back when the thread ends.
struct GiveBack;

impl Drop for GiveBack {
    fn drop(&mut self) {
        LEDGER.small.unused.lock().extend(TABLE.take());
    }
}

/// The table of this thread.
fn ledger_table() -> &'static LedgerTable {
    TABLE.get().unwrap_or_else(new_table)
}

#[cold]
fn new_table() -> &'static LedgerTable {
    let unused = LEDGER.small.unused.lock().pop();
    let table = unused.unwrap_or_else(|| {
        let table: &'static LedgerTable = Box::leak(Box::default());
        LEDGER.small.all.lock().push(table);
        table
    });
    TABLE.set(Some(table));
    // Refused while the thread ends: then the table is not used again.
    let _ = GIVE_BACK.try_with(|_| ());
    table
}

impl MemoryTag {
    /// Enters a block that is not drawn from the memory budget.
    pub fn add_small(self, bytes: usize) {
        ledger_table().add_alone(self, bytes);
    }

    /// Removes a block that was entered, by any thread.
    pub fn remove_small(self, bytes: usize) {
        ledger_table().add_alone(self, bytes.wrapping_neg());
    }
}

impl LedgerOwner {
    /// Bytes of [`MemoryTag::add_small`].
    pub fn small_bytes(self, holder: LedgerHolder) -> usize {
        let tables = LEDGER.small.all.lock();
        let sum = tables.iter().fold(0usize, |sum, t| sum.wrapping_add(t.bytes(self, holder)));
        // A block that moves from thread to thread while the tables are read may be seen only where
        // it is removed.
        usize::try_from(sum.cast_signed()).unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "small_blocks_tests.rs"]
mod tests;
