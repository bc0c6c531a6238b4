//! Ledger of memory: how many bytes each model version and the server itself hold, and for what.
//!
//! A large block is entered under its [`MemoryTag`] by the reservation that pays for it
//! (`budget/`), a small one by the thread that allocates or frees it (`small_blocks.rs`), GPU and
//! pinned memory by its pool (`device/`). What is entered nowhere is measured when the ledger is
//! read (`models/src/memory`). Each owner's counters are on cache lines of their own: models share
//! nothing but the list of owners, which is locked only when a model is loaded.

mod holder;
mod process;
mod small_blocks;
mod table;

pub use holder::{HOLDERS, LedgerHolder};
pub use process::ProcessMemory;
use small_blocks::ThreadTables;
pub use table::LedgerTable;

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use table::MAX_OWNERS;

/// Who holds memory: a model version, a model as a whole, or the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LedgerOwner(u32);

/// An owner, and what it uses the memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryTag {
    pub owner: LedgerOwner,
    pub holder: LedgerHolder,
}

impl Default for MemoryTag {
    fn default() -> Self {
        LedgerHolder::RequestBody.into()
    }
}

impl From<LedgerHolder> for MemoryTag {
    /// Memory whose model is not known, or that belongs to none.
    fn from(holder: LedgerHolder) -> Self {
        Self { owner: LedgerOwner::SERVER, holder }
    }
}

/// The name of an owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnerName {
    pub model: Arc<str>,
    /// `None` for what all versions of the model share.
    pub version: Option<i64>,
}

/// Process-wide: memory is removed from it where it is dropped, which knows its tag alone.
static LEDGER: Ledger = Ledger::new();

/// Bytes by owner and holder.
struct Ledger {
    /// What is drawn individually.
    drawn: LedgerTable,
    /// Their numbers are those of [`LedgerOwner`]; 0 is the server. An owner is never removed,
    /// because its memory may outlive its model.
    owners: Mutex<BTreeMap<OwnerName, LedgerOwner>>,
    small: ThreadTables,
}

impl Ledger {
    const fn new() -> Self {
        let owners = Mutex::new(BTreeMap::new());
        Self { drawn: LedgerTable::new(), owners, small: ThreadTables::new() }
    }
}

impl LedgerOwner {
    pub const SERVER: Self = Self(0);

    /// The version `version` of `model`.
    pub fn version(model: &str, version: i64) -> Self {
        Self::named(OwnerName { model: model.into(), version: Some(version) })
    }

    /// What all versions of `model` share.
    pub fn model(model: &str) -> Self {
        Self::named(OwnerName { model: model.into(), version: None })
    }

    fn named(name: OwnerName) -> Self {
        let mut owners = lock_owners();
        let next = owners.len() + 1;
        if let Some(owner) = owners.get(&name) {
            return *owner;
        }
        if next >= MAX_OWNERS {
            return Self::SERVER;
        }
        let owner = Self(next as u32);
        owners.insert(name, owner);
        owner
    }

    pub fn tag(self, holder: LedgerHolder) -> MemoryTag {
        MemoryTag { owner: self, holder }
    }

    /// Bytes of [`MemoryTag::add`].
    pub fn bytes(self, holder: LedgerHolder) -> usize {
        LEDGER.drawn.bytes(self, holder)
    }

    /// Bytes of all holders.
    pub fn total(self) -> usize {
        HOLDERS.into_iter().map(|holder| self.bytes(holder)).sum()
    }
}

impl MemoryTag {
    /// Enters `bytes`.
    pub fn add(self, bytes: usize) {
        LEDGER.drawn.add(self, bytes);
    }

    /// Removes `bytes` that were entered.
    pub fn remove(self, bytes: usize) {
        LEDGER.drawn.remove(self, bytes);
    }
}

/// All owners but the server, by name.
pub fn named_owners() -> BTreeMap<OwnerName, LedgerOwner> {
    lock_owners().clone()
}

fn lock_owners() -> MutexGuard<'static, BTreeMap<OwnerName, LedgerOwner>> {
    LEDGER.owners.lock()
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
