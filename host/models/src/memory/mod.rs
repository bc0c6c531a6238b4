//! The memory report: what the ledger has entered, and what is measured when the report is made, by
//! model, version and use.

mod entry;
mod measured;
mod owner;
mod report;
mod unload;

pub use entry::{MemoryEntry, OwnerMemory, Totals};
pub use owner::version_memory;
pub use report::{MemoryReport, ModelMemory};
pub use trtserver_device::LoadGrowth;
pub use unload::{UnloadReport, log_in_use};
